#!/bin/bash
#
# A campaign on a private cluster: from the script to the store; then jobs that fail,
# resume, cancel, and what is refused.
set -u

ptcluster=${top_builddir:?}/cluster/ptcluster
ptcampaign=$top_builddir/campaign/ptcampaign
pseudo=$top_builddir/examples/pseudo
skip() { echo "skipped: $*"; exit 77; }
command -v sbatch >/dev/null || skip "no Slurm"
for program in "$ptcluster" "$ptcampaign" "$pseudo" "$top_builddir/watchdog/ptwatchd" \
    "$top_builddir/hdf5store/ptmerge" "$top_builddir/hdf5store/ptdump"; do
    [ -x "$program" ] || skip "'$program' is not built"
done
[ -e "$top_builddir/spank/paratrace.so" ] || skip "the plugin is not built"

unset "${!SLURM@}" "${!SBATCH@}"
work=$(mktemp -d "/tmp/pt-camp.XXXXXX") || exit 99
trap '"$ptcluster" stop -d "$work/cl" >/dev/null 2>&1; rm -rf "$work"' EXIT
trap 'exit 99' INT TERM
cd "$work" || exit 99
PATH=$top_builddir/hdf5store:$top_builddir/replay:$PATH

failures=0
check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@"; then echo "ok - $what"; else echo "FAILED - $what"; ((failures++)); fi
}
has() { grep -qE -- "$2" "$1" || { echo "no '$2' in:"; cat "$1"; return 1; }; }
same() { [ "$1" = "$2" ] || { echo "expected '$2', not '$1'"; return 1; }; }
# run STATUS ARGS...: ptcampaign must end with that status; its output is in out and err.
run() {
    local want=$1 status
    shift
    timeout 150 "$ptcampaign" "$@" >out 2>err
    status=$?
    [ $status -eq "$want" ] || { echo "exit status $status of: $*"; cat out err; return 1; }
}
# wait_for SECONDS COMMAND...
wait_for() {
    local i n=$(($1 * 5))
    shift
    for ((i = 0; i < n; i++)); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.2
    done
    echo "in vain: $*"
    return 1
}
state_is() { "$ptcampaign" status "$1" --json | grep -q "^  \"state\": \"$2\""; }
nothing_queued() { [ -z "$(squeue -h)" ]; }

# ---- without a cluster: what is refused

printf '#!/bin/sh\nsrun true\n' >plain.sh
printf 'srun true\n' >nobang.sh
printf '#!/bin/sh\n#SBATCH --array=1-4\nsrun true\n' >array.sh
mkdir other
check "help" run 0 --help
for command in submit status watch resume cancel report; do
    check "help of $command" run 0 $command --help
    check "$command without argument" run 2 $command
done
check "no command" run 2
check "unknown command" run 2 nonsense
check "unknown option" run 2 submit --nonsense plain.sh
check "named" has err "unknown option '--nonsense'"
check "wrong period" run 2 submit --period 0 plain.sh
check "wrong nodes" run 2 submit --nodes 1,x plain.sh
check "wrong spec" run 2 submit --spec out=/x plain.sh
check "wrong number" run 2 submit --max-parallel 0 plain.sh
check "missing script" run 1 submit none.sh
check "named" has err "^ptcampaign: cannot read 'none.sh': No such file"
check "a directory for a script" run 1 submit other
check "no batch script" run 1 submit nobang.sh
check "named" has err "nobang.sh.*'#!'"
check "an array" run 1 submit array.sh
check "named" has err "job array"
PATH=/nonexistent "$ptcampaign" submit plain.sh 2>err
check "no Slurm" same $? 1
check "named" has err "cannot find program 'sbatch': no Slurm in PATH"
check "no campaign" run 1 status other
check "named" has err "cannot open campaign 'other': no campaign.json in it"
check "missing campaign" run 1 watch none
echo '{"format": "paratrace-campaign", "version": 99}' >other/campaign.json
check "newer campaign" run 1 status other
check "named" has err "version 99, known is 1"
head -c 20 other/campaign.json >x && mv x other/campaign.json
check "damaged campaign" run 1 report other
rm other/campaign.json

"$ptcluster" start -d "$work/cl" -n 1 >start.log 2>&1 || { cat start.log; skip "no cluster"; }
eval "$("$ptcluster" env -d "$work/cl")"

check "a directory of others" run 1 submit -d other plain.sh
check "named" has err "'other': it exists and is no campaign"
check "a wrong option of sbatch" run 1 submit -d refused -S --nonsense plain.sh
check "leaves nothing behind" test ! -e refused

# ---- from the script to the store

mkdir data
cat >job.sh <<'J'
#!/bin/bash
#SBATCH --ntasks=3 --job-name=camp
#SBATCH --ptrace=period=1000

echo "tasks $SLURM_NTASKS, array ${SLURM_ARRAY_TASK_ID-none}, arguments $#: <$2>"
srun "$1" --sync --count 4 --block 4096 --dir data
J
odd="it's \$HOME \"x\""
replay=()
[ ! -x "$top_builddir/replay/ptreplay" ] || replay=(--replay root)
check "submit" run 0 submit --period 1 "${replay[@]}" job.sh "$pseudo" "$odd"
c=campaign.camp.1
check "the directory" test -d $c/runs
check "a second one beside it" run 1 submit -d $c job.sh "$pseudo"
check "is refused" has err "it is one already"
check "watch" run 0 watch $c --timeout 120
check "its last line" has out '4/4 done, 0 failed: done$'
check "state" state_is $c "done"
check "status" run 0 status $c
check "of the baseline" has out '^000 +baseline +[0-9]+ +done +[0-9.]+$'
check "of an element" has out '^003 +2 +[0-9]+_3 +done'
check "the store" test -s $c/store.h5
ptdump $c/store.h5 >dump
check "has what was discovered" has dump 'BARRIER|WAIT'
for i in 000 001 003; do
    check "options and arguments of run $i" grep -qF "tasks 3, array none, arguments 2: <$odd>" $c/log/$i.out
done
check "report" run 0 report $c
check "of holds" has out '^001 +0 +done +[0-9.]+ +[0-9.]+ +[1-9]'
check "of barriers" has out 'barriers +[1-9]'
[ ${#replay[@]} -eq 0 ] || check "of the replay" has out 'mismatches +0'
check "report as JSON" run 0 report $c --json
check "nothing to resume" run 0 resume $c
check "said" has out 'nothing to do'
check "no temporary file" same "$(find $c -name '*.tmp*')" ""
if command -v python3 >/dev/null; then
    "$ptcampaign" report $c --json >report.json
    check "JSON of report" python3 -m json.tool report.json /dev/null
    check "JSON of campaign" python3 -m json.tool $c/campaign.json /dev/null
fi

# ---- a baseline that fails, then works

cat >flaky.sh <<'J'
#!/bin/bash
#SBATCH -n 2
count=$(cat count 2>/dev/null || echo 0)
echo $((count + 1)) >count
case $count in
    0) exit 7 ;;
    2) srun sh -c 'exit 5'; exit 0 ;;
esac
srun "$1" --sync --count 2 --block 4096 --dir data
J
check "submit" run 0 submit -d flaky --period 1 --nodes 0,1,9 flaky.sh "$pseudo"
check "watch sees the failure" run 1 watch flaky --timeout 60
check "and why" has err "run 000 .*exit status 7; log: $work/flaky/log/000.out"
check "status" run 0 status flaky
check "says the same" has out "^000 .*failed .*exit status 7; log: $work/flaky/log/000.out"
check "resume" run 0 resume flaky
check "of the baseline" has out 'submitted the baseline and the plan'
check "a throttled run fails" run 1 watch flaky --timeout 90
check "and why" has err 'run 001 .*task [01]: exit status 5'
check "the others are merged" test -s flaky/store.h5
check "without it" has flaky/log/merge.out 'run 001 is left out'
check "resume" run 0 resume flaky
check "of that run" has out 'submitted 1 run and the merge'
check "watch" run 0 watch flaky --timeout 90
check "state" state_is flaky "done"
check "all are merged" has flaky/log/merge.out '3 runs merged, 0 left out'
check "the failed one is kept" test -d flaky/runs/001.old.1
check "status" run 0 status flaky
check "a note on the node that is not there" has out 'note: node 9 is not in the baseline'

# ---- cancel, and resume behind it; a script that does not end by itself

cat >slow.sh <<'J'
#!/bin/bash
#SBATCH -n 2
touch started
[ -e quick ] || exec srun sleep 100
srun "$1" --sync --count 2 --block 4096 --dir data
J
check "submit" run 0 submit -d slow --period 1 slow.sh "$pseudo"
check "it runs" wait_for 20 test -e started
check "watch ends with its time" run 1 watch slow --timeout 1
check "and says so" has err 'is not over after 1 seconds'
check "state" state_is slow running
check "cancel" run 0 cancel slow
check "of both jobs" has out '2 jobs cancelled'
check "the queue is empty" wait_for 40 nothing_queued
check "watch" run 1 watch slow --timeout 30
check "state" state_is slow cancelled
touch quick
check "resume" run 0 resume slow
check "watch" run 0 watch slow --timeout 90
check "the store" test -s slow/store.h5

# ---- Slurm does not answer

mkdir silent
printf '#!/bin/sh\nexit 1\n' >silent/squeue
chmod +x silent/squeue
PATH=$work/silent:$PATH
check "no answer is no failure of the campaign" run 1 status $c
check "said" has err 'squeue failed'
check "a report can still be read" run 0 report $c

echo "$failures failed"
[ "$failures" -eq 0 ]
