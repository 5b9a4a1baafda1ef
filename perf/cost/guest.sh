# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=dash
#
# What perf/cost/run runs in a guest with one processor. Calls that wait sleep at once: how long they would poll is a
# matter of the machine's speed.
echo 0 >/sys/module/qcuda/parameters/spin_us
for b in latency driver graphs blas; do
	# shellcheck disable=SC2086 # $samples are words
	"$b" --quick --pause 0 --max 4M $samples || exit
done
# Pinned memory is new each time.
# shellcheck disable=SC2086
QCU_PINNED_CACHE=0 paging --quick --pause 0 --min 32M --max 32M $samples || exit
# shellcheck disable=SC2086
nccl --quick --pause 0 --min 4K --max 4K --only all-reduce/time --only broadcast/time $samples --marks 1
