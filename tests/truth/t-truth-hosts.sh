#!/bin/bash
# Nodes on three hosts with networks of their own.
exec "$(dirname "$0")/t-truth.sh" --hosts 3 barrier chain gather split rendezvous test none
