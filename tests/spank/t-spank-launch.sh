#!/bin/bash
#
# A traced step: the watchdog that it gets, the environment of its tasks, and that
# it runs and ends by itself whatever becomes of the watchdog.
set -u

ptcluster=${top_builddir:?}/cluster/ptcluster
skip() { echo "skipped: $*"; exit 77; }
command -v srun >/dev/null || skip "no Slurm"
[ -x "$ptcluster" ] || skip "no ptcluster"
[ -e "$top_builddir/spank/paratrace.so" ] || skip "the plugin is not built"
[ -x "$top_builddir/watchdog/ptwatchd" ] || skip "the watchdog is not built"

work=$(mktemp -d "${TMPDIR:-/tmp}/pt-launch.XXXXXX") || exit 99
trap '"$ptcluster" stop -d "$work/cluster" >/dev/null 2>&1; rm -rf "$work"' EXIT
trap 'exit 99' INT TERM
"$ptcluster" start -d "$work/cluster" -n 2 >"$work/start.log" 2>&1 ||
    { cat "$work/start.log"; skip "no cluster"; }
eval "$("$ptcluster" env -d "$work/cluster")"
cd "$work" || exit 99
chmod 755 "$work"

failures=0
check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@"; then echo "ok - $what"; else echo "FAILED - $what"; ((failures++)); fi
}
has() { grep -qE -- "$2" "$1" || { echo "no '$2' in:"; cat "$1"; return 1; }; }
same() { [ "$1" = "$2" ] || { echo "expected '$2', not '$1'"; return 1; }; }
unset SLURM_SPANK__SLURM_SPANK_OPTION_paratrace_ptrace LD_PRELOAD PARATRACE_SOCKET PARATRACE_WATCHDOG
library=$(sed -n 's/.* preload=\([^ ]*\).*/\1/p' cluster/etc/plugstack.conf)
show='echo "$SLURM_PROCID ${LD_PRELOAD:-none} ${PARATRACE_SOCKET:-none}"'

# The watchdogs of this test: their arguments name a run directory below ours.
watchdogs() {
    local dir args
    for dir in /proc/[0-9]*; do
        args=$({ tr '\0' ' ' <"$dir/cmdline"; } 2>/dev/null) || continue
        [[ $args == *"--socket paratrace."*"--out $work/"* ]] && echo "${dir#/proc/}"
    done
}
# Within 5 seconds there are N of them.
watchdogs_become() {
    local i
    for ((i = 0; i < 50; i++)); do
        [ "$(watchdogs | wc -l)" -eq "$1" ] && return 0
        sleep 0.1
    done
    echo "watchdogs: $(watchdogs)"
    return 1
}
# Waits until N tasks of the step have left a file that begins with PREFIX.
tasks_become() {
    local i
    for ((i = 0; i < 100; i++)); do
        [ "$(find . -maxdepth 1 -name "$2*" | wc -l)" -eq "$1" ] && return 0
        sleep 0.1
    done
    return 1
}

# A step of two hosts.
srun -N2 -n4 --ptrace=out=run sh -c "$show; exit \$SLURM_PROCID" >out 2>err
check "exits with the step's status" same $? 3
check "all tasks are traced" same "$(grep -c " $library paratrace\\.[0-9]*\\.0\\.n[01]\\.[0-9a-f]*\$" out)" 4
check "one watchdog a host" same "$(awk '{print $3}' out | sort -u | wc -l)" 2
check "one summary" same "$(grep -c '^paratrace: ' err)" 1
check "no error" eval '! grep "error: paratrace" err'
check "the run directory is there" test -d run
check "no watchdog is left" watchdogs_become 0

# The environment of a task.
srun --export=ALL,LD_PRELOAD=libc.so.6 --ptrace=out=env1 sh -c "$show" >out 2>err
check "a LD_PRELOAD of the user's stays first" has out "^0 libc.so.6:$library paratrace"
srun --export="ALL,LD_PRELOAD=$library:libc.so.6" --ptrace=out=env2 sh -c "$show" >out 2>err
check "the library is not named twice" has out "^0 $library:libc.so.6 paratrace"
srun --export=NONE --ptrace=out=env3 /bin/sh -c "$show" >out 2>err
check "--export=NONE" has out "^0 $library paratrace"
srun --export=ALL,PARATRACE_SOCKET=outer --ptrace=off sh -c "$show" >out 2>err
check "an untraced step does not report to an outer one" has out "^0 none none"

# The watchdog while the step runs.
srun -n2 --ptrace=out=live sh -c 'touch up.$SLURM_PROCID; while [ ! -e go ]; do sleep 0.1; done' \
    >out 2>err &
step=$!
tasks_become 2 up.
pid=$(watchdogs)
check "one watchdog" watchdogs_become 1
check "it is no child of slurmstepd" \
    eval '! tr "\0" " " </proc/$(awk "/^PPid/ {print \$2}" /proc/$pid/status)/cmdline | grep slurmstepd'
for fd in 0 1 2; do
    check "its descriptor $fd is /dev/null" same "$(readlink "/proc/$pid/fd/$fd")" /dev/null
done
check "its environment is clean" \
    eval '! tr "\0" "\n" <"/proc/$pid/environ" | grep -v -e ^PATH= -e ^LC_ALL='
check "it runs in the step's directory" same "$(readlink "/proc/$pid/cwd")" "$work"
touch go
wait $step
check "the step ends well" same $? 0
check "and its watchdog" watchdogs_become 0

# Root's cluster runs the steps of others, and the watchdog with their rights alone.
nobody() { setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups "$@"; }
if [ "$(id -u)" -ne 0 ] || ! nobody test -r "$library"; then
    echo "left out: the steps of others (no root, or the build tree is closed to them)"
else
    mkdir -m 777 other
    cd other || exit 99
    rm -f go
    nobody srun --ptrace=out=run \
        sh -c 'touch up; while [ ! -e go ]; do sleep 0.1; done' >out 2>err &
    step=$!
    tasks_become 1 up
    status=/proc/$(watchdogs)/status
    id=$(id -u nobody) gid=$(id -g nobody)
    check "the user's ids" same "$(awk '/^Uid/ {print $2, $3, $4, $5}' "$status")" "$id $id $id $id"
    check "and groups" same "$(awk '/^(Gid|Groups)/ {$1 = ""; print}' "$status" | xargs -n1 | sort -u)" "$gid"
    check "no capability" same "$(awk '/^CapPrm/ {print $2}' "$status")" 0000000000000000
    touch go
    wait $step
    check "the step ends well" same $? 0
    check "its run directory is the user's" same "$(stat -c %u run)" "$id"
    cd ..
fi

# The step is killed: the watchdog outlives the tasks and finishes.
srun -n2 --ptrace=out=killed sh -c 'touch kill.$SLURM_PROCID; exec sleep 60' >out 2>err &
step=$!
tasks_become 2 kill.
scancel --signal=KILL "$(squeue -h -o %i)"
wait $step
check "the summary of a killed step" has err '^paratrace: '
check "no watchdog is left behind it" watchdogs_become 0

# The watchdog is killed: the step goes on.
srun --ptrace=out=orphan sh -c 'touch orphan.up; while [ ! -e go2 ]; do sleep 0.1; done; exit 7' \
    >out 2>err &
step=$!
tasks_become 1 orphan.
kill -KILL "$(watchdogs)"
touch go2
wait $step
check "the step has its own status" same $? 7
check "the user is told" has err 'error: paratrace: the trace may be incomplete: the watchdog ended early'

# What cannot be started is not missed.
cp cluster/etc/plugstack.conf plugstack.saved
srun --ptrace=out=/proc/no/such sh -c "$show; exit 4" >out 2>err
check "no run directory: own status" same $? 4
check "not traced" has out '^0 none none'
check "and why" has err 'error: paratrace: not traced: '
sed "s| watchdog=[^ ]*| watchdog=$work/none|" plugstack.saved >cluster/etc/plugstack.conf
srun --ptrace=out=none sh -c "$show; exit 4" >out 2>err
check "no watchdog: own status" same $? 4
check "not traced" has out '^0 none none'
check "and why" has err "error: paratrace: not traced: watchdog '$work/none': cannot be executed: No such file"
sed "s| preload=[^ ]*| preload=$work/none.so|" plugstack.saved >cluster/etc/plugstack.conf
srun --ptrace=out=nolib sh -c "$show; exit 4" >out 2>err
check "no library: own status" same $? 4
check "not traced" has out '^0 none none'
check "and why" has err "error: paratrace: task not traced: '$work/none.so': No such file"
check "the hosts are still in service" same "$(sinfo -h -t down,drain,drained,draining -o %n)" ""

echo "$failures failed"
[ "$failures" -eq 0 ]
