#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Each word of docs/glossary.md has one meaning: the types that it lists exist, and no other structure, enum
# or typedef has the word in its name. A type that it lists is defined once, and each file to read exists.
set -euo pipefail
cd "$(dirname "$0")/../.."
mapfile -t files < <(git ls-files -- {qcu-library,qcu-driver,qcu-device,include}/'*.[ch]' | while read -r f; do
	[ ! -f "$f" ] || echo "$f"
done)

# "type NAME FILE" for each definition.
types() {
	awk '
		/^[[:space:]]*(typedef |static )*(const )?(struct|enum|union) [A-Za-z0-9_]+ \{/ {
			name = $0
			sub(/ \{.*/, "", name)
			sub(/.* /, "", name)
			print "type", name, FILENAME
		}
		/^typedef .*\{$/ { inside = 1 }
		/^typedef .*;/ || (/^\}.*;/ && inside) {
			inside = 0
			name = $0
			# A pointer to a function, a function, or the last word.
			if (match(name, /\(\*[A-Za-z0-9_]+\)\(/))
				name = substr(name, RSTART + 2)
			else if (match(name, /[A-Za-z0-9_]+\(/))
				name = substr(name, RSTART)
			else {
				sub(/(\[[^]]*\])?;.*/, "", name)
				sub(/.*[ *]/, "", name)
			}
			sub(/[^A-Za-z0-9_].*/, "", name)
			print "type", name, FILENAME
		}' "${files[@]}" | sort -u
}

# "word WORD", "lists WORD TYPE" and "reads WORD FILE" for each line of the table, with ~ for blanks.
words() {
	awk -F ' *\\| *' '
		/^\| / && $2 != "word" && NF == 6 {
			word = tolower($2)
			gsub(/ /, "~", word)
			print "word", word
			n = split($4, type, /[`, ]+/)
			for (i = 1; i <= n; i++)
				if (type[i] != "")
					print "lists", word, type[i]
			gsub(/`/, "", $5)
			print "reads", word, $5
		}
		/^\| / && NF != 6 { print "broken", $0 }' docs/glossary.md
}

bad=0
while read -r _ word file; do
	[ -e "$file" ] || { echo "$word: there is no $file" && bad=1; }
done < <(words | grep '^reads ')

{ words && types; } | awk '
	function offence(text) { print text; bad = 1 }
	# The pattern of a list: board_* stands for all names that begin with board_.
	function fits(name, list) {
		return list ~ /\*$/ ? index(name, substr(list, 1, length(list) - 1)) == 1 : name == list
	}

	$1 == "broken" { offence("a line of the table does not have four columns: " $0) }
	$1 == "word" { words[$2] = 1; nwords++ }
	$1 == "lists" { list[++lists] = $3; of[lists] = $2 }
	$1 == "type" { type[++types] = $2; file[types] = $3; files[$2] = files[$2] " " $3; count[$2]++ }

	END {
		if (types < 500 || nwords < 30)
			offence("hardly any types or words found")
		for (l = 1; l <= lists; l++) {
			found = 0
			for (t = 1; t <= types; t++)
				found += fits(type[t], list[l])
			if (!found)
				offence(of[l] ": there is no type " list[l])
			if (count[list[l]] > 1)
				offence(of[l] ": " list[l] " is defined in" files[list[l]])
		}
		for (t = 1; t <= types; t++) {
			n = split(tolower(type[t]), part, "_")
			for (i = 1; i <= n; i++) {
				word = part[i]
				if (!(word in words))
					sub(/s$/, "", word)
				if (!(word in words))
					continue
				good = 0
				for (l = 1; l <= lists && !good; l++)
					good = of[l] == word && fits(type[t], list[l])
				if (!good)
					offence(file[t] ": " type[t] ": the glossary does not list it for \"" word "\"")
			}
		}
		if (!bad)
			print nwords " words, " types " types"
		exit bad
	}' || bad=1
exit $bad
