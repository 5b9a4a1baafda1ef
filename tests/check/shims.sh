#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The generator of shims, on a small header: remarks that are wrong are refused with a sentence; what no rule
# explains is not served; each kind of parameter is packed and unpacked as it should be.
set -euo pipefail
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

cat >"$tmp/small.h" <<'EOF'
typedef struct context *handle_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct matrix *matrix_t;
typedef struct plan *plan_t;
typedef enum { GOOD, BAD } status_t;
typedef struct { int a, b; } pair_t;
status_t scale(handle_t h, int n, double by, const float *alpha, float *x);
status_t sum(handle_t h, long long n, const float *x, float *result);
status_t hosts(handle_t h, int count, const int sizes[], int *info, const char *name);
status_t set(handle_t h, int mode);
typedef enum { FAST, EXACT } way_t;
status_t seed(handle_t h, unsigned long long s, way_t way, double share);
status_t choose(handle_t h, way_t way);
status_t work(handle_t h, int m, float *x, void *buffer, unsigned long bytes, int n);
status_t work_size(handle_t h, int m, const float *x, unsigned long *bytes, int n);
status_t work_more(handle_t h, int extra, unsigned long *bytes);
status_t work_less(handle_t h, int m);
status_t on(handle_t h, cudaStream_t s, float *x);
status_t version(handle_t h, int *v);
status_t pairs(handle_t h, pair_t p);
status_t two(handle_t h, cudaStream_t s, cudaStream_t t);
status_t what(handle_t h, void *unexplained);
status_t make(matrix_t *m, int rows, void *x);
status_t count(handle_t h, matrix_t m, plan_t plan, int *pivot);
status_t use(handle_t h, plan_t plan, float *x);
status_t sparse(handle_t h, matrix_t m, int n, int nnz, const int *rows, const int *cols, float *x);
int other(handle_t h);
EOF
printf '%s\n' scale sum hosts set seed choose work work_size work_more work_less on pairs two what other gone make count use version sparse >"$tmp/small.syms"
cat >"$tmp/good" <<'EOF'
library small
soname libsmall.so.1
number 1
headers small.h
status status_t
invalid BAD
unserved BAD
unknown BAD
memory BAD
failed BAD
handle handle_t
scalar alpha
device x
unknown GOOD sum u*
param sum result result
param version h bare
param version v out sizeof(*v)
param hosts sizes in (uint64_t)count*sizeof(*sizes)
param hosts info out sizeof(*info)
bound hosts count 1 100
keeps number hosts
param hosts name text
sets set
numbers set
numbers seed
bound work_less m 0 9
out work_*
param work buffer scratch bytes by _size
bound sum n -2 7
bound scale by 0 4
inner set
descriptor matrix_t
second plan_t
makes make
param count m counted
param count pivot both
report count
steady sum count
after use count
param sparse rows device
param sparse cols device
csr sparse rows cols m n nnz device
EOF

# The generator is started once, and goes on in a new process for each call.
coproc SERVE { /usr/bin/python3 tests/shims_serve.py "$tmp/made" "$tmp/said"; }
exec {ask}>&"${SERVE[1]}" {hear}<&"${SERVE[0]}" # also for subshells
make_it() {
	local rc
	echo "$1 $tmp/small.remarks -I $tmp" >&"$ask"
	read -r rc <&"$hear" || exit
	cat "$tmp/made"
	cat "$tmp/said" >&2
	return "$rc"
}

# refused LINE SENTENCE: the remarks with this line are refused, and the message has these words.
refused() {
	{ cat "$tmp/good" && echo "$1"; } >"$tmp/small.remarks"
	if make_it guest >"$tmp/out" 2>"$tmp/err"; then
		echo "accepted: $1"
		exit 1
	fi
	grep -q -F -e "$2" "$tmp/err" || {
		echo "$1: $(cat "$tmp/err")"
		exit 1
	}
	[ "$(wc -l <"$tmp/err")" -eq 1 ]
}
refused 'nonsense x' 'unknown word'
refused 'param scale x somehow' 'unknown kind somehow'
refused 'param hosts sizes in' 'needs a size'
refused 'param hosts' 'needs functions'
refused 'keeps' 'needs one of'
refused 'keeps all hosts' 'needs one of'
refused 'keeps call' 'needs one of'
refused 'keeps call nothing' 'fits no function'
refused 'param nothing x device' 'fits no function'
refused 'param scale y device' 'fits no function'
refused 'param what unexplained result' 'the size of unexplained is not known'
refused 'param what unexplained scratch size' "needs the parameter that is its size, 'by', and"
refused 'hand nothing' 'there is no function nothing'
refused 'guest nothing' 'there is no function nothing'
refused 'like more nothing' 'there is no nothing'
refused 'soname a b' 'needs one value'
refused 'bound hosts count 1' 'needs functions, a parameter, the least and the greatest value'
refused 'bound hosts count one 2' 'invalid literal'
refused 'bound nothing n 0 1' 'fits no function'
refused 'bound scale m 0 1' 'fits no function'
refused 'bound scale n 2 1' 'scale: n cannot have these bounds'
refused 'bound seed s -1 1' 'seed: s cannot have these bounds'
refused 'bound seed s 0 0x8000000000000000' 'seed: s cannot have these bounds'
refused 'param scale x either' 'needs a size'
refused 'inner nothing' 'there is no function nothing'
refused 'bound scale x 0 1' 'scale: x is no number that can have a bound'
refused 'unknown GOOD nothing' "'unknown GOOD nothing' fits no function"
refused 'param scale x bare' 'scale: x is no object'
refused 'after use' 'needs a function and the one that comes before it'
refused 'after use sum' 'after use sum: they have no object in common'
refused 'after sum scale' 'after sum scale: they have no object in common'
refused 'after use gone' 'after use gone: they have no object in common'
refused 'csr sparse rows cols m n nnz' 'needs functions, two arrays, a description, two numbers, and host or device'
refused 'csr sparse rows cols m n nnz there' 'needs functions, two arrays, a description, two numbers, and host or device'
refused 'csr nothing rows cols m n nnz host' "'csr nothing' fits no function"
refused 'csr use rows cols m n nnz host' 'use: has no such matrix'
refused 'csr hosts sizes sizes h count count host' 'hosts: has no such matrix'
refused 'numbers nothing' 'there is no function nothing'

# without LINE SENTENCE: the remarks are refused if this line is missing, or another one is there instead.
without() {
	grep -v -x -F -e "$1" "$tmp/good" >"$tmp/small.remarks"
	[ $# -lt 3 ] || echo "$3" >>"$tmp/small.remarks"
	if make_it guest >"$tmp/out" 2>"$tmp/err"; then
		echo "accepted without: $1"
		exit 1
	fi
	grep -q -F -e "$2" "$tmp/err" || {
		echo "without $1: $(cat "$tmp/err")"
		exit 1
	}
}
# A count in a size has bounds, with which the call fits into a message, and no size is negative.
without 'bound hosts count 1 100' 'hosts: the size of sizes: count has no bound'
without 'bound hosts count 1 100' 'hosts: the size of sizes may be negative' 'bound hosts count -1 100'
without 'bound hosts count 1 100' 'hosts: with sizes the call may have 16777220 bytes' 'bound hosts count 1 4194305'
without 'bound hosts count 1 100' 'hosts: with sizes the call may have' 'bound hosts count 1 0x7fffffffffffffff'
without 'param hosts sizes in (uint64_t)count*sizeof(*sizes)' 'a size is neither a sum nor a product' \
	'param hosts sizes in count/2'
without 'param hosts sizes in (uint64_t)count*sizeof(*sizes)' 'hosts: the size of sizes: more has no bound' \
	'param hosts sizes in more+4'
without 'param hosts info out sizeof(*info)' 'hosts: info takes 20 bytes, and has room for 16' \
	'param hosts info result 5*sizeof(*info)'
# Host memory to work in is as large as another function says, with the same parameters.
line='param work buffer scratch bytes by _size'
without "$line" 'work: there is no function work_none' 'param work buffer scratch bytes by _none'
without "$line" 'work: h is no number' 'param work buffer scratch h by _size'
without "$line" 'work: has no extra for work_more' 'param work buffer scratch bytes by _more'
without "$line" 'work: work_less does not tell bytes' 'param work buffer scratch bytes by _less'
# A function of numbers alone has a word, or bounds for those that are integers.
without 'numbers set' "set: has only numbers; mode needs a bound, or the function a line 'numbers'"
without 'numbers seed' "seed: has only numbers; s needs a bound"
grep -v '^numbers' "$tmp/good" >"$tmp/small.remarks"
printf '%s\n' 'bound set mode 0 3' 'bound seed s 0 9' >>"$tmp/small.remarks"
make_it guest >"$tmp/out"
grep -v '^status' "$tmp/good" >"$tmp/small.remarks"
make_it guest >"$tmp/out" 2>"$tmp/err" && exit 1
grep -q "no line 'status'" "$tmp/err"
sed 's/small.h/absent.h/' "$tmp/good" >"$tmp/small.remarks"
make_it guest >"$tmp/out" 2>"$tmp/err" && exit 1
grep -q 'headers cannot be read' "$tmp/err"

cp "$tmp/good" "$tmp/small.remarks"
# The program itself says the same, and how it ended.
scripts/shims/generate guest "$tmp/small.remarks" -I "$tmp" >"$tmp/out"
make_it guest | diff "$tmp/out" -
! scripts/shims/generate guest "$tmp/nothing.remarks" 2>"$tmp/err" || exit 1
[ "$(make_it count)" = 'libsmall.so.1: 8 by rule, 8 by remark, 0 by hand, 5 not served' ]
make_it guest >"$tmp/guest"
make_it mirror >"$tmp/mirror"
make_it unserved >"$tmp/unserved"
make_it map >"$tmp/map"
for f in pairs two what other gone; do
	grep -q "(qcul_small, $f)" "$tmp/unserved"
	! grep -q "_$f(" "$tmp/guest" "$tmp/mirror"
done
[ "$(grep -c ';$' "$tmp/map")" -eq 23 ]

# A function that is newer than our headers is exported, but no rule and no pattern serves it, even if these headers
# declare it. The shim may have it by its name.
syms=$(cat "$tmp/small.syms")
sed -i 's/^on$/on later/' "$tmp/small.syms"
[ "$(make_it count)" = 'libsmall.so.1: 7 by rule, 8 by remark, 0 by hand, 6 not served' ]
make_it map >"$tmp/out"
grep -q '^\son;$' "$tmp/out"
make_it unserved >"$tmp/out"
grep -q '(qcul_small, on)' "$tmp/out"
refused 'guest on*' 'there is no function on*'
{ cat "$tmp/good" && echo 'guest on'; } >"$tmp/small.remarks"
[ "$(make_it count)" = 'libsmall.so.1: 7 by rule, 8 by remark, 1 by hand, 5 not served' ]
echo 'on newer' >>"$tmp/small.syms"
make_it guest >"$tmp/out" 2>"$tmp/err" && exit 1
grep -q 'small.syms: on newer: unknown word' "$tmp/err"
# A part of the library has the functions that name it; it may have none.
echo "$syms" >"$tmp/small.syms"
sed -i -e 's/^on$/on ops/' -e 's/^gone$/gone later ops/' "$tmp/small.syms"
make_it parts >"$tmp/out" 2>"$tmp/err" && exit 1
grep -q 'small.syms: on ops: unknown word' "$tmp/err"
{ cat "$tmp/good" && echo 'parts engines ops'; } >"$tmp/small.remarks"
make_it parts >"$tmp/out"
diff <(sed -n '/PART/,$p' "$tmp/out") <(printf '%s\n' '#ifdef PART_engines' '#endif' '' '#ifdef PART_ops' 'JUMP(on, on)' 'JUMP(gone, gone)' '#endif')
echo 'use later ops more' >>"$tmp/small.syms"
make_it parts >"$tmp/out" 2>"$tmp/err" && exit 1
grep -q 'small.syms: use later ops more: unknown word' "$tmp/err"
echo "$syms" >"$tmp/small.syms"
cp "$tmp/good" "$tmp/small.remarks"

# Each side in the order of the parameters. A double is a real, a count of 64 bits a value.
packed() {
	diff <(sed -n "/ $1(.*)\$/,/^}/p" "$tmp/guest" | sed -n 's/^\tqcul_lib_//p') -
}
packed scale <<'EOF'
begin(&pack, &qcul_small, FN_scale);
object(&pack, h, KIND_handle_t);
bound_real(&pack, by, 0, 4);
value(&pack, (uint64_t)n);
real(&pack, by);
scalar(&pack, (void *)alpha, sizeof(*alpha), 16, QCUL_LIB_IN);
device(&pack, x);
EOF
packed hosts <<'EOF'
begin(&pack, &qcul_small, FN_hosts);
object(&pack, h, KIND_handle_t);
bound(&pack, (int64_t)count, 1ll, 100ll);
value(&pack, (uint64_t)count);
in(&pack, sizes, (uint64_t)count*sizeof(*sizes));
out(&pack, info, sizeof(*info));
in(&pack, name, name ? strlen(name) + 1 : 0);
EOF
packed make <<'EOF'
begin(&pack, &qcul_small, FN_make);
made(&pack, (void **)m, KIND_matrix_t);
value(&pack, (uint64_t)rows);
device(&pack, x);
EOF
packed count <<'EOF'
begin(&pack, &qcul_small, FN_count);
object(&pack, h, KIND_handle_t);
descriptor(&pack, m, KIND_matrix_t);
out(&pack, m_size, sizeof(m_size));
second(&pack, plan, KIND_plan_t);
scalar(&pack, pivot, sizeof(*pivot), 16, QCUL_LIB_IN | QCUL_LIB_OUT);
report(&pack);
EOF
# A call with an object of the library's beside the handle never has a steady answer.
packed sum <<'EOF'
begin(&pack, &qcul_small, FN_sum);
object(&pack, h, KIND_handle_t);
bound(&pack, (int64_t)n, -2ll, 7ll);
value(&pack, (uint64_t)n);
device(&pack, x);
scalar(&pack, result, sizeof(*result), 16, QCUL_LIB_OUT);
steady(&pack);
EOF
packed version <<'EOF'
begin(&pack, &qcul_small, FN_version);
bare(&pack, h, KIND_handle_t);
out(&pack, v, sizeof(*v));
EOF
grep -q 'handle_t h = lib_bare(call, KIND_handle_t);' "$tmp/mirror"
[ "$(grep -c 'pack.unknown = GOOD;' "$tmp/guest")" -eq 2 ]
grep -q '\.missing = BAD,' "$tmp/guest"
grep -q 'return (status_t)qcul_small_counted(m, m_size, qcul_lib_call(&pack));' "$tmp/guest"
grep -q '\[FN_make\] = {"make", do_make, KIND_matrix_t, 1, 0, 0, 0},' "$tmp/mirror"
grep -q '\[FN_count\] = {"count", do_count, 0, 0, 1, 0, 0},' "$tmp/mirror"
grep -q '\[FN_hosts\] = {"hosts", do_hosts, 0, 0, 0, 0, LIB_KEEPS_NUMBER},' "$tmp/mirror"
grep -q '\[FN_use\] = {"use", do_use, 0, 0, 0, FN_count + 1, 0},' "$tmp/mirror"
grep -q 'return (status_t)qcul_lib_set(&pack);' "$tmp/guest"
grep -q 'qcul_lib_scalar(&pack, result, sizeof(\*result), 16, QCUL_LIB_OUT);' "$tmp/guest"
diff <(sed -n '/ do_hosts(/,/^}/p' "$tmp/mirror" | grep -v '^[{}]\|^$\|^static') - <<'EOF'
	handle_t h = lib_object(call, KIND_handle_t);
	int count = (int)lib_bounded(call, lib_value(call), 1ll, 100ll);
	uint64_t sizes_bytes;
	void *sizes = lib_in(call, &sizes_bytes);
	uint64_t info_bytes;
	void *info = lib_out(call, &info_bytes);
	uint64_t name_bytes;
	void *name = lib_text(call, &name_bytes);
	lib_sized(call, sizes, sizes_bytes, (uint64_t)count*sizeof(const int));
	lib_sized(call, info, info_bytes, sizeof(int));
	lib_ended(call, name, name_bytes);
	return lib_ready(call) ? (int)((__typeof__(&hosts))call->fn)(h, count, sizes, info, name) : 0;
EOF
grep -q '"set", do_set, KIND_handle_t' "$tmp/mirror"
# The shim has a function of this name itself.
grep -q '^status_t inner_set(' "$tmp/guest"

grep -q 'long long n = (long long)lib_bounded(call, lib_value(call), -2ll, 7ll);' "$tmp/mirror"
grep -q 'double by = (double)lib_bounded_real(call, lib_real(call), 0, 4);' "$tmp/mirror"

# The mirror asks how much host memory the library works in. The guest's number is not passed.
diff <(sed -n '/ do_work(/,/^}/p' "$tmp/mirror" | grep -v '^[{}]\|^$\|^static') - <<'EOF'
	handle_t h = lib_object(call, KIND_handle_t);
	int m = (int)lib_value(call);
	void *x = lib_device(call);
	void *buffer = NULL;
	unsigned long bytes = (unsigned long)lib_value(call);
	int n = (int)lib_value(call);
	__typeof__(&work_size) asked = lib_symbol(call->c->m, call->loaded, FN_work_size);
	unsigned long bytes_told = 0;
	if (!lib_ready(call))
		return 0;
	int status = asked ? (int)asked(h, m, x, &bytes_told, n) : call->lib->unserved;
	if (status)
		return status;
	bytes = bytes_told;
	buffer = lib_scratch(call, bytes);
	return !call->bad ? (int)((__typeof__(&work))call->fn)(h, m, x, buffer, bytes, n) : 0;
EOF

# Both sides have the same hash, and another one if a parameter changes.
hash() {
	sed -n 's/^#define QCU_LIB_TABLE //p' "$1"
}
[ "$(hash "$tmp/guest")" = "$(hash "$tmp/mirror")" ]
sed -i 's/int n, double by/long long n, double by/' "$tmp/small.h"
make_it guest >"$tmp/changed"
[ "$(hash "$tmp/guest")" != "$(hash "$tmp/changed")" ]

# ---- a library under its name of CUDA 12 ----

cat >"$tmp/older" <<'EOF'
soname libsmall.so.0
without sum
only ancient
old scale_in_ten work
drops buffer bytes
unknown way_t 1
gone way_t 7
answer other 12
EOF

# older LINE...: with these lines besides.
older() {
	{ cat "$tmp/older" && printf '%s\n' "$@"; } >"$tmp/small.cuda12"
	make_it older >"$tmp/out" 2>"$tmp/err"
}
refused_12() {
	! older "$1" || { echo "accepted: $1"; exit 1; }
	grep -q -F -e "$2" "$tmp/err" && [ "$(wc -l <"$tmp/err")" -eq 1 ] || { echo "$1: $(cat "$tmp/err")"; exit 1; }
}
refused_12 'nonsense x' 'small.cuda12:9: nonsense x: unknown word, or wrong number of words'
refused_12 'soname' 'wrong number of words'
refused_12 'old scale' 'wrong number of words'
refused_12 'answer count 1 2' 'wrong number of words'
refused_12 'unknown way_t first' 'invalid literal'
refused_12 'without nothing*' 'without nothing*: there is no such function'
refused_12 'only use' 'use: CUDA 13 has it, too'
refused_12 'old use scale' 'use: CUDA 13 has it, too'
refused_12 'old ancient_scale nothing' 'nothing: there is no such function'
refused_12 'answer nothing 1' 'nothing: there is no such function'
refused_12 'gone colour_t 1' 'colour_t: no function has such a parameter'
sed -i '/^soname/d' "$tmp/older"
refused_12 'only more' "there is no line 'soname'"
older 'soname libsmall.so.0'
# Jumps, checks, calls of the function with more parameters, answers, and what is not served.
[ "$(grep -c '^JUMP' "$tmp/out")" -eq 13 ]
! grep -q -w -e sum "$tmp/out"
grep -q '^JUMP(scale, scale)$' "$tmp/out"
grep -q '^UNSERVED(ancient)$' "$tmp/out"
grep -q '^UNSERVED(pairs)$' "$tmp/out"
grep -q '^status_t scale_in_ten(handle_t h, int m, float \*x, int n)$' "$tmp/out"
grep -q 'return in13_scale_in_ten(h, m, x, NULL, 0, n);' "$tmp/out"
[ "$(grep -c 'if ((int)way == 1)' "$tmp/out")" -eq 2 ]
grep -q 'qcul_lib_unserved(&this_library, "choose with way 7", &said)' "$tmp/out"
[ "$(make_it older-declarations | grep -c ';$')" -eq "$(($(grep -c '^JUMP' "$tmp/out") + 4))" ]
older 'soname libsmall.so.0' 'status 5 6 BAD'
! grep -q '^JUMP' "$tmp/out"
grep -q 'return old_status(in13_on(h, s, x));' "$tmp/out"

# A complex number travels in two parts. A function may go through one that is written by hand.
sed -i 's/^int other/typedef struct { float x, y; } cuComplex;\nstatus_t turn(handle_t h, cuComplex by, float *x);\n&/' "$tmp/small.h"
echo turn >>"$tmp/small.syms"
sed 's/^csr .*/& nnz/' "$tmp/good" >"$tmp/small.remarks"
printf '%s\n' 'through turn' >>"$tmp/small.remarks"
make_it guest >"$tmp/guest"
make_it mirror >"$tmp/turned"
packed turn <<'EOT'
begin(&pack, &qcul_small, FN_turn);
object(&pack, h, KIND_handle_t);
real(&pack, by.x);
real(&pack, by.y);
device(&pack, x);
EOT
grep -q 'return (status_t)qcul_lib_ask(&pack);' "$tmp/guest"
grep -q 'by.y = lib_real(call);' "$tmp/turned"
grep -q 'return lib_ready(call) ? lib_through_turn(call, h, by, x) : 0;' "$tmp/turned"
grep -q '.width = (uint64_t)nnz, ' "$tmp/turned"
refused 'through nothing' 'there is no function nothing'
refused 'bound turn by 0 1' 'turn: by is no number that can have a bound'
refused 'csr use rows cols m n nnz device x' 'use: has no such matrix'

# The library gets a checked copy of a sparse matrix's structure.
grep -q 'csr = {.rows = rows, .cols = cols, .n = (uint64_t)n, .width = (uint64_t)n, .nnz = (uint64_t)nnz};' "$tmp/mirror"
grep -q 'csr.device = true;' "$tmp/mirror"
grep -q 'lib_csr_begin(call, &csr, m);' "$tmp/mirror"
grep -q '(h, m, n, nnz, (void \*)csr.rows, (void \*)csr.cols, x);' "$tmp/mirror"
exec {ask}>&- {SERVE[1]}>&-
wait
