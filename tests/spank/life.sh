# shellcheck shell=bash
# The life of a watchdog from before the first task to after the last, whatever ends the
# step. Sourced by the tests that have started a cluster, one for each way to track
# processes; 'tracking' names it.

# A step that waits for the file go.NAME; its tasks leave up.NAME.RANK.
start_step() { # NAME OPTIONS OF SRUN...
    local name=$1
    shift
    rm -f "go.$name"
    as srun --ptrace="out=$name" "$@" sh -c "trap '' TERM; echo \$\$ >up.$name.\$SLURM_PROCID
        while [ ! -e go.$name ]; do sleep 0.2; done" >"out.$name" 2>"err.$name" &
    step=$!
}
up() { same "$(find . -maxdepth 1 -name "up.$1.*" | wc -l)" "$2"; }
job_of() { squeue -h -o %A | sort -n | tail -n 1; }
ended() { # NAME: the step is over, its watchdogs are gone, its trace is there
    check "$1: no watchdog is left" watchdogs_become 0
    # A srun that was told to abort does not always print what still comes.
    [[ $1 == cancel ]] ||
        check "$1: the summary" has "err.$1" "^paratrace: .*/$1: [1-9][0-9]* nodes, [1-9][0-9]* events, 0 lost, "
    check "$1: the run is whole" has "$1/run.json" '^  "hosts": \['
    check "$1: no claim is left" eval "[[ ! -e $1/.step && ! -e $1/.lock ]]"
}

echo "# $tracking: a step ends"
start_step plain -N2 -n2
eventually up plain 2
check "one watchdog a host" watchdogs_are 2
# What a watchdog has open beyond its own, or has in common with Slurm's daemons.
foreign() { # PID
    local fd what
    for fd in "/proc/$1/fd/"*; do
        what=$(readlink "$fd")
        case $what in
            /memfd:paratrace* | anon_inode:* | "$work"/w | "$work"/w/* | /dev/null) ;;
            socket:*) ! grep -xF "$what" daemons ;;
            *) echo "$what" ;;
        esac
    done
}
for pid in $(grep -slE '^slurm(stepd:|d)' /proc/[0-9]*/cmdline | cut -d/ -f3); do
    readlink "/proc/$pid/fd/"* 2>/dev/null
done >daemons
for pid in $(watchdogs); do
    check "no inherited descriptor" same "$(foreign "$pid")" ""
done
touch go.plain
wait $step
check "plain: its own status" same $? 0
ended plain

echo "# $tracking: scancel, and a task that does not mind SIGTERM"
start_step cancel -N2 -n2
eventually up cancel 2
scancel "$(job_of)"
wait $step
ended cancel

echo "# $tracking: a process is left behind by its task"
as srun --ptrace=out=behind sh -c 'sleep 20 >/dev/null 2>&1 & exit 3' >out.behind 2>err.behind
check "behind: its own status" same $? 3
ended behind

echo "# $tracking: slurmd is restarted while a step runs"
start_step restart -N1 -n1 -w n1
eventually up restart 1
read -r daemon _ <"$work/c/run/slurmd-n1.pid"
kill "$daemon"
eventually eval "! kill -0 $daemon 2>/dev/null"
check "restart: the watchdog goes on" watchdogs_are 1
env -i PATH="$PATH" SLURM_CONF="$SLURM_CONF" setsid slurmd -D -N n1 -f "$SLURM_CONF" \
    >"$work/slurmd.log" 2>&1 </dev/null &
daemon=$!
undo+=("kill $daemon 2>/dev/null")
eventually eval 'sinfo -h -n n1 -o %T | grep -qE "^(mixed|allocated)$"'
touch go.restart
wait $step
check "restart: its own status" same $? 0
ended restart

echo "# $tracking: slurmstepd is killed"
start_step orphaned -N1 -n1 -w n0
eventually up orphaned 1
stepd=$(grep -slE "^slurmstepd: \[$(job_of)\.0\]" /proc/[0-9]*/cmdline | cut -d/ -f3)
kill -KILL "$stepd"
check "orphaned: the watchdog sees it and ends" watchdogs_become 0
check "orphaned: with what there was" has orphaned/run.json '"events": [1-9]'
touch go.orphaned
scancel "$(job_of)" 2>/dev/null
wait $step

# The time limit is looked at every 30 seconds.
if [[ ${with_limit:-} ]]; then
    echo "# $tracking: the time limit"
    start_step limit -N1 -n2 -t 5
    eventually up limit 2
    check "limit: set" scontrol update JobId="$(job_of)" EndTime=now
    wait $step
    check "limit: it was that" has err.limit 'TIME LIMIT'
    ended limit
fi
