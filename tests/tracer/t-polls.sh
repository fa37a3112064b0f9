#!/usr/bin/env bash
# Programs that wait by asking again and again: no poll is lost however the program ends,
# a node that polls counts as waiting and one that asks once does not, and runs in which the
# waiting took longer are the same.
set -u
watchd=$top_builddir/watchdog/ptwatchd
tracer=$top_builddir/preload/libparatrace.so
ptdump=$top_builddir/hdf5store/ptdump
ptmerge=$top_builddir/hdf5store/ptmerge
polls=$(cd "$top_builddir/tests/tracer" && pwd)/polls
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
unset "${!SLURM@}" "${!OMPI_@}" "${!PMIX_@}" "${!PMI_@}"

bad() {
    echo "FAIL $1"
    failed=1
}

# trace NAME SPEC COMMAND...: in a directory of its own, or in $dir.
trace() {
    local name=$1 spec=$2
    shift 2
    mkdir -p "${dir:-$work/$name}" && cd "${dir:-$work/$name}" || exit 1
    timeout -k 2 60 "$watchd" --preload "$tracer" --out "$work/$name.run" --spec "$spec" -- "$@" \
        >"$work/$name.out" 2>&1
    status=$?
    cd "$work" || exit 1
    "$ptdump" "$work/$name.run"/*.ptrun >"$work/$name.dump"
}

# ends STATUS NAME EXPECTED: the events of all nodes.
ends() {
    local name=$2
    trace "$name" "" "$polls" "$name"
    [ $status = "$1" ] || bad "$name: exit status $status, not $1"
    sed -n -e 's/^\([0-9.]*\):[0-9]* [^ ]* [a-z]* */\1 /' -e 's/ <[0-9.]*>.*//' \
        -e '/^[0-9.]* exit(/d' -e 's/ (No such[^)]*)//' -e 's/waitpid(.*/waitpid()/' \
        -e '/^[0-9]/p' "$work/$name.dump" |
        sort -s -k1,1V >"$work/$name.got"
    if diff - "$work/$name.got" >"$work/$name.diff" <<<"$3"; then
        echo "ok   $name"
    else
        bad "$name: another trace"
        cat "$work/$name.diff"
    fi
}

# ---- ends before there was an answer --------------------------------------------------------

ends 137 kill '0 stat("missing") = -1 ENOENT (2 polls)'
ends 137 kill-sync '0 poll(1) = 0 (3 polls)'
ends 0 _exit '0 poll(1) = 0 (3 polls)'
ends 0 exec '0 stat("missing") = -1 ENOENT (2 polls)
0.1.0 poll(1) = 0 (3 polls)'
ends 0 threads '0 pthread_join() = 0
0 stat("main") = -1 ENOENT (2 polls)
0.0.1 stat("thread") = -1 ENOENT (2 polls)
0.0.2 poll(1) = 0 (3 polls)'
ends 0 fork '0 stat("parent") = -1 ENOENT (5 polls)
0 waitpid()
0.1.0 stat("child") = -1 ENOENT (2 polls)'

# A signal handler that asks too: each look of the program and of the handler is there.
trace signals "" "$polls" signals
count() {
    awk -v call="stat(\"$1\")" 'index($0, call) {
        n++
        if (match($0, /[0-9]+ polls/))
            n += substr($0, RSTART)
    } END { print n + 0 }' "$work/signals.dump"
}
asked=$(awk '/ poll\(1\) = 0/ && match($0, /[0-9]+ polls/) { n += substr($0, RSTART); next }
    / poll\(1\) = 0/ { n++ } END { print n + 0 }' "$work/signals.dump")
[ $status = 0 ] || bad "signals: exit status $status"
[ "$(count main)" = 100000 ] || bad "signals: $(count main) looks, not 100000"
[ "$asked" = $((300000 + 3 * $(count handler))) ] ||
    bad "signals: $asked polls with $(count handler) signals"
[ "$(count handler)" -gt 0 ] || bad 'signals: there was none'
echo "ok   signals ($(count handler))"

# ---- who is stuck? ---------------------------------------------------------------------------

# pair NAME SPEC FIRST SECOND: two ranks, commands of a shell.
pair() {
    trace "$1" "noexe=*sh,nopath=*here,hold-max=20s$2" sh -c "PMIX_RANK=0 $3 & PMIX_RANK=1 $4 & wait"
}

# Rank 1 waits for the file of rank 0: both holds find it before its second I/O.
pair stuck ,throttle:0,period=1 "$polls make flag" "$polls wait flag"
grep '^HOLD' "$work/stuck.dump" >"$work/stuck.holds"
grep -q '^HOLD(0:0) .*: 1:3 blocked$' "$work/stuck.holds" || bad 'stuck: rank 1 polls, and is not stuck'
! grep -q 'timed out' "$work/stuck.holds" || bad 'stuck: a hold timed out'
[ "$(grep -cE '^1:[0-9]+ .* access\("flag"' "$work/stuck.dump")" = 1 ] ||
    bad 'stuck: the waiting is more than one event'
cat "$work/stuck.holds"

# Rank 1 has asked once and computes: it is not stuck.
pair once ,throttle:0,period=1 "$polls make flag" "$polls once"
grep '^HOLD(0:0)' "$work/once.dump" >"$work/once.holds"
[ -s "$work/once.holds" ] || bad 'once: nobody was held'
! grep -q '1:[0-9]* blocked' "$work/once.holds" || bad 'once: rank 1 computes, and is taken for stuck'
! grep -q 'timed out' "$work/once.holds" || bad 'once: a hold timed out'
cat "$work/once.holds"

# The one that polls is held, before each of its I/Os once: the waiting counts as one.
for ms in 1 300; do
    pair held$ms ,throttle:1,period=1 "$polls make flag $ms" "$polls wait flag"
    sed -n 's/^HOLD(\(1:[0-9]*\)).*/\1/p' "$work/held$ms.dump" >"$work/held$ms.holds"
    seq -f 1:%g 0 6 | cmp -s - "$work/held$ms.holds" ||
        bad "held$ms: held before $(tr '\n' ' ' <"$work/held$ms.holds")"
    grep -oE 'access\("flag".*' "$work/held$ms.dump"
done

# ---- runs of which one waited longer -----------------------------------------------------------

for ms in 1 300; do
    dir=$work/same pair same$ms "" "$polls make flag $ms" "$polls wait flag"
    rm -r "$work/same"
    grep -oE 'access\("flag".*' "$work/same$ms.dump"
done
"$ptmerge" -o "$work/same.h5" "$work/same1.run" "$work/same300.run" >"$work/merge.out" 2>&1 ||
    { bad 'same: the runs are not merged'; cat "$work/merge.out"; }
exit $failed
