#!/bin/bash
# Start, use and stop: alone, two at the same moment, and what is refused.
# shellcheck source=../lib.sh
. "$(dirname "$0")/../lib.sh"

need munged slurmctld slurmd srun mpicc
make_tmp
cleanup() {
    local dir
    for dir in "$tmp"/[ab]; do
        [[ ! -e $dir ]] || "$ptcluster" stop -d "$dir"
    done
    rm -rf "$tmp"
}
trap cleanup EXIT

[[ $("$ptcluster" --version) == ptcluster* ]] || fail '--version'
[[ $("$ptcluster" --help) == Usage:* ]] || fail '--help'
"$ptcluster" start -n 0 2>/dev/null
(($? == 2)) || fail 'zero hosts are a usage error'
"$ptcluster" stop -n 2 2>/dev/null
(($? == 2)) || fail 'stop has no -n'

# Nothing is there.
"$ptcluster" status -d "$tmp/a" >/dev/null && fail 'status of no cluster'
refuse 'env of no cluster' 'no cluster' "$ptcluster" env -d "$tmp/a"
expect 'stop of no cluster' "$ptcluster" stop -d "$tmp/a" 2>/dev/null

# Directories that are not ours to use.
mkdir "$tmp/target" "$tmp/full" && ln -s "$tmp/target" "$tmp/link" && touch "$tmp/full/file"
refuse 'planted link' 'symbolic link' "$ptcluster" start -d "$tmp/link"
refuse 'planted link, with a slash' 'symbolic link' "$ptcluster" start -d "$tmp/link/"
ln -sfn "$tmp/nowhere" "$tmp/link"
refuse 'dangling link' 'symbolic link' "$ptcluster" start -d "$tmp/link"
refuse 'foreign directory' 'other files' "$ptcluster" start -d "$tmp/full"
refuse 'blank in the name' 'special characters' "$ptcluster" start -d "$tmp/a b"
[[ -z $(ls -A "$tmp/target") && ! -e $tmp/nowhere ]] || fail 'something came through the link'

# Two at the same moment.
"$ptcluster" start -d "$tmp/a" >/dev/null &
"$ptcluster" start -d "$tmp/b" -n 1 >/dev/null &
wait -n || fail 'one of two simultaneous starts'
wait -n || fail 'one of two simultaneous starts'
expect 'status' "$ptcluster" status -d "$tmp/a" >/dev/null
[[ $("$ptcluster" status -d "$tmp/b" --json) == '{"state": "running"'*'"hosts": 1,'* ]] ||
    fail 'status --json'
[[ $(on "$tmp/a" sinfo -h -o %D) == 2 && $(on "$tmp/b" sinfo -h -o %D) == 1 ]] ||
    fail 'the two clusters are mixed up'

# Secrets are closed to others.
[[ $(stat -c %a "$tmp/a/key") == 700 && $(stat -c %a "$tmp/a/key/munge.key") == 600 ]] ||
    fail 'the munge key is open to others'
[[ -z $(find "$tmp/a" -perm /022 ! -type l ! -type s) ]] || fail 'others can write to a file'

# Jobs.
build_mpi_program
(($(on "$tmp/a" srun -n 8 "$tmp/ring" | grep -c 'sum 28') == 8)) || fail '8 ranks on one host'
(($(on "$tmp/a" srun -N 2 -n 4 "$tmp/ring" | grep -c 'sum 6') == 4)) || fail '4 ranks on 2 hosts'
(($(on "$tmp/b" srun -n 64 echo x | grep -c x) == 64)) || fail '64 tasks on one host'
expect 'batch job' on "$tmp/a" sbatch -W -n 2 -o "$tmp/out" --wrap 'srun echo hello' >/dev/null
(($(grep -c hello "$tmp/out") == 2)) || fail 'output of the batch job'

# Started again.
[[ $("$ptcluster" start -d "$tmp/a" 2>&1) == already* ]] || fail 'second start'
refuse 'start of another shape' 'another shape' "$ptcluster" start -d "$tmp/a" -n 3

# Stopped with jobs that do not want to end, one of them out of its session.
on "$tmp/a" sbatch -o /dev/null --wrap 'trap "" TERM; setsid sleep 987654 & sleep 987654' >/dev/null
on "$tmp/a" srun -N 2 sleep 987654 2>/dev/null &
for ((i = 0; i < 50; i++)); do
    (($(on "$tmp/a" squeue -h -t R | wc -l) < 2)) || break
    sleep 0.1
done
expect 'stop with running jobs' "$ptcluster" stop -d "$tmp/a"
wait
expect_nothing_left "$tmp/a"
expect 'the other cluster still works' on "$tmp/b" srun true
expect 'stop' "$ptcluster" stop -d "$tmp/b"
expect_nothing_left "$tmp/b"
