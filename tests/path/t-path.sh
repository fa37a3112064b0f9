#!/bin/bash
# The whole path on the embedded cluster: a traced MPI job, merged, dumped and
# replayed, by root and by an ordinary user.
# shellcheck source=../lib.sh
. "$(dirname "$0")/../lib.sh"

need munged slurmctld slurmd srun
make_tmp
user=
cleanup() {
    "$ptcluster" stop -d "$tmp/cluster" >/dev/null 2>&1
    [[ -z $user ]] || userdel "$user" >/dev/null 2>&1
    rm -rf "$tmp"
}
trap cleanup EXIT
"$ptcluster" start -d "$tmp/cluster" -n 1 >"$tmp/start.log" 2>&1 || fail "$(cat "$tmp/start.log")"
pseudo=$top_builddir/examples/pseudo
ranks=3
count=6

# The events of a node that wait for node 1, as "EVENT SOURCE".
waits_of() {
    on "$tmp/cluster" ptdump --node "$1" store.h5 | awk '
        /^ *WAIT\(1:/ { gsub(/[^0-9:]/, ""); sub(/^1:/, ""); source = $0; next }
        $1 ~ /^[0-9]+$/ { if (source != "") print $1, source; source = "" }'
}

# What a barrier after each of rank 1's writes means: rank 1 opens (event 0) and
# writes (1 to count); another rank's write that follows its k-th one waits for it.
# Rank 0 has made the file before (an open and a close), so its events are two later.
expected_waits() {
    local first=$1 i
    for ((i = 1; i < count; i++)); do
        echo "$((first + i)) $i"
    done
}

trace() {
    on "$tmp/cluster" srun -n $ranks --ptrace=discover=hold,throttle:1,period=1,out=run "$pseudo" --sync \
        --count $count >app.log 2>err.log || fail "traced job: $(cat app.log err.log)"
    grep -q "^pseudo: $ranks ranks" app.log || fail "the application's output: $(cat app.log)"
    grep -q "paratrace: .*run: $ranks nodes, .* 0 lost, complete" err.log ||
        fail "no summary: $(cat err.log)"
    [[ -s run/n0.ptrun && -s run/run.json ]] || fail "run directory: $(ls -la run)"
    grep -q '"complete": true' run/run.json || fail "run.json: $(cat run/run.json)"
}

check_store() {
    local node got
    on "$tmp/cluster" ptmerge -o store.h5 run >merge.log 2>&1 || fail "merge: $(cat merge.log)"
    for node in 0 2; do
        got=$(waits_of $node | head -n $((count - 1)))
        [[ $got == "$(expected_waits $((node == 0 ? 3 : 1)))" ]] ||
            fail "node $node does not wait where the barriers are: $got"
    done
    on "$tmp/cluster" ptdump --node 1 store.h5 | grep -q 'SIGNAL(2:2)' || fail "no SIGNAL"
}

# Rank 0 makes the file before a barrier, and only a run that holds rank 0 tells.
add_run_of_rank_0() {
    on "$tmp/cluster" srun -n $ranks --ptrace=discover=hold,throttle:0,period=1,out=run0 "$pseudo" --sync \
        --count $count >app.log 2>err.log || fail "second traced job: $(cat app.log err.log)"
    on "$tmp/cluster" ptmerge -o store.h5 run run0 >merge.log 2>&1 || fail "merge: $(cat merge.log)"
}

replay() {
    local mode bytes=$((ranks * count * 65536))
    for mode in causal think afap; do
        mkdir "root.$mode"
        on "$tmp/cluster" srun -n $ranks ptreplay --json --mode $mode --root "root.$mode" store.h5 \
            >"$mode.json" 2>err.log || fail "replay $mode: $(cat err.log)"
        grep -q "\"bytes_written\": $bytes" "$mode.json" || fail "replay $mode: $(cat "$mode.json")"
        grep -q '"errors": 0' "$mode.json" || fail "replay $mode: $(cat "$mode.json")"
    done
    grep -q '"mismatches": 0' causal.json || fail "replay differs: $(cat causal.json)"
}

# The same barriers from one run in which nobody was held: MPI's calls tell.
discover_mpi() {
    local found bytes=$((ranks * count * 65536))
    on "$tmp/cluster" srun -n $ranks --ptrace=discover=mpi,out=run.mpi "$pseudo" --sync \
        --count $count >app.log 2>err.log || fail "traced job: $(cat app.log err.log)"
    on "$tmp/cluster" ptmerge -o mpi.h5 run.mpi >merge.log 2>&1 || fail "merge: $(cat merge.log)"
    on "$tmp/cluster" ptdump --node 1 mpi.h5 >mpi.txt || fail 'dump'
    # One after each of its writes.
    found=$(awk '/^ *BARRIER\(.*: 0,1,2\) by mpi$/ { b++ } /^ *[0-9]+ pwrite/ { print b + 0 }' mpi.txt)
    [[ $found == "$(seq 0 $((count - 1)))" ]] ||
        fail "barriers before rank 1's writes: $found in $(cat mpi.txt)"
    mkdir root.mpi
    on "$tmp/cluster" srun -n $ranks ptreplay --json --root root.mpi mpi.h5 >mpi.json 2>err.log ||
        fail "replay: $(cat err.log)"
    grep -q "\"bytes_written\": $bytes" mpi.json || fail "replay: $(cat mpi.json)"
    grep -q '"mismatches": 0' mpi.json || fail "replay differs: $(cat mpi.json)"
}

whole_path() {
    trace
    check_store
    add_run_of_rank_0
    replay
    discover_mpi
}

mkdir "$tmp/own" && cd "$tmp/own" || fail 'no directory'
whole_path

if ((EUID == 0)) && type -P useradd >/dev/null; then
    user=ptp$$
    useradd -M -d "$tmp/user" -s /bin/bash "$user" || fail 'cannot make a user'
    mkdir "$tmp/user" && chown "$user" "$tmp/user"
    runuser -u "$user" -- test -x "$pseudo" || skip 'the build tree is closed to other users'
    # The same functions, as the user, on root's cluster.
    cd "$tmp/user" || fail 'no directory'
    export -f on fail trace waits_of expected_waits check_store add_run_of_rank_0 replay discover_mpi whole_path
    export tmp ptcluster pseudo ranks count
    runuser -u "$user" -- bash -c 'exec 3>&1; set -u -o pipefail; whole_path' || fail 'as an ordinary user'
    [[ $(stat -c %U run/n0.ptrun) == "$user" ]] || fail 'the run file belongs to somebody else'
fi
