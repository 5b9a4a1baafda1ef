#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# vulkan.sh runs this in the Debian of the archive, where /qcu is a small checkout, and /out is its caller's folder. Each
# step has a time limit and leaves /logs/STEP.{out,err,rc}; the first ways that work serve for the later steps.
#
# LIMIT is in seconds, SLOW multiplies the limits of steps, SKIP has names of steps, and SOFTWARE means lavapipe and the
# software GPU.
set -uo pipefail
export LC_ALL=C QCU_CACHE=/tmp/cache QCU_BUILD=/qcu/build QCU_SLOW=${SLOW:-1}
# QEMU's own OpenGL: Mesa's driver that needs no LLVM.
export GALLIUM_DRIVER=softpipe
# What the loader, virglrenderer and Mesa's driver in the guest say.
export VK_LOADER_DEBUG=error,warn,driver VIRGL_LOG_LEVEL=debug VN_DEBUG=init,result
qcu=/qcu/scripts/qcu bin=/qcu/build/vulkan logs=/logs
compute=$bin/compute both=$bin/both
limit=${LIMIT:-380}
native_driver=4 gpu=cuda icd=/etc/vulkan/icd.d/nvidia_icd.json cuda_lib=/usr/local/cuda/lib64 # 4: NVIDIA's
if [ -n "${SOFTWARE:-}" ]; then
	native_driver=13 gpu=soft icd=$(echo /usr/share/vulkan/icd.d/lvp_icd*.json) cuda_lib=/qcu/build/loopback # 13: llvmpipe
fi
rm -rf $logs
mkdir -p $logs /root/.cache
ldconfig -X
messages=$(dmesg | wc -l)

left() {
	echo $((limit - SECONDS))
}

# step NAME SECONDS COMMAND...: runs COMMAND for at most SECONDS, or for the time that is left. Its exit code is in $rc.
step() {
	local name=$1 seconds=$2 began=$SECONDS
	shift 2
	rc=0
	if [[ " ${SKIP:-} " == *" $name "* ]] || [ "$(left)" -lt 5 ]; then
		rc=99
		echo "-- $name: left out"
		return $rc
	fi
	seconds=$((seconds * QCU_SLOW))
	[ "$seconds" -le "$(left)" ] || seconds=$(left)
	timeout -k 5 "$seconds" "$@" >$logs/"$name".out 2>$logs/"$name".err </dev/null || rc=$?
	echo $rc >$logs/"$name".rc
	echo "-- $name: exit code $rc, $((SECONDS - began)) s"
	if [ $rc -ne 0 ]; then
		tail -n 12 $logs/"$name".out | cut -c 1-300 | sed 's/^/   out: /'
		grep -v -E '^(MESA-VIRTIO: )?(INFO|DEBUG)' $logs/"$name".err | tail -n 25 | cut -c 1-300 | sed 's/^/   err: /'
	fi
	return $rc
}

title() {
	printf '\n== %s (%d s)\n' "$*" $SECONDS
}

# same NAME REFERENCE: did both print the same?
same() {
	if cmp -s $logs/"$1".out $logs/"$2".out && [ -s $logs/"$1".out ]; then
		echo "   $1: the same output as $2"
	else
		echo "   $1: OUTPUT DIFFERS from $2"
		diff $logs/"$2".out $logs/"$1".out | head -n 10
	fi
}

# vm NAME SECONDS OPTION... PROGRAM [ARG...]: the same for a program in the VM. Its logs stay.
vm() {
	local name=$1 seconds=$2 log
	shift 2
	mkdir -p $logs/"$name".d
	step "$name" "$seconds" env TMPDIR=$logs/"$name".d "${way_env[@]}" VULKAN_DRIVER=22 $qcu "${mode[@]:-run}" --verbose \
		--klog $logs/"$name".klog --gpu $gpu --mem 1G "${way[@]}" "$@"
	local result=$?
	rm -f $logs/"$name".d/*/initrd
	[ $result -ne 0 ] || return 0
	return $result
}

# what_was_said NAME: what QEMU, the render server and the driver said, after a failure.
what_was_said() {
	local log
	for log in $logs/"$1".d/*/{qemu.log,device.log}; do
		[ -s "$log" ] || continue
		echo "   ${log##*/}:"
		grep -v -e 'Registered' "$log" | tail -n 30 | cut -c 1-300 | tr -c '\t\n -~' '?' | sed 's/^/   | /'
	done
}

mode=(run)

# ---- natively ----

native() {
	title natively
	echo "Landlock: version $($QCU_BUILD/scripts/qcu-confine --version-of-landlock)"
	[ -e "$icd" ] || echo "there is no $icd"
	cat "$icd"
	echo "driver: $(lib=$(sed -n 's/.*"library_path" *: *"\([^"]*\)".*/\1/p' "$icd" | head -n 1)
		case $lib in /*) echo "$lib" ;; *) ldconfig -p | sed -n "s|^\t$lib .* => ||p" | head -n 1 ;; esac)"
	ldconfig -p | sed -n 's/.* => //p' | grep -i -E 'nvidia|libcuda' | xargs -r ldd 2>&1 |
		awk '/^\// { f = $1 } /not found/ { print "missing:", f, $0 }' | sort -u | head -n 30
	export VK_DRIVER_FILES=$icd
	step vulkaninfo 30 vulkaninfo --summary
	grep -E 'GPU[0-9]|deviceName|driverName|driverInfo|apiVersion|driverID' $logs/vulkaninfo.out
	step vulkaninfo-all 30 vulkaninfo
	grep -o -E 'VK_(KHR|EXT)_(external_memory[a-z_]*|external_semaphore[a-z_]*|external_fence[a-z_]*|image_drm_format_modifier|queue_family_foreign|physical_device_drm) ' \
		$logs/vulkaninfo-all.out | sort -u | paste -s -d ' '
	grep -m 1 -A 40 'memoryHeaps' $logs/vulkaninfo-all.out | grep -E 'size|budget|memoryHeaps' | head -n 8
	VULKAN_DRIVER=$native_driver step compute-native 40 $compute
	step both-native 40 env VULKAN_DRIVER=$native_driver LD_LIBRARY_PATH=$cuda_lib $both
	unset VK_DRIVER_FILES
}

# behind_locks NAME [RENDER_NODE]: the program natively, but behind the locks that the render server has.
behind_locks() {
	local name=$1 v
	shift
	local variables=()
	while IFS= read -r v; do
		variables+=("$v")
	done < <(VK_DRIVER_FILES=$icd /qcu/scripts/vulkan/for-domain /usr/bin/qemu-system-x86_64 1G "${1:-none}" | sed -n 's/^env //p')
	printf '%s\n' "${variables[@]}" >$logs/"$name".variables
	local server='' read=
	for v in "${variables[@]}"; do
		case $v in
		RENDER_SERVER_EXEC_PATH=*) server=${v#*=} ;;
		QCU_SERVER_READ=*) read=${v#*=} ;;
		esac
	done
	[ -n "$server" ] || return
	step "$name" 40 env "${variables[@]}" QCU_SERVER_READ="$read:/qcu" QCU_SERVER=$compute VK_DRIVER_FILES="$icd" "$server" ||
		step "$name-strace" 40 strace -f -qq -o $logs/"$name".strace env "${variables[@]}" QCU_SERVER_READ="$read:/qcu" \
			QCU_SERVER=$compute VK_DRIVER_FILES="$icd" "$server"
	[ ! -e $logs/"$name".rc ] || [ "$(cat $logs/"$name".rc)" -ne 0 ] || same "$name" compute-native
	[ -e $logs/"$name".strace ] || [ -n "${SOFTWARE:-}" ] ||
		step "$name-strace" 30 strace -f -qq -e trace=%file,%process,%ipc,prctl,memfd_create,bind,connect,socket,sched_setaffinity,setpriority \
			-o $logs/"$name".strace env "${variables[@]}" QCU_SERVER_READ="$read:/qcu" QCU_SERVER=$compute VK_DRIVER_FILES="$icd" "$server"
	echo "   what was refused:"
	refused $logs/"$name".strace
}

# refused FILE: calls that failed for a right, with how often.
refused() {
	grep -E '= -1 E(ACCES|PERM|ROFS|NOSYS)|SIGSYS' "$1" 2>/dev/null | sed -E 's/^[0-9]+ +([0-9:.]+ )?//' | cut -c 1-160 | sort | uniq -c |
		sort -rn | head -n 40 | sed 's/^/   | /'
}

# ---- in the VM ----

# try NAME OPTION...: looks whether the program runs in this way, behind the locks and without.
try() {
	local name=$1
	shift
	way=(--vulkan "$@")
	if vm "$name" 60 $compute; then
		same "$name" compute-native
		works+=("$name")
		return
	fi
	what_was_said "$name"
	way+=(--no-sandbox)
	if vm "$name-open" 60 $compute; then
		same "$name-open" compute-native
		works+=("$name-open")
	else
		what_was_said "$name-open"
	fi
}

# choose NAME: the later steps go this way.
choose() {
	way=(--vulkan)
	way_env=()
	case $1 in
	none*)
		way+=(--render-node none)
		way_env=(VK_DRIVER_FILES="$icd")
		;;
	node*) way_env=() ;;
	esac
	[[ $1 != *-open ]] || way+=(--no-sandbox)
}

ways() {
	works=()
	title 'in the VM'
	if compgen -G '/dev/dri/renderD*' >/dev/null; then
		ls -la /dev/dri
		way_env=()
		try node
	fi
	way_env=(VK_DRIVER_FILES="$icd")
	try none --render-node none
	echo "what works: ${works[*]:-nothing}"
}

# The script of a guest for several programs; they are in /qcu/bin. What they print is in the share.
guest_script() {
	cat >$logs/guest <<-'END'
		cd /share || exit 9
		one() {
			name=$1
			shift
			timeout 60 "$@" >$name.out 2>$name.err
			echo $? >$name.rc
		}
		one guest-vulkaninfo vulkaninfo --summary
		one guest-compute compute
		one guest-both both
		one guest-first compute &
		one guest-second both &
		wait
		one guest-exhaust compute exhaust 16384
		one guest-after both
		exit 0
	END
}

several() {
	local name f
	title 'several programs in one VM'
	guest_script
	mkdir -p /share
	rm -f /share/*
	mode=(vm)
	vm several 100 --cpus 4 --share /share --script $logs/guest --with $compute --with $both --with /usr/bin/vulkaninfo ||
		what_was_said several
	mode=(run)
	for f in /share/*.rc; do
		[ -e "$f" ] || continue
		name=${f##*/}
		name=${name%.rc}
		cp /share/"$name".* $logs/
		echo "   $name: exit code $(cat "$f"): $(tail -n 1 $logs/"$name".out | cut -c 1-100)"
		[ "$(cat "$f")" = 0 ] || tail -n 8 $logs/"$name".err | cut -c 1-300 | sed 's/^/   err: /'
	done
	grep -E 'deviceName|driverName|driverInfo' $logs/guest-vulkaninfo.out
	same guest-compute compute-native
	same guest-first compute-native
	same guest-both both-native
	same guest-second both-native
}

two_vms() {
	title 'two VMs at once'
	vm vm-first 90 $compute &
	vm vm-second 90 $both
	wait
	same vm-first compute-native
	same vm-second both-native
	[ "$(cat $logs/vm-first.rc)" = 0 ] || what_was_said vm-first
	[ "$(cat $logs/vm-second.rc)" = 0 ] || what_was_said vm-second
}

# benchmark ROUNDS: perf/vulkan/run, natively and in VMs. Its native runs have the same driver.
benchmark() {
	local options=("${way[@]:1}")
	title "what it costs, $1 rounds"
	step "bench-$1" "$(($(left) - 20))" env "${way_env[@]}" VK_DRIVER_FILES="$icd" QCU_RESULTS=$logs/bench-"$1" \
		QCU_VULKAN_LOAD=$bin/load /qcu/perf/vulkan/run vulkan "$1" 150 --gpu $gpu --cpus 4 "${options[@]}" || return
	cp $logs/bench-"$1"/vulkan/all.csv /out/vulkan.csv
	cp $logs/bench-"$1"/vulkan/table.txt /out/table.txt
	cat /out/table.txt
}

# What the render server and the driver in it are refused, while all goes well.
look_inside() {
	title 'what is refused in the render server'
	step server-strace 60 strace -f -qq --seccomp-bpf -e trace=%file,%process,prctl,sched_setaffinity,sched_setscheduler,setpriority \
		-o $logs/server.strace env "${way_env[@]}" VULKAN_DRIVER=22 $qcu run --no-device "${way[@]}" $compute
	refused $logs/server.strace
}

older() {
	title 'virglrenderer 1.1'
	cp /virgl-1.1/libvirglrenderer.so.1 /usr/lib/x86_64-linux-gnu/libvirglrenderer.so.1.new
	mv /usr/lib/x86_64-linux-gnu/libvirglrenderer.so.1{,.newer}
	mv /usr/lib/x86_64-linux-gnu/libvirglrenderer.so.1{.new,}
	mv /usr/libexec/virgl_render_server{,.newer}
	cp /virgl-1.1/virgl_render_server /usr/libexec/
	vm older 45 $compute
	what_was_said older
	mv /usr/lib/x86_64-linux-gnu/libvirglrenderer.so.1{.newer,}
	mv /usr/libexec/virgl_render_server{.newer,}
}

# pack: what there is goes to the caller, however this ends.
pack() {
	find $logs -name '*.strace' -size +8M -exec sh -c 'grep -E "= -1 |nvidia|SIG" "$1" | head -n 50000 >"$1.less"; rm "$1"' - {} \;
	tar -C / --exclude=initrd -czf /out/logs.tar.gz logs 2>/dev/null
}
trap pack EXIT
trap 'exit 143' TERM

native
title "behind the render server's locks"
behind_locks locks
ways
if [ ${#works[@]} -gt 0 ]; then
	choose "${works[0]}"
	several
	two_vms
	began=$SECONDS
	benchmark 1
	took=$((SECONDS - began))
	look_inside
else
	choose none
	look_inside
	cp $logs/server.strace $logs/server-behind-locks.strace
	choose none-open
	look_inside
fi
choose "${works[0]:-none}"
older
title "the kernel's log"
dmesg | tail -n +$((messages + 1)) | grep -E 'NVRM|Xid|nvidia|type=1326|segfault|trap|oom' | tail -n 30 | cut -c 1-250
# Again, for medians, if there is time.
if [ ${#works[@]} -gt 0 ] && [ -e /out/table.txt ] && [ $((took * 3 + 40)) -lt "$(left)" ]; then
	benchmark 3
fi
title end
