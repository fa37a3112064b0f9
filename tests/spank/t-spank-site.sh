#!/bin/bash
#
# The site's file, directive by directive, as an ordinary user on root's cluster: what
# srun refuses, what slurmstepd enforces against a srun that does not know the file, and
# what becomes of the trace.
# shellcheck source=../lib.sh
. "$(dirname "$0")/../lib.sh"

need srun runuser useradd userdel groupadd
need_root
plugin=$top_builddir/spank/paratrace.so
ptcheckconf=$top_builddir/spank/ptcheckconf
[[ -e $plugin ]] || skip 'the plugin is not built'
make_tmp
user=pts$$
remove() {
    "$ptcluster" stop -d "$tmp/c" >/dev/null 2>&1
    userdel "$user" >/dev/null 2>&1
    groupdel "$user-io" >/dev/null 2>&1
    rm -rf "$tmp"
}
trap remove EXIT
trap 'exit 99' INT TERM
{ groupadd "$user-io" && useradd -M -d "$tmp/home" -s /bin/bash -G "$user-io" "$user"; } \
    >/dev/null 2>&1 || skip 'cannot make a user'
as_user() { runuser -u "$user" -- env HOME="$tmp/home" "$@"; }
as_user test -r "$plugin" || skip 'the build tree is closed to other users'
"$ptcluster" start -d "$tmp/c" -n 2 >"$tmp/start.log" 2>&1 || { cat "$tmp/start.log"; skip 'no cluster'; }
eval "$("$ptcluster" env -d "$tmp/c")"
unset LD_PRELOAD "${!SLURM_SPANK@}" "${!PARATRACE@}"
echo 'PartitionName=other Nodes=ALL MaxTime=INFINITE State=UP' >>"$tmp/c/etc/slurm.conf"
scontrol reconfigure || fail 'no second partition'

# srun of a user who goes round the site's file: with a plugstack.conf of his own.
mkdir "$tmp/mine"
sed "s|^PlugStackConfig=.*|PlugStackConfig=$tmp/mine/plugstack.conf|" "$tmp/c/etc/slurm.conf" \
    >"$tmp/mine/slurm.conf"
cp "$tmp/c/etc/cgroup.conf" "$tmp/mine/"
echo "optional $plugin conf=$tmp/mine/empty.conf" >"$tmp/mine/plugstack.conf"
: >"$tmp/mine/empty.conf"
round() { as_user env SLURM_CONF="$tmp/mine/slurm.conf" "$@"; }

mkdir "$tmp/home" && chown "$user" "$tmp/home" && cd "$tmp/home" || fail 'no home'
cp "$tmp/c/etc/plugstack.conf" "$tmp/plugstack.saved"
site() { # LINES: the site's file
    { printf '%s\n' "$@"; echo "munge_socket = \"$tmp/c/munge/socket\""; } >"$tmp/site.conf"
    "$ptcheckconf" "$tmp/site.conf" >/dev/null 2>"$tmp/check" || fail "wrong file: $(cat "$tmp/check")"
    use "$tmp/site.conf"
}
use() { sed "s| conf=[^ ]*| conf=$1|" "$tmp/plugstack.saved" >"$tmp/c/etc/plugstack.conf"; }

failures=0
check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@"; then echo "ok - $what"; else echo "FAILED - $what"; ((failures++)); fi
}
same() { [[ $1 == "$2" ]] || { echo "expected '$2', not '$1'"; return 1; }; }
has() { grep -qF -- "$2" "$1" || { echo "no '$2' in:"; tail -n 20 "$1"; return 1; }; }
hasnt() { ! grep -F -- "$2" "$1"; }
task='[ -z "${PARATRACE_SOCKET:-}" ] || echo traced'
env_name=SLURM_SPANK__SLURM_SPANK_OPTION_paratrace_ptrace

# As the user: the step runs, and is traced, or not.
traced() { run "$@" && has "$tmp/out" traced; }
untraced() { run "$@" && hasnt "$tmp/out" traced; }
run() {
    as_user "$@" >"$tmp/out" 2>"$tmp/err" || { echo "failed: $*"; cat "$tmp/err"; return 1; }
}
# ... srun or sbatch refuses, with that reason, and there is no job.
refused() { # REASON COMMAND...
    local reason=$1
    shift
    as_user "$@" >"$tmp/out" 2>"$tmp/err" && { echo "accepted: $*"; return 1; }
    has "$tmp/err" "error: paratrace: --ptrace: $reason" && [[ ! -s $tmp/out && -z $(squeue -h) ]]
}
# ... slurmstepd does not trace, with that reason, and the step has its own status.
enforced() { # REASON COMMAND...
    local reason=$1 status
    shift
    round "$@" sh -c "$task; exit 5" >"$tmp/out" 2>"$tmp/err"
    status=$?
    same "$status" 5 && hasnt "$tmp/out" traced && has "$tmp/err" "not traced: --ptrace: $reason"
}

# ---- what is traced unasked
site "always_users = {\"$user\"}"
check 'a user who is always traced' traced srun sh -c "$task"
check 'opts out' untraced srun --ptrace=off sh -c "$task"
check 'or for good' untraced env "$env_name=off" srun sh -c "$task"
check 'and in again' traced env "$env_name=off" srun --ptrace=on sh -c "$task"
srun sh -c "$task" >"$tmp/out" 2>"$tmp/err"
check 'others are not' hasnt "$tmp/out" traced
site "always_groups = {\"$user-io\"}" 'default_spec = "out=unasked.%j"'
check 'a group that is always traced' traced srun sh -c "$task"
check 'with the default SPEC' test -d unasked.*
check 'which an own one replaces' traced srun --ptrace=out=own sh -c "$task"
check 'wholly' test -d own
site 'always_partitions = {"oth*"}' "always_users = {\"!root\"}"
check 'a partition that is always traced' traced srun -p other sh -c "$task"
check 'the others are not' untraced srun -p main sh -c "$task"
printf '#!/bin/sh\nsrun -n1 sh -c %q\n' "$task" >job.sh
chmod 755 job.sh
as_user touch batch.out
check 'its batch jobs are' traced bash -c 'sbatch -p other -W -o batch.out job.sh >/dev/null && cat batch.out'
srun -p other sh -c "$task" >"$tmp/out" 2>"$tmp/err"
check 'but those of a user who is excluded' hasnt "$tmp/out" traced
check 'its steps on two hosts' traced srun -p other -N2 -n2 sh -c "$task; sleep 3"
check 'find each other' has "$(ls -td ptrace.*/ | head -1)run.json" '"all": true'
site 'always_accounts = {"io_*"}'
check 'an account that is always traced' traced srun -A io_1 sh -c "$task"
check 'the others are not' untraced srun -A mine sh -c "$task"

# ---- who may
site 'allow_users = {"root"}'
why="user '$user' may not trace here (the site's allow_users, allow_groups); only off is valid"
check 'srun refuses who may not' refused "$why" srun --ptrace=on sh -c "$task"
check 'sbatch, too' refused "$why" sbatch --ptrace=on --wrap true
check 'salloc, too' refused "$why" salloc --ptrace=on true
check 'a default of the user, too' refused "$why" env "$env_name=on" srun true
check 'off may be said by all' untraced srun --ptrace=off sh -c "$task"
check 'slurmstepd enforces it' enforced "$why" srun --ptrace=on
check 'also against the environment' enforced "$why" srun --export="ALL,$env_name=on"
srun --ptrace=out=allowed true 2>"$tmp/err"
check 'who may is traced' test -d allowed
site "allow_users = {\"*\", \"!root\"}" "allow_groups = {\"root\"}"
check 'everybody but some' traced srun --ptrace=on sh -c "$task"
site "allow_groups = {\"$user-io\"}"
check 'by group' traced srun --ptrace=on sh -c "$task"
site 'allow_groups = {"root"}'
check 'not by another group' refused "$why" srun --ptrace=on sh -c "$task"
check 'nor in slurmstepd' enforced "$why" srun --ptrace=on
site 'throttle_users = {}'
why="throttle: user '$user' may not hold here (the site's throttle_users, throttle_groups)"
check 'srun refuses who may not hold' refused "$why" srun --ptrace=throttle:0 sh -c "$task"
check 'slurmstepd enforces it' enforced "$why" srun --ptrace=throttle:auto
check 'who may not hold may trace' traced srun --ptrace=throttle:none sh -c "$task"
site "throttle_groups = {\"$user-io\"}"
check 'who may hold does' traced srun --ptrace=throttle:0,period=1 sh -c "$task"

# ---- how much
site 'min_period = 200' 'max_period = 1000' 'max_buffer = 512K' 'max_hold = 5s'
check 'too small a period' refused "period=2: the site's smallest is 200 (min_period)" \
    srun --ptrace=period=2 true
check 'too great a period' refused "period=1001: the site's greatest is 1000 (max_period)" \
    srun --ptrace=period=1001 true
check 'too great a buffer' refused "buffer=1M: the site's greatest is 512K (max_buffer)" \
    sbatch --ptrace=buffer=1M --wrap true
check 'too long a hold' refused "hold-max=6s: the site's longest is 5s (max_hold)" \
    srun --ptrace=hold-max=6s true
check 'slurmstepd enforces these' enforced "hold-max=6s: the site's longest is 5s (max_hold)" \
    srun --ptrace=hold-max=6s
check 'defaults give way' traced srun --ptrace=out=limits sh -c "$task"
check 'to the limits' has limits/run.json '"spec": "period=200,buffer=512K,hold-max=5s,out=limits"'
site 'max_size = 1M'
check 'a file that becomes too large' run srun --ptrace=out=large,full=wait \
    dd if=/dev/zero of=bytes bs=1 count=200000
check 'ends there' test "$(stat -c %s large/*.ptrun)" -lt 1300000
check 'is incomplete' has large/run.json '"complete": false'
check 'says why' grep -qE 'incomplete \([0-9]+ events came after the site.s limit, max_size 1M\)' "$tmp/err"
check 'and the program has done its work' same "$(stat -c %s bytes)" 200000
check 'what is there can be read' \
    eval '"$top_builddir/hdf5store/ptdump" large/*.ptrun >"$tmp/out" && has "$tmp/out" "LOSS(0:"'
site 'max_time = 1s'
check 'a step that takes too long' run srun --ptrace=out=long \
    sh -c 'echo a >a; sleep 1.5; echo b >b; sh -c "echo c >c"'
check 'says why' has "$tmp/err" 'max_time 1s)'
check 'and has done its work' same "$(cat a b c | xargs)" 'a b c'
check 'what came in time is there' \
    eval '"$top_builddir/hdf5store/ptdump" long/*.ptrun >"$tmp/out" && has "$tmp/out" "open(\"a\""'

# ---- where to
mkdir -m 1777 "$tmp/traces"
site "output_root = \"$tmp/traces\"" 'output = "%x/%j.%s"'
check 'below the root' traced srun --ptrace=on --job-name=layout sh -c "$task"
check 'in the layout' test -e "$(echo "$tmp/traces/$user/layout/"*.0/run.json)"
check "in the user's own directory" same "$(stat -c '%U %a' "$tmp/traces/$user")" "$user 700"
check 'elsewhere if the user says so' traced srun --ptrace=out="$tmp/home/else" sh -c "$task"
check 'there' test -e else/run.json
site "output_root = \"$tmp/traces\"" 'output_confined = true'
why="must be below '$tmp/traces/$user' here (output_confined)"
check 'srun refuses another place' refused "out=/tmp: $why" srun --ptrace=out=/tmp true
check 'and a way out' refused "out=$tmp/traces/$user/../x: $why" srun --ptrace=out=../x true
check 'slurmstepd enforces it' enforced "out=/tmp: $why" srun --ptrace=out=/tmp
round srun --job-name=.. --ptrace=out=%x/other/x sh -c "$task" >"$tmp/out" 2>"$tmp/err"
check 'also when a name is the way out' has "$tmp/err" 'not traced: out='
check 'the right place' traced srun --ptrace=out="$tmp/traces/$user/mine" sh -c "$task"
rm -rf "$tmp/traces/$user"
mkdir -m 777 "$tmp/traces/$user"
chown nobody "$tmp/traces/$user"
check "somebody else's directory in its place" untraced srun --ptrace=on sh -c "$task"
check 'is not used' has "$tmp/err" "cannot use '$tmp/traces/$user': it belongs to another user"
rmdir "$tmp/traces/$user"
mkdir -m 777 "$tmp/trap"
ln -s "$tmp/trap" "$tmp/traces/$user"
check 'nor is a link' untraced srun --ptrace=on sh -c "$task"
check 'followed' same "$(ls "$tmp/trap")" ''

# ---- anonymous names
(umask 077; head -c 32 /dev/urandom >"$tmp/names.key")
as_user mkdir -p secretdir
work="cd $tmp/home/secretdir; echo x >$tmp/home/secretdir/secretname.h5; cat $tmp/home/secretdir/secretname.h5
    ln -s $tmp/home/secretdir $tmp/home/secretlink; rm $tmp/home/secretlink"
named='secret|'$user'|'${tmp##*/}'|/bin/sh'
site ''
check 'a run with names' run srun --ptrace="out=named,path=$tmp/*" sh -c "$work"
check 'has them in both files' same "$(grep -ralE "$named" named | wc -l)" 2
site 'anonymise = user' "anonymise_key = \"$tmp/names.key\""
spec=path="$tmp/*",nopath=/secretglob,note=shown
check 'a run without names' run srun --ptrace="out=anon1,$spec" sh -c "$work"
check 'is complete' has anon1/run.json '"complete": true'
check 'and another' run srun --ptrace="out=anon2,$spec" sh -c "$work"
site 'anonymise = site' "anonymise_key = \"$tmp/names.key\""
check 'one with the key of the site' run srun --ptrace="out=anon3,$spec" sh -c "$work"
srun --ptrace="out=anon4,$spec" sh -c "$work" >/dev/null 2>&1 # root's
check 'no name in the files' \
    eval '! grep -ralE "$named" anon1 anon2 anon3 anon4'
check 'what is not a name is there' has anon1/run.json 'note=shown'
names() { "$top_builddir/hdf5store/ptdump" "$1"/*.ptrun | grep -o '"[^"]*\.h5"' | sort -u; }
check 'an extension is kept' test -n "$(names anon1)"
check 'the same names in all runs' same "$(names anon1)" "$(names anon2)"
check 'with the key of the site others' test "$(names anon1)" != "$(names anon3)"
check 'but the same for all users' same "$(names anon3)" "$(names anon4)"
check 'such runs can be merged' \
    eval 'as_user "$top_builddir/hdf5store/ptmerge" -o anon.h5 anon1 anon2 >"$tmp/out" 2>&1 || { cat "$tmp/out"; false; }'
check 'the key is not to be seen' \
    eval 'run srun --ptrace=out=anon5 sh -c "tr \"\\0\" \" \" </proc/\$PARATRACE_WATCHDOG/cmdline" &&
          has "$tmp/out" " --anonymise " && ! grep -E "[0-9a-f]{32}" "$tmp/out"'
chmod 644 "$tmp/names.key"
check 'a key that all can read' untraced srun --ptrace=on sh -c "$task"
check 'is not used' has "$tmp/err" 'not traced: anonymise_key:'
chmod 600 "$tmp/names.key"
check 'without Slurm, too' eval '"$top_builddir/watchdog/ptwatchd" --out=anon6 --anonymise-key="$tmp/names.key" \
    --preload="$top_builddir/preload/libparatrace.so" --spec="$spec" -- sh -c "$work" >/dev/null 2>&1 &&
    ! grep -ralE "$named" anon6 && same "$(names anon6)" "$(names anon3)"'
rm "$tmp/names.key"
check 'no key, no trace' untraced srun --ptrace=on sh -c "$task"

# ---- what is left out, and what is said
site 'exclude_paths = {"*hidden*"}' 'exclude_programs = {"*/cat"}' 'buffer = 256K' 'period = 7'
check 'what the site leaves out' run srun --ptrace='out=left,path=*' \
    sh -c 'echo a >hidden1; echo b >shown1; cat shown1'
"$top_builddir/hdf5store/ptdump" left/*.ptrun >"$tmp/dump"
check 'files' hasnt "$tmp/dump" hidden1
check 'but others' has "$tmp/dump" shown1
check 'programs' hasnt "$tmp/dump" bin/cat,
check 'defaults' has left/run.json '"spec": "period=7,buffer=256K,nopath=*hidden*,noexe=*/cat,'
site 'quiet = true'
check 'a quiet site' traced srun --ptrace=out=quiet sh -c "$task"
check 'says nothing' same "$(cat "$tmp/err")" ''

no_key=("default_spec = \"on\"" 'anonymise = site' 'anonymise_key = "/nonexistent"')
site "${no_key[@]}" 'log_level = error'
check 'a site that wants to read errors only' untraced srun sh -c "$task"
check 'does' eval '! grep -F /nonexistent "$tmp"/c/log/slurmd-n*.log'
site "${no_key[@]}"
check 'one that wants to know more' untraced srun sh -c "$task"
check 'does' grep -qF '/nonexistent' "$tmp"/c/log/slurmd-n*.log
check 'the user is not bothered' same "$(cat "$tmp/err")" ''

# ---- a wrong file
echo 'max_hold = long' >"$tmp/site.conf"
where="$tmp/site.conf:1: directive 'max_hold': must be a time"
check 'ptcheckconf says so' eval '! "$ptcheckconf" "$tmp/site.conf" >"$tmp/out" 2>"$tmp/err" && has "$tmp/err" "$where"'
use "$tmp/site.conf"
check 'jobs run untraced' untraced srun sh -c "$task"
check 'without a word' same "$(cat "$tmp/err")" ''
check 'the admin is told where' eval 'grep -qF "$where" "$tmp"/c/log/slurmd-n*.log'
check 'also those that ask for it' untraced srun --ptrace=on sh -c "$task"
check 'srun says so, for information' has "$tmp/err" "srun: paratrace: the job will not be traced: $where"
check 'sbatch, too' eval 'run sbatch -W -o /dev/null --ptrace=on --wrap true && has "$tmp/err" "sbatch: paratrace: the job will not be traced: $where"'
check 'the hosts are in service' same "$(sinfo -h -t down,drain,drained,draining -o %n)" ''
check "the project's own file is right" "$ptcheckconf" "$top_srcdir/etc/paratrace.conf" >/dev/null 2>&1

echo "$failures failed"
((failures == 0))
