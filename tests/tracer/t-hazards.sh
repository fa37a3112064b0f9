#!/usr/bin/env bash
# Things that break tracers.  Each program must do the same as without the tracer, must
# not hang, and what it did must be in the trace.
set -u
# The numbers of descriptors are compared: those that we were started with would be in the way.
for fd in /proc/$$/fd/*; do
    fd=${fd##*/}
    ((fd <= 2 || fd == 255)) || exec {fd}>&-
done
watchd=$top_builddir/watchdog/ptwatchd
tracer=$top_builddir/preload/libparatrace.so
ptdump=$top_builddir/hdf5store/ptdump
hazards=$top_builddir/tests/tracer/hazards2
more_hazards=$top_builddir/tests/tracer/hazards3
source=$top_srcdir/tests/tracer/hazards2.c
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
unset "${!SLURM@}" "${!OMPI_@}" "${!PMIX_@}" "${!PMI_@}" LD_PRELOAD
export LC_ALL=C

note() { printf '%-4s %s\n' "$1" "$2"; }
bad() {
    note FAIL "$1"
    failed=1
    faults=$((faults + 1))
}

# The calls of a run as "node call(...) = result"; what the tracer itself notes is left out.
calls() {
    "$ptdump" "$work/$1.run"/*.ptrun | sed -n \
        -e 's/^\([0-9.]*\):[0-9]* [^ ]* [a-z]* */\1 /;T' -e 's/ <[0-9.]*>.*//' \
        -e '/^[0-9.]* \(exit\|exec\|identity\|inherited\|blind\)(/d' -e p
}

# hazard NAME STATUS SPEC COMMAND...: twice, in directories of their own.  $preload: what
# goes into LD_PRELOAD, $varies: the output is not the same each time.
hazard() {
    local name=$1 want=$2 spec=$3 status plain
    shift 3
    faults=0
    mkdir "$work/$name.plain" "$work/$name" || exit 1
    local dir
    for dir in "$work/$name.plain" "$work/$name"; do
        [ -z "${before:-}" ] || (cd "$dir" && eval "$before")
    done
    (cd "$work/$name.plain" && LD_PRELOAD=${plain_preload:-} timeout -k 1 10 "$@") \
        >"$work/$name.plain.out" 2>"$work/$name.plain.err" </dev/null
    plain=$?
    (cd "$work/$name" && timeout -k 1 10 "$watchd" --preload "${preload:-$tracer}" \
        --out "$work/$name.run" --spec "$spec" -- "$@") \
        >"$work/$name.out" 2>"$work/$name.err" </dev/null
    status=$?
    if [ $plain != "$want" ]; then
        bad "$name: exit status $plain, not $want, without the tracer: the test is wrong"
    elif [ $status = 124 ] || [ $status = 137 ]; then
        bad "$name: hangs"
    elif [ $status != "$want" ]; then
        bad "$name: exit status $status, not $want"
    elif [ -z "${varies:-}" ] && ! cmp -s "$work/$name.plain.out" "$work/$name.out"; then
        bad "$name: another output: $(head -n 3 "$work/$name.out")"
    fi
    [ $faults = 0 ] || {
        head -n 5 "$work/$name.err"
        return 1
    }
    calls "$name" >"$work/$name.calls"
}

# expect NAME NUMBER PATTERN: so many calls match.  A number may be a range LOW-HIGH.
expect() {
    local got
    got=$(grep -cE "$3" "$work/$1.calls")
    [ "$got" -ge "${2%-*}" ] && [ "$got" -le "${2#*-}" ] ||
        bad "$1: $got calls match '$3', not $2"
}

# expect_touch NAME FILE [NODE] [TIMES]: open, write, close.
expect_touch() {
    expect "$1" "${4:-1}" "^${3:-0} open\(\"$2\", O_WRONLY\|O_CREAT, 0600\) = "
}

ok() {
    [ $faults != 0 ] || note ok "$1 ($(wc -l <"$work/$1.calls") calls)"
}

# What the run says of itself: json NAME KEY.
json() {
    python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(d.get(sys.argv[2],
        d["hosts"][0].get(sys.argv[2])))' "$work/$1.run/run.json" "$2"
}

# losses NAME: how many lost calls have a place in the trace.
losses() { "$ptdump" "$work/$1.run"/*.ptrun | awk '/^LOSS/ { n += $2 } END { print n + 0 }'; }

# As ok, where some calls may be lost: they are counted, and have a place.
ok_but_for_losses() {
    local lost
    lost=$(json "$1" lost)
    [ "$(losses "$1")" = "$lost" ] || bad "$1: not all of $lost lost calls have a place"
    [ $faults != 0 ] || note ok "$1 ($(wc -l <"$work/$1.calls") calls, $lost lost)"
}

# The trace says that it cannot have seen everything.
expect_blind() {
    grep -q blind "$work/$1.run"/*.ptrun || {
        note note "$1: runs of this version do not say what they cannot see"
        return
    }
    [ "$(json "$1" complete)" = False ] || bad "$1: the run calls itself complete"
    "$ptdump" "$work/$1.run"/*.ptrun | grep -q blind || grep -q 'incomplete (' "$work/$1.err" ||
        bad "$1: no reason given"
}

mkdir "$work/bin"
compile() {
    local out=$1
    shift
    gcc -O1 -g -I"$top_builddir" -pthread -o "$work/bin/$out" "$source" "$@" 2>"$work/$out.err"
}

# ---- before main and after it -------------------------------------------------------------

if compile libio.so -DLIBRARY -shared -fPIC; then
    for order in first last; do
        lib=$work/bin/libio.so
        [ $order = first ] && both=$lib:$tracer || both=$tracer:$lib
        if plain_preload=$lib preload=$both hazard "library-$order" 3 "" "$hazards" plain; then
            for file in constructor first second destructor; do
                expect_touch "library-$order" $file
            done
            expect "library-$order" 4 '^0 write\([0-9]+, 1\) = 1$'
            expect "library-$order" 4 '^0 close\('
            ok "library-$order"
        fi
    done
else
    note skip 'library: gcc cannot build it'
fi

# Another library that stands before libc is called, whatever its symbol table is like.
cat >"$work/bin/between.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
static int writes;
ssize_t write(int fd, const void *buf, size_t n)
{
    static ssize_t (*next)(int, const void *, size_t);
    if (!next)
        next = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    writes++;
    return next(fd, buf, n);
}
__attribute__((destructor)) static void end(void) { dprintf(1, "%d writes\n", writes); }
END
for style in gnu sysv; do
    lib=$work/bin/between-$style.so
    if ! ${CC:-gcc} -shared -fPIC -Wl,--hash-style=$style -o "$lib" "$work/bin/between.c" 2>/dev/null; then
        note skip "between-$style: gcc cannot build it"
    elif plain_preload=$lib preload=$tracer:$lib hazard "between-$style" 3 "" "$hazards" plain; then
        grep -q '^[1-9][0-9]* writes' "$work/between-$style.out" || bad "between-$style: not called"
        expect_touch "between-$style" first
        ok "between-$style"
    fi
done

if hazard atexit 4 "" "$hazards" atexit; then
    expect_touch atexit main
    expect_touch atexit atexit
    ok atexit
fi

if hazard _exit 7 "" "$hazards" _exit; then
    expect_touch _exit main
    expect_touch _exit thread 0.0.1
    expect _exit 2 ' close\('
    ok _exit
fi

if hazard closerange 0 "" "$hazards" closerange; then
    expect_touch closerange before 0 5
    expect closerange 1 '^0 open\("after", .* = 3$'
    expect closerange 1 '^0 write\(3, 1\) = 1$'
    ok closerange
fi

# ---- wrong arguments --------------------------------------------------------------------------

if hazard wrong 0 "" "$top_builddir/tests/tracer/wrong"; then
    [ "$(json wrong complete)" = True ] || bad 'wrong: the run is not complete'
    expect wrong 3-3 ' writev\([0-9]+, 0\) = -1 EBADF'
    expect wrong 3-3 ' rename\("in", ""\) = -1 EFAULT'
    ok wrong
fi

# ---- signal handlers ------------------------------------------------------------------------

# said NAME WORD: the number that the program printed behind the word.
said() { sed -n "s/^$2 //p" "$work/$1.out"; }

if varies=1 hazard signals 0 "" "$hazards" signals; then
    expect signals "$(said signals main)" '^0 pwrite\([0-9]+, 64, [0-9]+\) = 64$'
    expect signals "$(said signals handler)" '^0 pwrite\([0-9]+, 1, [0-9]+\) = 1$'
    ok signals
fi

# The short records of streams, whose times are told from those before them.
if varies=1 hazard signals-stream 0 "" "$hazards" signals-stream; then
    expect signals-stream "$(said signals-stream main)" '^0 fwrite\([0-9]+, 64\) = 64$'
    expect signals-stream "$(said signals-stream handler)" '^0 pwrite\([0-9]+, 1, [0-9]+\) = 1$'
    # A call that was interrupted for long began long before the handler's, but it ends behind them.
    "$ptdump" "$work/signals-stream.run"/*.ptrun |
        awk '$1 ~ /^0:/ && match($0, /<[0-9.]+>/) {
            end = $2 + substr($0, RSTART + 1, RLENGTH - 2)
            if (end < last - 1)
                exit 1
            last = end
        }' ||
        bad 'signals-stream: the time goes backwards'
    ok signals-stream
fi

# What comes after a jump is in the trace, and so is its loss if it interrupted the tracer.
for stack in '' own; do
    name=jumps${stack:+-$stack}
    if hazard "$name" 0 buffer=64K "$hazards" jumps $stack; then
        expect_touch "$name" after 0 1000
        expect "$name" 1000 '^0 write\([0-9]+, 1\) = 1$'
        ! grep -vE '^0 (p?write|open|close|vfprintf|puts)\(' "$work/$name.calls" ||
            bad "$name: calls that nobody has made"
        ok_but_for_losses "$name"
    fi
done

# The same where the process ends there, or the thread.
for name in ends cancel; do
    if hazard $name 0 "" "$hazards" $name; then
        if [ $name = ends ]; then
            expect_touch ends handler '0\.[0-9]+\.0' 400
            expect_touch ends atexit '0\.[0-9]+\.0' 200
        else
            expect_touch cancel cancelled '0\.0\.[0-9]+' 1000
        fi
        ok_but_for_losses $name
    fi
done

# ---- processes --------------------------------------------------------------------------------

if varies=1 hazard fork 0 "" "$hazards" fork; then
    expect_touch fork child '0\.[0-9]+\.0' 30
    expect fork 30 '^0\.[0-9]+\.0 write\([0-9]+, 1\) = 1$'
    for n in 100 101 102 103; do
        expect fork "$(said fork "thread $n")" "^0\.0\.[0-9]+ pwrite\([0-9]+, $n, [0-9]+\) = $n$"
    done
    ok fork
fi

# expect_child NAME: what child and parent have done is theirs.
expect_child() {
    [ "$(json "$1" complete)" = True ] || bad "$1: the run is not complete"
    expect_touch "$1" child 0.1.0 100
    expect_touch "$1" parent 0 100
    ok "$1"
}
hazard fork-in-handler 0 "" "$more_hazards" in-handler && expect_child fork-in-handler
hazard fork-at-any-moment 0 "" "$more_hazards" at-any-moment && {
    expect_touch fork-at-any-moment child '0\.[1-9][0-9]*\.[0-9]+' 600
    expect fork-at-any-moment 101000 '^0 pwrite\([0-9]+, 64, 0\) = 64$'
    expect fork-at-any-moment 20200 '^0 stat\("n.*ENOENT'
    expect fork-at-any-moment 3030 '^0 pwrite\([0-9]+, 4, 0\) = 4$'
    expect fork-at-any-moment 50500 '^0 fwrite\([0-9]+, 10\) = 10$'
    expect fork-at-any-moment 1010 '^0\.0\.[0-9]+ open\("main", O_RDONLY\)'
    [ "$(json fork-at-any-moment complete)" = True ] || bad 'fork-at-any-moment: the run is not complete'
    ok fork-at-any-moment
}
lib=$work/bin/libfork.so
if gcc -O1 -g -I"$top_builddir" -shared -fPIC -DLIBRARY -o "$lib" "${source%2.c}3.c" 2>/dev/null; then
    plain_preload=$lib preload=$tracer:$lib hazard fork-library 0 "" "$more_hazards" fork &&
        expect_child fork-library
else
    note skip 'fork-library: gcc cannot build it'
fi

if hazard vfork 0 "" "$hazards" vfork; then
    grep '^0 ' "$work/vfork.calls" | grep -vE ' (waitpid|v?fork|printf|vfprintf)\(' >"$work/vfork.got"
    diff - "$work/vfork.got" >"$work/vfork.diff" <<'END' ||
0 open("kept", O_WRONLY|O_CREAT, 0600) = 3
0 open("other", O_WRONLY|O_CREAT, 0600) = 4
0 write(3, 4) = 4
0 write(4, 5) = 5
0 close(3) = 0
0 close(4) = 0
END
        {
            bad 'vfork: the parent has calls of its child'
            cat "$work/vfork.diff"
        }
    # A descriptor that seemed closed, or another file's, would be announced anew.
    ! "$ptdump" "$work/vfork.run"/*.ptrun | grep -E '^0:.* inherited\(' ||
        bad 'vfork: the parent lost its descriptors'
    ok vfork
fi

if hazard spawn 0 "" "$hazards" spawn; then
    cmp -s "$work/spawn.plain/spawned" "$work/spawn/spawned" || bad 'spawn: another file'
    expect spawn 1 '^0 write\(3, 1\) = 1$'
    expect spawn 1 '^0\.1\.0 write\(1, 6\) = 6$'
    "$ptdump" "$work/spawn.run"/*.ptrun | grep -E '^0\.1\.0:.* inherited\(1, ".*/spawned"' >"$work/spawn.got" ||
        bad "spawn: the child's output is not known to be the file"
    ok spawn
fi

if [ "$(id -u)" = 0 ] && cp "$hazards" "$work/bin/suid" && chown 65534 "$work/bin/suid" &&
    chmod 4755 "$work/bin/suid" && "$work/bin/suid" whoami >"$work/suid.probe" || [ $? = 8 ] &&
    grep -q 'is not' "$work/suid.probe" 2>/dev/null; then
    if hazard suid 8 "" sh -c "echo x >file; exec '$work/bin/suid' whoami"; then
        expect suid 1 '^0 open\("file", '
        expect_blind suid
        ok suid
    fi
else
    note skip 'suid: needs root and a file system with set-uid programs'
fi

# unseen NAME REASON COMMAND...: the run says that a program was not seen, and why.
unseen() {
    local name=$1 reason=$2
    shift 2
    hazard "$name" 0 "" "$@" || return
    [[ $(json "$name" reason) == "not seen: $reason"* ]] ||
        bad "$name: reason '$(json "$name" reason)', not '$reason'"
    ok "$name"
}
cat=$(type -P cat)
: >"$work/empty"
preload=libc.so.6:$tracer unseen libc-in-front "libc preloaded in front of the tracer: $(type -P sh)" \
    sh -c "(echo one); exec $cat $work/empty"
unseen env-i "program without our environment: $cat" env -i "$cat" "$work/empty"
unseen env-u "program without our environment: $cat" sh -c "unset LD_PRELOAD; exec $cat $work/empty"
for shell in sh bash; do # they fork in different ways
    unseen env-$shell "program without our environment: $cat" \
        $shell -c "(unset LD_PRELOAD; $cat $work/empty); (unset LD_PRELOAD; $cat $work/empty; :); :"
done
unseen spawn-env "program without our environment: $cat" \
    python3 -c "import subprocess; subprocess.run(['$cat', '$work/empty'], env={'LD_PRELOAD': ''})"
if [ "$(id -u)" = 0 ] && type setpriv >/dev/null; then
    unseen setuid "program that cannot find the watchdog: $cat" \
        setpriv --reuid=65534 --clear-groups "$cat" /dev/null
else
    note skip 'setuid: needs root and setpriv'
fi
if unshare -Urn true 2>/dev/null; then
    unseen netns "program that cannot find the watchdog: $cat" unshare -Urn "$cat" "$work/empty"
else
    note skip 'netns: needs namespaces of users and networks'
fi
if hazard same-env 0 "" env A=1 "$cat" "$work/empty"; then
    [ "$(json same-env complete)" = True ] || bad 'same-env: the run is not complete'
    ok same-env
fi

# A program has the name that /proc gives it, whatever it was called to be executed.
names='ln -sf "$(type -P cat)" linked; mkdir -p in; ln -sf ../linked in/link
printf "#!/bin/sh\ncat </dev/null\n" >script; printf "#! ./script -x\n" >twice; chmod +x script twice'
if before=$names hazard names 0 "" sh -c './linked script >/dev/null; in/link script >/dev/null
    cd in; ./link ../script >/dev/null; cd ..; PATH=.:$PATH; linked linked >/dev/null
    ./script; ./twice'; then
    "$ptdump" "$work/names.run"/*.ptrun | sed -n 's/^# node .*, exe \([^,]*\), .*/\1/p' |
        sort | uniq -c >"$work/names.got"
    shell=$(readlink -f "$(type -P sh)") cat=$(readlink -f "$cat")
    # Forked shells that only call exec are no nodes of their own.
    awk -v cat="$cat" -v sh="$shell" '$2 == cat { cats = $1 } $2 == sh { shells = $1 }
        END { exit !(NR == 2 && cats == 6 && shells >= 3) }' "$work/names.got" ||
        { bad 'names: other programs'; cat "$work/names.got"; }
    ok names
fi

# ---- files by names that are not theirs -----------------------------------------------------------

# Descriptors have names, in directories that are not traced; what they lead to is.
if before='echo "some text" >in' hazard names-of-descriptors 0 "" bash -c '
    cat /dev/stdin <in; cat /dev/fd/7 7<in; cat /proc/self/fd/8 8<in
    sh -c "echo more text >/dev/stdout" >out; cat /dev/null; cat <(echo pipe)'; then
    expect names-of-descriptors 3 ' (read|copy_file_range)\(3, .*\) = 10$'
    expect names-of-descriptors 1 ' write\(1, 10\) = 10$'
    "$ptdump" "$work/names-of-descriptors.run"/*.ptrun >"$work/names-of-descriptors.dump"
    [ "$(grep -c 'inherited([3-9], ".*/names-of-descriptors/in"' "$work/names-of-descriptors.dump")" = 3 ] ||
        bad 'names-of-descriptors: not known to be the file'
    ! grep 'inherited(.*"/dev/' "$work/names-of-descriptors.dump" || bad 'names-of-descriptors: devices'
    ok names-of-descriptors
fi

# Descriptors that were there before the program, used in other ways than to read or write.
if before='echo "some text" >in' hazard inherited 0 "" bash -c \
    'exec 6<in 7<. 8>out 9<in 10<. 5<.; exec "$0" inherited' "$more_hazards"; then
    "$ptdump" "$work/inherited.run"/*.ptrun >"$work/inherited.dump"
    for call in 'flock(6, ' 'openat(7, "in", ' 'sendfile(3, 8, 4, -1) = 4' 'fstatat(9, "", ' \
        'openat2(10, "in", ' 'fchdir(5)'; do
        grep -qF " $call" "$work/inherited.dump" || bad "inherited: no $call"
    done
    for what in '6, ".*/in' '7, ".*/inherited' '8, ".*/out' '9, ".*/in' '10, ".*/inherited' \
        '5, ".*/inherited'; do
        [ "$(grep -c "inherited($what\"" "$work/inherited.dump")" = 1 ] ||
            bad "inherited: ${what%%,*} is not known, or said twice"
    done
    ok inherited
fi

# A library is not traced, what it is copied to is.
if hazard copy-of-untraced 0 "" "$more_hazards" copies; then
    expect copy-of-untraced 1 ' splice_to\(4, 3, 300, -1\) = 300$'
    expect copy-of-untraced 1 ' splice_to\(4, 3, 200, 500\) = 200$'
    expect copy-of-untraced 1 ' splice_to\(4, 3, 100, -1\) = 100$'
    ok copy-of-untraced
fi

# ---- programs that may not make all system calls --------------------------------------------------

for way in strict filter; do
    "$more_hazards" $way >"$work/$way.probe" 2>&1
    if [ $? = 77 ]; then
        note skip "sandbox-$way: the kernel has none"
    elif hazard "sandbox-$way" 3 "" "$more_hazards" $way; then
        expect "sandbox-$way" 1 '^0 open\("before"'
        expect_blind "sandbox-$way"
        ok "sandbox-$way"
    fi
done
rm -f before failed child within

# ---- threads ------------------------------------------------------------------------------------

if hazard many 0 "" "$hazards" many; then
    [ "$(json many nodes)" = 301 ] || bad "many: $(json many nodes) nodes"
    [ "$(json many complete)" = True ] || bad 'many: the run is not complete'
    expect many 300 '^0\.0\.[0-9]+ open\("many'
    expect_touch many main
    ok many
fi

if hazard changing 0 "" "$hazards" changing; then
    [ "$(json changing complete)" = True ] || bad 'changing: the run is not complete'
    expect changing 50000 '^0 stat\("name'
    ok changing
fi

# The gap in which it was stopped is by far the longest, and the least of it is CPU time.
if hazard stopped 0 "" "$hazards" stopped; then
    "$ptdump" --node 0 "$work/stopped.run"/*.ptrun | sed -n 's/ [a-z].*<\(.*\)> cpu=/ \1 /p' |
        awk 'longest < $2 - end { longest = $2 - end; cpu = $4 }
            { end = $2 + $3 }
            END { exit !(cpu < longest / 2) }' || bad 'stopped: taken for computing'
    ok stopped
fi

if hazard stream 0 "" "$hazards" stream; then
    expect stream 20000 '^0\.0\.[1-4] (__)?vfprintf(_chk)?\([0-9]+, 11\) = 11$'
    expect stream 0 'putc_unlocked'
    ok stream
fi

# More threads than rings, one after another: each is a node of its own.
if hazard relay 0 "" "$hazards" relay; then
    [ "$(json relay nodes)" = 5001 ] || bad "relay: $(json relay nodes) nodes"
    [ "$(json relay complete)" = True ] || bad 'relay: the run is not complete'
    expect_touch relay relay '0\.0\.[0-9]+' 5000
    expect_touch relay relay-last '0\.0\.[0-9]+' 5000
    [ "$(sed -n 's/^\([0-9.]*\) open("relay".*/\1/p' "$work/relay.calls" | sort -u | wc -l)" = 5000 ] ||
        bad 'relay: two threads under one name'
    ok relay
fi

# Threads that libc has made: they leave their rings to others, too.
if hazard timer 0 "" "$more_hazards" timer; then
    expect_touch timer timer '0\.0\.[0-9]+' "$(cat "$work/timer/times")"
    [ "$(json timer complete)" = True ] || bad 'timer: the run is not complete'
    ok timer
fi

# What is done at exit by the last thread, where that is not the first.
if hazard last 0 "" "$more_hazards" last; then
    expect_touch last last 0.0.1
    expect_touch last atexit '0\.0\.[0-9]+'
    ok last
fi

# ---- a watchdog that cannot be seen in /proc ----------------------------------------------------

if hazard hidden 0 "" env -u PARATRACE_WATCHDOG "$hazards" many; then
    [ "$(json hidden nodes)" = 302 ] || bad "hidden: $(json hidden nodes) nodes"
    expect_touch hidden main '0\.[0-9]+\.0'
    ok hidden
fi
if unshare --pid --fork true 2>/dev/null; then
    if varies=1 hazard pidns 0 "" unshare --pid --fork --mount-proc "$hazards" fork; then
        expect_touch pidns child '0\.[0-9]+\.0' 30
        [ "$(json pidns complete)" = True ] || bad 'pidns: the run is not complete'
        ok pidns
    fi
else
    note skip 'pidns: needs process id namespaces'
fi

# ---- more processes than the watchdog may open descriptors -------------------------------------

crowd='ulimit -Sn; mkfifo gate; exec 9<>gate; mkdir out
for i in {1..150}; do (read -r _ <&9; echo x >"out/$i") & done
sleep 0.3; for i in {1..150}; do echo go; done >&9; wait'
for limit in -Sn -Hn; do
    name=crowd$limit
    faults=0
    if (ulimit -Sn 120 && ulimit $limit 120 && hazard "$name" 0 "" bash -c "$crowd"); then
        expect "$name" 150 '^0\.[0-9]+\.0 open\("out/[0-9]+"'
        [ "$(json "$name" complete)" = True ] || bad "$name: the run is not complete"
        ok "$name"
    else
        failed=1
    fi
done

# A program that may have little memory gets only what it needs of ours: the memory's head, a ring.
if before='echo x >in' hazard narrow 0 "" bash -c 'ulimit -v 8000 && exec cat in'; then
    expect narrow 1 '^0\.[0-9]+\.0 open\("in", O_RDONLY\) = '
    [ "$(json narrow complete)" = True ] || bad 'narrow: the run is not complete'
    ok narrow
fi

# ---- killed ---------------------------------------------------------------------------------------

# A call is counted when it has returned: the trace may know of one more.
if varies=1 hazard sigkill 9 "" "$hazards" sigkill; then
    for n in 100 101 102 103; do
        low=$(said sigkill "thread $n")
        expect sigkill "$low-$((low + 1))" \
            "^0\.1\.[0-9]+ pwrite\([0-9]+, $n, [0-9]+\) = $n$"
    done
    ok sigkill
fi

# orphan: the watchdog is killed; the program goes on and ends with its own status.
faults=0
mkdir "$work/orphan"
(
    cd "$work/orphan" || exit 1
    exec "$watchd" --preload "$tracer" --out "$work/orphan.run" --spec buffer=64K -- \
        sh -c "timeout -k 1 20 '$hazards' orphan; echo \$? >status" </dev/null >"$work/orphan.out" 2>&1
) &
watchdog=$!
sleep 0.5
kill -KILL $watchdog || bad 'orphan: the watchdog had ended before'
wait $watchdog 2>>"$work/orphan.out"
: >"$work/orphan/go"
for _ in $(seq 100); do
    [ ! -s "$work/orphan/status" ] || break
    sleep 0.2
done
status=$(cat "$work/orphan/status" 2>/dev/null)
if [ "$status" = 6 ]; then
    "$ptdump" "$work/orphan.run"/*.ptrun >"$work/orphan.calls" 2>"$work/orphan.err" ||
        bad 'orphan: what was written before the kill cannot be read'
    ok orphan
else
    bad "orphan: exit status '$status', not 6"
fi

# ---- a full ring ------------------------------------------------------------------------------------

# Several times: whether the ring is full when the program ends is a matter of luck.
for n in 1 2 3 4 5; do
    hazard drop$n 6 buffer=64K,full=drop "$hazards" loop 200000 || continue
    # open and close may be among the lost
    kept=$(grep -cE ' (pwrite|open|close)\(' "$work/drop$n.calls")
    lost=$(losses drop$n)
    [ $((kept + lost)) -ge 200002 ] && [ $((kept + lost)) -le 200004 ] ||
        bad "drop$n: $kept kept and $lost lost of 200002"
    [ "$(json drop$n lost)" = "$lost" ] ||
        bad "drop$n: run.json says $(json drop$n lost) lost, not $lost"
    ok drop$n
done

if hazard wait 6 buffer=64K "$hazards" loop 200000; then
    expect wait 200000 '^0 pwrite\([0-9]+, 64, [0-9]+\) = 64$'
    [ "$(json wait lost)" = 0 ] || bad "wait: $(json wait lost) lost"
    ok wait
fi

# ---- a full disk ------------------------------------------------------------------------------------

# full NAME COMMAND...: the command runs its arguments where the run cannot be written to its
# end.  The program must not notice, and nothing may be lost without being counted.
full() {
    local name=$1 status kept lost said disk=disk
    shift
    faults=0
    mkdir -p "$work/$name/w"
    (cd "$work/$name/w" && timeout -k 1 60 "$@" "$watchd" --preload "$tracer" \
        --out "$work/$name/disk/run" -- "$hazards" loop 200000) \
        >"$work/$name.out" 2>"$work/$name.err" </dev/null
    status=$?
    [ $status = 6 ] || bad "$name: exit status $status, not 6"
    [ "$(cat "$work/$name.out")" = "loop 200000" ] || bad "$name: another output"
    grep -Eq "incomplete \\(cannot write: ($reasons)\\)" "$work/$name.err" ||
        bad "$name: the summary does not say why: $(cat "$work/$name.err")"
    said=$(sed -n 's/.* nodes, \([0-9]*\) events, \([0-9]*\) lost, .*/\1 \2/p' "$work/$name.err")
    [ ! -e "$work/$name/copy" ] || disk=copy
    kept=$("$ptdump" "$work/$name/$disk/run"/*.ptrun | grep -cE '^0:[0-9]')
    lost=${said#* }
    [ "${said% *}" = "$kept" ] || bad "$name: $kept events in the file, said to be ${said% *}"
    # open, 200000 writes, close, and the end; what standard output is may be noted, too
    [ "$lost" -gt 0 ] && [ $((kept + lost)) -ge 200003 ] && [ $((kept + lost)) -le 200006 ] ||
        bad "$name: $kept kept and $lost lost of 200003"
    if [ -e "$work/$name/$disk/run/run.json" ]; then
        python3 - "$work/$name/$disk/run/run.json" "$lost" <<'END' || bad "$name: run.json is wrong"
import json, sys
run = json.load(open(sys.argv[1]))
assert not run["complete"] and run["hosts"][0]["lost"] == int(sys.argv[2]), run
assert "cannot write" in run["hosts"][0]["reason"], run
END
    else
        grep -q "cannot write .*run.json" "$work/$name.err" || bad "$name: no run.json, and no word of it"
    fi
    [ $faults != 0 ] || note ok "$name ($kept kept, $lost lost)"
}

# A limit on the size of files is one on the shared memory, too: no trace, but a reason.
# And what the watchdog does not want to die of must not be ignored by the program.
faults=0
mkdir "$work/limit"
(cd "$work/limit" && ulimit -f 100 && timeout -k 1 10 "$watchd" --preload "$tracer" \
    --out "$work/limit.run" -- bash -c 'kill -PIPE $$; echo survived') >"$work/limit.out" 2>"$work/limit.err" </dev/null
status=$?
[ $status = 141 ] || bad "limit: exit status $status, not that of SIGPIPE"
grep -q 'incomplete (no memory for rings: File too large)' "$work/limit.err" ||
    bad "limit: no reason: $(cat "$work/limit.err")"
[ $faults != 0 ] || note ok limit

mkdir -p "$work/disk/disk"
if unshare -m true 2>/dev/null && unshare -m mount -t tmpfs -o size=1m none "$work/disk/disk" 2>/dev/null; then
    # The file system is gone with the namespace: what is on it is brought out before.
    on_small_disk() {
        mount -t tmpfs -o size=1m none "$1/disk" || exit 99
        local dir=$1 status
        shift
        "$@"
        status=$?
        cp -r "$dir/disk" "$dir/copy"
        return $status
    }
    export -f on_small_disk
    reasons='No space left on device' full disk unshare -m bash -c 'on_small_disk "$@"' - "$work/disk"
else
    note skip 'disk: cannot mount'
fi

# ---- other builds of the same program ----------------------------------------------------------------

if compile ownmalloc -DOWN_MALLOC -fno-builtin; then
    if before='echo "a = b" >allocator.conf' hazard ownmalloc 3 "" "$work/bin/ownmalloc" plain; then
        expect_touch ownmalloc first
        expect_touch ownmalloc second
        ok ownmalloc
    fi
    # The allocator's library may also be a preloaded one, and its first use our own.
    if before='echo "a = b" >allocator.conf' hazard ownmalloc-threads 0 "" "$work/bin/ownmalloc" many; then
        ok ownmalloc-threads
    fi
else
    note skip 'ownmalloc: gcc cannot build it'
fi

if compile asan -fsanitize=address && "$work/bin/asan" whoami >/dev/null 2>&1 || [ $? = 8 ]; then
    if hazard asan 3 "" "$work/bin/asan" plain; then
        expect_touch asan first
        expect_touch asan second
        ok asan
    fi
else
    note skip 'asan: gcc cannot build it'
fi

if compile static -static; then
    if hazard static 3 "" "$work/bin/static" plain; then
        expect_blind static
        ok static
    fi
    printf '#! %s plain\n' "$work/bin/static" >"$work/bin/script"
    chmod +x "$work/bin/script"
    if hazard static-script 3 "" sh -c "'$work/bin/script'; exit \$?"; then
        expect_blind static-script
        ok static-script
    fi
    for shell in sh bash; do
        name=static-exec-$shell
        if hazard $name 3 "" $shell -c "echo x >file; '$work/bin/static' plain; exit \$?"; then
            expect $name 1 '^0 open\("file", '
            expect_blind $name
            ok $name
        fi
    done
    # One that was known to be traced is another now.
    cp "$hazards" "$work/bin/replaced"
    if hazard static-replaced 3 "" bash -c "cp '$hazards' '$work/bin/replaced'
        '$work/bin/replaced' plain; '$work/bin/replaced' plain
        cp '$work/bin/static' '$work/bin/replaced'; '$work/bin/replaced' plain; exit \$?"; then
        expect_touch static-replaced first '0\.[0-9]+\.0' 2
        expect_blind static-replaced
        ok static-replaced
    fi
    if type -P python3 >/dev/null; then
        by_descriptor="import ctypes, os, sys
fd = os.open('$work/bin/static', os.O_RDONLY)
array = lambda names: (ctypes.c_char_p * (len(names) + 1))(*[os.fsencode(n) for n in names], None)
ctypes.CDLL(None).execveat(fd, b'', array(['static', 'plain']),
    array([k + '=' + v for k, v in os.environ.items()]), 0x1000)"
        if hazard static-descriptor 3 "" python3 -c "$by_descriptor"; then
            expect_blind static-descriptor
            ok static-descriptor
        fi
    fi
else
    note skip 'static: gcc cannot build it'
fi

# Go's programs leave this note; what they do does not go through libc.
cat >"$work/go.s" <<'END'
    .section .note.go.buildid, "a", %note
    .long 4, 4, 4
    .ascii "Go\0\0"
    .long 1
END
if compile golike "$work/go.s"; then
    if hazard golike 3 "" "$work/bin/golike" plain; then
        [[ $(json golike reason) == *'Go program: '*/golike* ]] || bad "golike: reason '$(json golike reason)'"
        ok golike
    fi
fi

# ---- I/O by a library with system calls of its own -----------------------------------------------

# As libaio does it: no function of libc's is called.
cat >"$work/aio.c" <<'END'
#ifdef LIBRARY
int io_setup(int n, void **context)
{
    long ret;
    __asm__ volatile("syscall" : "=a"(ret) : "a"(206L), "D"((long)n), "S"(context) : "rcx", "r11", "memory");
    return (int)ret;
}
#else
int io_setup(int n, void **context);
int main(void)
{
    void *context = 0;
    return io_setup(4, &context) ? 1 : 5;
}
#endif
END
if [ "$(uname -m)" = x86_64 ] && gcc -shared -fPIC -DLIBRARY -o "$work/bin/libown.so" "$work/aio.c" &&
    gcc -o "$work/bin/aio" "$work/aio.c" "$work/bin/libown.so" -Wl,-rpath,"$work/bin" &&
    "$work/bin/aio" || [ $? = 5 ]; then
    if hazard aio 5 "" "$work/bin/aio"; then
        expect_blind aio
        ok aio
    fi
else
    note skip 'aio: cannot be built, or the kernel has none'
fi

exit $failed
