#!/bin/bash
#
# mpirun inside an allocation: its ranks on the job's first host live in the batch step, the
# others below orteds that it starts with srun; all are traced, named by their MPI rank.
# On isolated hosts, because mpirun knows its own by its name.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need_root
need mpirun
start_cluster -n 2 --isolated
program="$top_builddir/examples/pseudo --sync --count 3 --dir $PWD"
ranks_of() { # DIR: the ranks that have opened the data file
    local file
    for file in "$1"/*.ptrun; do
        "$top_builddir/hdf5store/ptdump" --json "$file"
    done | python3 -c '
import json, sys
decoder, text, ranks = json.JSONDecoder(), sys.stdin.read().strip(), set()
while text:
    run, end = decoder.raw_decode(text)
    text = text[end:].strip()
    ranks |= {i["node"].split(".")[0] for i in run["items"]
              if i["item"] == "event" and "pseudo.dat" in str(i)}
print(*sorted(ranks))'
}

batch -N2 -n4 --ntasks-per-node=2 --ptrace=out=run <<SH
#!/bin/sh
cat /etc/hostname >in
mpirun $program
SH
check "the job ends well" same "$(grep -c '^pseudo: 4 ranks' out)" 1
check "orted's step: the ranks of the second host" same "$(ranks_of run)" "2 3"
check "is complete" is_complete run
check "the batch step: those of the first" same "$(ranks_of run.batch)" "0 1"
check "is complete" is_complete run.batch
check "and its line" has out '^paratrace: .*/run.batch: .* complete$'
check "the launchers are not traced" eval '! nodes_of run.batch "exe [^,]*/(orterun|mpirun|srun|bash|dash),"'

# On one host nothing but the script has a trace, and it gets the name.
batch -N1 -n2 --ptrace=out=single <<SH
#!/bin/sh
mpirun $program
SH
check "one host: the ranks" same "$(ranks_of single)" "0 1"
check "under the name that was asked for" eval '[[ ! -e single.batch ]] && has out "^paratrace: .*/single: "'

# By default each is called by its step.
batch -N2 -n2 --ntasks-per-node=1 --ptrace=on <<SH
#!/bin/sh
mpirun $program
SH
id=$(sed -n 's/^Submitted batch job //p' submit.out)
check "the default names" eval 'is_complete ptrace.$id.batch && is_complete ptrace.$id.0'

# Holds, too.
batch -N1 -n2 --ptrace=throttle:0,period=1,out=held <<SH
#!/bin/sh
mpirun $program
SH
check "holds in the batch step" has held/run.json '"holds": [1-9]'

# The shell of salloc, on the job's first host: what it starts is traced as in a script. A key
# that is pressed before the shell asks for it may be thrown away.
mkfifo keys
as script -qec "salloc -Q -N1 -n2 --ptrace=out=shell" /dev/null <keys >out 2>&1 &
salloc=$!
exec 3>keys
check "salloc's shell asks" eventually grep -q '[$#] $' out
echo "mpirun $program </dev/null; exit" >&3
wait "$salloc"
exec 3>&-
check "and does" has out 'pseudo: 2 ranks'
check "in the shell of salloc" same "$(ranks_of shell)" "0 1"
check "no watchdog is left" watchdogs_become 0
report
