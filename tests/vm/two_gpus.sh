#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Two software GPUs: the guest sees both, each thread has its own current GPU, and copies between the
# GPUs work, and so does NCCL, in one process and in several, by the GPUs' memory and by TCP. All types and operators of
# collectives, and by TCP most programs, are the night's: the loopback tests have them with two GPUs and
# three.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

with "$guest"/{device_query,peer_access,two_devices,driver_two_devices,multi_thread} \
	"$guest"/nccl_{abort,collectives,ended,far,graphs,killed,processes,resize,strangers,threads,transfers,wrong}
boot --device-arg --gpus --device-arg 2 "${with[@]}" <<'END'
for program in device_query peer_access two_devices driver_two_devices multi_thread; do
	expect $program 0 $program
done
for program in /qcu/bin/nccl_*; do
	program=${program##*/}
	case $program${QCU_NIGHTLY:-} in
	nccl_collectives) continue ;;
	esac
	expect $program 0 $program
	case ${QCU_NIGHTLY:-day}-$program in
	*-nccl_far) ;; # says itself who is reached by TCP
	1-* | day-nccl_processes | day-nccl_killed) expect $program-tcp 0 env NCCL_P2P_DISABLE=1 $program ;;
	esac
done
begin smi
qcu-smi -L >$log && grep -q '^GPU 1: .*software GPU' $log && pass || fail "exit code $?"
END
