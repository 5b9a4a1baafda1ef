#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Two VMs with two software GPUs each, and a network between them: one NCCL communicator, whose ranks use the
# GPUs' memory within a VM and TCP between the VMs. Over IPv6 all of it at night, and otherwise some.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

with "$guest"/nccl_vms
few=few
[ -z "${QCU_NIGHTLY:-}" ] || few=

# one VM: boots it, and writes down what it says. The other one is at the other end of two sockets. QEMU makes
# these, so it runs without its sandbox.
one() (
	vm=$1 all=$tmp tmp=$tmp/$1 script=two_vms-$1 boots=$1
	mkdir "$tmp"
	ln -s "$all/share" "$tmp/share"
	boot --no-sandbox --device-arg --gpus --device-arg 2 --qemu-arg -netdev \
		--qemu-arg "dgram,id=net,local.type=unix,local.path=$all/net$vm,remote.type=unix,remote.path=$all/net$((1 - vm))" \
		--qemu-arg -device --qemu-arg "virtio-net-pci,netdev=net,romfile=,mac=52:54:00:77:00:0$vm" "${with[@]}" <<END
vm=$vm
share=$all/share few=$few
$(cat <<'GUEST'
modprobe virtio_net 2>/dev/null || {
	echo "@skip network-$vm the kernel has no virtio_net"
	exit
}
echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
ifconfig eth0 10.77.0.$((vm + 1)) netmask 255.255.255.0 up
ifconfig eth0 add fd77::$((vm + 1))/64
expect all-$vm 0 nccl_vms $share/all $vm 2
expect killed-$vm 0 nccl_vms $share/killed $vm 2 killed
expect ipv6-$vm 0 env NCCL_SOCKET_FAMILY=AF_INET6 NCCL_SOCKET_IFNAME=eth nccl_vms $share/ipv6 $vm 2 $few
GUEST
)
END
)

one 0 >"$tmp/said0" 2>&1 &
one 1 >"$tmp/said1" 2>&1 &
wait
cat "$tmp/said0" "$tmp/said1"
