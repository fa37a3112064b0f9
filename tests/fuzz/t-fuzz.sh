#!/usr/bin/env bash
# Mutated run files do the reader no harm: a short run of what bench/fuzz does for long.
set -u
: "${top_builddir:?}" "${top_srcdir:?}"
"$top_srcdir/bench/fuzz" --build "$top_builddir" --seconds 15
