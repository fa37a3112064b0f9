#!/bin/bash
#
# ptmerge and ptdump as programs: what they print, and what they say to wrong input.
set -u

bin=${top_builddir:?}/hdf5store
mkrun=$top_builddir/tests/store/mkrun
skip() { echo "skipped: $*"; exit 77; }
[ -x "$mkrun" ] || skip "mkrun is not built"

work=$(mktemp -d "${TMPDIR:-/tmp}/pt-merge.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99

failures=0
check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@"; then echo "ok - $what"; else echo "FAILED - $what"; failures=$((failures + 1)); fi
}
has() { grep -qF -- "$2" "$1" || { echo "no '$2' in:"; cat "$1"; return 1; }; }

# One line on stderr with the reason, that exit status, nothing on stdout, no files left.
says() { # STATUS REASON COMMAND...
    local status=$1 reason=$2 got
    shift 2
    "$@" >out 2>err
    got=$?
    [ "$got" -eq "$status" ] || { echo "exit $got, not $status: $*"; cat err; return 1; }
    has err "$reason" || return 1
    [ ! -s out ] || { echo "on stdout:"; cat out; return 1; }
    [ -z "$(ls -A | grep '^\.')" ] || { echo "left behind:"; ls -A; return 1; }
}

app() { # what the two ranks do in every run
    cat <<'EOF'
node 0 0.0.0
node 1 1.0.0
0 open path=out flags=0102 mode=0644 ret=5 handle=1
1 open path=./out flags=0102 mode=0644 ret=6 handle=1 begin=1050000
0 pwrite fd=5:1 len=65536 off=0 ret=65536 dur=123000 cpu=148000
0 MPI_Barrier comm=1 dur=5000 cpu=7000
0 pread fd=5:1 len=65536 off=65536 ret=65536 dur=123000 cpu=11000
1 pwrite fd=6:1 len=65536 off=65536 ret=65536 dur=123000 cpu=148000
1 MPI_Barrier comm=1 dur=5000 cpu=7000
1 usleep dur=2000000
1 pread fd=6:1 len=65536 off=0 ret=65536
1 open path=/absent flags=0 err=2
0 close fd=5:1
1 close fd=6:1
0 exit
1 exit
EOF
}
run() { # DIR: with META and further items from stdin
    mkdir -p "$1"
    rm -f "$1/n0.ptrun"
    { grep '^meta' script; app; grep -v '^meta' script; } | "$mkrun" "$1/n0.ptrun"
}

: >script
run base
cat >script <<'EOF'
meta job=8 spec=throttle:0 realtime=2000000000000
hold 0 0 1:2:blocked
hold 0 1 1:2:blocked
hold 0 2 1:6:gone
hold 0 3 timeout 1:5:busy
EOF
run held0
cat >script <<'EOF'
meta job=9 spec=throttle:1 realtime=3000000000000
hold 1 0 0:2:blocked
hold 1 1 0:2:blocked
EOF
run held1

# -- what it is for ------------------------------------------------------------
"$bin/ptmerge" --json -o s.h5 held0 base held1 >json 2>err
check "merges" test $? -eq 0
check "says nothing" test ! -s err
for item in '"nodes":2' '"events":11' '"edges_before":2' '"edges_after":2' '"edges":0' \
            '"barriers":1' '"spec":"throttle:1"'; do
    check "summary has $item" has json "$item"
done
"$bin/ptdump" s.h5 >dump
cat >expected <<'EOF'
# node 0 (host n0, 5 events)
       0 open("/home/out", O_RDWR|O_CREAT, 0644) = 5 <0.000000>
         COMPUTE(0.000148)
       1 pwrite(5, 65536, 0) = 65536 <0.000123>
         COMPUTE(0.000007)
         BARRIER(0: 0,1)
         COMPUTE(0.000011)
       2 pread(5, 65536, 65536) = 65536 <0.000123>
       3 close(5) = 0 <0.000000>
       4 exit() = 0 <0.000000>
# node 1 (host n0, 6 events)
       0 open("/home/out", O_RDWR|O_CREAT, 0644) = 6 <0.000000>
         COMPUTE(0.000148)
       1 pwrite(6, 65536, 65536) = 65536 <0.000123>
         COMPUTE(0.000007)
         BARRIER(0: 0,1)
         IDLE(0.002000)
       2 pread(6, 65536, 0) = 65536 <0.000000>
       3 open("/absent", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000000>
       4 close(6) = 0 <0.000000>
       5 exit() = 0 <0.000000>
EOF
check "dump of a store" diff expected dump
"$bin/ptmerge" -o one.h5 base held0 >/dev/null
"$bin/ptdump" --node 0 --events 2:2 one.h5 >dump
check "SIGNAL" has dump "SIGNAL(1:2)"
"$bin/ptdump" --node 1 --events 2 one.h5 >dump
check "WAIT" has dump "WAIT(0:1)"
check "a range has only its events" test "$(grep -c '<' dump)" -eq 1
"$bin/ptdump" held0/n0.ptrun >dump
check "dump of a run file" has dump '1:4 0.002182 io   pread(6, 65536, 0) = 65536 <0.000000>'
check "... with holds" has dump 'HOLD(0:3) <0.002000> timed out: 1:5 busy'
check "... and its end" has dump '# complete'
if command -v python3 >/dev/null; then
    for file in s.h5 one.h5 held0/n0.ptrun; do
        "$bin/ptdump" --json $file >json
        check "JSON of $file" python3 -c 'import json, sys; json.load(open("json"))'
    done
fi

# -- used wrongly ----------------------------------------------------------------
check "no output" says 2 "-o STORE.h5 is needed" "$bin/ptmerge" base
check "no run" says 2 "no run directory" "$bin/ptmerge" -o x.h5
check "unknown option" says 2 "ptmerge" "$bin/ptmerge" --nonsense -o x.h5 base
check "no file" says 2 "one FILE is needed" "$bin/ptdump"
check "wrong node" says 2 "not a node" "$bin/ptdump" --node x s.h5
check "wrong events" says 2 "not a range" "$bin/ptdump" --events 5:2 s.h5
for tool in ptmerge ptdump; do
    check "$tool --version" eval "'$bin/$tool' --version | grep -q '^$tool [0-9]'"
    check "$tool --help" eval "'$bin/$tool' --help | grep -q '^Usage: $tool'"
done

# -- wrong input -------------------------------------------------------------------
cp s.h5 before.h5
merge="$bin/ptmerge -o s.h5"
mkdir empty
: >plain
check "missing directory" says 1 "'nowhere': No such file" $merge base nowhere
check "not a directory" says 1 "'plain': Not a directory" $merge plain
check "empty directory" says 1 "no run files (*.ptrun) in it" $merge base empty
check "the same directory twice" says 1 "cannot merge 'base': the same run as 'base'" \
    $merge base held0 base
cp -r base copy
check "a copy of a run" says 1 "the same run as 'base'" $merge base copy
mkdir short damaged foreign
head -c 10 base/n0.ptrun >short/n0.ptrun
check "truncated in its head" says 1 "short/n0.ptrun': truncated file" $merge base short
cp held0/n0.ptrun damaged/
printf 'XXXX' | dd of=damaged/n0.ptrun bs=1 seek=$(($(stat -c %s damaged/n0.ptrun) - 40)) \
    conv=notrunc 2>/dev/null
check "damaged" says 1 "run file 'damaged/n0.ptrun' is damaged" $merge base damaged
echo "this is not a run file at all" >foreign/n0.ptrun
check "foreign" says 1 "not a paratrace run file" $merge foreign
mkdir mixed
cp base/n0.ptrun mixed/
cp held0/n0.ptrun mixed/n1.ptrun
check "files of two runs" says 1 "'n1.ptrun' is of another run" $merge mixed
printf 'meta job=3 realtime=4000000000000\nnode 2 2.0.0\n' >script
run more
check "different nodes" says 1 \
    "runs have different nodes: node 2 is in more (3 nodes), not in base (2 nodes)" \
    $merge base more
printf 'meta job=3 realtime=4000000000000\n0 unlink path=x\n' >script
run other
check "non-deterministic" says 1 \
    'non-deterministic: node 0, event 5: nothing more in base, unlink("/home/x") in other' \
    $merge base other
# So close together that the clock does not tell which came first.
mkdir cyclic
"$mkrun" cyclic/n0.ptrun <<'EOF'
node 0 0.0.0
node 1 1.0.0
0 mkdir path=a
0 mkdir path=b
1 mkdir path=c
1 mkdir path=d
hold 0 1 1:0:blocked
hold 1 1 0:0:blocked
EOF
check "cycle" says 1 "cycle: " $merge cyclic

# Two nodes that exclude each other: whoever is held has come first, in its own run.
exclusive() { # HELD OTHER META...: the write of HELD comes before that of OTHER
    mkdir -p "excl$1"
    cat <<EOF | "$mkrun" "excl$1/n0.ptrun"
meta $3 spec=throttle:$1
node 0 0.0.0
node 1 1.0.0
$1 mkdir path=d$1 begin=1100000
$2 mkdir path=d$2 begin=1200000
0 exit begin=1300000
1 exit begin=1300000
hold $1 0 $2:0:blocked
EOF
}
exclusive 0 1 "job=11 realtime=5000000000000"
exclusive 1 0 "job=12 realtime=6000000000000"
check "opposite orders are no cycle" "$bin/ptmerge" -o excl.h5 excl0 excl1 >out 2>err
check "... and are weakened" has out "edges: 2, 2 after reduction: 2 in 1 barriers, 0 others"
check "... which is said" has err "2 orders found in one run were the other way round"
check "an order that no run refutes stays" "$bin/ptmerge" -o excl.h5 excl0 >out 2>err
check "... as an edge" has out "edges: 1,"
check "no place to write" says 1 "cannot write store 'nowhere/s.h5': " \
    "$bin/ptmerge" -o nowhere/s.h5 base
check "a directory to write" says 1 "cannot write store 'empty': " "$bin/ptmerge" -o empty base
check "failures leave the old store" cmp before.h5 s.h5

printf 'meta job=3 realtime=4000000000000 nhosts=2\n' >script
run half
check "incomplete, strict" says 1 "run 'half' is incomplete: files of 1 of 2 hosts" \
    $merge --strict base half
"$bin/ptmerge" --json -o w.h5 base half >json 2>err
check "incomplete, merged" test $? -eq 0
check "... with a warning" has err "ptmerge: warning: run 'half' is incomplete"
check "... and recorded" has json '"complete":false'

printf 'meta job=3 realtime=4100000000000 running=2 untraced_threads=1\n' >script
run left
check "what was not traced, strict" says 1 "run 'left' is incomplete: 1 threads were not traced" \
    $merge --strict left
"$bin/ptmerge" --json -o w.h5 left >json 2>err
check "what was not traced, merged" test $? -eq 0
check "... with a warning" has err "run 'left' is incomplete: 2 processes ran on after the tasks"
check "... and recorded" has json '"complete":false'

mkdir threads
"$mkrun" threads/n0.ptrun <<'EOF'
meta job=3 realtime=4200000000000
node 0 0.0.0
node 1 0.0.1
0 unlink path=a
1 unlink path=b
0 exit
1 exit
EOF
check "threads that nobody held" "$bin/ptmerge" -o w.h5 threads >out 2>err
check "... with a warning" has err "the order of processes and threads of one rank (1 have several)"

check "dump of a missing file" says 1 "cannot open 'nofile': No such file" "$bin/ptdump" nofile
check "dump of a directory" says 1 "ptdump: cannot" "$bin/ptdump" empty
check "dump of a foreign file" says 1 "neither a store nor a run file" "$bin/ptdump" script
head -c 4000 s.h5 >cut.h5
check "dump of a cut store" says 1 "cannot open store 'cut.h5': " "$bin/ptdump" cut.h5
check "dump of an unknown node" says 1 "it has no node 7" "$bin/ptdump" --node 7 s.h5

# -- signals ----------------------------------------------------------------------
{ echo "meta job=5 realtime=5000000000000"; echo "node 0 0.0.0"
  echo "0 open path=big flags=0102 mode=0644 ret=5 handle=1"
  awk 'BEGIN { srand(1); for (i = 0; i < 150000; i++)
      printf "0 pwrite fd=5:1 len=%d off=%d ret=1 dur=%d\n", rand()*1e9, rand()*1e9, rand()*1e6 }'
} >script
mkdir big
"$mkrun" big/n0.ptrun <script
"$bin/ptmerge" -o big.h5 big >/dev/null 2>&1 &
pid=$!
for _ in $(seq 500); do ls .big.h5.* >/dev/null 2>&1 && break; sleep 0.01; done
kill -TERM $pid 2>/dev/null
wait $pid 2>/dev/null
status=$?
check "a signal ends it" test $status -eq 143 -o -e big.h5
check "a signal leaves nothing half-written" test -z "$(ls -A | grep '^\.big')"

# -- closed pipes -----------------------------------------------------------------
(trap '' PIPE; "$bin/ptdump" big/n0.ptrun 2>err | true)
check "a closed pipe is no message" test ! -s err

echo "$failures failures"
[ "$failures" -eq 0 ]
