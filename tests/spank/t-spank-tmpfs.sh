#!/bin/bash
#
# Tasks that see other things than the watchdog does: a /tmp and /dev/shm of the job's own
# (job_container/tmpfs), process ids of their own.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need_root
[[ -n $(find /usr/lib* -name job_container_tmpfs.so 2>/dev/null) ]] || skip 'no job_container/tmpfs'
# Jobs must find the cluster and the tracer, which /tmp would hide from them.
case $(realpath "$top_builddir") in
/tmp/* | /dev/shm/*) skip 'the build lies in a directory that jobs have of their own' ;;
esac
rm -rf "$work"
work=$(mktemp -d /var/tmp/ptc.XXXXXX) || exit 99
chmod 755 "$work"
start_cluster -n 1 --proctrack cgroup

# The daemons again, with other settings.
mkdir "$work/private"
printf 'AutoBasePath=true\nBasePath=%s\n' "$work/private" >"$work/c/etc/job_container.conf"
echo JobContainerType=job_container/tmpfs >>"$SLURM_CONF"
for name in slurmd-n0 slurmctld; do
    read -r pid _ <"$work/c/run/$name.pid"
    kill "$pid"
    eventually eval "! kill -0 $pid 2>/dev/null"
done
launch() {
    env -i PATH="$PATH" SLURM_CONF="$SLURM_CONF" setsid "$@" -f "$SLURM_CONF" >>"$work/daemons.log" 2>&1 </dev/null &
    undo+=("kill $! 2>/dev/null; wait $! 2>/dev/null")
}
launch slurmctld -D
launch slurmd -D -N n0
eventually eval 'sinfo -h -o %T | grep -qx idle' || skip "no such cluster: $(tail -n 1 "$work/daemons.log")"

as srun --ptrace=out=run sh -c 'echo hi >/tmp/private.$SLURM_JOB_ID; cat /tmp/private.* >f' >out 2>err
check "a step with a /tmp of its own" same $? 0
check "has one" eval '! ls /tmp/private.* 2>/dev/null'
check "and is traced" eval 'is_complete run && [[ -n $(nodes_of run "private\.") ]]'
batch --ptrace=out=script <<<'#!/bin/sh
cat /etc/hostname >g
srun cat /etc/hostname'
check "a script and its step" eval 'is_complete script && is_complete script.batch'

# As in a container with its own processes, the watchdog is asked over its socket.
if as unshare --user --map-root-user --pid --fork --mount-proc true 2>/dev/null; then
    as srun --ptrace=out=pids unshare --user --map-root-user --pid --fork --mount-proc \
        cat /etc/hostname >out 2>err
    check "process ids of its own" eval 'is_complete pids && [[ -n $(nodes_of pids "open.*hostname") ]]'
else
    echo 'skipped: no namespaces for users here'
fi
check "no watchdog is left" watchdogs_become 0
report
