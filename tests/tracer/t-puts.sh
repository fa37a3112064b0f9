#!/usr/bin/env bash
# A few bytes into a stream's buffer, a line out of it: the tracer moves them itself where libc would
# do no more.  Nothing that the program, its file or another library sees may be different.
set -u
watchd=$top_builddir/watchdog/ptwatchd
tracer=$top_builddir/preload/libparatrace.so
ptdump=$top_builddir/hdf5store/ptdump
puts=$(cd "$top_builddir/tests/tracer" && pwd)/puts
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

note() { printf '%-4s %s\n' "$1" "$2"; }
bad() {
    note FAIL "$1"
    failed=1
}

# same NAME WAY [LIBRARY]: with and without the tracer, in front of that library.
same() {
    local name=$1 way=$2 library=${3:-}
    mkdir "$work/$name.plain" "$work/$name"
    (cd "$work/$name.plain" && LD_PRELOAD=$library "$puts" "$way") >"$work/$name.plain.out" <"$0" ||
        { bad "$name: fails without the tracer"; return 1; }
    (cd "$work/$name" && timeout -k 1 60 "$watchd" --preload "$tracer${library:+:$library}" \
        --out "$work/$name.run" -- "$puts" "$way") >"$work/$name.out" 2>"$work/$name.err" <"$0" ||
        { bad "$name: exit status $?"; return 1; }
    cmp "$work/$name.plain.out" "$work/$name.out" || bad "$name: another output"
    [ "$way" = threads ] || cmp "$work/$name.plain/$way" "$work/$name/$way" || bad "$name: another file"
    grep -q ', complete$' "$work/$name.err" || bad "$name: $(cat "$work/$name.err")"
    "$ptdump" "$work/$name.run"/*.ptrun >"$work/$name.txt"
}

# count NAME NUMBER PATTERN: so many events.
count() {
    local got
    got=$(grep -cE "$3" "$work/$1.txt")
    [ "$got" = "$2" ] || bad "$1: $got events match '$3', not $2"
}

same sizes sizes && {
    count sizes 304 ' fwrite\('
    count sizes 301 ' fwrite_unlocked\('
    count sizes 304 ' fputs\('
    count sizes 301 ' fputs_unlocked\('
    for n in 1 77 256 257 300; do
        count sizes 1 " fwrite\\(3, $n\\) = $n <"
        count sizes 1 " fputs_unlocked\\(3, $n\\) = $n <"
    done
    note ok sizes
}
same lines lines && note ok lines
same wide wide && note ok wide
same memory memory && {
    count memory 4 ' fputs\('
    count memory 4 ' fclose\('
    count memory 2 ' read\(0, 1\) = 1 '
    count memory 1 ' inherited\(0, '
    note ok memory
}
same gets gets && {
    # Of the first file: each byte once, whoever has moved it, and what was asked for.
    awk '/ fopen\("gets", 0, / { on = 1 }
        on && / fclose\(/ { exit }
        on && / (__)?fgets(_unlocked)?(_chk)?\(/ {
            calls++
            bytes += $(NF - 1)
            if ($0 ~ /, 500\) = /) big++
        }
        END { print calls, bytes, big }' <(sed 's/ cpu=.*//' "$work/gets.txt") >"$work/gets.sums"
    size=$(wc -c <"$work/gets/gets")
    read -r calls bytes big <"$work/gets.sums"
    [ "$bytes" = "$size" ] || bad "gets: $bytes bytes in $calls calls, not $size"
    ((big == calls - (calls + 2) / 3)) || bad "gets: $big of $calls calls asked for 500 bytes"
    note ok gets
}
same threads threads && {
    count threads 40000 ' fwrite\(3, 7\) = 7 '
    count threads 40002 ' fputs\(3, [0-9]*\) = '
    note ok threads
}
same second second && {
    # the beginnings, too
    count second 186001 ' fputs\([0-9]*, 6\) = 6 <'
    note ok second
}

# Another library's fputs stands between: it gets its calls, and so does libc's fwrite.
cat >"$work/between.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
static int calls;
int fputs(const char *s, FILE *f)
{
    int (*next)(const char *, FILE *) = (int (*)(const char *, FILE *))dlsym(RTLD_NEXT, "fputs");
    calls++;
    return next(s, f);
}
__attribute__((destructor)) static void end(void) { printf("%d calls of fputs\n", calls); }
END
if ${CC:-gcc} -shared -fPIC -o "$work/between.so" "$work/between.c" 2>/dev/null; then
    same between sizes "$work/between.so" && {
        grep -q '^304 calls of fputs$' "$work/between.out" || bad "between: $(tail -n 1 "$work/between.out")"
        count between 304 ' fputs\('
        count between 304 ' fwrite\('
        note ok between
    }
else
    note skip 'between: gcc cannot build it'
fi

exit $failed
