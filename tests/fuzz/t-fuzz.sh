#!/usr/bin/env bash
# Mutated run files do the reader no harm, nor does what a watchdog hears from others, nor a
# mutated paratrace.conf: a short run of what bench/fuzz does for long.
set -u
: "${top_builddir:?}" "${top_srcdir:?}"
for target in trace peers conf; do
    "$top_srcdir/bench/fuzz" --target "$target" --build "$top_builddir" --seconds 15 || exit
done
