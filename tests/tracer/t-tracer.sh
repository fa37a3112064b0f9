#!/usr/bin/env bash
# Programs make calls and print the trace they expect; it must be the one recorded.
# No Slurm: ptwatchd starts the program itself.
set -u
watchd=$top_builddir/watchdog/ptwatchd
tracer=$top_builddir/preload/.libs/libparatrace.so
ptdump=$top_builddir/hdf5store/ptdump
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

# The I/O and name events of a run as "call(...) = result", node by node; a node other
# than the first has a line "node NAME" in front.  The marks that the tracer makes
# itself (exit, inherited) are not the program's calls.
recorded() {
    "$ptdump" "$1"/*.ptrun | awk '$3 == "io" || $3 == "name"' | sort -s -t: -k1,1V |
        sed -e 's/^\([0-9.]*\):[0-9]* [^ ]* [a-z]* */\1 /' -e 's/ <[0-9.]*>.*//' \
            -e 's/ ([^()]*)$//' -e '/^[0-9.]* \(exit\|inherited\)(/d' |
        awk '{
            if ($1 != node && $1 != "0")
                print "node " $1
            node = $1
            sub(/^[^ ]+ /, "")
            print
        }'
}

# check NAME EXPECTED-STATUS SPEC COMMAND...
check() {
    local name=$1 want=$2 spec=$3 status
    shift 3
    mkdir "$work/$name" && cd "$work/$name" || exit 1
    "$watchd" --preload "$tracer" --out "$work/$name.run" --spec "$spec" -- "$@" \
        2>"$work/$name.err" | cat >"$work/$name.expected"
    status=${PIPESTATUS[0]}
    recorded "$work/$name.run" >"$work/$name.got"
    if [ $status != "$want" ]; then
        echo "FAIL $name: exit status $status, not $want"
        cat "$work/$name.err"
        failed=1
    elif [ ! -s "$work/$name.expected" ]; then
        echo "FAIL $name: the program printed nothing"
        failed=1
    elif ! diff -u "$work/$name.expected" "$work/$name.got" >"$work/$name.diff"; then
        echo "FAIL $name: another trace than expected"
        head -n 40 "$work/$name.diff"
        failed=1
    else
        echo "ok   $name ($(wc -l <"$work/$name.got") calls)"
    fi
    cd "$work" || exit 1
}

hazards=$top_builddir/tests/tracer/hazards
check calls 0 "" "$top_builddir/tests/tracer/calls"
for hazard in signal fork exec closeall _exit threads errno; do
    check $hazard 0 "" "$hazards" $hazard
done
check kill 137 "" "$hazards" kill
check full 0 buffer=64K "$hazards" full

exit $failed
