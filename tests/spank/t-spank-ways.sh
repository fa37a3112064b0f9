#!/bin/bash
#
# Every way to start a traced step, as an ordinary user: each gets its run directory, sees
# nothing but what it is told to, and ends as it would untraced.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
start_cluster -n 3

# A task that does one I/O that nobody else does, and shows its environment.
cat >task <<'SH'
#!/bin/sh
cat /etc/hostname >"file.$1"
echo "$1 ${LD_PRELOAD:-none} ${PARATRACE_SOCKET:-none}"
SH
chmod 755 task
traced() { grep -qE "^$1 ([^ ]*:)?$library paratrace\." out || { cat out; return 1; }; }
untraced() { grep -qE "^$1 none none" out || { cat out; return 1; }; }
wrote() { # DIR NAME: a node of that run has written the file of the task NAME
    [[ -n $(nodes_of "$1" "file\.$2\"") ]] || { echo "no file.$2 in $1: $(ls -A "$1")"; return 1; }
}
job() { sed -n 's/^Submitted batch job //p' submit.out; }

echo '# heterogeneous jobs'
export SLURM_MPI_TYPE=none # Slurm's PMIx sometimes hangs where one srun has two components
as srun --ptrace=out=het -n1 ./task h0 : -n1 ./task h1 >out 2>err
check "both components are traced" eval 'traced h0 && traced h1'
check "in directories of their own" eval '{ wrote het h0 && wrote het.1 h1; } || { wrote het h1 && wrote het.1 h0; }'
check "each complete" eval 'is_complete het && is_complete het.1'
as srun --ptrace=on -n1 ./task h2 : -n1 ./task h3 >out 2>err
check "two lines by default, complete" same "$(grep -cE '^paratrace: .*/ptrace\.[0-9]+\.0: .* complete$' err)" 2
batch --ptrace=on <<'SH'
#!/bin/bash
#SBATCH -n1
#SBATCH hetjob
#SBATCH -n1
srun --het-group=0,1 ./task b$SLURM_PROCID
srun --het-group=1 ./task b1
SH
check "a het script's steps" same "$(grep -cE '^paratrace: .*/ptrace\.[0-9]+\.[01]: .* complete$' out)" 3
batch -N2 --ptrace=out=step <<'SH'
#!/bin/bash
srun -N1 -n1 ./task s0 : -N1 -n1 ./task s1
SH
check "a step of two components in one job" eval 'traced s0 && traced s1'
check "in directories of their own" eval 'is_complete step && is_complete step.1'

unset SLURM_MPI_TYPE

echo '# arrays'
batch --array=1-3 --ptrace=out=array.%A.%a -o 'out.%a' <<<'#!/bin/sh
srun ./task a$SLURM_ARRAY_TASK_ID'
id=$(job)
for k in 1 2 3; do check "task $k of an array" wrote "array.$id.$k" "a$k"; done
batch --array=1-3 --ptrace=out=same -o 'out.%a' <<<'#!/bin/sh
srun ./task x$SLURM_ARRAY_TASK_ID'
check "no task writes over another's run" eval 'is_complete same && is_complete same.1 && is_complete same.2'

echo '# several steps'
batch -n3 --ptrace=on <<'SH'
#!/bin/sh
srun -n1 ./task p0
srun -n1 --exact ./task p1 &
srun -n1 --exact ./task p2 &
wait
SH
id=$(job)
check "one after the other and side by side" same "$(grep -c '^paratrace: .* complete$' out)" 3
check "the first is step 0" wrote "ptrace.$id.0" p0
check "the others are steps 1 and 2" eval 'is_complete ptrace.$id.1 && is_complete ptrace.$id.2'
check "the script itself left nothing" same "$(echo "ptrace.$id."*)" "ptrace.$id.0 ptrace.$id.1 ptrace.$id.2"
batch -n3 --ptrace=out=one <<'SH'
#!/bin/sh
srun -n1 ./task q0
srun -n1 ./task q1
SH
check "one name for two steps" eval 'wrote one q0 && wrote one.1 q1'

echo '# a job that is requeued keeps both of its traces'
# Slurm 22.05 does not tell the script's step how often it was started: it takes a number.
as sbatch --requeue --ptrace=out=again -o out --wrap './task "y$SLURM_RESTART_COUNT"
    srun ./task "z$SLURM_RESTART_COUNT"
    [ "$SLURM_RESTART_COUNT" = 1 ] || { touch up.again; sleep 60; }' >submit.out
id=$(job)
eventually test -e up.again
as scontrol requeue "$id"
check "the first ends" eventually test -e again.batch/run.json
sleep 2 # a host refuses a job that starts in the second in which it was ended there
check "and starts anew" eventually eval 'scontrol update JobId="$id" StartTime=now; test -e again.batch.1/run.json'
[ -e again.batch.1/run.json ] || { scontrol show job "$id"; cat out; ls -ld again*; }
check "the steps of both" eval 'wrote again z && wrote again.r1 z1'
check "the scripts of both" eval 'wrote again.batch y && wrote again.batch.1 y1'

echo '# a script that is cancelled'
as sbatch --ptrace=out=gone -o out --wrap 'cat /etc/hostname >file.gone; touch up.gone; sleep 60' >submit.out
eventually test -e up.gone
as scancel "$(job)"
check "leaves its trace" eventually test -e gone/run.json
check "of what it did" wrote gone gone
check "and no watchdog" watchdogs_become 0

echo '# environments'
as srun --export=NONE --ptrace=out=none /bin/sh ./task e0 >out 2>err
check "srun --export=NONE" eval 'traced e0 && is_complete none'
as srun --export=ALL,X=2 --ptrace=out=all sh -c 'echo X=$X; ./task e1' >out 2>err
check "srun --export=ALL,X=2" eval 'traced e1 && has out "^X=2"'
batch --export=NONE --ptrace=out=bnone <<<'#!/bin/sh
srun /bin/sh ./task e2; ./task e3'
check "sbatch --export=NONE: the step" eval 'traced e2 && wrote bnone e2'
check "sbatch --export=NONE: the script" eval 'traced e3 && wrote bnone.batch e3'
as srun --export="ALL,LD_PRELOAD=libm.so.6 libdl.so.2" --ptrace=out=own ./task e4 >out 2>err
check "a LD_PRELOAD of one's own keeps its order" has out "^e4 libm.so.6 libdl.so.2:$library "
batch --ptrace=out=inner <<SH
#!/bin/sh
export LD_PRELOAD=libm.so.6:\$LD_PRELOAD
srun ./task e5
srun --ptrace=off ./task e6
SH
check "the library is not named twice below a traced script" has out "^e5 libm.so.6:$library paratrace\\."
check "and not at all in an untraced step" has out '^e6 libm.so.6 none$'

echo '# programs'
printf '0 ./task m0\n1-2 ./task m%%t\n' >multi.conf
as srun -n3 --multi-prog --ptrace=out=multi multi.conf >out 2>err
check "--multi-prog" eval 'traced m0 && traced m1 && traced m2 && is_complete multi'
for mpi in none pmix; do
    as srun -n2 --mpi=$mpi --ptrace=out=mpi.$mpi sh -c './task $SLURM_PROCID' >out 2>err
    check "--mpi=$mpi" eval "traced 0 && traced 1 && is_complete mpi.$mpi"
done
as srun -N3 -n6 --ptrace=out=three sh -c './task t$SLURM_PROCID' >out 2>err
check "one line for three hosts" same "$(grep -c '^paratrace: ' err)" 1
nodes=$(sed -n 's/.*three: \([0-9]*\) nodes.*/\1/p' err)
check "that counts all of them" same "$nodes" "$(grep -o '"nodes": [0-9]*' three/run.json | awk '{n += $2} END {print n}')"
check "and is of more than one" test "$nodes" -ge 6

as srun -K -N2 -n2 --ptrace=throttle:1,out=failed sh -c '[ "$SLURM_PROCID" = 0 ] || sleep 50; exit 3' >out 2>err
check "a failed task ends the others, also where I/O is held" eval 'lacks err "force|timed out" && has err "task 0: Exited with exit code 3"'

echo '# task prologs'
cat >prolog <<'SH'
#!/bin/sh
cat /etc/hostname >"prolog.$SLURM_SCRIPT_CONTEXT"
echo "print prolog ${LD_PRELOAD:-none}"
echo "export FROM_PROLOG=yes"
SH
chmod 755 prolog
as srun --task-prolog="$PWD/prolog" --task-epilog="$PWD/prolog" --ptrace=out=prologs \
    sh -c './task l0; echo "prolog said $FROM_PROLOG"' >out 2>err
check "a task prolog runs and is heard" eval 'has out "^prolog " && has out "^prolog said yes"'
check "the task is traced" eval 'traced l0 && wrote prologs l0'
check "prolog and epilog are not" eval '! nodes_of prologs "prolog\.prolog_task" && ! nodes_of prologs "prolog\.epilog_task"'

echo '# what is not to be'
jobs() { scontrol -o show job 2>/dev/null | grep -c JobId=; }
before=$(jobs)
as sbatch --test-only --ptrace=out=test --wrap 'srun true' >out 2>err
check "sbatch --test-only" same $? 0
check "has no side effects" eval '[[ ! -e test && $(jobs) == "$before" ]]'
check "and refuses a wrong SPEC" eval '! as sbatch --test-only --ptrace=perod=3 --wrap true 2>/dev/null'
check "a wrong SPEC in a het job" eval '! as srun --ptrace=period=0 -n1 true : -n1 true 2>err'
check "in its second component" eval '! as srun -n1 true : --ptrace=period=0 -n1 true 2>err'
check "was refused before" same "$(jobs)" "$before"
check "no watchdog is left" watchdogs_become 0
report
