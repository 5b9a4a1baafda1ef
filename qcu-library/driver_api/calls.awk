# SPDX-License-Identifier: LGPL-2.1-or-later
# Reads the preprocessed headers of both APIs, from one semicolon to the next, and then cuda.syms:
#
#	awk -f calls.awk RS=';' HEADERS RS='\n' cuda.syms
#
# Prints C macros for the functions of the driver API:
#
#	FORWARD(cuX, cudaX, (TYPE a1, ...), (TYPE)a1, ...)
#		a function that is the runtime's
#	SAME(TYPE, TYPE)
#		types that stand for each other in a FORWARD
#	ENTRY(cuX, NEEDS, STREAM, (TYPE a1, ...), a1, ...)
#		a function that needs something, and the argument that is its stream, or 0

RS == ";" {
	gsub(/[ \n]+/, " ")
	if (!match($0, /(CUresult|cudaError_t) cu[A-Za-z0-9_]+ ?\([^()]*\) ?$/))
		next
	name = parameters = substr($0, RSTART, RLENGTH)
	gsub(/^[^ ]* | ?\(.*/, "", name)
	gsub(/^[^(]*\( ?| ?\) ?$/, "", parameters)
	n = parameters == "void" ? 0 : split(parameters, list, / ?, ?/)
	count[name] = n
	for (i = 1; i <= n; i++) {
		sub(/[A-Za-z0-9_]+$/, "", list[i]) # the parameter's name
		type[name, i] = list[i]
	}
	next
}

function wrong(what) {
	print FILENAME ": " $1 ": " what >"/dev/stderr"
	exit 1
}

/^#/ || $2 !~ /^(implemented|runtime:.*)$/ { next }

{
	if ($4 !~ /^(nothing|cuInit|context|stream)$/)
		wrong("it does not say what it needs")
	if (!($1 in count))
		wrong("no header declares it")
	n = count[$1]
	declared = n ? "" : "void"
	given = stream = ""
	for (i = 1; i <= n; i++) {
		declared = declared (i > 1 ? ", " : "") type[$1, i] " a" i
		given = given ", a" i
		if (stream == "" && type[$1, i] ~ /^CUstream ?$/)
			stream = "a" i
	}
}

$2 ~ /^runtime:/ {
	other = substr($2, 9)
	if (count[other] != n)
		wrong(other " has other parameters")
	cast = ""
	for (i = 1; i <= n; i++) {
		here = type[$1, i]
		there = type[other, i]
		print "SAME(" here ", " there ")"
		if (here ~ /\*$/ && there ~ /\*$/ && there !~ /void \*$/)
			print "SAME(*(" here ")0, *(" there ")0)"
		# Not directly from one type of functions to another.
		cast = cast ", (" there (there ~ /[cC]allback(_t)? ?$/ ? ")(void *)a" : ")a") i
	}
	print "FORWARD(" $1 ", " other ", (" declared ")" cast ")"
}

$4 == "stream" && stream == "" { wrong("it has no stream") }

$4 != "nothing" { print "ENTRY(" $1 ", " $4 ", " (stream == "" ? "0" : stream) ", (" declared ")" given ")" }
