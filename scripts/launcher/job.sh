# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # set and used by scripts/qcu
#
# In a job of Slurm that has the GRES qcuda, the site starts qcu-device, with the limits that Slurm has granted
# (scripts/slurm/). The launcher connects QEMU to one of the job's sockets, and takes the guest's size from the job's.
# scripts/qcu sources this file. Nothing here protects anybody: the variables are the user's own, and what keeps users
# from one another are the owners of the sockets.

job_folder='' # with the job's sockets; empty: no such job

# look_for_job: sets job_folder. Fails if the job's request was refused.
look_for_job() {
	local folder=${QCU_JOBS:-/run/qcuda-jobs}/${SLURMD_NODENAME:-}-${SLURM_JOB_ID:-}
	[ -n "$use_device" ] && [ -n "${SLURMD_NODENAME:-}" ] && [ -n "${SLURM_JOB_ID:-}" ] && [ -d "$folder" ] || return 0
	[ ! -e "$folder/refused" ] || die "this job has no device: $(first_line "$folder/refused")"
	[ ! -e "$folder/note" ] || note "$(first_line "$folder/note")"
	job_folder=$folder
}

first_line() {
	head -n 1 "$1" | head -c 300 | tr -c '\n -~' '?'
}

# job_vms: prints how many VMs the job may have at a time on this node. Nobody may list the folder.
job_vms() {
	local n=0
	while [ -e "$job_folder/slot$n.lock" ]; do
		n=$((n + 1))
	done
	echo $n
}

# job_number NAME: prints the number in this variable of Slurm's. Fails if there is none, or it is 0, which means all.
job_number() {
	local n=${!1:-}
	[[ $n =~ ^[0-9]{1,9}$ ]] && [ "$((10#$n))" -gt 0 ] && echo "$((10#$n))"
}

# job_memory: prints how many MB the job has on this node. Slurm's variables say it only if the user has.
job_memory() {
	local mb cpu
	if mb=$(job_number SLURM_MEM_PER_NODE); then
		echo "$mb"
	elif mb=$(job_number SLURM_MEM_PER_CPU) && cpu=$(job_number SLURM_CPUS_ON_NODE); then
		echo $((mb * cpu))
	else
		mb=$(first_line "$job_folder/memory" 2>/dev/null) || true
		job_number mb
	fi
}

# check_job: chooses the guest's size, and refuses what the site has chosen already.
check_job() {
	local vms mb kb cpu
	[ -z "$vram" ] || die '--vram: in a job the request chooses it, such as --gres=qcuda:1,qcuda_mem:2G'
	[ -z "$map$nvml$prewarm$check_memory" ] && [ ${#device_args[@]} -eq 0 ] && [ "$gpu" = auto ] && [ "$sessions" = 16 ] ||
		die 'in a job the site has started qcu-device: --gpu, --map, --sessions, --prewarm, --nvml, --device-arg' \
			'and --check have no effect there'
	vms=$(job_vms)
	[ "$vms" -gt 0 ] || die "the job's devices are gone from $job_folder"
	if mb=$(job_memory); then
		# QEMU needs some memory for itself, the launcher a little.
		kb=$(((mb / vms - mb / vms / 16 - 128) * 1024))
		[ "$kb" -ge 262144 ] || die "the job has $mb MB of memory on this node, too little for $vms VM(s): ask for more with --mem"
		[ -n "$mem" ] || mem=${kb}K
		[ "$(size_to_kb "$mem" || echo 0)" -le "$kb" ] ||
			die "--mem $mem: each VM of this job can have $((kb / 1024))M, for the job has ${mb}M on this node"
	fi
	if cpu=$(job_number SLURM_CPUS_PER_TASK) || { cpu=$(job_number SLURM_CPUS_ON_NODE) && cpu=$((cpu / vms)); }; then
		[ "$cpu" -ge 1 ] || cpu=1
		[ "$cpu" -le 64 ] || cpu=64
		[ -n "$cpus" ] || cpus=$cpu
		! [[ $cpus =~ ^[0-9]{1,6}$ ]] || [ "$((10#$cpus))" -le "$cpu" ] ||
			die "--cpus $cpus: each VM of this job can have $cpu"
	fi
	# What a killed launcher leaves is removed when the job ends.
	[ ! -w "$job_folder/files" ] || export TMPDIR=$job_folder/files
}

# connect_job: takes one of the job's sockets that no other VM of the job has. The lock ends with QEMU.
connect_job() {
	local i fd
	for ((i = 0; i < $(job_vms); i++)); do
		{ exec {fd}<"$job_folder/slot$i.lock"; } 2>/dev/null || die "the job's devices are another user's"
		if flock -n "$fd"; then
			hush
			at_exit stop_all
			ln -s "$job_folder/slot$i.sock" "$tmp/qcu.sock"
			say "using slot $i of the job"
			return
		fi
		exec {fd}<&-
	done
	die "all $(job_vms) VM(s) that this job may have on this node are running"
}

# ---- the network between the VMs of a step ----

# QEMU gets the connection to the hub as this descriptor. The hub's process, on the node of the step's first task.
net_fd=40 hub_pid=''
# A command before QEMU's, which connects to the network.
to_network=()

# step_number NAME MOST: prints the number in this variable of Slurm's, 0 too.
step_number() {
	[[ ${!1:-} =~ ^[0-9]{1,6}$ ]] && [ "$((10#${!1}))" -le "$2" ] && echo "$((10#${!1}))"
}

# check_network: sets net_vm and net_vms, which VM of how many this is, and net_where, what qcu-net is told of the hub.
check_network() {
	local first address port
	[ -z "$disk" ] || die '--net does not go with --disk'
	net_vm=$(step_number SLURM_PROCID 1023) && net_vms=$(step_number SLURM_STEP_NUM_TASKS 1024) &&
		[[ ${SLURM_STEP_NODELIST:-} =~ ^[][A-Za-z0-9._,-]+$ && ${SLURM_JOB_ID:-} =~ ^[0-9]+$ && ${SLURM_STEP_ID:-} =~ ^[0-9]+$ ]] ||
		die '--net is for a step of a job of Slurm: srun --gres=qcuda:1 qcu run --net PROGRAM'
	[[ ${SLURM_STEP_RESV_PORTS:-} =~ ^([0-9]{1,5}) ]] ||
		die '--net needs a port, and Slurm has reserved none for this step: MpiParams=ports= in slurm.conf names them'
	port=${BASH_REMATCH[1]}
	[ "$net_vm" != 0 ] || [ "${SLURM_NODEID:-}" = 0 ] || die '--net: the first task must run on the first node'
	need munge unmunge scontrol sinfo
	first=$(scontrol show hostnames "$SLURM_STEP_NODELIST" | head -n 1) && address=$(sinfo -h -n "$first" -o %o | head -n 1) &&
		[ -n "$address" ] || die "--net: Slurm does not say where $SLURM_STEP_NODELIST is"
	net_where=("$address" "$port" "$SLURM_JOB_ID.$SLURM_STEP_ID")
}

# start_hub: the first VM's launcher starts the switch.
start_hub() {
	[ -n "$net" ] && [ "$net_vm" = 0 ] || return 0
	hush
	at_exit stop_hub
	(mortal "${confine%confine}net" hub "${net_where[@]}" "$net_vms") </dev/null >&"$notes" 2>&1 &
	hub_pid=$!
}

stop_hub() {
	[ -z "$hub_pid" ] || kill "$hub_pid" 2>/dev/null || true
}

# await_hub: other VMs may still use the network when this one has ended.
await_hub() {
	while [ -n "$hub_pid" ] && alive "$hub_pid"; do
		check_time
		sleep 0.1
	done
	hub_pid=
}

# network_args: adds the network card to QEMU's arguments in $q.
network_args() {
	[ -n "$net" ] || return 0
	to_network=("${confine%confine}net" join "${net_where[@]}" "$net_vm" "$net_fd")
	q+=(-netdev "stream,id=net,addr.type=fd,addr.str=$net_fd"
		-device "virtio-net-pci,netdev=net,romfile=,host_mtu=9000,mac=$(printf '52:54:00:71:%02x:%02x' $((net_vm / 256)) $((net_vm % 256)))")
}

# guest_address: prints the address of this VM, with which the guest begins.
guest_address() {
	[ -z "$net" ] || echo "10.77.$(((net_vm + 1) / 256)).$(((net_vm + 1) % 256))"
}
