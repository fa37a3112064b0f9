#!/bin/bash
# Every third I/O is held: each edge is found within three events of its place, and no other.
exec "$(dirname "$0")/t-truth.sh" --period 3 --rounds 6 barrier chain ring gather test pipes file \
    thread-barrier
