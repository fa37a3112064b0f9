#!/bin/bash
# Trace, merge, replay, and trace the replay: the same I/O must come out again.
# Environment: top_builddir, top_srcdir.  Exit status: 0, 77 (skipped) or 1.

build=$(cd "${top_builddir:-.}" && pwd) || exit 1
src=$(cd "${top_srcdir:-.}" && pwd) || exit 1
ptwatchd=$build/watchdog/ptwatchd
tracer=$build/preload/libparatrace.so

skip() {
    echo "skipped: $*"
    exit 77
}

for program in mpirun python3 tar; do
    command -v $program >/dev/null || skip "no $program"
done
for built in "$ptwatchd" "$build/replay/ptreplay" "$build/hdf5store/ptmerge"; do
    [ -x "$built" ] || skip "$built is not built"
done
[ -e "$tracer" ] || skip "the tracer is not built"

tmp=$(mktemp -d "${TMPDIR:-/tmp}/t-roundtrip.XXXXXX") || exit 1
tmp=$(cd "$tmp" && pwd -P)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
failures=0

export OMPI_MCA_mpi_yield_when_idle=1
unset "${!SLURM_@}" "${!PMIX_@}" "${!OMPI_COMM_@}"
mpirun=(mpirun --oversubscribe -n 1)
[ "$(id -u)" -ne 0 ] || mpirun+=(--allow-run-as-root)

# Prints the I/O of a store, line by line, in a form in which the program and its replay
# are alike.  What the replayer does in another way, and so is brought to one form:
#
#   - names are walked, directory by directory: those O_PATH opens are left out, and with
#     them the calls that fail there already (a stat of a file that is missing);
#   - streams and directories are opened as descriptors, which then get their stream;
#   - a line is read as long as it was: only the results of reads are compared;
#   - truncate is open, ftruncate, close; scandir is open, readdir, close;
#   - remove, unlink, rmdir and unlinkat are one; so are the forms of stat and of statfs;
#   - a change of owner is a stat; attributes are only read, those of names by a way that
#     is not traced;
#   - a directory that is not empty is not tried to be removed;
#   - the targets of links that leave the root are others.
cat >sequence.py <<'END'
import errno, json, os, re, sys

store, calls_def, exe, root = sys.argv[1:5]
O_PATH, O_DIRECTORY, AT_REMOVEDIR = 0o10000000, os.O_DIRECTORY, 0x200
IGNORED = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_NOCTTY | 0o100000
row = re.compile(r"^(?:CALL|RES|ODD|NUM|HAND|MARK)\((\w+), *\w+, *(\w+)", re.M)
replay = dict(row.findall(open(calls_def).read()))
ONE = {"FOPEN": "OPEN", "OPENDIR": "OPEN", "LSTAT": "STAT", "FSTAT": "STAT", "FSTATFS": "STATFS",
       "UNLINK": "REMOVE", "UNLINKAT": "REMOVE", "RMDIR": "REMOVE", "FCHMOD": "CHMOD"}
MAY_FAIL_EARLY = {"STAT", "STATFS", "ACCESS", "CHMOD", "UTIME", "TRUNCATENAME", "SCANDIR"}


def name(e, key):
    path = e.get(key)
    if path is None or not os.path.isabs(path):
        return None
    path = os.path.normpath(path)
    if root == "/":
        return path
    if path == root or not path.startswith(root + "/"):
        return None
    path = path[len(root):]
    return None if os.path.basename(path).startswith(".ptreplay") else path


def values(op, e):
    if op == "OPEN":
        flags = e.get("flags", 0)
        mode = oct(e.get("mode", 0)) if flags & os.O_CREAT else ""
        return [hex(flags & ~IGNORED), mode]
    if op in ("FREAD", "READLINK", "READDIR", "FATTRIBUTE"):
        return []
    if op in ("REMOVE", "LINK", "RENAME", "SETVBUF"):
        return [name(e, "path2")] if "path2" in e else []
    keys = ["len", "off", "off2", "whence"]
    if op in ("ACCESS", "ADVISE", "SYNCRANGE", "MMAP"):
        keys.append("flags")
    if op in ("MKDIR", "CHMOD"):
        keys.append("mode")
    return [f"{k}={e[k]}" for k in keys if k in e]


def result(op, e):
    if e.get("errno"):
        return os.strerror(e["errno"])
    return e["ret"] if op in ("READ", "WRITE", "PREAD", "PWRITE", "FREAD", "FWRITE", "SEEK",
                              "COPYRANGE", "SENDFILE") else "ok"


lines = []
walked = set()
for node in json.load(os.popen(f"'{os.environ['build']}/hdf5store/ptdump' --json '{store}'"))["nodes"]:
    if os.path.basename(node["exe"]) != exe:
        continue
    for e in node["events"]:
        op = replay.get(e["call"], "NONE")
        if e["call"] in ("exit", "inherited") or op in ("NONE", "MUNMAP", "MSYNC"):
            continue
        if "chown" in e["call"]:
            op = "STAT"
        if op == "ATTRIBUTE":
            continue
        if op == "OPEN" and e.get("flags", 0) & O_PATH:
            if not e.get("errno"):
                walked.add(e["ret"])
            continue
        if op == "CLOSE" and e["fd"] in walked:
            walked.discard(e["fd"])
            continue
        if e["call"] == "fstat" and e["fd"] in walked:
            continue
        if op in ("OPEN", "FOPEN", "OPENDIR"):
            walked.discard(e["ret"])
        file = name(e, "file")
        if file is None:
            continue
        op = ONE.get(op, op)
        if op in ("PREAD", "PWRITE") and e.get("off") == -1 and not e.get("errno"):
            op = op[1:]  # at the file's own position
            del e["off"]
        if e.get("errno") and (op in MAY_FAIL_EARLY or e["errno"] == errno.ENOTEMPTY):
            continue
        def put(op, *more):
            lines.append(" ".join([op, file] + [str(m) for m in more]))
        if op == "TRUNCATENAME":
            put("OPEN", hex(os.O_WRONLY), "", "ok")
            put("TRUNCATE", f"len={e['len']}", "ok")
            put("CLOSE", "ok")
        elif op == "SCANDIR":
            put("OPEN", hex(0), "", "ok")
            put("READDIR", "ok")
            put("CLOSE", "ok")
        else:
            put(op, *values(op, e), result(op, e))

out = []
for i, line in enumerate(lines):
    again = out and out[-1] == line
    if again and line.startswith("READDIR"):
        continue
    # a directory that is removed: tried as a file first
    if line.startswith("REMOVE") and line.endswith(os.strerror(errno.EISDIR)) and i + 1 < len(lines) and \
            lines[i + 1].split()[:2] == line.split()[:2]:
        continue
    out.append(line)
# what was open at the end is closed when the replayer ends
print("\n".join(out))
END
export build

traced() { # RUNDIR COMMAND...
    local out=$1
    shift
    "$ptwatchd" --preload "$tracer" --out "$out" -- "$@"
}

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# round NAME COMMAND...: in a directory of its own, made by setup_NAME
round() {
    local name=$1 exe
    shift
    exe=$(basename "$1")
    mkdir -p "$tmp/$name/root"
    (cd "$tmp/$name" && mkdir w && cd w && "setup_$name") || { fail "$name: setup"; return; }
    # through a pipe: a log file would be part of the trace
    if ! (set -o pipefail && cd "$tmp/$name/w" && traced ../run "$@" 2>&1 | cat >../log); then
        fail "$name: the traced program"
        cat "$tmp/$name/log"
        return
    fi
    cd "$tmp/$name" || return
    "$build/hdf5store/ptmerge" -o store.h5 run >log 2>&1 || { fail "$name: merge"; cat log; return; }
    "${mpirun[@]}" "$build/replay/ptreplay" --root root --prepare-only store.h5 >log 2>&1 </dev/null ||
        { fail "$name: prepare"; cat log; return; }
    # By walking, so that an open is an open in both.
    PTREPLAY_WALK=1 timeout 120 "${mpirun[@]}" "$ptwatchd" --preload "$tracer" --out again -- \
        "$build/replay/ptreplay" --mode afap --json --no-prepare --root "$tmp/$name/root" store.h5 \
        >result.json 2>log </dev/null || { fail "$name: replay"; cat log; return; }
    python3 -c 'import json; r = json.load(open("result.json"))
raise SystemExit(r["errors"] + r["mismatches"] > 0)' ||
        { fail "$name: differences"; cat log; }
    "$build/hdf5store/ptmerge" -o again.h5 again >log 2>&1 || { fail "$name: merge"; cat log; return; }
    python3 "$tmp/sequence.py" store.h5 "$src/common/calls.def" "$exe" / >first
    python3 "$tmp/sequence.py" again.h5 "$src/common/calls.def" ptreplay "$PWD/root" >second
    # files that the program left open are closed at the replayer's end
    while [ "$(wc -l <second)" -gt "$(wc -l <first)" ] && [[ $(tail -n 1 second) == CLOSE* ]]; do
        sed -i '$d' second
    done
    [ -s first ] || { fail "$name: nothing was traced"; return; }
    if diff -u first second >diff; then
        echo "ok   $name ($(wc -l <first) calls)"
    else
        fail "$name: another sequence of calls"
        head -n 40 diff
    fi
    cd "$tmp" || exit 1
}

setup_calls() { :; }
setup_many() {
    head -c 10000 /dev/zero >old && mkdir there && touch there/x
}
setup_copy() {
    mkdir -p from/a/b from/empty && head -c 300000 /dev/urandom >from/a/big &&
        echo text >from/a/b/small && touch from/none && ln -s a/b/small from/link
}
setup_pack() { setup_copy; }

round calls "$build/tests/tracer/calls"
if [ -x "$build/tests/replay/manycalls" ]; then
    round many "$build/tests/replay/manycalls"
fi
round copy cp -r from to
round pack tar cf packed.tar from

[ $failures -eq 0 ] && echo "all passed"
exit $((failures > 0))
