#!/bin/bash
# ptreplay on stores made by hand: order, modes, confinement, refusals, differences.
# Environment: top_builddir, top_srcdir.  Exit status: 0, 77 (skipped) or 1.

build=$(cd "${top_builddir:-.}" && pwd) || exit 1
ptreplay=$build/replay/ptreplay
mkstore=$build/tests/replay/mkstore

skip() {
    echo "skipped: $*"
    exit 77
}

command -v mpirun >/dev/null || skip "no mpirun"
command -v python3 >/dev/null || skip "no python3"
[ -x "$ptreplay" ] && [ -x "$mkstore" ] || skip "ptreplay or mkstore is not built"

tmp=$(mktemp -d "${TMPDIR:-/tmp}/t-replay.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
failures=0

export OMPI_MCA_mpi_yield_when_idle=1
# Under a launcher of its own each run is a job of its own.
unset "${!SLURM_@}" "${!PMIX_@}" "${!OMPI_COMM_@}"

fail() {
    echo "FAILED: $*"
    sed 's/^/    /' err
    failures=$((failures + 1))
}

# run RANKS ARGUMENT...: ptreplay in a fresh root unless there is one; leaves out, err, rc
run() {
    local ranks=$1 as_root=()
    shift
    [ "$(id -u)" -ne 0 ] || as_root=(--allow-run-as-root)
    mkdir -p root
    timeout 60 mpirun "${as_root[@]}" --oversubscribe -n "$ranks" "$ptreplay" --root root "$@" \
        >out 2>err </dev/null
    rc=$?
}

# Whether an expression over the JSON result, `r`, holds.
holds() {
    python3 -c 'import json, sys; r = json.load(open("out")); sys.exit(not eval(sys.argv[1]))' "$1"
}

expect() {
    holds "$2" || fail "$1: not $2 in $(tr -d '\n' <out)"
}

# -- order ---------------------------------------------------------------------
# Node 1 reads what node 0 writes 200 ms late; node 2 what node 1 writes.

"$mkstore" chain.h5 <<'END'
file /d/a made
file /d/b made
node 0
open file=0 flags=wc mode=0644 handle=1 ret=3 idle0=200
write file=0 handle=1 len=1000 ret=1000
exit
node 1
open file=0 flags=r handle=1 ret=3
read file=0 handle=1 len=4096 ret=1000
open file=1 flags=wc mode=0644 handle=2 ret=4 idle2=100
write file=1 handle=2 len=300 ret=300
exit
node 2
open file=1 flags=r handle=1 ret=3
read file=1 handle=1 len=4096 ret=300
exit
edge 0 1 1 0
edge 1 3 2 0
END
for ranks in 3 2 1; do
    run $ranks --json chain.h5
    [ $rc -eq 0 ] || fail "chain on $ranks ranks: exit $rc"
    expect "chain on $ranks ranks" 'r["mismatches"] == 0 and r["errors"] == 0'
    expect "chain on $ranks ranks" '0.3 <= r["elapsed_s"] and r["wait_s"] > 0.4'
    expect "chain on $ranks ranks" 'r["bytes_read"] == 1300 and r["bytes_written"] == 1300'
    [ -z "$(ls -A root)" ] || fail "files stay without --keep"
done
grep -q 'warning: 3 ranks of the trace share 1 rank' err || fail "no warning about few ranks"
expect "keys" 'list(r) == """store mode nodes ranks events elapsed_s io_s compute_s idle_s wait_s
    bytes_read bytes_written mismatches errors operations""".split()'
expect "operations" 'all(list(o) == ["count", "p50_us", "p99_us"] for o in r["operations"].values())'

run 3 --json --mode afap chain.h5
[ $rc -eq 0 ] || fail "afap without order: exit $rc"
expect "afap: shared files are there beforehand" 'r["idle_s"] == 0 and r["errors"] == 0'
expect "afap: and large enough" 'r["mismatches"] == 0 and r["bytes_read"] == 1300'
run 3 --json --mode afap --ignore-errors chain.h5
[ $rc -eq 0 ] || fail "--ignore-errors: exit $rc"

# -- barriers ------------------------------------------------------------------
# After the barrier each node sees the other's file: by messages and, with more
# ranks, as a collective; with nodes sharing a rank, too.

# A barrier of the first COUNT nodes at EVENT.
members() {
    printf 'barrier'
    for ((i = 0; i < $1; i++)); do printf ' %d:%d' "$i" "$2"; done
    echo
}

barrier_store() {
    local n=$1 i
    for ((i = 0; i < n; i++)); do echo "file /d/f$i made"; done
    for ((i = 0; i < n; i++)); do
        echo "node $i"
        echo "open file=$i flags=wc mode=0644 handle=1 ret=3 idle0=$((i * 10))"
        echo "write file=$i handle=1 len=100 ret=100"
        echo "open file=$(((i + 1) % n)) flags=r handle=2 ret=4"
        echo "read file=$(((i + 1) % n)) handle=2 len=200 ret=100"
        echo "exit idle0=$(((n - i) * 5))"
    done
    members "$n" 2
    members "$n" 4
}
for shape in 4:4 4:2 5:2 10:10 10:9; do
    barrier_store "${shape%:*}" | "$mkstore" barrier.h5
    run "${shape#*:}" --json barrier.h5
    [ $rc -eq 0 ] || fail "barrier, nodes:ranks $shape: exit $rc"
    expect "barrier $shape" 'r["mismatches"] == 0 and r["errors"] == 0'
done

# -- modes ---------------------------------------------------------------------

"$mkstore" think.h5 <<'END'
file /d/in size=8192
node 0
open file=0 flags=r handle=1 ret=3 compute0=30 compute1=10 compute2=10
read handle=1 len=4096 ret=4096 idle0=20 sync=100
exit
node 1
open file=0 flags=r handle=1 ret=3
read handle=1 len=4096 ret=4096 begin=250
exit
END
# Computing takes CPU time, which a busy machine stretches: a mode is told from the others
# by what it adds up, and by lower bounds.
run 2 --json think.h5
expect "causal" '0.07 <= r["elapsed_s"] and r["compute_s"] == 0.05 and r["idle_s"] == 0.02'
run 2 --json --mode think think.h5
expect "think" '0.17 <= r["elapsed_s"] and r["compute_s"] == 0.05 and r["idle_s"] == 0.12'
run 2 --json --mode timed think.h5
expect "timed" '0.19 <= r["elapsed_s"] and r["compute_s"] == 0 and r["wait_s"] < 0.05'
run 2 --json --mode afap think.h5
expect "afap" 'r["compute_s"] == r["idle_s"] == 0 and r["bytes_read"] == 8192'

# -- threads -------------------------------------------------------------------
# Thread 1 reads through thread 0's descriptor, which thread 0 closes later.

"$mkstore" threads.h5 <<'END'
file /d/in size=4096
node 0 0 0
open file=0 flags=r handle=1 ret=3 begin=1
dup handle=1 handle2=2 ret=4 begin=2
close handle=1 begin=50
close handle=2 begin=60
exit begin=70
node 0 0 1
pread handle=1 len=100 ret=100 begin=10
pread handle=2 len=100 off=50 ret=100 begin=20
exit begin=30
END
for mode in causal afap; do
    run 1 --json --mode $mode threads.h5
    [ $rc -eq 0 ] || fail "threads, $mode: exit $rc"
    expect "threads, $mode" 'r["errors"] == 0 and r["mismatches"] == 0 and r["bytes_read"] == 200'
done

# -- differences ---------------------------------------------------------------

"$mkstore" differ.h5 <<'END'
file /d/in size=1000
file /d/none
file /d/was-missing size=10
node 0
open file=0 flags=r handle=1 ret=3
read file=0 handle=1 len=4096 ret=1000
read file=0 handle=1 len=4096 ret=77
lseek file=0 handle=1 off=5 whence=0 ret=5
open file=1 flags=r err=2
open file=2 flags=r handle=2 ret=4 idle0=1
open file=2 flags=r err=2
close handle=1
inherited file=0 flags=r handle=9
read file=0 handle=9 len=10 ret=10
exit
END
run 1 --json differ.h5
[ $rc -eq 0 ] || fail "mismatches: exit $rc"
expect "mismatches" 'r["mismatches"] == 2 and r["errors"] == 0 and r["events"] == 11'
grep -q "mismatch: node 0 event 2 read '/d/in': 0, in the trace 77" err ||
    fail "the mismatch is not shown"

"$mkstore" nowhere.h5 <<'END'
file /d/in size=1000
node 0
read handle=7 len=10 ret=10
exit
END
run 2 --json nowhere.h5
[ $rc -eq 1 ] || fail "missing handle: exit $rc"
grep -q "'read': 1 event" err || fail "the missing handle is not listed"
grep -q "cannot replay store 'nowhere.h5': 1 of its events" err || fail "no reason"
run 2 --json --ignore-errors nowhere.h5
[ $rc -eq 0 ] || fail "missing handle ignored: exit $rc"
expect "missing handle" 'r["errors"] == 1'

# -- confinement ---------------------------------------------------------------

rm -rf root
"$mkstore" escape.h5 <<'END'
file /../../etc/x made
file /d/../../../y made
node 0
open file=0 flags=wc mode=0644 handle=1 ret=3
write file=0 handle=1 len=10 ret=10
open file=1 flags=wc mode=0644 handle=2 ret=4
exit
END
run 1 --keep escape.h5
[ $rc -eq 0 ] || fail "dotted names: exit $rc"
[ -f root/etc/x ] && [ -f root/y ] || fail "dotted names are not below the root"
[ ! -e etc/x ] && [ ! -e y ] && [ ! -e ../y ] || fail "dotted names left the root"

rm -rf root
mkdir outside
echo precious >outside/x
run 1 --prepare-only escape.h5
rm -rf root/etc
ln -s ../outside root/etc
for args in "" --no-prepare; do
    run 2 $args escape.h5
    [ $rc -eq 1 ] || fail "planted link $args: exit $rc"
    [ "$(cat outside/x)" = precious ] || fail "a planted link led out of the root"
done
run 2 escape.h5
grep -q "^ptreplay: cannot .* 'root/etc.*': a symbolic link leads out of the root" err ||
    fail "the planted link is not named"
[ "$(grep -c '^ptreplay: cannot' err)" -eq 1 ] || fail "more than one message"

# -- roots ---------------------------------------------------------------------

rm -rf root
mkdir root
echo mine >root/thesis
run 2 chain.h5
[ $rc -eq 1 ] || fail "root of others: exit $rc"
grep -q "cannot use root 'root': it holds files that are not ptreplay's" err || fail "no reason"
[ "$(ls -A root)" = thesis ] || fail "a root of others was changed"
run 3 --force chain.h5
[ $rc -eq 0 ] || fail "--force: exit $rc"
[ "$(ls -A root)" = thesis ] || fail "--force left files: $(ls -A root)"
rm -rf root
run 1 --root missing chain.h5
[ $rc -eq 1 ] && grep -q "cannot open root 'missing': No such file" err || fail "missing root"
touch file
run 1 --root file chain.h5
[ $rc -eq 1 ] && grep -q "cannot open root 'file': Not a directory" err || fail "root is a file"

run 2 --prepare-only think.h5
[ $rc -eq 0 ] && [ "$(stat -c %s root/d/in)" = 8192 ] || fail "--prepare-only"
run 2 --no-prepare --json think.h5
[ $rc -eq 0 ] && [ -f root/d/in ] || fail "--no-prepare"

rm root/d/in
mkfifo root/d/in
for args in "" --no-prepare; do
    run 2 $args think.h5
    [ $rc -eq 1 ] && grep -q "^ptreplay: cannot .* 'root/d/in'" err || fail "a pipe $args: exit $rc"
done
rm -rf root

# -- stores and command lines --------------------------------------------------

head -c 3000 chain.h5 >cut.h5
run 2 --json cut.h5
[ $rc -eq 1 ] && grep -q "^ptreplay: cannot open store 'cut.h5': " err || fail "truncated store"
[ "$(grep -c '^ptreplay:' err)" -eq 1 ] || fail "truncated store: more than one message"
[ ! -s out ] || fail "a result of a truncated store"
run 1 none.h5
[ $rc -eq 1 ] && grep -q "cannot open store 'none.h5'" err || fail "missing store"
run 2 --mode slow chain.h5
[ $rc -eq 2 ] && [ "$(grep -c "^ptreplay: unknown mode 'slow'" err)" -eq 1 ] || fail "wrong mode"
run 2
[ $rc -eq 2 ] || fail "no store: exit $rc"

run 3 --json --output result.json chain.h5
[ $rc -eq 0 ] && [ ! -s out ] && cp result.json out || fail "--output"
expect "--output" 'r["mode"] == "causal"'
[ "$(ls result.json*)" = result.json ] || fail "temporary files stay"
run 3 --json --output nowhere/result.json chain.h5
[ $rc -eq 1 ] && grep -q "cannot write result 'nowhere/result.json'" err || fail "--output to nowhere"

[ $failures -eq 0 ] && echo "all passed"
exit $((failures > 0))
