#!/bin/bash
# Hosts with networks, names and /dev/shm of their own; MPI across them.
# shellcheck source=../lib.sh
. "$(dirname "$0")/../lib.sh"

need munged slurmctld slurmd srun mpicc ip unshare nsenter
if ((EUID != 0)); then
    make_tmp
    trap 'rm -rf "$tmp"' EXIT
    refuse 'isolated hosts without root' 'only root' "$ptcluster" start --isolated -d "$tmp/a"
    skip 'isolated hosts need root'
fi
unshare --net --uts --mount true 2>/dev/null || skip 'cannot make namespaces here'
ip link add "ptp$$" type bridge 2>/dev/null || skip 'cannot make a bridge here'
ip link del "ptp$$"

make_tmp
cleanup() {
    local dir
    for dir in "$tmp"/[ab]; do
        [[ ! -e $dir ]] || "$ptcluster" stop -d "$dir"
    done
    rm -rf "$tmp"
}
trap cleanup EXIT
bridge_of() { sed -n 's/^bridge=//p' "$1/cluster"; }

# Two at the same moment.
"$ptcluster" start -n 3 --isolated -d "$tmp/a" >/dev/null &
"$ptcluster" start -n 2 --isolated -d "$tmp/b" >/dev/null &
wait -n || fail 'one of two simultaneous starts'
wait -n || fail 'one of two simultaneous starts'
bridge_a=$(bridge_of "$tmp/a")
bridge_b=$(bridge_of "$tmp/b")
[[ -n $bridge_a && -n $bridge_b && $bridge_a != "$bridge_b" ]] || fail 'two clusters, one bridge'
refuse 'start of another shape' 'another shape' "$ptcluster" start -n 3 -d "$tmp/a"

[[ $(on "$tmp/a" srun -N 3 uname -n | sort | xargs) == 'n0 n1 n2' ]] || fail 'host names'
(($(on "$tmp/a" srun -N 3 sh -c 'readlink /proc/self/ns/net' | sort -u | wc -l) == 3)) ||
    fail 'networks are shared'
(($(on "$tmp/a" srun -N 3 stat -c %d /dev/shm | sort -u | wc -l) == 3)) ||
    fail '/dev/shm is shared'
# shellcheck disable=SC2016 # expanded on the hosts
on "$tmp/a" srun -N 3 sh -c 'getent hosts n0 n1 n2 localhost >/dev/null' || fail 'names of hosts'

build_mpi_program
for dir in a b; do
    ranks=$([[ $dir == a ]] && echo 3 || echo 2)
    on "$tmp/$dir" srun -N "$ranks" --ntasks-per-node=2 "$tmp/ring" >"$tmp/out"
    (($(grep -c sum "$tmp/out") == 2 * ranks)) || fail "MPI on '$dir': $(cat "$tmp/out")"
    (($(cut -d' ' -f4 "$tmp/out" | sort -u | wc -l) == ranks)) || fail "hosts of '$dir'"
done
# From a batch job srun itself runs on an isolated host.
expect 'batch job' on "$tmp/a" sbatch -W -N 3 --ntasks-per-node=1 -o "$tmp/out" \
    --wrap "srun '$tmp/ring'" >/dev/null
(($(grep -c 'sum 3' "$tmp/out") == 3)) || fail "MPI in a batch job: $(cat "$tmp/out")"

# Killed at once, nothing in the way of stop.
on "$tmp/b" srun -N 2 sleep 987654 2>/dev/null &
sleep 1
expect 'stop with running jobs' "$ptcluster" stop -d "$tmp/b"
wait
expect_nothing_left "$tmp/b" "$bridge_b"
expect 'the other cluster still works' on "$tmp/a" srun -N 3 true
expect 'stop' "$ptcluster" stop -d "$tmp/a"
expect_nothing_left "$tmp/a" "$bridge_a"
