#!/bin/bash
# On an old kernel the truth is found all the same: processes that end, some of them held, and
# threads.
exec "${top_builddir:?}/tests/truth/old_kernel" "$(dirname "$0")/t-truth.sh" \
    chain pipes late one-by-one apart file thread-barrier thread-late
