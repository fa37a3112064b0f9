#!/bin/bash
# A traced job on three isolated hosts: one run file a host, one run.json for all; and
# what becomes of the trace when tasks are killed.
# shellcheck source=../lib.sh
. "$(dirname "$0")/../lib.sh"

need munged slurmctld slurmd srun
need_root
make_tmp
cleanup() {
    "$ptcluster" stop -d "$tmp/cluster" >/dev/null 2>&1
    rm -rf "$tmp"
}
trap cleanup EXIT
"$ptcluster" start -d "$tmp/cluster" -n 3 --isolated >"$tmp/start.log" 2>&1 ||
    skip "no isolated hosts here: $(tail -n 1 "$tmp/start.log")"
cd "$tmp" || fail 'no directory'
pseudo=$top_builddir/examples/pseudo

on "$tmp/cluster" srun -N 3 --ntasks-per-node=2 --ptrace=throttle:none,out=run,note=hosts \
    "$pseudo" --sync --count 5 >app.log 2>err.log || fail "traced job: $(cat app.log err.log)"
for host in n0 n1 n2; do
    [[ -s run/$host.ptrun ]] || fail "no run file of $host: $(ls -a run)"
    grep -q "\"host\": \"$host\"" run/run.json || fail "$host is not in run.json: $(cat run/run.json)"
done
grep -q '^  "complete": true' run/run.json || fail "not complete: $(cat run/run.json)"
[[ $(find run -type f | wc -l) == 4 ]] || fail "other files in the run directory: $(ls -a run)"
on "$tmp/cluster" ptmerge -o store.h5 run >merge.log 2>&1 || fail "merge: $(cat merge.log)"
on "$tmp/cluster" ptdump store.h5 >store.txt
grep -q '^# node 5 (host n2' store.txt || fail 'node 5 is not on n2'
# Nobody is held on several hosts, but MPI's calls tell who waits for whom.
grep -q 'BARRIER([0-9]*: 0,1,2,3,4,5) by mpi$' store.txt || fail "no barrier: $(cat store.txt)"
mkdir root
on "$tmp/cluster" srun -N 3 --ntasks-per-node=2 ptreplay --mode think --json --root root store.h5 \
    >replay.json 2>err.log || fail "replay: $(cat err.log)"

# Killed in the middle of it: every event up to that moment is there.
on "$tmp/cluster" srun -N 3 -n 3 --ptrace=out=killed "$top_builddir/tests/tracer/hazards" kill \
    >/dev/null 2>&1 && fail 'the killed job succeeded'
for host in n0 n1 n2; do
    count=$(on "$tmp/cluster" ptdump "killed/$host.ptrun" | grep -c ' io .*write(.* = 1 ')
    ((count == 1000)) || fail "$count of 1000 writes of $host"
done
grep -q '"exits": {"[0-2]": 9}' killed/run.json || fail "exit codes: $(cat killed/run.json)"
