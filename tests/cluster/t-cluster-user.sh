#!/bin/bash
# An ordinary user's own cluster, and an ordinary user on root's cluster.
# shellcheck source=../lib.sh
. "$(dirname "$0")/../lib.sh"

need munged slurmctld slurmd srun mpicc runuser useradd userdel
need_root
make_tmp
user=ptc$$
useradd -M -d "$tmp/home" -s /bin/bash "$user" 2>/dev/null || {
    rm -rf "$tmp"
    skip 'cannot make a user'
}
as_user() { runuser -u "$user" -- env HOME="$tmp/home" "$@"; }
cleanup() {
    [[ ! -e $tmp/home/c ]] || as_user "$ptcluster" stop -d "$tmp/home/c"
    [[ ! -e $tmp/root ]] || "$ptcluster" stop -d "$tmp/root"
    userdel "$user" >/dev/null 2>&1
    rm -rf "$tmp"
}
trap cleanup EXIT
mkdir "$tmp/home" && chown "$user" "$tmp/home"
cd "$tmp/home" || fail 'no home'
if ! as_user test -x "$ptcluster"; then
    # The build tree is closed to others: use a copy.
    cp "$ptcluster" "$tmp/ptcluster" && ptcluster=$tmp/ptcluster
fi
uid=$(id -u "$user")
# user_on DIR COMMAND...: as the user, on a cluster.
# shellcheck disable=SC2016 # expanded by the inner shell
user_on() {
    as_user timeout -k 2 30 bash -c 'eval "$("$0" env -d "$1")"; shift; "$@"' "$ptcluster" "$@"
}
build_mpi_program

# The user's own, in a directory closed to others.
chmod 0700 "$tmp/home"
as_user "$ptcluster" start -d "$tmp/home/c" >/dev/null || fail "start by user '$uid'"
[[ -z $(find "$tmp/home/c" ! -user "$user") ]] || fail 'files of other users'
[[ $(stat -c %a "$tmp/home/c") == 700 ]] || fail 'the directory is open to others'
user_on "$tmp/home/c" srun -N 2 -n 4 "$tmp/ring" >"$tmp/out"
(($(grep -c "sum 6 uid $uid" "$tmp/out") == 4)) || fail "MPI as the user: $(cat "$tmp/out")"
user_on "$tmp/home/c" sbatch -o /dev/null --wrap 'setsid sleep 987654' >/dev/null
sleep 1.5
refuse 'start of root in it' 'another user' "$ptcluster" start -d "$tmp/home/c"
as_user "$ptcluster" stop -d "$tmp/home/c" || fail 'stop by the user'
expect_nothing_left "$tmp/home/c"
refuse 'isolated hosts without root' 'only root' \
    as_user "$ptcluster" start --isolated -d "$tmp/home/c"

# Root's, used by the user.
"$ptcluster" start -d "$tmp/root" >/dev/null || fail 'start by root'
user_on "$tmp/root" srun -N 2 -n 4 "$tmp/ring" >"$tmp/out"
(($(grep -c "sum 6 uid $uid" "$tmp/out") == 4)) ||
    fail "MPI as the user on root's cluster: $(cat "$tmp/out")"
user_on "$tmp/root" sbatch -W -o "$tmp/home/out" --wrap 'srun id -u' >/dev/null ||
    fail "batch job on root's cluster"
[[ $(cat "$tmp/home/out") == "$uid" && $(stat -c %u "$tmp/home/out") == "$uid" ]] ||
    fail 'the batch job ran as another user'
as_user "$ptcluster" status -d "$tmp/root" >/dev/null || fail 'status as the user'
refuse 'stop by the user' 'another user' as_user "$ptcluster" stop -d "$tmp/root"
as_user test -r "$tmp/root/key/munge.key" && fail 'the user can read the munge key'
[[ -z $(as_user find "$tmp/root" ! -type s ! -type l -writable 2>/dev/null) ]] ||
    fail 'the user can write to the cluster'

# A directory that belongs to the user where root's default would be.
as_user mkdir "$tmp/home/planted"
chmod 0755 "$tmp/home"
refuse 'planted directory' 'another user' "$ptcluster" start -d "$tmp/home/planted"
"$ptcluster" stop -d "$tmp/root" || fail 'stop by root'
expect_nothing_left "$tmp/root"
