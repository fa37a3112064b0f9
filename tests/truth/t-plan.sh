#!/bin/bash
# Who is held when: by a plan, just the I/Os that it names; by throttle:auto, every node in turn.
# shellcheck source=../lib.sh
. "$(dirname "$0")/../lib.sh"

need mpirun
make_tmp
trap 'rm -rf "$tmp"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 \
    OMPI_MCA_rmaps_base_oversubscribe=1
unset "${!SLURM@}" LD_PRELOAD
cd "$tmp" || fail 'no directory'

# trace OUT SPEC: three ranks that write between barriers.
trace() {
    "$top_builddir/watchdog/ptwatchd" --preload "$top_builddir/preload/libparatrace.so" \
        --out "$1" --spec "$2" -- mpirun -n 3 "$top_builddir/examples/pseudo" --sync >out 2>err
}
held() { "$top_builddir/hdf5store/ptdump" "$1"/*.ptrun | sed -n 's/^HOLD(\([0-9.:]*\)).*/\1/p' | sort; }

cat >plan <<'END'
# a comment
2.0.0 20
1 3

1 12   # not in order
0 9
END
trace planned throttle:auto,plan="$tmp/plan" || fail "planned: $(cat err)"
[[ $(held planned | tr '\n' ' ') == '0:9 1:12 1:3 2:20 ' ]] || fail "planned: held $(held planned)"

# Two at a time: the second is not held, and that is counted.
printf '0 5\n1 3\n' >plan
trace both throttle:auto,plan="$tmp/plan" || fail "both: $(cat err)"
[[ $(held both | wc -l) == 1 ]] && grep -q '"holds_refused": 1,' both/run.json ||
    fail "both: held $(held both): $(cat both/run.json)"

for wrong in '1' '1 x' 'x 1' '1.2 3' '1 2 3' '-1 2'; do
    echo "$wrong" >plan
    trace wrong throttle:auto,plan="$tmp/plan" && fail "plan '$wrong' is taken"
    grep -q "plan', line 1: not 'NODE EVENT'" err || fail "plan '$wrong': $(cat err)"
    [[ ! -e wrong ]] || fail "plan '$wrong': a run directory was made"
done
trace wrong throttle:auto,plan="$tmp/none" && fail 'a plan that is not there is taken'
grep -q "cannot read '.*/none': No such file" err || fail "no plan: $(cat err)"

# A hold that cannot be judged, since somebody spins on memory, ends after hold-max: the
# program ends well, and the trace says where everybody was.
"$top_builddir/watchdog/ptwatchd" --preload "$top_builddir/preload/libparatrace.so" \
    --out long --spec discover=hold,throttle:0.1.0,period=1,hold-max=300ms -- \
    "$top_builddir/tests/truth/truth_proc" spin 1 >out 2>err || fail "long: $(cat err)"
grep -q ' holds, some timed out$' err || fail "long: the user is not told: $(cat err)"
grep -q '"holds_timed_out": [1-9]' long/run.json || fail "long: $(cat long/run.json)"
"$top_builddir/hdf5store/ptdump" long/*.ptrun >long.txt
grep -q '^HOLD(0.1.0:[0-9]*) .*timed out.*0.2.0:[0-9]* busy' long.txt || fail "long: $(grep HOLD long.txt)"

trace turns throttle:auto,period=1 || fail "turns: $(cat err)"
for node in 0 1 2; do
    n=$(held turns | grep -c "^$node:")
    ((n >= 5)) || fail "node $node was held $n times: $(held turns | cut -d: -f1 | uniq -c)"
done
