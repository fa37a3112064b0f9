#!/bin/bash
#
# The watchdogs of traced steps where Slurm uses cgroups, version 1: they end as elsewhere,
# and what they need is not the job's.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need_root
start_cluster -n 2 --proctrack cgroup

tracking=cgroup
# shellcheck source=life.sh
. "$top_srcdir/tests/spank/life.sh"

echo '# memory'
start_step memory -N1 -n1
eventually up memory 1
eventually test -s up.memory.0
task=$(<up.memory.0)
check "the task is in the job's cgroup" has "/proc/$task/cgroup" ':memory:/slurm_n[01]/uid_.*/job_'
check "the watchdog is not" eval '! grep -E ":memory:.*/job_" "/proc/$(watchdogs)/cgroup"'
touch go.memory
wait $step
ended memory
as srun --mem=60 --ptrace=out=greedy python3 -c 'x = bytearray(200 << 20)' >out.greedy 2>err.greedy
status=$?
check "a task that needs too much is killed" test $status -ne 0
check "greedy: no watchdog is left" watchdogs_become 0
check "greedy: what it did before is there" has greedy/run.json '"events": [1-9]'

echo '# the extern step'
as sbatch -W --ptrace=out=extern -o out --wrap 'srun cat /etc/hostname' >/dev/null
check "only the step has a run" same "$(echo extern*)" extern
check "no host was taken out of service" same "$(sinfo -h -t down,drain,drained,draining -o %n)" ""
report
