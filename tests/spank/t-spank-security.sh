#!/bin/bash
#
# A traced step of one user, and another user of the same host who wishes it ill; and a
# user who wishes ill to root.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need_root
need python3
[[ -n $(id -u daemon 2>/dev/null) ]] || skip "no second user 'daemon'"
start_cluster -n 1
other() { as_user daemon "$@"; }
mkdir -m 1777 "$work/tmp" # as /tmp
mkdir "$work/root" && chmod 700 "$work/root"
tmp=$work/tmp

# untraced WHY OUT: the step runs as without --ptrace, and says why it is not traced.
untraced() {
    as srun --ptrace="out=$2" sh -c 'cat /etc/hostname >/dev/null; exit 5' >out 2>err
    same $? 5 && has err "error: paratrace: not traced: .*$1"
}

echo '# where the trace goes'
check "a directory of root's" untraced 'Permission denied' "$work/root/run"
check "and nothing is made there" same "$(ls -A "$work/root")" ""
other mkdir "$tmp/theirs" && other chmod 777 "$tmp/theirs"
check "a run directory of another user's" untraced 'belongs to another user' "$tmp/theirs"
check "one below a directory that another has planted" untraced "'theirs' belongs to another user" "$tmp/theirs/run"
check "which stays empty" same "$(ls -A "$tmp/theirs")" ""
as mkdir goal
other ln -s "$PWD/goal" "$tmp/link"
check "a link of another user's to a place of one's own" untraced "it is a symbolic link" "$tmp/link"
check "on the way" untraced "'link' is a link of another user's" "$tmp/link/run"
check "leads nowhere" same "$(ls -A goal)" ""
as ln -s "$PWD/goal" "$tmp/mine"
as srun --ptrace="out=$tmp/mine/run" true 2>err
check "a link of one's own does" is_complete goal/run
as mkdir open && as chmod 777 open
check "a directory to which all may write" untraced 'all may write to it' "$PWD/open"
as srun --ptrace="out=$tmp/mine2" true 2>err
check "a new directory among those of all" is_complete "$tmp/mine2"
check "is the user's, for nobody else to write" same "$(stat -c '%U %A' "$tmp/mine2" | cut -c1-17)" "$user drwxr-xr-x"

# What the group may plant in the run directory itself is not followed or waited for.
as mkdir planted
as ln -s "$PWD/goal/victim" planted/n0.ptrun
as srun --ptrace=out=planted true >out 2>err
check "a link in the place of a run file" eval 'is_complete planted.1 && [[ ! -e goal/victim ]]'
as rm planted/n0.ptrun
as mkfifo planted/.host.0 planted/.lock
as ln -s "$PWD/goal/victim" planted/.run.json
as timeout 20 srun --ptrace=out=planted true >out 2>err
check "fifos and links there do not stop a step" same $? 0
check "nor are they followed" eval '[[ ! -e goal/victim ]]'

echo '# what root is not led to'
echo secret >"$work/root/plan"
as srun --ptrace="throttle:auto,plan=$work/root/plan,out=plan" sh -c 'exit 6' >out 2>err
status=$?
check "a plan that only root may read" eval 'same $status 6 && has err "not traced: .*Permission denied" && lacks err secret'
as srun --export="ALL,PARATRACE_SOCKET=x,PARATRACE_WATCHDOG=1,SLURM_PARATRACE_PEERS=ff zz $(printf 'x%.0s' {1..3000})" \
    --ptrace=out=env sh -c 'exit 7' >out 2>err
status=$?
check "variables of one's own" eval 'same $status 7 && is_complete env'
as srun --job-name="../../$(printf 'y%.0s' {1..300})" --ptrace=out=%x sh -c 'exit 8' >out 2>err
status=$?
check "a job's name" same $status 8
check "does not lead elsewhere" eval '[[ -z $(find "$work" -name "*yyy*" -not -path "$work/w/*" -not -path "$work/c/*") ]]'

echo '# another user on the same host'
as srun --ptrace=out=live sh -c 'touch up; while [ ! -e go ]; do cat /etc/hostname >f; echo >>count; sleep 0.05; done' >out.live 2>err.live &
step=$!
eventually test -e up
pid=$(watchdogs)
socket=$(tr '\0' '\n' <"/proc/$pid/cmdline" | sed -n '/^--socket$/{n;p}')
check "cannot read the memory" eval '! other head -c 1 "/proc/$pid/fd/100" 2>/dev/null'
check "its own user can" eval 'as head -c 1 "/proc/$pid/fd/100" >/dev/null'
check "cannot see its environment" eval '! other cat "/proc/$pid/environ" 2>/dev/null'
check "cannot stop it" eval '! other kill -STOP $pid 2>/dev/null'
check "cannot end it" eval '! other kill -KILL $pid 2>/dev/null'
# An abstract name has no permissions: anybody connects, but nobody else is answered.
version=$(awk '$2 == "PT_MEMORY_VERSION" { print $3 }' "$top_srcdir/common/ring.h")
cat >"$work/knock.py" <<PY
import socket, struct, sys, time
name, how, seconds = "\\0" + sys.argv[1], sys.argv[2], float(sys.argv[3])
hello = struct.pack("II", 0x50544849, $version)
def knock(patience):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    patience(s)
    s.connect(name)
    return s
def wait(s):  # in the kernel's queue, as the tracer does: a time-out of Python's does not
    for option in socket.SO_SNDTIMEO, socket.SO_RCVTIMEO:
        s.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", 5, 0))
if how == "ask":
    s = knock(wait)
    try:
        s.send(hello)
        answer, fds, _, _ = socket.recv_fds(s, 100, 1)
        print("answered" if fds else "refused")
    except OSError:
        print("refused")
elif how == "squat":
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        s.bind(name)
        print("squatted")
    except OSError:
        print("taken")
else:  # flood: silent, wrong and torn greetings
    end, n, held = time.time() + seconds, 0, []
    while time.time() < end:
        try:
            s = knock(lambda s: s.settimeout(2))
            n += 1
            if n % 3:
                s.send(hello if n % 3 == 1 else b"\\xff" * 100)
            held = held[-50:] + [s]
        except OSError:
            pass
    print(n)
PY
knock() { python3 "$work/knock.py" "$socket" "$@"; }
check "its own user is answered" same "$(as_user "$user" python3 "$work/knock.py" "$socket" ask 0)" answered
check "another is not" same "$(other python3 "$work/knock.py" "$socket" ask 0)" refused
check "nor is root" same "$(knock ask 0)" refused
check "the name cannot be taken" same "$(other python3 "$work/knock.py" "$socket" squat 0)" taken
for i in 1 2 3; do other python3 "$work/knock.py" "$socket" flood 3 >"flood.$i" & floods+=($!); done
as srun --overlap --ptrace=out=beside true 2>/dev/null
check "who is flooded still answers its own" same "$(as_user "$user" python3 "$work/knock.py" "$socket" ask 0)" answered
wait "${floods[@]}"
check "there was a flood" test "$(cat flood.1)" -gt 100
touch go
wait $step
check "the step ended well" same $? 0
check "its trace is complete" is_complete live
count=$(nodes_of live 'open.*[/"]f"' | wc -l)
check "every one of its I/Os is there" same "$count" "$(wc -l <count)"

echo '# a task against the plugin, which is root'
# Takes the watchdog's end of the control socket and sends what it likes.
cat >"$work/hijack.py" <<'PY'
import ctypes, os, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
watchdog = int(os.environ["PARATRACE_WATCHDOG"])
fd = libc.syscall(438, os.pidfd_open(watchdog), 3, 0)  # pidfd_getfd
if fd < 0:
    print("cannot", os.strerror(ctypes.get_errno()))
    sys.exit(0)
os.kill(watchdog, 19)  # it stays there, and silent
s = socket.socket(fileno=fd)
if os.fork():
    sys.exit(9)
os.setsid()
os.close(0), os.close(1), os.close(2)
s.setblocking(True)
line = {"long": b"x" * 9000, "lines": b"summary \x1b[2J%s%n\n" * 100, "nul": b"\0" * 5000 + b"\n",
        "wait": b"wait\n" * 500, "silent": b""}[sys.argv[1]]
end = time.time() + 60
while time.time() < end:
    try:
        if line:
            s.send(line)
        else:
            time.sleep(1)
    except OSError:
        break
PY
for how in long lines silent; do
    as srun --ptrace="out=hijack.$how" python3 "$work/hijack.py" $how >out 2>err
    status=$?
    if grep -q '^cannot' out; then
        echo "skipped: a process may not take another's descriptors here: $(cat out)"
        break
    fi
    check "$how: the step has its own status" same $status 9
    check "$how: the user is told" has err 'paratrace: the trace may be incomplete: '
    check "$how: no control character gets through" eval '! grep -q $'"'\\x1b'"' err'
    check "$how: the watchdog is gone" watchdogs_become 0
done

echo '# a watchdog as it is installed'
install -m 711 "$top_builddir/watchdog/ptwatchd" "$work/ptwatchd"
sed -i "s| watchdog=[^ ]*| watchdog=$work/ptwatchd|" "$work/c/etc/plugstack.conf"
as srun --ptrace=out=closed sh -c 'cat /etc/hostname >closed.f; touch closed.up
    while [ ! -e closed.go ]; do sleep 0.1; done' 2>err.closed &
step=$!
eventually test -e closed.up
pid=$(watchdogs)
check "not even its own user gets into it" eval '! as head -c 1 "/proc/$pid/fd/100" 2>/dev/null'
touch closed.go
wait $step
check "and the trace is whole" is_complete closed
check "with what was done" eval 'nodes_of closed "closed\.f" >/dev/null'
check "the host is in service" same "$(sinfo -h -t down,drain,drained,draining -o %n)" ""
report
