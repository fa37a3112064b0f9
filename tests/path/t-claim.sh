#!/bin/bash
#
# The watchdogs of a step's hosts begin at the same moment: all find the same directory, also
# if an earlier run has taken the name they were told.

# shellcheck source=../lib.sh
. "$(dirname "$0")/../lib.sh"

readonly hosts=6
make_tmp
trap 'rm -rf "$tmp"' EXIT

# step KEY DIR: a step on all hosts; waits for its end.
step() {
    local host pids=()
    for ((host = 0; host < hosts; host++)); do
        "$top_builddir/watchdog/ptwatchd" --claim="$1" --hostid=$host --nhosts=$hosts \
            --host="h$host" --out="$2" --preload="$top_builddir/preload/libparatrace.so" \
            -- true 2>>"$tmp/err" &
        pids+=($!)
    done
    wait "${pids[@]}"
}

# expect_whole DIR: the run files of all hosts, and nobody's mark.
expect_whole() {
    local files=("$1"/*.ptrun)
    ((${#files[@]} == hosts)) || fail "$1 has the run files of ${#files[@]} hosts: $(tail -n 3 "$tmp/err")"
    [[ ! -e $1/.step ]] || fail "$1: the mark is left"
}

for ((turn = 0; turn < ${PT_TURNS:-40}; turn++)); do
    step "a$turn" "$tmp/run.$turn"
    expect_whole "$tmp/run.$turn"
    [[ ! -e $tmp/run.$turn.1 ]] || fail "a host took a directory of its own"
    step "b$turn" "$tmp/run.$turn"
    expect_whole "$tmp/run.$turn"
    expect_whole "$tmp/run.$turn.1"
    [[ ! -e $tmp/run.$turn.2 ]] || fail "a host took a directory of its own, behind another run"
done
