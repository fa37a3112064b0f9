#!/usr/bin/env bash
# The order that MPI's calls make: a program waits in every way that MPI has and says what
# it expects.  One run, nobody is held.
set -u -o pipefail
: "${top_builddir:?}" "${top_srcdir:?}"
watchd=$top_builddir/watchdog/ptwatchd
tracer=$top_builddir/preload/libparatrace.so
bin=$top_builddir/hdf5store
program=$top_builddir/tests/path/mpi_edges
compare=$top_srcdir/tests/path/edges.py
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }
for need in mpirun python3; do
    type -P $need >/dev/null || skip "no program '$need'"
done
work=$(mktemp -d "${TMPDIR:-/tmp}/pt-edges.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
unset "${!SLURM@}" "${!OMPI_@}" "${!PMIX_@}" "${!PMI_@}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_mpi_yield_when_idle=1

trace() { # RUN SPEC COMMAND...
    local run=$1 spec=$2
    shift 2
    timeout -k 2 120 "$watchd" --preload "$tracer" --out "$work/$run" \
        --spec "nopath=*expected.*,$spec" -- "$@" 2>"$run.err"
}
merge() { # STORE OPTION-OR-RUN...
    local store=$1
    shift
    "$bin/ptmerge" -o "$store.h5" "$@" >"$store.log" 2>"$store.err" ||
        fail "merge $*: $(cat "$store.err")"
    "$bin/ptdump" --json "$store.h5" >"$store.json" || fail "dump $store"
}
# Threads of each rank write, and what pthread_join waits for is not MPI's.
says_no_more() { # STORE: than that
    grep -v 'the order of processes and threads of one rank (4 have several)' "$1.err" >more.err &&
        fail "$1: warnings: $(cat more.err)"
}

# -- every wait gives its edge, and nothing else does ----------------------------------------
trace run discover=mpi mpirun -n 4 "$program" || fail "traced program: $(cat run.err)"
merge store run
says_no_more store
python3 "$compare" store.json expected.edges mpi || fail "other edges than expected"

# -- sends that are taken to wait only if they are synchronous ---------------------------------
merge eager --rendezvous=0 run
python3 "$compare" eager.json expected.edges mpi >eager.diff 2>&1 && fail "--rendezvous=0 changes nothing"
# Two large sends: what follows them on the sender's side.
grep -q '^(2, 71) waits on node 3 for (3, 61), not (3, 70)$' eager.diff || fail "$(cat eager.diff)"
"$bin/ptmerge" --rendezvous=1K -o no.h5 run >/dev/null 2>no.err && fail "--rendezvous=1K"
grep -q 'must be 0, or a size from 4K' no.err || fail "--rendezvous=1K: $(cat no.err)"

# -- discover=hold: MPI is not asked; and follows no requests -----------------------------------
trace hold discover=hold mpirun -n 4 "$program" || fail "traced program: $(cat hold.err)"
merge held hold
grep -q '^edges: 0,' held.log || fail "edges without a hold: $(cat held.log)"
"$bin/ptdump" hold/*.ptrun >hold.txt || fail "dump hold"
grep -q MPI_done hold.txt && fail "discover=hold follows requests"

# -- one of the two runs is enough; the store says who has found what ------------------------------
merge both hold run
python3 "$compare" both.json expected.edges mpi || fail "edges of the second run"
"$bin/ptdump" both.h5 >both.txt && grep -q 'BARRIER(.*) by mpi$' both.txt || fail "no 'by mpi'"

# -- nobody is held with discover=mpi ----------------------------------------------------------------
trace refused discover=mpi,throttle:1 true && fail "discover=mpi with a throttle"
grep -q 'discover=mpi holds nobody' refused.err || fail "the reason: $(cat refused.err)"

# -- every message of threads that share the library has both its ends ------------------------------------
trace busy discover=mpi mpirun -n 4 "$program" busy || fail "busy threads: $(cat busy.err)"
merge busy busy
says_no_more busy

# -- a rank that is killed: what is there is used, what is missing is said -------------------------------
rm -f file.* expected.*
trace killed discover=mpi mpirun -n 4 "$program" killed && fail "nobody was killed"
merge killed killed
grep -q ': 1 MPI messages were sent, but no receive of them was seen$' killed.err ||
    fail "leftovers: $(cat killed.err)"
python3 "$compare" killed.json expected.edges mpi || fail "edges of the killed run"

# -- holding finds all of it, too: the two are independent and check each other ---------------------------
# It may find more: what the library does is more than what the standard says.
for need in munged slurmctld slurmd srun; do
    type -P $need >/dev/null || { echo "ok, without holds: no program '$need'"; exit 0; }
done
ptcluster=$top_builddir/cluster/ptcluster
cluster=$(mktemp -d /tmp/ptc.XXXXXX) || exit 99
trap '"$ptcluster" stop -d "$cluster" >/dev/null 2>&1; rm -rf "$work" "$cluster"' EXIT
"$ptcluster" start -d "$cluster" -n 1 >start.log 2>&1 || fail "$(cat start.log)"
eval "$("$ptcluster" env -d "$cluster")"
# Where everybody was when a run did not come to its end.
last_events() { # RUN
    "$bin/ptdump" "$1"/*.ptrun | awk '/^[0-9.]+ /{ last[$1] = $0 } /^HOLD/ { hold = $0 }
        END { print hold; for (node in last) print last[node] }'
}
for node in {0..3} {0..3}.0.1; do # the senders, one of them a second thread
    rm -f file.* expected.*
    timeout -k 2 120 srun -n 4 --ptrace="discover=hold,throttle:$node,period=1,hold-max=20s,nopath=*expected.*,out=held$node" \
        "$program" 2>held.err || fail "node $node held: $(cat held.err; last_events "held$node")"
done
merge holds held[0-3]*
python3 "$compare" holds.json expected.edges hold more || fail "holding has not found all of it"
timeout -k 2 120 srun -n 4 --ptrace='discover=mpi,nopath=*expected.*,out=seen' "$program" 2>seen.err ||
    fail "traced program: $(cat seen.err)"
merge seen seen
python3 "$compare" seen.json expected.edges mpi || fail "edges under srun"
merge all held[0-3]* seen
python3 "$compare" all.json expected.edges hold,both more || fail "all together"
echo "ok"
