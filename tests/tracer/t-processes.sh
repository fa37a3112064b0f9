#!/usr/bin/env bash
# New processes: however they are made they are seen, with all of their events, and their nodes
# have the same names in every run, also where many are at work at the same time.
set -u
watchd=$top_builddir/watchdog/ptwatchd
tracer=$top_builddir/preload/libparatrace.so
ptdump=$top_builddir/hdf5store/ptdump
processes=$(cd "$top_builddir/tests/tracer" && pwd)/processes
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

note() { printf '%-4s %s\n' "$1" "$2"; }
bad() {
    note FAIL "$1"
    failed=1
}

# trace NAME COMMAND...: leaves the run as text in NAME.txt; fails if it is not complete.
trace() {
    local name=$1
    shift
    rm -rf "$work/$name" "$work/$name.run"
    mkdir "$work/$name"
    (cd "$work/$name" && timeout -k 1 50 "$watchd" --preload "$tracer" --out "$work/$name.run" -- "$@") \
        >"$work/$name.out" 2>"$work/$name.err" </dev/null
    local status=$?
    [ $status = 0 ] || { bad "$name: exit status $status"; return 1; }
    grep -q ', complete$' "$work/$name.err" || { bad "$name: $(cat "$work/$name.err")"; return 1; }
    "$ptdump" "$work/$name.run"/*.ptrun >"$work/$name.txt"
}

# names NAME: which node has touched which file, or is which program.
names() {
    sed -n -e 's/^\([0-9.]*\):[0-9]* .* open("\([^"\/]*\)", O_WRONLY|O_CREAT.*/\1 \2/p' \
        -e 's/^# node \([0-9.]*\) .*, exe [^,]*\/\([^,\/]*\), .*/\1 \2/p' "$work/$1.txt" | sort -u
}

# same NAME COMMAND...: the same names in each of several runs; left in NAME.names.
same() {
    local name=$1 i
    for i in 1 2 3 4 5 6; do
        trace "$@" || return 1
        names "$name" >"$work/$name.now"
        [ $i = 1 ] && cp "$work/$name.now" "$work/$name.names"
        diff "$work/$name.names" "$work/$name.now" >"$work/$name.diff" || {
            bad "$name: other names in run $i"
            cat "$work/$name.diff"
            return 1
        }
    done
}

# have NAME LINE...: these are among the names.
have() {
    local name=$1 line
    shift
    for line; do
        grep -qxF "$line" "$work/$name.names" || {
            bad "$name: no '$line'"
            cat "$work/$name.names"
            return 1
        }
    done
}

# All that each has written, by the node of its own.
ways='fork _Fork clone clone-vfork SYS_fork SYS_clone SYS_clone3'
if same ways "$processes" ways && have ways '0 parent'; then
    n=1
    for way in $ways; do
        have ways "0.$n.0 $way"
        n=$((n + 1))
    done
    writes=$(grep -c ' write(' "$work/ways.txt")
    [ "$writes" = 2400 ] || bad "ways: $writes writes, not 2400"
    note ok "ways ($(wc -l <"$work/ways.names") names)"
fi

# The one that failed has a number, too.
if same spawns "$processes" spawns && have spawns '0.1.0 spawn0' '0.8.0 spawn7' '0.9.0 vfork0' \
    '0.12.0 vfork3' '0.13.0 last'; then
    note ok spawns
fi

if same shells "$processes" shells && have shells '0.10001.0 system0' '0.10002.0 popen0' \
    '0.10006.0 popen2'; then
    note ok shells
fi

if same tree "$processes" tree x && have tree '0 x' '0.1.0 xa' '0.3.0 xc' '0.20001.0 xab' \
    '0.10010003.0 xcaa'; then
    touched=$(grep -c ' open("x.*O_CREAT' "$work/tree.txt")
    [ "$touched" = 40 ] || bad "tree: $touched processes, not 40"
    note ok "tree ($touched processes)"
fi

# A shell's pipelines, in one another; a program in the shell's place at the end.
if same pipes bash -c 'echo a | cat | sort >one
    (cat one; cat one | wc) | (sort | cat; :) >two; exec cat two' && have pipes '0 bash' '0.10002.0 cat'; then
    note ok "pipes ($(wc -l <"$work/pipes.names") names)"
fi

# What a program leaves behind is seen as long as it ends soon, and said to be missing if not.
# shellcheck disable=SC2016
if trace left-behind sh -c '(while kill -0 $$; do :; done 2>&-; echo x >after) & echo x >before'; then
    names left-behind >"$work/left-behind.names"
    have left-behind '0 before' '0.1.0 after' && note ok left-behind
fi
mkfifo "$work/begun"
"$watchd" --preload "$tracer" --out "$work/ran-on.run" -- sh -c \
    "(echo x >'$work/begun'; sleep 3) & read -r x <'$work/begun'" >"$work/ran-on.err" 2>&1 </dev/null
if grep -q ', incomplete ([12] processes ran on after the tasks)$' "$work/ran-on.err"; then
    note ok ran-on
else
    bad "ran-on: $(cat "$work/ran-on.err")"
fi

if trace many "$processes" many; then
    names many | awk '$2 == "many" { print $1 }' >"$work/many.nodes"
    [ "$(wc -l <"$work/many.nodes")" = 10020 ] || bad "many: $(wc -l <"$work/many.nodes") nodes, not 10020"
    [ "$(grep -c '^0\.1000000' "$work/many.nodes")" = 21 ] || bad 'many: other numbers beyond the tree'
    note ok many
fi

if [ "$(id -u)" = 0 ]; then as_root=''; else as_root='unshare -Ur'; fi
# shellcheck disable=SC2086
if $as_root unshare -p -f true 2>/dev/null; then
    for way in "$as_root" "$as_root unshare -p -f" "$as_root unshare -p -f --mount-proc"; do
        trace namespace $way "$processes" namespace || continue
        writes=$(grep -c ' write(' "$work/namespace.txt")
        [ "$writes" = 36000 ] || bad "namespace ($way): $writes writes, not 36000"
        note ok "namespace ($way)"
    done
else
    note skip 'namespace: no namespaces of process ids for this user'
fi
exit $failed
