#!/bin/bash
# After kill -9 of daemons, or of ptcluster itself halfway, start starts again
# and stop leaves nothing.
# shellcheck source=../lib.sh
. "$(dirname "$0")/../lib.sh"

need munged slurmctld slurmd srun
make_tmp
dir=$tmp/c
cleanup() {
    [[ ! -e $dir ]] || "$ptcluster" stop -d "$dir"
    rm -rf "$tmp"
}
trap cleanup EXIT
options=(-d "$dir")
if ((EUID == 0)) && unshare --net --uts --mount true 2>/dev/null; then options+=(--isolated); fi

start() { "$ptcluster" start "${options[@]}" >/dev/null 2>&1; }
bridge_of() { sed -n 's/^bridge=//p' "$dir/cluster"; }
# kill_daemons NAME...: as a crash would.
kill_daemons() {
    local name pid
    for name; do
        read -r pid _ <"$dir/run/$name.pid" && kill -KILL "$pid"
    done
}

# One daemon, with a job running on it.
expect 'start' start
expect 'submit' on "$dir" sbatch -N 2 -o /dev/null --wrap 'srun sleep 987654' >/dev/null
sleep 1.5
kill_daemons slurmd-n1
"$ptcluster" status "${options[@]:0:2}" >"$tmp/status" && fail 'status with a daemon missing'
grep -q broken "$tmp/status" || fail "state: $(cat "$tmp/status")"
expect 'start after a slurmd was killed' start
! pgrep -fx "(.*/)?sleep 987654" >/dev/null || fail 'the old job still runs'
expect 'job after a slurmd was killed' on "$dir" srun -N 2 true

# All of them.
kill_daemons munged slurmctld slurmd-n0 slurmd-n1
[[ $("$ptcluster" status -d "$dir") == *stopped* ]] || fail 'state with all daemons killed'
expect 'start after all were killed' start
expect 'job after all were killed' on "$dir" srun -N 2 true
kill_daemons munged slurmctld slurmd-n0 slurmd-n1
bridge=$(bridge_of)
expect 'stop after all were killed' "$ptcluster" stop -d "$dir"
expect_nothing_left "$dir" "$bridge"

# ptcluster itself, at different points of its start.
for delay in 0.05 0.1 0.2 0.3 0.5; do
    "$ptcluster" start "${options[@]}" >/dev/null 2>&1 &
    sleep "$delay"
    kill -KILL $! 2>/dev/null
    wait $! 2>/dev/null
done
# And when the last daemon is there, but not yet what it needs.
"$ptcluster" start "${options[@]}" >/dev/null 2>&1 &
until [[ -e $dir/run/slurmd-n1.pid ]] || ! kill -0 $! 2>/dev/null; do sleep 0.01; done
kill -KILL $! 2>/dev/null
wait $! 2>/dev/null
expect 'start after halfway kills' start
expect 'job after halfway kills' on "$dir" srun -N 2 true
bridge=$(bridge_of)
"$ptcluster" stop -d "$dir" || fail 'stop'
expect_nothing_left "$dir" "$bridge"

# Interrupted politely, it cleans up by itself.
"$ptcluster" start "${options[@]}" >/dev/null 2>&1 &
sleep 0.3
kill -TERM $!
wait $! && fail 'an interrupted start reports success'
expect_nothing_left "$dir"

# A record of another process under a pid of ours must not get it killed.
expect 'start' start
sleep 987655 &
other=$!
printf '%s 1\n' "$other" >"$dir/run/slurmd-n0.pid"
expect 'stop' "$ptcluster" stop -d "$dir"
kill -0 "$other" 2>/dev/null || fail 'stop killed a process it did not start'
kill "$other"
wait "$other" 2>/dev/null
expect_nothing_left "$dir"

# A daemon that cannot start says why, in its own words, and nothing is left.
mkdir "$tmp/bin"
printf '#!/bin/sh\necho "slurmd: fatal: out of luck" >&2\nexit 1\n' >"$tmp/bin/slurmd"
chmod 755 "$tmp/bin/slurmd"
refuse 'a slurmd that fails' 'fatal: out of luck' \
    env PATH="$tmp/bin:$PATH" "$ptcluster" start -d "$dir"
expect_nothing_left "$dir"
