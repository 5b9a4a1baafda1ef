#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Folders are layers: tests/check/layers.txt lists the folders of each part, lowest first, and no file
# uses a file of a folder above its own. What a file uses is seen from its #include lines and from the
# symbols of its object file. Inside a folder no files use one another in a circle.
set -euo pipefail
cd "$(dirname "$0")/../.."
B=${B:-build}
plan=tests/check/layers.txt

# The facts, one per line: the lines of the plan, the files of its parts, what they include, and the
# symbols of their object files.
facts() {
	local parts f
	sed 's/^/plan /' "$plan"
	mapfile -t parts < <(sed -n 's/^\(qcu-[^: ]*\):.*/\1/p' "$plan")
	[ ${#parts[@]} -gt 0 ] || return
	mapfile -t files < <(find "${parts[@]}" -name '*.[ch]' | sort)
	printf 'file %s\n' "${files[@]}"
	grep -Ho '^[[:space:]]*#[[:space:]]*include[[:space:]]*"[^"]*"' "${files[@]}" |
		sed 's/^\([^:]*\):[^"]*"\(.*\)"$/include \1 \2/'
	objects=()
	for f in "${files[@]}"; do
		[ "${f%.c}" = "$f" ] || [ ! -e "$B/${f%.c}.o" ] || objects+=("$B/${f%.c}.o")
	done
	[ ${#objects[@]} -eq 0 ] || nm -A -P "${objects[@]}" | awk -v b="$B/" '
		{ sub(/\.o:$/, ".c", $1); print "symbol", substr($1, length(b) + 1), $2, $3 }'
}

# shellcheck disable=SC2016
facts | awk -v plan="$plan" -v b="$B" '
	function offence(text) { if (!(text in said)) { said[text] = 1; print text; bad = 1 } }
	function dir(path) { sub(/\/[^\/]*$/, "", path); return path }
	function named(symbol) { return kind[symbol] ~ /[TWi]/ ? symbol "()" : symbol }

	# The path of a file without its "." and ".." parts.
	function plain(path) {
		gsub(/\/\.\//, "/", path)
		while (sub(/[^\/]+\/\.\.\//, "", path)) {}
		return path
	}

	# exempt(KEY): the plan says that KEY is no offence. An exemption that nothing needs is an offence.
	function exempt(key) { if (key in exempted) used[key] = 1; return key in exempted }

	$1 == "plan" {
		why = /#/
		sub(/^plan /, "")
		sub(/[ \t]*#.*/, "")
		if (!NF)
			next
		what = $1
		if (what == "circle:" || what == "elsewhere:" || what == "anyone:") {
			if (!why)
				offence(plan ": a line \"" what "\" does not say why: " $0)
			if (what != "circle:") {
				for (i = 2; i <= NF; i++)
					exempted[what " " $i] = 1
				next
			}
			key = what
			for (i = 2; i <= NF; i++)
				key = key " " $i
			exempted[key] = 1
			next
		}
		sub(/:$/, "", what)
		for (i = 2; i <= NF; i++) {
			folder = $i == "." ? what : what "/" $i
			level[folder] = ++levels
			part[folder] = what
		}
		next
	}

	$1 == "file" {
		if (!(dir($2) in level))
			offence($2 " lies in a folder that " plan " does not name")
		holds[dir($2)] = 1
		exists[$2] = 1
		list[++files] = $2
		next
	}

	$1 == "include" { from[++includes] = $2; to[includes] = $3; next }

	$1 == "symbol" && $4 ~ /^[Uwv]$/ { user[++uses] = $2; wants[uses] = $3; object[$2] = 1; next }
	$1 == "symbol" {
		object[$2] = 1
		if ($4 !~ /^[A-Zui]$/)
			next
		# Two plugins may define the same symbol. Then the lower one counts.
		if (!($3 in home) || level[dir($2)] < level[dir(home[$3])]) {
			home[$3] = $2
			kind[$3] = $4
		}
	}

	function check_include(file, name,   top) {
		if (plain(dir(file) "/" name) in exists)
			name = dir(file) "/" name
		name = plain(name)
		top = name
		sub(/\/.*/, "", top)
		if (top ~ /^(qcu-[a-z]*|tests|perf|scripts)$/ && index(file, top "/") != 1)
			offence(file " includes " name ", which is not of its part")
		else if (dir(name) in level && part[dir(name)] == part[dir(file)] && level[dir(name)] > level[dir(file)])
			offence(file " includes " name ", a layer above")
	}

	function check_use(file, symbol,   other) {
		if (!(symbol in home) || exempt("anyone: " symbol))
			return
		other = home[symbol]
		if (other == file || part[dir(other)] != part[dir(file)])
			return
		if (level[dir(other)] > level[dir(file)])
			offence(file " uses " named(symbol) " of " other ", a layer above")
		else if (dir(other) == dir(file)) {
			reach[file, other] = 1
			edge[file, other] = edge[file, other] " " named(symbol)
		}
	}

	# check_circles(FOLDER): two files are in the same circle if each reaches the other.
	function check_circles(folder,   n, m, i, j, k, key, text) {
		n = 0
		for (i = 1; i <= files; i++)
			if (dir(list[i]) == folder)
				local[++n] = list[i]
		for (k = 1; k <= n; k++)
			for (i = 1; i <= n; i++)
				for (j = 1; j <= n; j++)
					if ((local[i], local[k]) in reach && (local[k], local[j]) in reach)
						reach[local[i], local[j]] = 1
		for (i = 1; i <= n; i++) {
			if (local[i] in done || !((local[i], local[i]) in reach))
				continue
			key = "circle:"
			m = 0
			for (j = 1; j <= n; j++)
				if ((local[i], local[j]) in reach && (local[j], local[i]) in reach) {
					done[local[j]] = 1
					key = key " " local[j]
					member[++m] = local[j]
				}
			if (exempt(key))
				continue
			text = substr(key, 9) " use one another:"
			for (j = 1; j <= m; j++)
				for (k = 1; k <= m; k++)
					if ((member[j], member[k]) in edge)
						text = text "\n\t" member[j] " uses" edge[member[j], member[k]] " of " member[k]
			offence(text)
		}
	}

	END {
		for (i = 1; i <= files; i++)
			if (list[i] ~ /\.c$/ && !(list[i] in object) && !exempt("elsewhere: " dir(list[i])) &&
			    !exempt("elsewhere: " list[i]))
				offence(list[i] " has no object file in " b "; run make")
		for (i = 1; i <= includes; i++)
			check_include(from[i], to[i])
		for (i = 1; i <= uses; i++)
			check_use(user[i], wants[i])
		for (folder in level) {
			if (!(folder in holds))
				offence(plan ": " folder " has no files")
			check_circles(folder)
		}
		for (key in exempted)
			if (!(key in used))
				offence(plan ": nothing needs the line \"" key "\" any more")
		if (!files || !uses)
			offence(plan ": nothing was checked")
		if (!bad)
			print files " files, " includes " includes and " uses " uses of symbols are in order"
		exit bad
	}'
