#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The steps of a copy in docs/architecture.md: each function is in its file and names what leads to the
# next one, and there are no more than 20.
set -euo pipefail
cd "$(dirname "$0")/../.."
most=20
count=0 bad=0 next=''

# body FUNCTION FILE: prints the function.
body() {
	awk -v name="$1" '
		$0 ~ "^[a-z].*[ *]" name "\\(" && !/;$/ { on = 1 }
		on { print }
		on && /^}/ { exit }' "$2"
}

while IFS='|' read -r _ _ function file by _; do
	function=${function//[\` ]/} file=${file//[\` ]/}
	leads=${by%\`*} leads=${leads##*\`}
	if [ -n "$next" ] && [ "$next" != "$function" ]; then
		echo "after a call of $next() comes $function()"
		bad=1
	fi
	text=$(body "$function" "$file")
	if ! grep -qw "$leads" <<<"$text"; then
		echo "$file: $function() does not name $leads"
		bad=1
	fi
	# Without other words, the next function is called.
	next=''
	[[ $by =~ ^' `'[a-z_]*'` '$ ]] && next=$leads
	count=$((count + 1))
done < <(grep -E '^\| [0-9]+ \| `' docs/architecture.md)

if [ $count -lt 2 ] || [ $count -gt $most ]; then
	echo "a copy takes $count steps, and should take 2 to $most"
	bad=1
fi
echo "a copy takes $count steps"
exit $bad
