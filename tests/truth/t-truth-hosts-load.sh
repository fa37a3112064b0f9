#!/bin/bash
# Three hosts beside processes that use all CPU they can get: watchdogs have to wait for it, too.
exec "$(dirname "$0")/t-truth.sh" --hosts 3 --load ring-8 allreduce rendezvous test
