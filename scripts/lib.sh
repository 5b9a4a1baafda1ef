# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Functions that the scripts share: how a script fails, where the cache is, how a
# directory is added to the cache atomically, and how packages are fetched without
# a change to the machine's own package lists. This file is sourced, never run.

set -euo pipefail
# shellcheck disable=SC2034 # for scripts/qcu
user_umask=$(umask) # for files that are made in the caller's name
umask 022
# shellcheck disable=SC2034 # for scripts/qcu
user_locale=${LC_ALL:-${LC_CTYPE:-${LANG:-}}}
export LC_ALL=C

self=$(basename "$0")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${QCU_CACHE:-${HOME:-/root}/.cache/qcuda}
# What qcu tune --save has found. A relative XDG_CONFIG_HOME counts as none.
settings=
case ${XDG_CONFIG_HOME:-} in
/*) settings=$XDG_CONFIG_HOME/qcuda/run ;;
*) [ -z "${HOME:-}" ] || settings=$HOME/.config/qcuda/run ;;
esac
dist=trixie # this release of Debian has QEMU 10.0

# The file descriptor that notes go to. scripts/qcu changes it, to separate the notes from the
# shell's own messages. Where notes cannot be written, the work goes on.
notes=2
note() {
	local again=$progress_text
	progress_end
	echo "$self: $*" >&"$notes" 2>/dev/null || true
	[ -z "$again" ] || progress "$again"
}

# terminal_obeys FD: is a terminal there that understands escape sequences?
terminal_obeys() {
	[ -t "$1" ] && [ "${TERM:-dumb}" != dumb ]
}

# progress TEXT: from the third second on, the last line of the terminal has TEXT and how long it takes already. The line
# is gone after progress_end, and when the script ends.
progress_pid='' progress_text=''
progress() {
	progress_end
	[ $BASHPID -eq $$ ] && terminal_obeys "$notes" || return 0
	progress_text=$1
	tell_progress "$1" >&"$notes" 2>/dev/null &
	progress_pid=$!
}

progress_end() {
	# Some parts of a script run in processes of their own.
	[ -n "$progress_pid" ] && [ $BASHPID -eq $$ ] || return 0
	kill "$progress_pid" 2>/dev/null || true
	wait "$progress_pid" 2>/dev/null || true
	progress_pid='' progress_text=''
}

tell_progress() {
	local shown='' s x
	trap - EXIT HUP
	trap 'printf "$shown"; exit' TERM INT
	exec {x}<> <(:)
	for ((s = 0; ; s++)); do
		if [ $s -ge 2 ]; then
			shown='\r\e[K'
			printf '\r\e[K%s: %s (%d s)' "$self" "$1" "$s"
		fi
		read -r -t 1 -u "$x" || true
		kill -0 $$ 2>/dev/null || kill -TERM "$BASHPID"
	done
}

# long TEXT COMMAND...: runs COMMAND, whose output is for the user. On a terminal there is progress instead, and the end of
# the output follows if COMMAND fails.
long() {
	local text=$1 log
	shift
	if ! terminal_obeys "$notes"; then
		"$@" >&"$notes" 2>&1
		return
	fi
	log=$(mktemp)
	progress "$text"
	if "$@" >"$log" 2>&1; then
		progress_end
		rm -f "$log"
		return
	fi
	progress_end
	tail -n 40 "$log" >&"$notes"
	rm -f "$log"
	return 1
}

# Every failure prints one sentence and ends with exit code 2.
die() {
	note "$*"
	exit 2
}

# print_help [TOPIC]: prints what usage prints, and ends the script.
print_help() {
	usage "$@" 2>/dev/null || die 'the output cannot be written'
	exit 0
}

# installed: is this the launcher of a package, and not in a checkout? Then nothing can be built here.
installed() {
	[ -e "$root/INSTALLED" ]
}

# print_version NAME: prints the version of the package, or of the checkout, whose last commit has this date.
print_version() {
	local version
	if installed; then
		version=$(cat "$root/INSTALLED")
	else
		version=$(version_of_checkout)
	fi
	echo "$1 $version" 2>/dev/null || die 'the output cannot be written'
}

version_of_checkout() {
	echo "0.1+git$(git -C "$root" log -1 --format=%cd --date=format:%Y%m%d.%H%M%S 2>/dev/null || date -u +%Y%m%d)"
}

# NVIDIA's libraries that we have our own of, besides the runtime, the driver's and NVML; the last four are names of
# CUDA 12. Those of cuDNN are built only where its header is.
# shellcheck disable=SC2034
cudnn_libraries=(libcudnn.so.9 libcudnn_{adv,cnn,engines_precompiled,engines_runtime_compiled,engines_tensor_ir}.so.9
	libcudnn_{ext,graph,heuristic,ops}.so.9)
# shellcheck disable=SC2034
nvidia_libraries=(libcublas.so.13 libcublasLt.so.13 libcufft.so.12 libcurand.so.10 libcusolver.so.12 libcusparse.so.12
	libnccl.so.2 libcufile.so.0 libcublas.so.12 libcublasLt.so.12 libcufft.so.11 libcusolver.so.11)

# at_exit COMMAND: runs COMMAND on every way out of the script. The last one added runs first.
cleanups=()
at_exit() {
	cleanups+=("$*")
}
run_cleanups() {
	local rc=$? i
	progress_end
	for ((i = ${#cleanups[@]} - 1; i >= 0; i--)); do
		eval "${cleanups[i]}" || true
	done
	cleanups=()
	exit "$rc"
}
trap run_cleanups EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

need() {
	local c
	for c in "$@"; do
		command -v "$c" >/dev/null || die "$c is missing; run scripts/deps first"
	done
}

# Runs a command from the sbin folders, which an ordinary user's PATH may not contain.
sbin() {
	PATH=$PATH:/usr/sbin:/sbin "$@"
}

# vermagic MODULE: prints the kernel that MODULE is for.
vermagic() {
	sbin modinfo -F vermagic "$1" | grep . ||
		die "modinfo cannot tell which kernel $1 is for; run scripts/deps first, or remove the file"
}

# temporary NAME [keep]: makes a folder and sets tmp to it. The script removes the
# folder when it ends. If the script is killed, the watcher removes the folder.
temporary() {
	tmp=$(mktemp -u "${TMPDIR:-/tmp}/$1.XXXXXX")
	# A socket's path has 107 characters at most.
	[ ${#tmp} -lt 80 ] || tmp=$(mktemp -u "/tmp/$1.XXXXXX")
	[ -n "${2:-}" ] || watch_temporary
	mkdir -m 700 "$tmp" 2>/dev/null ||
		die "no folder can be made in ${tmp%/*}; set TMPDIR to one where that is possible"
	[ -n "${2:-}" ] || at_exit "rm -rf '$tmp'"
}

# Removes the folder when this script has ended, even if it was killed. This is started before the
# folder is made, so that no kill comes too early for it.
watch_temporary() {
	# Remove it twice: processes that write to the folder may still be ending.
	# shellcheck disable=SC2016
	setsid sh -c 'tail -f --pid="$1" /dev/null; rm -rf "$2"; sleep 2; rm -rf "$2"' \
		sh $$ "$tmp" </dev/null >/dev/null 2>&1 &
	watcher=$!
	disown
	at_exit "kill -KILL -- -$watcher 2>/dev/null || kill -KILL $watcher 2>/dev/null"
}

# size_to_kb SIZE: prints how many KiB a size such as 2G is.
size_to_kb() {
	local n=${1%[KMGTkmgt]}
	[[ $1 =~ ^[0-9]{1,9}[KMGTkmgt]?$ ]] || return 1
	case $1 in
	*[Kk]) echo "$((10#$n))" ;;
	*[Mm]) echo "$((10#$n * 1024))" ;;
	*[Gg]) echo "$((10#$n * 1024 * 1024))" ;;
	*[Tt]) echo "$((10#$n * 1024 * 1024 * 1024))" ;;
	*) echo "$((10#$n / 1024))" ;;
	esac
}

# need_space DIR MEGABYTES [VARIABLE]: fails if DIR, which VARIABLE chooses, has less free space.
need_space() {
	local free
	free=$(df -Pm "$1" | awk 'NR == 2 { print $4 }')
	[ "$free" -ge "$2" ] || die "$1 has $free MB free, but $2 MB are needed; free some space or set ${3:-QCU_CACHE}"
}

make_cache() {
	mkdir -p "$cache" 2>/dev/null || die "cannot create $cache; set QCU_CACHE to a folder that can be written"
	[ -w "$cache" ] || die "cannot write to $cache; set QCU_CACHE to a folder that can be written"
}

# lock NAME: waits for the script that holds the lock. That script most likely does our work.
lock() {
	local fd
	exec {fd}>"$cache/.$1.lock"
	if ! flock -n "$fd"; then
		note "waiting for another $1"
		flock "$fd"
	fi
}

# Makes a scratch folder in the cache, so that a rename into the cache is atomic. Its script holds a lock on it, so an
# older one that nobody holds is from a script that was killed.
scratch() {
	local dir old guard kept
	exec {guard}>"$cache/.scratch.lock"
	flock "$guard"
	for dir in "$cache/.$self".??????; do
		[ -d "$dir" ] || continue
		exec {old}<"$dir"
		! flock -n "$old" || rm -rf "$dir"
		exec {old}<&-
	done
	work=$(mktemp -d "$cache/.$self.XXXXXX")
	exec {kept}<"$work"
	flock "$kept"
	exec {guard}>&-
	at_exit "rm -rf '$work'"
}

# Sets the array $pip to a command. Meson's environment has pip, too. Otherwise one is made in the scratch
# folder.
find_pip() {
	pip=("$cache/venv/bin/python" -m pip)
	"${pip[@]}" --version >/dev/null 2>&1 && return
	pip=(python3 -m pip)
	"${pip[@]}" --version >/dev/null 2>&1 && return
	python3 -m venv "$work/venv" >/dev/null 2>&1 || die "there is no pip, and no Python environment can be made"
	pip=("$work/venv/bin/python" -m pip)
}

# fingerprint FILE_OR_FOLDER...: prints 12 characters of a hash over all files that a cached result
# depends on.
fingerprint() {
	(cd "$root" && find "$@" -type f -print0 | sort -z | xargs -0 sha256sum) | sha256sum | cut -c1-12
}

# Prints where this machine gets Debian from. apt itself reads its configuration
# here, so every format that apt knows is covered.
debian_uri() {
	local uri
	if [ -n "${QCU_DEBIAN_URI:-}" ]; then
		echo "$QCU_DEBIAN_URI"
		return
	fi
	uri=$(apt-get update --print-uris 2>/dev/null | sed -n -E \
		"s|^'(.*)/dists/(bookworm\|trixie\|forky\|sid\|stable\|testing\|oldstable)/.*|\1|p" | head -n1)
	[ -n "$uri" ] || die "no Debian package source found in this machine's apt configuration;" \
		"add one or set QCU_DEBIAN_URI to a Debian mirror"
	echo "$uri"
}

# Prints the settings by which this machine's apt reaches the network: proxies and similar, but no hooks.
apt_settings() {
	apt-config dump | grep -E '^Acquire::(http|https|ftp|Retries|Check-Valid-Until|Check-Date)' || true
}

# apt_private DIR: configures an apt that knows only Debian's $dist and keeps all
# its state in DIR.
apt_private() {
	local dir=$1 keys=/usr/share/keyrings/debian-archive-keyring.gpg uri
	[ -r "$keys" ] || die "Debian's keys are missing ($keys); install debian-archive-keyring"
	uri=$(debian_uri)
	mkdir -p "$dir/lists/partial" "$dir/archives/partial" "$dir/none"
	: >"$dir/status"
	echo "deb-src [signed-by=$keys] $uri $dist main" >"$dir/sources.list"
	{
		apt_settings
		cat <<-EOF
			Dir::Etc::main "$dir/none/none";
			Dir::Etc::parts "$dir/none";
			Dir::Etc::preferencesparts "$dir/none";
			Dir::Etc::sourcelist "$dir/sources.list";
			Dir::Etc::sourceparts "$dir/none";
			Dir::State::lists "$dir/lists";
			Dir::State::status "$dir/status";
			Dir::Cache "$dir";
			Dir::Cache::archives "$dir/archives";
			Acquire::Languages "none";
			APT::Sandbox::User "";
		EOF
	} >"$dir/apt.conf"
}

# in_apt DIR COMMAND...: runs COMMAND with the apt that apt_private configured.
in_apt() {
	local dir=$1
	shift
	APT_CONFIG=$dir/apt.conf "$@"
}

# system_qemu: prints this machine's own QEMU, if it has what our guest needs: a vhost-user device that
# can stand for any device (from QEMU 10.2 on), and 9p.
system_qemu() {
	local q d
	q=$(type -P qemu-system-x86_64) || return
	for d in vhost-user-test-device-pci virtio-9p-pci; do
		# QEMU 11.1 ends with 0 for a device that it does not have, too.
		[[ $("$q" -device "$d,help" 2>/dev/null) == *"$d options:"* ]] || return
	done
	readlink -f "$q"
}

# which_qemu [CHOICE]: prints own or system: which QEMU runs the guest. Ours is better, so it is used where
# it is there; it is built where no other can be used.
which_qemu() {
	local choice=${1:-${QCU_QEMU:-auto}}
	case $choice in
	own | system) echo "$choice" ;;
	auto)
		if ! "$root/scripts/build-qemu" --print-dir >/dev/null && system_qemu >/dev/null; then
			echo system
		else
			echo own
		fi
		;;
	*) die "QCU_QEMU=$choice: must be one of: own system auto" ;;
	esac
}
