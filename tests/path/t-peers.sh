#!/bin/bash
# The watchdogs of a step on three isolated hosts are connected, as an ordinary user; a
# port scanner of another user gets nowhere; a watchdog that is killed and a host that is
# cut off are missed by the others, and the job does not care.
# shellcheck source=../lib.sh
. "$(dirname "$0")/../lib.sh"

PATH=/usr/bin:/bin:$PATH   # programs that other users can run too
need munged slurmctld slurmd srun ip nsenter setpriv python3 runuser useradd userdel
need_root
make_tmp
user=ptpeers$$
cleanup() {
    "$ptcluster" stop -d "$tmp/cluster" >/dev/null 2>&1
    userdel "$user" 2>/dev/null
    rm -rf "$tmp"
}
trap cleanup EXIT
useradd -M -d "$tmp/user" -s /bin/bash "$user" || fail 'cannot make a user'
runuser -u "$user" -- test -x "$top_builddir/watchdog/ptwatchd" ||
    skip 'the build tree is closed to other users'
mkdir "$tmp/user" && chown "$user" "$tmp/user"
"$ptcluster" start -d "$tmp/cluster" -n 3 --isolated >"$tmp/start.log" 2>&1 ||
    skip "no isolated hosts here: $(tail -n 1 "$tmp/start.log")"
cd "$tmp/user" || fail 'no directory'

# A task that says who it is, shows its environment, and ends when it is told.
cat >task <<'TASK'
#!/bin/bash
env >"$1.env.$SLURM_PROCID"
touch "$1.here.$SLURM_PROCID"
until [ -e "$1.go" ]; do sleep 0.1; done
echo "task $SLURM_PROCID done"
TASK
chmod 755 task

# begin NAME TASKS SRUN-OPTION...: a traced step of the user's in the background.
begin() {
    local name=$1 tasks=$2 i
    shift 2
    on "$tmp/cluster" runuser -u "$user" -- srun "$@" --ptrace="throttle:0,hold-max=500ms,out=$name" \
        ./task "$name" >"$name.out" 2>"$name.err" &
    step=$!
    for ((i = 0; i < 200; i++)); do
        [[ $(find . -name "$name.here.*" | wc -l) != "$tasks" ]] || return 0
        sleep 0.1
    done
    fail "$name: the tasks did not start: $(cat "$name.err")"
}

# finish NAME TASKS: the step ends as if nothing had happened.
finish() {
    touch "$1.go"
    wait "$step" || fail "$1: the job was disturbed: $(cat "$1.out" "$1.err")"
    [[ $(grep -c 'done$' "$1.out") == "$2" ]] || fail "$1: $(cat "$1.out" "$1.err")"
}

# says NAME HOST EXPRESSION: what the host says about its peers p, as Python.
says() {
    python3 - "$@" <<'PY' || fail "$1: on $2 not: $3: $(cat "$1/run.json")"
import json, sys
hosts = json.load(open(sys.argv[1] + "/run.json"))["hosts"]
p = [h["peers"] for h in hosts if h["host"] == sys.argv[2]][0]
sys.exit(not eval(sys.argv[3]))
PY
}

slurmd_pid() { cut -d' ' -f1 "$tmp/cluster/run/slurmd-$1.pid"; }

# inside HOST COMMAND...: as a process of that host's network, of another user.
inside() {
    local host=$1
    shift
    nsenter --target "$(slurmd_pid "$host")" --net \
        setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

# The watchdog of a host in step NAME.
watchdog() {
    local dir args
    for dir in /proc/[0-9]*; do
        args=$({ tr '\0' ' ' <"$dir/cmdline"; } 2>/dev/null) || continue
        [[ $args == *"--out $PWD/$1 --host $2 "* ]] && echo "${dir#/proc/}"
    done
}

ports=$(sed -n 's/^# ports = "\([0-9]*\)-\([0-9]*\)".*/\1 \2/p' "$top_srcdir/etc/paratrace.conf")

cat >"$tmp/count.py" <<'PY'
"""Established connections at ports in a range, in the network of a process."""
import sys
low, high = int(sys.argv[2]), int(sys.argv[3])
n = 0
for name in ("tcp", "tcp6"):
    for line in list(open("/proc/%s/net/%s" % (sys.argv[1], name)))[1:]:
        fields = line.split()
        n += fields[3] == "01" and low <= int(fields[1].split(":")[1], 16) <= high
print(n)
PY

# joined N: the watchdog on n0 has that many connections, and had some time to accept them.
joined() {
    local i
    for ((i = 0; i < 100; i++)); do
        # shellcheck disable=SC2086 # two numbers
        if (($(python3 "$tmp/count.py" "$(slurmd_pid n0)" $ports) >= $1)); then
            sleep 0.5
            return 0
        fi
        sleep 0.1
    done
    fail 'the watchdogs do not connect'
}

cat >"$tmp/scan.py" <<'PY'
"""Connects to every port in the range at an address; whatever is open gets garbage."""
import os, socket, sys
found = 0
for port in range(int(sys.argv[2]), int(sys.argv[3]) + 1):
    for what in (os.urandom(5000), b"GET / HTTP/1.0\r\n\r\n" * 3, b""):
        try:
            with socket.create_connection((sys.argv[1], port), 1) as s:
                found += 1
                s.sendall(what)
                if what:
                    while s.recv(1000):
                        pass
        except ConnectionRefusedError:
            break
        except OSError:
            pass
print(found)
PY
read -r network < <(sed -n 's/^net=//p' "$tmp/cluster/cluster")

# All connected, whatever a scanner does meanwhile.
begin scanned 3 -N 3 -n 3
# shellcheck disable=SC2086 # two numbers
found=$(inside n1 python3 "$tmp/scan.py" "$network.10" $ports) || fail 'the scanner failed'
((found >= 3)) || fail "the scanner found $found connections: nobody listens in $ports"
for host in n0 n1 n2; do
    pid=$(watchdog scanned "$host")
    [[ -n $pid ]] || fail "no watchdog of $host"
    [[ $(stat -c %U "/proc/$pid") == "$user" ]] || fail "the watchdog of $host is not the user's"
    ! tr '\0' '\n' <"/proc/$pid/cmdline" | grep -E '^[0-9a-f]{32}' ||
        fail 'the secret is in the arguments'
done
finish scanned 3
says scanned n0 'p["connected"] == [1, 2] and p["all"] and p["munge"] and not p["lost"]'
says scanned n0 "p['refused'] >= $found and p['refusal'] == 'not a watchdog'"
says scanned n1 'p["connected"] == [0] and p["all"] and not p["lost"] and not p["problem"]'
says scanned n2 'p["connected"] == [0] and p["all"] and not p["lost"] and not p["problem"]'
grep -q '^  "complete": true' scanned/run.json || fail "not complete: $(cat scanned/run.json)"
! grep -l PARATRACE_PEERS scanned.env.* || fail 'the tasks see the secret'

# Nor do their prologs and epilogs, which run without the tracer.
printf '#!/bin/sh\nenv >%s/log.$1.$SLURM_PROCID\n' "$PWD" >log
sed 's/\$1/prolog/' log >prolog && sed 's/\$1/epilog/' log >epilog && chmod 755 prolog epilog
begin logged 2 -N 2 -n 2 --task-prolog="$PWD/prolog" --task-epilog="$PWD/epilog"
finish logged 2
for file in log.{prolog,epilog}.{0,1}; do
    grep -q '^SLURM_' "$file" || fail "no environment in $file"
    ! grep PARATRACE_PEERS "$file" || fail "the secret is in $file"
done

# Whatever --export says, and in whatever order the hosts have the tasks.
begin none 2 -N 2 -n 2 --export=NONE
joined 1
finish none 2
says none n0 'p["connected"] == [1] and p["all"]'
printf '%s\n' n2 n0 n1 >hosts
SLURM_HOSTFILE=hosts begin order 3 -n 3 --distribution=arbitrary
joined 2
finish order 3
for host in n0 n1 n2; do says order "$host" 'p["all"]'; done

# A watchdog is killed: the hub sees it, and tells the others.
begin killed 3 -N 3 -n 3
joined 2
kill -9 "$(watchdog killed n1)" || fail 'no watchdog to kill'
sleep 1
finish killed 3
says killed n0 'p["connected"] == [1, 2] and p["lost"] == [1] and "host 1: " in p["problem"]'
says killed n2 'p["connected"] == [0] and p["lost"] == [1]'
grep -q 'hosts not connected: host 1: ' killed.err || fail "the user is not told: $(cat killed.err)"

# The hub itself is killed.
begin headless 3 -N 3 -n 3
joined 2
kill -9 "$(watchdog headless n0)" || fail 'no watchdog to kill'
sleep 1
finish headless 3
says headless n1 'p["lost"] == [0]'
says headless n2 'p["lost"] == [0]'

# A cut cable: no end of the connection is seen, and yet it is missed.
bridge=$(sed -n 's/^bridge=//p' "$tmp/cluster/cluster")
begin cut 3 -N 3 -n 3
joined 2
ip link set "${bridge}n2" down || fail 'cannot cut the cable'
sleep 7
ip link set "${bridge}n2" up
finish cut 3
says cut n0 'p["lost"] == [2] and p["problem"] == "host 2: silent for 5 s"'
says cut n1 'p["lost"] == [2]'
says cut n2 'p["lost"] == [0]'

# No secret: the trace is made, and the user told why nobody was held.
cat >"$tmp/alone.py" <<'PY'
import socket, subprocess, sys
ours, theirs = socket.socketpair()
p = subprocess.Popen([sys.argv[1], "--control", str(theirs.fileno()), "--socket",
                      "paratrace.test.%d" % theirs.fileno(), "--out", "alone", "--host", "n0",
                      "--nhosts", "2", "--spec", "throttle:0"], pass_fds=[theirs.fileno()])
theirs.close()
assert ours.recv(1) == b"R"
ours.sendall(b"peers not-a-secret n0\npeers 0123 n0\nfinish\n")
print(ours.makefile().read())
PY
python3 "$tmp/alone.py" "$top_builddir/watchdog/ptwatchd" >alone.log 2>&1
grep -q '; hosts not connected: no secret has come from srun' alone.log ||
    fail "without a secret: $(cat alone.log)"
