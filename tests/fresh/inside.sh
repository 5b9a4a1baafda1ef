#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# fresh.sh runs this in the fresh machine, as its first process: the first hour with qCUDA.
set -uo pipefail
export LC_ALL=C
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 2
log=/tmp/log

step() {
	echo "inside: $SECONDS s: $*"
}

bad() {
	echo "inside: $*"
	exit 1
}

# expect PATTERN: the log has a line like this.
expect() {
	grep -q -E -e "$1" $log || bad "there is no line like: $1"
}

# The power fails while the first `make demo` unpacks packages: nothing but this process survives. dpkg has
# begun several packages by then, and has not yet written them into its list of packages.
step "make demo, cut off while it installs packages"
make demo >$log 2>&1 &
while kill -0 $! 2>/dev/null; do
	begun=(/var/lib/dpkg/updates/[0-9]*)
	[ ${#begun[@]} -lt 20 ] || break
	sleep 0.02
done
kill -KILL -1
wait
grep -q . /var/lib/dpkg/updates/[0-9]* || {
	cat $log
	bad "dpkg was not cut off"
}
# Between two of its notes, dpkg has unpacked a package that its list still calls half unpacked.
last=$(grep -l '^Status: install ok unpacked' /var/lib/dpkg/updates/[0-9]* | tail -n 1)
[ -n "$last" ] || bad "dpkg has unpacked no package"
sed -i 's/^Status: install ok unpacked/Status: install reinstreq unpacked/' "$last"

# The commands that the README shows, as they stand there.
PATH=$PATH:/usr/local/cuda/bin
mapfile -t commands < <(awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on { sub(/ +#.*/, ""); print }' README.md)
[ "${commands[*]:0:2}" = 'make demo make test' ] || bad "the README begins with other commands: ${commands[*]}"
for command in "${commands[@]}"; do
	if [ "$command" = 'make test' ] && [ "${1:-}" != --test ]; then
		continue
	fi
	step "$command"
	bash -c "$command" 2>&1 | tee $log || bad "$command ended with an error"
	case $command in
	'make demo')
		expect 'All four programs ran in the VM'
		for p in device_query vector_add matmul bandwidth; do
			expect "^$p .* ok$"
		done
		[ -z "$(dpkg --audit)" ] || bad "packages are left half installed"
		;;
	'scripts/qcu check '*) expect '^It runs with qCUDA' ;;
	'scripts/qcu run '*) expect "sums equal the CPU's" ;;
	'scripts/qcu trace '*) expect ' LAUNCH$' ;;
	'scripts/qcu doctor') expect '^Nothing keeps qCUDA from working here' ;;
	esac
done

step "scripts/deps, with nothing left to do"
scripts/deps >$log 2>&1 || bad "scripts/deps ended with $?"
[ ! -s $log ] || bad "scripts/deps still had something to do: $(cat $log)"

step "a program of our own"
mkdir ~/mine
cat >~/mine/first.cu <<'EOF'
#include <cstdio>
#include <cstdlib>

__global__ void add(int *x, int n)
{
	*x += n;
}

int main(int argc, char **argv)
{
	int *x, y = argc;

	cudaMalloc(&x, sizeof(y));
	cudaMemcpy(x, &y, sizeof(y), cudaMemcpyHostToDevice);
	add<<<1, 1>>>(x, atoi(argv[1]));
	cudaMemcpy(&y, x, sizeof(y), cudaMemcpyDeviceToHost);
	printf("%s: %d\n", cudaGetErrorString(cudaGetLastError()), y);
	return y == 42 ? 3 : 1;
}
EOF
/usr/local/cuda/bin/nvcc -cudart shared -o ~/mine/first ~/mine/first.cu || bad "nvcc ended with $?"
scripts/qcu run ~/mine/first 40 >$log 2>&1
rc=$?
cat $log
[ $rc -eq 3 ] || bad "the program ended with $rc, expected 3"
expect '^no error: 42$'

step "all is well"
