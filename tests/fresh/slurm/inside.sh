#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# slurm.sh runs this in a Debian, to install the packages of the host, and then, as a unit of that Debian's systemd, to
# set up Slurm with two nodes on one machine and to run jobs of three users.
set -uo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
log=/tmp/log
slow=${QCU_SLOW:-1}
users=(anna bert cleo)

self=slurm
# shellcheck source=tests/fresh/inside_lib.sh
. /qcuda/tests/fresh/inside_lib.sh

bad() {
	echo "slurm: FAILED: $*"
	sinfo -N -o '%N %T %E'
	squeue
	tail -n 20 /var/log/slurm/*.log
	journalctl -q --no-pager -n 20 -u 'qcu-job@*'
	exit 1
}

# until_true WHAT COMMAND...: waits until COMMAND succeeds. Only a hang reaches the limit.
until_true() {
	local what=$1 i
	shift
	for ((i = 0; i < ${UNTIL:-3000} * slow; i++)); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	bad "$what"
}

# as USER COMMAND...: with the user's own folder as the current one.
as() {
	local user=$1
	shift
	runuser -u "$user" -- sh -c 'cd "$HOME" && exec "$@"' sh "$@"
}

install() {
	apt-get -q update
	apt-get -q -y --no-install-recommends install /packages/*.deb
}

# ---- the cluster ----

set_up() {
	local node user
	hostname slurm-test
	echo '127.0.0.1 localhost slurm-test n1 n2' >/etc/hosts
	for user in "${users[@]}"; do
		useradd -m "$user"
	done
	mkdir -p /etc/slurm /etc/qcuda /var/log/slurm /var/lib/slurm/{slurmctld,slurmd-n1,slurmd-n2}
	chown slurm /var/log/slurm /var/lib/slurm/slurmctld
	sed '/^\(NodeName\|PartitionName\)=/d' /usr/share/doc/qcuda-host/examples/slurm.conf.example >/etc/slurm/slurm.conf
	cat >>/etc/slurm/slurm.conf <<-'END'
		ClusterName=test
		SlurmctldHost=slurm-test(127.0.0.1)
		CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
		SlurmUser=slurm
		StateSaveLocation=/var/lib/slurm/slurmctld
		SlurmdSpoolDir=/var/lib/slurm/slurmd-%n
		SlurmdPidFile=/run/slurmd.%n.pid
		SlurmctldLogFile=/var/log/slurm/slurmctld.log
		SlurmdLogFile=/var/log/slurm/%n.log
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SlurmdParameters=config_overrides
		JobAcctGatherType=jobacct_gather/linux
		JobAcctGatherFrequency=task=5
		JobAcctGatherParams=OverMemoryKill
		JobCompType=jobcomp/filetxt
		JobCompLoc=/var/log/slurm/completed
		KillWait=10
		NodeName=n1 NodeAddr=127.0.0.1 NodeHostname=slurm-test Port=17001 CPUs=4 RealMemory=4000 Gres=qcuda:2,qcuda_mem:1G,qcuda_share:100
		NodeName=n2 NodeAddr=127.0.0.1 NodeHostname=slurm-test Port=17002 CPUs=4 RealMemory=4000 Gres=qcuda:2,qcuda_mem:1G,qcuda_share:100
		PartitionName=test Nodes=ALL Default=YES DefMemPerNode=800
	END
	sed 's/gpu\[1-2\]/n[1-2]/; s/Count=4$/Count=2/; s/Count=64G/Count=1G/' /usr/share/doc/qcuda-host/examples/gres.conf.example >/etc/slurm/gres.conf
	# Nothing here uses control groups, but slurmd looks which ones the machine has, and does not start where both are.
	echo 'CgroupPlugin=cgroup/v1' >/etc/slurm/cgroup.conf
	echo 'OPTIONS="--gpu soft" DEFAULT_MEM=256M' >/etc/qcuda/slurm.conf
	# Two on one machine cannot both be Debian's unit slurmd.
	for node in n1 n2; do
		sed "s|^ExecStart=.*|ExecStart=/usr/sbin/slurmd -D -s -N $node|; /^PIDFile=/d" /lib/systemd/system/slurmd.service \
			>/etc/systemd/system/slurmd-$node.service
	done
	systemctl daemon-reload
	must "munge does not start" systemctl start munge
	must "slurmctld does not start" systemctl start slurmctld
	must "slurmd does not start" systemctl start slurmd-n1 slurmd-n2
	until_true "the nodes are not ready" idle
}

# idle: can both nodes take jobs, and have none?
idle() {
	[ "$(sinfo -h -N -o '%T')" = $'idle\nidle' ]
}

# ---- what may be left of a job ----

# nothing_left: no process of a user, no folder of a job, no unit.
nothing_left() {
	local user
	for user in "${users[@]}"; do
		! pgrep -u "$user" || return 1
	done
	! pgrep -x qcu-device && ! pgrep qcu-m || return 1
	[ -z "$(find /run/qcuda-jobs /var/lib/qcuda-jobs -mindepth 1 2>/dev/null)" ] || return 1
	[ -z "$(find /tmp /var/tmp /dev/shm \( -user anna -o -user bert -o -user cleo -o -name 'qcu.*' \) 2>/dev/null)" ] || return 1
	[ -z "$(systemctl list-units --all --no-legend 'qcu-job@*')" ]
}

all_left() {
	until_true "something is left after $*: $(nothing_left; find /run/qcuda-jobs /var/lib/qcuda-jobs /tmp /dev/shm)" nothing_left
	until_true "a node is not ready after $*" idle
}

# ---- tests ----

bad_requests() {
	step "requests that cannot be met, and those that try to be more than they are"
	says 1 'Requested node configuration is not available' as anna sbatch --gres=qcuda:3 --wrap true
	says 1 'Requested node configuration is not available' as anna sbatch --gres=qcuda:1,qcuda_mem:2G --wrap true
	says 2 'this job has no device: the job asks for memory or a share, but for no VM' \
		as anna srun --gres=qcuda_mem:64M qcu run qcu-smi
	says 2 '--vram: in a job the request chooses it' as anna srun --gres=qcuda:1 qcu run --vram 8G qcu-smi
	says 2 'in a job the site has started qcu-device' as anna srun --gres=qcuda:1 qcu run --device-arg --no-sandbox qcu-smi
	says 2 'each VM of this job can have 622M, for the job has 800M' as anna srun --gres=qcuda:1 qcu run --mem 2G qcu-smi
	says 2 '--cpus 3: each VM of this job can have 2' as anna srun --gres=qcuda:1 -c 2 qcu run --cpus 3 qcu-smi
	says 2 'too little for 1 VM' as anna srun --gres=qcuda:1 --mem 300 qcu run qcu-smi
	# Names, comments and variables are the user's. The prolog runs as root.
	says 0 . as anna env BASH_ENV=/home/anna/evil ENV=/home/anna/evil LD_PRELOAD= SLURM_JOB_UID=0 QCU_JOBS=/tmp \
		srun --gres=qcuda:1,qcuda_mem:64M -J ' 1 gres:qcuda:2 ' --comment="\$(touch /tmp/evil)
	1 gres:qcuda:2" sh -c 'cat /run/qcuda-jobs/*/granted'
	grep -x 'OPTIONS=--gpu soft --vram 65536K.*' $log >/dev/null || bad "granted: $(cat $log)"
	grep -x VMS=1 $log >/dev/null || bad "granted: $(cat $log)"
	[ ! -e /tmp/evil ] || bad "text of a user's was evaluated"
	all_left "bad requests"
}

# A job that another user tries to use, and a user who fills what the site has given him.
strangers() {
	local job name
	step "strangers"
	as anna sbatch -w n1 --gres=qcuda:1 -o /dev/null --wrap 'touch here; sleep 10000' >/dev/null
	until_true "anna's job does not begin" test -e /home/anna/here
	job=$(squeue -h -u anna -o %A) name=n1-$job
	says 2 "the job's devices are another user's" as bert env "SLURM_JOB_ID=$job" SLURMD_NODENAME=n1 SLURM_MEM_PER_NODE=800 \
		qcu run qcu-smi
	says 1 'PermissionError' as bert python3 -c "import socket
socket.socket(socket.AF_UNIX).connect('/run/qcuda-jobs/$name/slot0.sock')"
	says 2 'Permission denied' as bert ls "/run/qcuda-jobs/$name"
	says 2 'Permission denied' as bert ls "/var/lib/qcuda-jobs/$name"
	says 1 'Permission denied' as anna rm "/run/qcuda-jobs/$name/slot0.sock"
	says 1 'Permission denied' as bert cat /var/log/qcuda-jobs.log
	step "a user who speaks in the place of QEMU"
	says 0 '^refused: 4$' as anna python3 /qcuda/tests/fresh/slurm/front.py "/run/qcuda-jobs/$name/slot0.sock"
	as anna python3 /qcuda/tests/fresh/slurm/front.py "/run/qcuda-jobs/$name/slot0.sock" --wait >/tmp/front &
	until_true "the device does not take a connection" grep waits /tmp/front
	# Links and folders without rights are removed as the user's, and lead nowhere.
	ln -s /etc "/var/lib/qcuda-jobs/$name/link"
	chown -h anna "/var/lib/qcuda-jobs/$name/link"
	as anna sh -c "mkdir -p /var/lib/qcuda-jobs/$name/deep/er && touch /var/lib/qcuda-jobs/$name/deep/er/file &&
		chmod 0 /var/lib/qcuda-jobs/$name/deep/er"
	# As FUSE would.
	must "no mount" as anna mkdir "/var/lib/qcuda-jobs/$name/a mount"
	must "no mount" mount -t tmpfs tmpfs "/var/lib/qcuda-jobs/$name/a mount"
	must "anna cannot cancel her job" as anna scancel "$job"
	all_left "anna's job"
	grep -x ended /tmp/front >/dev/null || bad "the device that waited: $(cat /tmp/front)"
	[ "$(grep -c " job=$job .* exit=1 " /var/log/qcuda-jobs.log)" = 4 ] &&
		[ "$(grep -c " job=$job .* exit=-9 " /var/log/qcuda-jobs.log)" = 1 ] ||
		bad "accounts: $(grep " job=$job " /var/log/qcuda-jobs.log)"
	[ -e /etc/passwd ] || bad "a link was followed"
}

# twenty_jobs: of three users. The VMs of the first four wait for one another. While they run, n2 is drained, and one of the
# jobs on n1 is cancelled.
twenty_jobs() {
	local i user mem held gate=/home/gate before
	step "20 jobs"
	mkdir -m 1777 $gate
	: >$gate/order
	chmod 666 $gate/order
	before=$(grep -c . /var/log/qcuda-jobs.log 2>/dev/null) || true
	for ((i = 0; i < 20; i++)); do
		user=${users[i % 3]} mem=$((100 + i))
		# The guest says what it has: memory of the GPU and its own, processors. It takes all the memory that it gets.
		# shellcheck disable=SC2016 # for the job's shell
		as "$user" sbatch -D $gate -J "job$i" -o "$gate/out.$i" -c 1 --mem=700 --gres="qcuda:1,qcuda_mem:${mem}M" --wrap '
			i='"$i"'
			echo "began $i $SLURMD_NODENAME" >>order
			qcu run --with /programs/vector_add --with /programs/out_of_memory sh -c "
				touch in_vm.$i
				[ $i -ge 4 ] || until [ -e go ]; do sleep 0.2; done
				qcu-smi && vector_add && out_of_memory 8 && nproc && grep MemTotal /proc/meminfo"
			echo "ended $i $SLURMD_NODENAME" >>order' >/dev/null || bad "job $i is not taken"
	done
	until_true "four VMs do not run together" eval "[ \$(ls $gate | grep -c in_vm) -eq 4 ]"
	[ "$(squeue -h -t R | wc -l)" = 4 ] || bad "not four jobs run: $(squeue)"
	[ "$(pgrep -c -f '^/usr/libexec/qcuda/qcu-device --fd')" -ge 4 ] || bad "not four devices run"
	step "n2 is drained, and a job is cancelled"
	must "n2 cannot be drained" scontrol update nodename=n2 state=drain reason=test
	held=$(squeue -h -t R -w n1 -o %j | head -n 1)
	must "no job can be cancelled" scancel -n "$held"
	until_true "the cancelled job does not end" eval "[ -z \"\$(squeue -h -n $held)\" ]"
	touch $gate/go
	until_true "n2's jobs do not end" eval "[ \"\$(sinfo -h -n n2 -o %T)\" = drained ]"
	echo 'drained' >>$gate/order
	until_true "jobs do not go on while n2 is drained" eval "[ \$(sed '1,/drained/d' $gate/order | grep -c ended) -ge 4 ]"
	echo 'resumed' >>$gate/order
	must "n2 cannot be resumed" scontrol update nodename=n2 state=resume
	until_true "the jobs do not end" eval "[ -z \"\$(squeue -h)\" ]"
	step "what they had"
	in_order "${held#job}" <$gate/order || { cat $gate/order && bad "the order of the jobs"; }
	for ((i = 0; i < 20; i++)); do
		[ "job$i" != "$held" ] || continue
		had_what_it_asked_for $i <$gate/out.$i || { cat $gate/out.$i && bad "job $i had not what it asked for"; }
	done
	grep " Name=$held JobState=CANCELLED" /var/log/slurm/completed >/dev/null || bad "$held was not cancelled"
	[ "$(grep -c ' Name=job[0-9]* JobState=COMPLETED' /var/log/slurm/completed)" = 19 ] ||
		bad "not 19 jobs are complete: $(cat /var/log/slurm/completed)"
	all_left "20 jobs"
	account $((before + 20)) "$held"
	rm -rf $gate
}

# in_order HELD: reads the order of the jobs. Each node has two at a time at most, and n2 none that begins while it is
# drained. Each job but HELD has begun and ended once.
in_order() {
	awk -v held="$1" '
		/drained|resumed/ { drained = /drained/; next }
		$2 == held { next }
		/began/ { wrong = wrong || ++now[$3] > 2 || (drained && $3 == "n2"); began[$2]++ }
		/ended/ { now[$3]--; ended[$2]++; on[$3]++ }
		END {
			for (i = 0; i < 20; i++)
				wrong = wrong || (i != held && (began[i] != 1 || ended[i] != 1))
			exit wrong || !on["n1"] || !on["n2"]
		}'
}

# had_what_it_asked_for JOB: reads what the job has printed. Its guest has the job's memory (700M), less what QEMU needs.
had_what_it_asked_for() {
	awk -v mem="$((100 + $1))" '
		$0 ~ "/ *" mem " ?MiB" { gpu = 1 }
		/sums equal the CPU/ { right = 1 }
		/too much is refused, and nothing is lost/ { bound = 1 }
		$0 == 1 { one = 1 }
		/^MemTotal:/ { guest = $2 > 300 * 1024 && $2 <= 529 * 1024 }
		END { exit !(gpu && right && bound && one && guest) }'
}

# account LINES HELD: the log has so many VMs, each with what it did. That of the job HELD has done nothing.
account() {
	local held
	[ "$(grep -c . /var/log/qcuda-jobs.log)" = "$1" ] || bad "the log has $(grep -c . /var/log/qcuda-jobs.log) lines, not $1"
	held=$(sed -n "s/^JobId=\([0-9]*\) .* Name=$2 .*/\1/p" /var/log/slurm/completed)
	tail -n 20 /var/log/qcuda-jobs.log | awk -v held="job=$held" '
		$2 == held { if (/ launches=0 /) idle++; next }
		/ exit=0 programs=[1-9][0-9]* launches=[1-9][0-9]* copied_bytes=[1-9][0-9]* calls=[1-9][0-9]* errors=[0-9]+ refused=[1-9][0-9]*$/ { did++ }
		END { exit idle != 1 || did != 19 }' || {
		tail -n 20 /var/log/qcuda-jobs.log
		bad "lines of the log"
	}
}

# Two VMs at a time are what a job has asked for; then a running VM is cancelled, and one is killed without a chance to
# clean up.
cancelled() {
	local how
	step "jobs that are cancelled while their VM runs"
	for how in '' --signal=KILL; do
		rm -f /home/cleo/here*
		as cleo sbatch -w n2 --mem=1600 --gres=qcuda:2,qcuda_mem:512M -o out --wrap '
			qcu run sh -c "touch here.0; exec sleep 10000" &
			qcu run sh -c "touch here.1; exec sleep 10000" &
			until [ -e here.0 ] && [ -e here.1 ]; do sleep 0.2; done
			qcu run qcu-smi >third 2>&1
			touch here
			wait' >/dev/null
		until_true "cleo's VMs do not begin" test -e /home/cleo/here
		grep 'all 2 VM(s) that this job may have on this node are running' /home/cleo/third >/dev/null ||
			bad "a third VM: $(cat /home/cleo/third)"
		must "it is not cancelled" as cleo scancel $how -u cleo
		all_left "scancel $how"
	done
}

# Two VMs on two nodes are one communicator of NCCL's; and strangers at the hub's port.
network() {
	local hub
	step "a network between two VMs on two nodes"
	says 2 '--net is for a step of a job of Slurm' as anna qcu run --net qcu-smi
	as anna cp /programs/nccl_vms /home/anna/
	# shellcheck disable=SC2016 # for the task's shell
	says 0 '1 of 2 VMs' as anna srun -N2 -n2 --gres=qcuda:1 sh -c 'qcu run --net ./nccl_vms "$PWD/id" "$SLURM_PROCID" 2'
	grep 'verified: 0 of 2 VMs' $log >/dev/null || bad "only one of the VMs is right"
	step "strangers at the network"
	# The hub waits for the second VM, which does not come.
	# shellcheck disable=SC2016
	as anna sbatch -N2 -n2 --gres=qcuda:1 -o /home/anna/net --wrap 'srun sh -c "
		if [ \$SLURM_PROCID = 0 ]; then echo \$SLURM_JOB_ID.\$SLURM_STEP_ID \$SLURM_STEP_RESV_PORTS >hub.new && mv hub.new hub; exec qcu run --net sleep 10000; fi
		sleep 10000"' >/dev/null
	until_true "the step does not begin" test -e /home/anna/hub
	hub=$(cat /home/anna/hub)
	until_true "the hub does not listen" grep -q -i "^ *[0-9]*: 0100007F:$(printf %04X "$(sed 's/.* \([0-9]*\).*/\1/' <<<"$hub")") .* 0A " /proc/net/tcp
	# Their credentials are valid, but bert is not anna, and anna's is of another step.
	says 0 '^closed$' as bert python3 /qcuda/tests/fresh/slurm/stranger.py "$hub"
	says 0 '^closed$' as anna python3 /qcuda/tests/fresh/slurm/stranger.py "1$hub"
	must "it is not cancelled" as anna scancel -u anna
	all_left "a network"
}

use() {
	set_up
	step "the nodes are ready"
	bad_requests
	twenty_jobs
	strangers
	cancelled
	network
	echo 'slurm: all is well'
}

"$1"
