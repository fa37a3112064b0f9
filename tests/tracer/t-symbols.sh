#!/usr/bin/env bash
# Every symbol of libc that is about files has a wrapper or is on the list of those left
# out, with a reason; every wrapper stands before a real function; and the tracer needs
# nothing but libc, of a release that is not too new.
set -u
tracer=$top_builddir/preload/libparatrace.so
here=$top_srcdir/tests/tracer
failed=0
fail() {
    printf 'FAILED: %s\n' "$1"
    cat
    failed=1
}
exported() { nm -D --defined-only "$1" | awk '$2 ~ /[TWi]/ { sub(/@.*/, "", $3); print $3 }' | sort -u; }
listed() { sed -e '/^#/d' -e '/^$/d' "$1" | sort -u; }

libc=$(ldd "$tracer" | awk '$1 == "libc.so.6" { print $3 }')
[ -n "$libc" ] || { echo "skipped: no libc found"; exit 77; }
ours=$(exported "$tracer")
none=$(comm -23 <(listed "$here/libc-symbols.txt") <(echo "$ours") | comm -23 - <(listed "$here/left-out.txt"))
[ -z "$none" ] || fail "neither wrapped nor left out" <<<"$none"
both=$(comm -12 <(echo "$ours") <(listed "$here/left-out.txt"))
[ -z "$both" ] || fail "left out, but wrapped" <<<"$both"
# Beside libc: MPI, and what liburing (io_uring_*) and libaio (io_*) begin with.
unreal=$(grep -vE '^(P?MPI_|io_)' <<<"$ours" | comm -23 - <(exported "$libc"))
[ -z "$unreal" ] || fail "wrappers of nothing" <<<"$unreal"
needs=$(readelf -d "$tracer" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^libc\.so')
[ -z "$needs" ] || fail "the tracer needs more than libc" <<<"$needs"

# What a process that lives for a moment pays for: memory of its own that must be mapped apart
# (.bss), and functions that the loader has to find before it starts.
apart=$(readelf -lW "$tracer" | awk '$1 == "LOAD" && $5 != $6')
[ -z "$apart" ] || fail "it has zeroes that take a mapping: use PT_NEAR, PT_FAR or a pt_table" <<<"$apart"
many=$(readelf -rW "$tracer" | awk '/GLOB_DAT|JUMP_SLOT/ { print $5 }')
[ "$(wc -l <<<"$many")" -le 24 ] || fail "it takes too much from libc: see preload/libc.c" <<<"$many"
now=$(readelf -d "$tracer" | grep -E 'BIND_NOW|FLAGS.*NOW')
[ -z "$now" ] || fail "it has all of that bound at the start" <<<"$now"

# MPI: both names of every call, as the library has them where it is there.
odd=$(grep -E '^MPI_' <<<"$ours" | sed 's/^/P/' | comm -3 - <(grep -E '^PMPI_' <<<"$ours"))
[ -z "$odd" ] || fail "MPI calls without their other name" <<<"$odd"
mpi=$(ldd "$top_builddir/examples/pseudo" | awk '$1 ~ /^libmpi\.so/ { print $3 }')
if [ -n "$mpi" ]; then
    unreal=$(grep -E '^P?MPI_' <<<"$ours" | comm -23 - <(exported "$mpi"))
    [ -z "$unreal" ] || fail "wrappers of MPI calls that the library has not" <<<"$unreal"
fi
exit $failed
