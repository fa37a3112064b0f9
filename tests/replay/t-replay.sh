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
# Directories that one node makes, for a file of both and for one that only the other uses.
"$mkstore" dirs.h5 <<'END'
file /d/out made dir
file /d/out/deep made dir
file /d/out/deep/both made
file /d/out/one made
file /d/own made dir
file /d/own/file made
node 0
mkdir file=0 mode=0755 idle0=200
mkdir file=1 mode=0755
open file=2 flags=wc mode=0644 handle=1 ret=3
write file=2 handle=1 len=100 ret=100
mkdir file=4 mode=0755
open file=5 flags=wcx mode=0644 handle=2 ret=4
unlink file=5
rmdir file=4
exit
node 1
mkdir file=0 mode=0755 err=17 ret=-1 idle0=250
open file=2 flags=wc mode=0644 handle=1 ret=3
write file=2 handle=1 len=100 ret=100
open file=3 flags=wcx mode=0644 handle=2 ret=4
unlink file=3
unlink file=2
rmdir file=1
rmdir file=0
exit
edge 0 8 1 0
END
for mode in causal think afap; do
    run 2 --json --mode "$mode" dirs.h5
    [ $rc -eq 0 ] || fail "$mode, made directories: exit $rc"
    expect "$mode, made directories" 'r["mismatches"] == 0 and r["errors"] == 0'
    [ -z "$(ls -A root)" ] || fail "$mode, made directories: $(find root | tail -n +2) stay"
done

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

# What the trace links stays below, whatever the target says; planted links are no way out.
rm -rf root outside
mkdir outside
echo precious >outside/x
"$mkstore" links.h5 <<'END'
file /d/abs made
file /d/up made
file /d/in made
file /d/f size=100
file /outside/x size=10
file /d/hard made
file /d/old size=5 link
file /d
node 0
symlink file=0 file2=4 text=/outside/x
symlink file=1 text=../../../../../outside/x
symlink file=2 file2=3 text=f
stat file=0
stat file=1
truncate file=0 len=3
truncate file=1 len=4
chmod file=1 mode=04640
utimes file=1
setxattr file=1 text=user.x len=3
chown file=1
open file=1 flags=w handle=1 ret=3
write file=1 handle=1 len=7 ret=7
close handle=1
access file=2 oflags=4
readlink file=0 len=100 ret=10
readlink file=6 len=100 ret=5
lstat file=6
lstat file=0
link file=3 file2=5
unlinkat file=5
remove file=2
scandir file=7 ret=9
exit
END
run 1 --json --keep links.h5
[ $rc -eq 0 ] || fail "links: exit $rc"
expect "links" 'r["errors"] == 0 and r["mismatches"] == 0'
[ "$(readlink root/d/abs)" = ../outside/x ] || fail "an absolute target: $(readlink root/d/abs)"
[ "$(readlink root/d/up)" = ../outside/x ] || fail "a target that climbs out"
[ "$(stat -c %s:%a root/outside/x)" = 7:640 ] || fail "below: $(stat -c %s:%a root/outside/x)"
[ "$(readlink root/d/old)" = ----- ] || fail "a link that was there"
[ ! -e root/d/in ] && [ ! -e root/d/hard ] || fail "links are not removed"
[ "$(cat outside/x)" = precious ] || fail "a link of the trace led out of the root"
rm -rf root
run 1 links.h5
[ $rc -eq 0 ] && [ -z "$(ls -A root)" ] || fail "links again: exit $rc, $(ls -A root)"

# Calls on names through links that lead out.
"$mkstore" planted.h5 <<'END'
file /d/l size=1
file /d/made made
node 0
stat file=0
access file=0 oflags=4
statfs file=0
truncate file=0 len=0
chmod file=0 mode=0
utimes file=0
getxattr file=0 text=user.x
fopen file=0 flags=w handle=1 ret=3
opendir file=0 flags=D handle=2 ret=4
scandir file=0
linkat file=0 file2=1 oflags=0x400
exit
END
rm -rf root
run 1 --prepare-only planted.h5
for target in ../../outside/x "$tmp/outside/x" ../../outside; do
    ln -sfn "$target" root/d/l
    stat -c '%s %a %y %h' outside outside/x >before
    for walk in "" 1; do
        PTREPLAY_WALK=$walk
        [ -z "$walk" ] && unset PTREPLAY_WALK || export PTREPLAY_WALK
        run 1 --json --no-prepare --ignore-errors planted.h5
        # statx and the like of the link itself are no harm; nothing else may succeed
        expect "planted links to $target" 'r["errors"] >= 10'
        stat -c '%s %a %y %h' outside outside/x | cmp -s before - || fail "a call left the root"
    done
    unset PTREPLAY_WALK
done
rm -rf root

# -- streams -------------------------------------------------------------------
# Buffered as in the program: three small writes are one; a line is as long as it was.

"$mkstore" streams.h5 <<'END'
file /d/in size=10000
file /d/out made
file /d/lines size=300
file /tmp dir
node 0
fopen file=1 flags=bct mode=0666 handle=1 ret=3
setvbuf handle=1 oflags=0 len=8192
fwrite handle=1 len=1000 ret=1000
fputs handle=1 len=10 ret=10
vfprintf handle=1 len=5 ret=5
ftell handle=1 ret=1015
fseek handle=1 off=0 whence=0
fread handle=1 len=2000 ret=1015
fseeko handle=1 off=0 whence=2
fputc handle=1 len=1 ret=1
fflush handle=1
fstat handle=1
fflush
fclose handle=1
fopen file=2 flags=r handle=2 ret=3
fgets handle=2 len=4096 ret=120
fgets handle=2 len=4096 ret=180
fgets handle=2 len=4096 ret=0
getline handle=2 len=0 ret=0
rewind handle=2 off=0 whence=0
fgetc handle=2 len=1 ret=1
fclose handle=2
open file=0 flags=r handle=3 ret=3
fread handle=3 len=4096 ret=4096
fread handle=3 len=9000 ret=5904
close handle=3
tmpfile file=3 flags=bT mode=0600 handle=4 ret=3
fwrite handle=4 len=100 ret=100
exit
END
run 1 --json --keep streams.h5
[ $rc -eq 0 ] || fail "streams: exit $rc"
expect "streams" 'r["errors"] == 0 and r["mismatches"] == 0'
expect "streams" 'r["bytes_written"] == 1116 and r["bytes_read"] == 1015 + 301 + 10000'
[ "$(stat -c %s root/d/out)" = 1016 ] || fail "a stream's file: $(stat -c %s root/d/out)"
[ -z "$(ls -A root/tmp)" ] || fail "a file without a name has one"
rm -rf root

# -- directories, copies, mappings ---------------------------------------------

"$mkstore" more.h5 <<'END'
file /d dir
file /d/a size=5000
file /d/b made
file /d/e dir
file /d/gone unknown
node 0
opendir file=0 flags=D handle=1 ret=3
readdir handle=1 ret=1
rewinddir handle=1
readdir handle=1 ret=1
closedir handle=1
open file=3 flags=r handle=5 ret=9
readdir handle=5 ret=1
fstat handle=5
closedir handle=5
stat file=4 err=2
unlinkat file=3 oflags=0x200
open file=1 flags=r handle=2 ret=3
open file=2 flags=bc mode=0644 handle=3 ret=4
copy_file_range handle=2 handle2=3 len=1000 off=-1 off2=-1 ret=1000
copy_file_range handle=2 handle2=3 len=1000 off=4000 off2=2000 ret=1000
sendfile handle=2 handle2=3 len=500 off=0 ret=500
sendfile handle=2 len=100 off=-1 ret=100
lseek handle=2 off=0 whence=1 ret=1100
fallocate handle=3 off=0 len=6000
posix_fadvise handle=2 off=0 len=0 oflags=4
readahead handle=2 off=0 len=4096
fstatfs handle=2
fchmod handle=3 mode=0600
futimens handle=3
fchown handle=3
fgetxattr handle=3 text=user.none err=61
syncfs handle=3
sync_file_range handle=3 off=0 len=4096 oflags=2
mmap handle=3 len=4096 off=0 oflags=3 addr=0x7000
mmap handle=2 len=4096 off=0 oflags=3 addr=0x9000
close handle=3
msync addr=0x7100 len=100 oflags=4
munmap addr=0x7000 len=4096
munmap addr=0x9000 len=4096
munmap addr=0x11000 len=4096
fstatat handle=2 file=1 oflags=0x1000
preadv2 handle=2 off=-1 len=10 ret=10
exit
END
run 1 --json --keep more.h5
[ $rc -eq 0 ] || fail "directories, copies, mappings: exit $rc"
expect "more" 'r["errors"] == 0 and r["mismatches"] == 0'
[ "$(stat -c %s:%a root/d/b)" = 6000:600 ] || fail "a copy: $(stat -c %s:%a root/d/b)"
[ ! -e root/d/e ] || fail "unlinkat leaves a directory"
rm -rf root

# -- what is not replayed ------------------------------------------------------

"$mkstore" mpiio.h5 <<'END'
file /d/shared unknown
node 0
MPI_File_open file=0
MPI_File_write_at len=100 off=0
MPI_File_close
exit
END
run 1 --json mpiio.h5
[ $rc -eq 0 ] || fail "MPI-IO: exit $rc"
[ "$(grep -c 'MPI-IO' err)" -eq 1 ] && grep -q "ptreplay: MPI-IO calls are not replayed: 3 events" err ||
    fail "MPI-IO is not mentioned once"
"$mkstore" unknown.h5 <<'END'
file /d/a size=10
node 0
open file=0 flags=r handle=1 ret=3
getdents64 handle=1 len=10 ret=10
exit
END
run 1 --json unknown.h5
[ $rc -eq 1 ] && grep -q "cannot be replayed.*'getdents64': 1 event" err || fail "unknown call: exit $rc"
rm -rf root

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
