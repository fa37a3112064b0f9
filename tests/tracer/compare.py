#!/usr/bin/env python3
"""Compares a trace with what strace saw of the very same run.

    compare.py [--below DIR] [--verbose] DUMP STRACE...

DUMP is the output of `ptdump --json`, STRACE that of `strace -f -i -y -s 0`.  The trace
holds what the program asked of libc, strace what libc asked of the kernel:

1. Calls that libc hands on as they are (open, pread, rename, ...) are compared thread
   by thread, in their order, with name, length, offset and result.
2. What is left in strace must be the work of a library call in the trace (fopen,
   readdir, fwrite, ...) on the same file.  The bytes written must add up; what a
   stream reads ahead may be more than the program asked for.
3. What is left then must be one of the differences in KNOWN.

The rest is reported: "missing" was seen by strace only, "phantom" by the trace only.
"""
import argparse
import bisect
import collections
import errno
import fnmatch
import json
import os
import re
import sys

# Files that are not traced unless asked for, as the watchdog's list has them: the first
# match decides.
FILTERS = ("+/dev/shm/*", "-/dev/*", "-/proc/*", "-/sys/*", "-*.so", "-*.so.*",
           "-/usr/lib/locale/*", "-/usr/share/locale/*", "-*/gconv/*", "-/etc/ld.so*",
           "-*/ompi.*")

# Differences that have to be, as (calls, files, programs, reason); all globs.  "less
# written", "more read", "nothing read": the bytes that streams moved, as the trace has it.
KNOWN = (
    ("*", "/etc/nsswitch.conf", "*", "libc's own: the name service, opened inside libc"),
    ("*", "/etc/passwd", "*", "libc's own: getpwuid and the like"),
    ("*", "/etc/group", "*", "libc's own: getgrgid and the like"),
    ("*", "/etc/hosts", "*", "libc's own: the resolver"),
    ("*", "/etc/host.conf", "*", "libc's own: the resolver"),
    ("*", "/etc/resolv.conf", "*", "libc's own: the resolver"),
    ("*", "/etc/services", "*", "libc's own: getservbyname"),
    ("*", "/etc/localtime", "*", "libc's own: tzset"),
    ("*", "/usr/share/zoneinfo/*", "*", "libc's own: tzset"),
    ("*", "/run/nscd/*", "*", "libc's own: the name service cache"),
    ("*", "/var/run/nscd/*", "*", "libc's own: the name service cache"),
    ("*", "*/locale.alias", "*", "libc's own: setlocale"),
    ("*", "*/LC_MESSAGES*", "*", "libc's own: gettext"),
    ("stat", "/", "*", "libc's own: the name service asks whether the root has changed"),
    ("less written", "*", "wc", "putchar_unlocked is expanded in the program: no call"),
    ("less written", "*", "readlink", "putchar_unlocked is expanded in the program: no call"),
    ("nothing read", "*", "git", "getc_unlocked is expanded in the program: no call"),
    ("more read", "*.s", "as", "ungetc gives a character back, which is then read again"),
    ("*", "*", "* (between vfork and exec)",
     "a child of vfork or posix_spawn runs in its parent's memory: not the parent's calls"),
)

# Library calls that do several system calls, or none.
OPENERS = {"fopen", "freopen", "opendir", "scandir", "scandirat", "tmpfile", "mkstemp",
           "mkostemp", "mkstemps", "mkostemps", "mkdtemp", "remove", "fchmodat"}
READERS = re.compile(r"(fread|f?gets|f?getc|getchar|getw|getline|getdelim|v?f?scanf)(_unlocked)?$|"
                     r"f?getw(c|s|char)(_unlocked)?$|aio_read$")
WRITERS = re.compile(r"(fwrite|f?puts|f?putc|putchar|putw|v?f?printf)(_unlocked)?$|"
                     r"f?putw(c|s|char)(_unlocked)?$|aio_write$")
CLOSERS = {"fclose", "closedir", "freopen", "scandir", "scandirat", "fchmodat"}
ANY_FD = {"scandir", "scandirat", "fchmodat", "tmpfile"}  # the trace does not tell which
NO_STREAM = {"mkstemp", "mkostemp", "mkstemps", "mkostemps", "mkdtemp", "remove"}
SEEKERS = {"fseek", "fseeko", "rewind", "fsetpos", "ungetc"}
MARKS = {"exit", "inherited", "identity", "exec", "blind", "close_range", "closefrom", "munmap", "msync",
         "aio_return", "lio_listio", "getcwd", "fcntl"}

O_MASK = (os.O_ACCMODE | os.O_CREAT | os.O_EXCL | os.O_TRUNC | os.O_APPEND | os.O_DIRECTORY |
          os.O_NOFOLLOW)
WHENCE = {"SEEK_SET": 0, "SEEK_CUR": 1, "SEEK_END": 2, "SEEK_DATA": 3, "SEEK_HOLE": 4}

# An operation that both sides can show: what must be equal is in `key`, a tuple that
# begins with (call, file).
Op = collections.namedtuple("Op", "key fd read written")


def op(call, path, *more, fd=None, read=0, written=0):
    return Op((call, path) + more, fd, read, written)


def is_traced(path):
    if not path or not path.startswith("/") or path.startswith(("/memfd:", "/SYSV", "/[aio]")):
        return False
    for rule in FILTERS:
        if fnmatch.fnmatchcase(path, rule[1:]):
            return rule[0] == "+"
    return True


class Names:
    """A file keeps its identity when it is renamed: all its names count as one."""

    def __init__(self):
        self.parent = {}
        self.cache = {}

    def root(self, name):
        while name in self.parent:
            name = self.parent[name]
        return name

    def join(self, old, new):
        a, b = self.root(old), self.root(new)
        if a != b:
            self.parent[a] = b
            self.cache.clear()

    def one(self, path):
        """The name that stands for all of them, with directories renamed above it."""
        if path not in self.cache:
            done = ""
            for part in path.split("/")[1:]:
                done = self.root(done + "/" + part)
            self.cache[path] = done
        return self.cache[path]


def absolute(directory, path, follow=False):
    """As the kernel would see it; the last component is a link's own name."""
    if path is None or directory is None and not path.startswith("/"):
        return None
    full = os.path.normpath(os.path.join(directory or "/", path))
    if follow:
        return os.path.realpath(full)
    return os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))


# ---- strace ---------------------------------------------------------------------------

LINE = re.compile(r"(\d+) +(?:\[([0-9a-f?]+)\] )?(.*)")
CALL = re.compile(r"(\w+)\((.*)\) += (0x[0-9a-f]+|-?\d+|\?)(.*)$", re.S)
FD = re.compile(r"(-?\d+|AT_FDCWD)(?:<(.*)>(?:\(deleted\))?)?$", re.S)


def split_args(text):
    args, depth, quoted, start, i = [], 0, False, 0, 0
    while i < len(text):
        c = text[i]
        if quoted:
            if c == "\\":
                i += 1
            elif c == '"':
                quoted = False
        elif c == '"':
            quoted = True
        elif c in "([{<":
            depth += 1
        elif c in ")]}" or c == ">" and text[i - 1] not in "-=":
            depth -= 1
        elif c == "," and depth == 0:
            args.append(text[start:i].strip())
            start = i + 1
        i += 1
    args.append(text[start:].strip())
    return args


def unquote(text):
    if not text.startswith('"'):
        return None
    text = text[1:text.rindex('"')]
    return text.encode("latin-1", "replace").decode("unicode_escape").encode(
        "latin-1", "replace").decode("utf-8", "replace")


class Syscall:
    def __init__(self, tid, ip, match):
        self.tid, self.ip, self.name = tid, ip, match.group(1)
        self.args = split_args(match.group(2))
        ret, rest = match.group(3), match.group(4)
        self.ret = None if ret == "?" else int(ret, 0)
        word = rest.split()[0] if rest.split() else ""
        if self.ret == -1 and word in dir(errno):
            self.ret = -getattr(errno, word)

    def fd(self, i):
        m = FD.match(self.args[i])
        return int(m.group(1)) if m and m.group(1) != "AT_FDCWD" else -100

    def fd_path(self, i):
        m = FD.match(self.args[i])
        path = m.group(2) if m else None
        return re.sub(r"<(char|block) [^>]*>$|\(deleted\)$", "", path) if path else None

    def number(self, i):
        try:
            return int(self.args[i].strip("[]"), 0)
        except (ValueError, IndexError):
            return None

    def path(self, i, directory=None, follow=False):
        """The name in argument i, relative to the descriptor in argument `directory`."""
        name = unquote(self.args[i])
        base = self.cwd if directory is None else self.fd_path(directory)
        if name == "" and directory is not None:
            return base
        return absolute(base, name, follow)

    cwd = None  # of the process; what a relative name is relative to


def flags_of(text):
    value = 0
    for flag in text.split("|"):
        value |= getattr(os, flag, 0)
    return value & O_MASK


# Which arguments of a system call are what.  Names: (canonical, (index, index of the
# descriptor it is relative to), ...).
NAME_CALLS = {
    "unlink": ("unlink", (0, None)), "rmdir": ("rmdir", (0, None)),
    "mkdir": ("mkdir", (0, None)), "mkdirat": ("mkdir", (1, 0)),
    "rename": ("rename", (0, None), (1, None)), "renameat": ("rename", (1, 0), (3, 2)),
    "renameat2": ("rename", (1, 0), (3, 2)),
    "link": ("link", (0, None), (1, None)), "linkat": ("link", (1, 0), (3, 2)),
    "symlink": ("symlink", (1, None)), "symlinkat": ("symlink", (2, 1)),
    "chmod": ("chmod", (0, None)), "fchmodat": ("chmod", (1, 0)),
    "chown": ("chown", (0, None)), "lchown": ("chown", (0, None)),
    "fchownat": ("chown", (1, 0)), "truncate": ("truncate", (0, None)),
    "mknod": ("mknod", (0, None)), "mknodat": ("mknod", (1, 0)),
    "utime": ("utime", (0, None)), "utimes": ("utime", (0, None)),
    "futimesat": ("utime", (1, 0)), "chdir": ("chdir", (0, None)),
    "stat": ("stat", (0, None)), "lstat": ("stat", (0, None)),
    "newfstatat": ("stat", (1, 0)), "statx": ("stat", (1, 0)),
    "access": ("access", (0, None)), "faccessat": ("access", (1, 0)),
    "faccessat2": ("access", (1, 0)), "readlink": ("readlink", (0, None)),
    "readlinkat": ("readlink", (1, 0)), "statfs": ("statfs", (0, None)),
    "setxattr": ("setxattr", (0, None)), "lsetxattr": ("setxattr", (0, None)),
    "getxattr": ("getxattr", (0, None)), "lgetxattr": ("getxattr", (0, None)),
    "listxattr": ("listxattr", (0, None)), "llistxattr": ("listxattr", (0, None)),
    "removexattr": ("removexattr", (0, None)), "lremovexattr": ("removexattr", (0, None)),
}
# On a descriptor: (canonical, indices of numbers that must agree).
FD_CALLS = {
    "fsync": ("fsync",), "fdatasync": ("fdatasync",), "ftruncate": ("ftruncate", 1),
    "fallocate": ("fallocate",), "fadvise64": ("fadvise", 1), "flock": ("flock",),
    "fchmod": ("chmod",), "fchown": ("chown",), "fstat": ("fstat",), "fstatfs": ("statfs",),
    "getdents64": ("getdents",), "fchdir": ("chdir",), "syncfs": ("syncfs",),
    "sync_file_range": ("sync_file_range",), "fsetxattr": ("setxattr",),
    "fgetxattr": ("getxattr",), "flistxattr": ("listxattr",), "fremovexattr": ("removexattr",),
}
# Data: (canonical, direction, index of length, index of offset).
DATA_CALLS = {
    "read": ("read", "r", 2, None), "write": ("write", "w", 2, None),
    "pread64": ("pread", "r", 2, 3), "pwrite64": ("pwrite", "w", 2, 3),
    "readv": ("readv", "r", None, None), "writev": ("writev", "w", None, None),
    "preadv": ("preadv", "r", None, 3), "pwritev": ("pwritev", "w", None, 3),
    "preadv2": ("preadv", "r", None, 3), "pwritev2": ("pwritev", "w", None, 3),
}


def bytes_of(direction, ret):
    n = max(ret or 0, 0)
    return {"read": n if direction == "r" else 0, "written": n if direction == "w" else 0}


def kernel_op(c):
    """What a system call is in the terms of the comparison; None: not compared."""
    if c.ret is None:
        return None
    if c.name in ("open", "creat", "openat", "openat2"):
        at = 1 if c.name.startswith("openat") else 0
        flags = "O_WRONLY|O_CREAT|O_TRUNC" if c.name == "creat" else c.args[at + 1]
        if c.name == "openat2":
            flags = re.search(r"flags=([A-Z_|]*)", flags).group(1)
        return op("open", c.path(at, 0 if at else None), flags_of(flags), c.ret)
    if c.name in ("unlinkat",):
        call = "rmdir" if "AT_REMOVEDIR" in c.args[2] else "unlink"
        return op(call, c.path(1, 0), c.ret)
    if c.name == "faccessat2" and c.args[1].endswith('/"') and c.args[2:] == ["F_OK", "AT_EACCESS"]:
        return op("dircheck", c.path(1, 0))  # what realpath does at a ".." and a final slash
    if c.name in ("utimensat",):
        if c.args[1] == "NULL":
            return op("utime", c.fd_path(0), c.ret, c.fd(0))
        return op("utime", c.path(1, 0), c.ret)
    if c.name in NAME_CALLS:
        call, *places = NAME_CALLS[c.name]
        paths = [c.path(i, d) for i, d in places]
        if call == "stat" and unquote(c.args[places[0][0]]) in ("", None):
            return op("fstat", c.fd_path(0), min(c.ret, 0), c.fd(0), fd=c.fd(0))
        return op(call, *paths, c.ret if c.ret < 0 or call == "readlink" else 0)
    if c.name in DATA_CALLS:
        call, way, length, off = DATA_CALLS[c.name]
        path = c.fd_path(0)
        more = [c.number(i) for i in (length, off) if i is not None]
        return op(call, path, *more, c.ret, c.fd(0), fd=c.fd(0), **bytes_of(way, c.ret))
    if c.name in FD_CALLS:
        call, *numbers = FD_CALLS[c.name]
        return op(call, c.fd_path(0), *[c.number(i) for i in numbers], min(c.ret, 0), c.fd(0),
                  fd=c.fd(0))
    if c.name == "close":
        return op("close", c.fd_path(0), c.fd(0), fd=c.fd(0))
    if c.name in ("dup", "dup2", "dup3") or c.name == "fcntl" and "F_DUPFD" in c.args[1]:
        return op("dup", c.fd_path(0), c.ret)
    if c.name == "lseek":
        return op("lseek", c.fd_path(0), c.number(1), WHENCE.get(c.args[2]), c.ret, fd=c.fd(0))
    if c.name == "fcntl" and re.search("SETLK", c.args[1]):
        return op("lock", c.fd_path(0), min(c.ret, 0))
    if c.name == "mmap" and c.fd(4) >= 0:
        return op("mmap", c.fd_path(4), c.number(1), c.number(5), min(c.ret, 0))
    if c.name in ("sendfile", "copy_file_range", "splice"):
        source, target = (1, 0) if c.name == "sendfile" else (0, 2)
        a, b = c.fd_path(source), c.fd_path(target)
        return op(c.name, a if is_traced(a) else b, c.ret)
    return None


class Strace:
    """The system calls of a run, but for the loader's and the tracer's own."""

    def __init__(self, files):
        self.ops = collections.defaultdict(list)  # tid -> [Op]
        self.vforked = set()                      # children that borrow their parent's memory
        self.process = {}                         # tid -> pid
        self.programs = {}                        # pid -> base name, of its last exec
        calls = [c for f in files for c in self.read(f)]
        parents = self.read_families(calls)
        regions, loaders, self.cwds = {}, {}, {}
        for c in calls:
            pid = self.process.setdefault(c.tid, c.tid)
            if pid not in regions:
                above = parents.get(pid)
                regions[pid] = list(regions.get(above, []))
                loaders[pid] = loaders.get(above)
                self.programs[pid] = self.programs.get(above, "?")
                self.cwds[pid] = self.cwds.get(above)
            self.step(c, pid, regions, loaders)

    @staticmethod
    def read(name):
        pending = {}
        with open(name, encoding="latin-1") as f:
            for line in f:
                m = LINE.match(line.rstrip("\n"))
                if not m or m.group(3).startswith(("---", "+++")):
                    continue
                tid, ip, text = int(m.group(1)), m.group(2), m.group(3)
                if text.endswith("<unfinished ...>"):
                    pending[tid] = (ip, text[:-len("<unfinished ...>")].rstrip())
                    continue
                resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", text, re.S)
                if resumed:
                    ip, begun = pending.pop(tid, (ip, ""))
                    text = begun + resumed.group(1)
                call = CALL.match(text)
                if call:
                    yield Syscall(tid, int(ip, 16) if ip and "?" not in ip else 0, call)

    def read_families(self, calls):
        parents = {}
        above = {}
        for c in calls:
            if c.name in ("clone", "clone3", "fork", "vfork") and c.ret and c.ret > 0:
                text = " ".join(c.args)
                above[c.ret] = (c.tid, "CLONE_THREAD" in text)
                if c.name == "vfork" or "CLONE_VFORK" in text:
                    self.vforked.add(c.ret)

        def pid_of(tid):
            while tid in above and above[tid][1]:
                tid = above[tid][0]
            return tid

        for tid, (parent, thread) in above.items():
            self.process[tid] = pid_of(tid)
            if not thread:
                parents[tid] = pid_of(parent)
        return parents

    def step(self, c, pid, regions, loaders):
        if c.name == "execve" and c.ret == 0:
            regions[pid], loaders[pid] = [], None
            self.programs[pid] = os.path.basename(unquote(c.args[0]) or "?")
            self.vforked.discard(pid)
            return
        if loaders[pid] is None:
            loaders[pid] = c.ip  # the first call of a new program is the loader's
        who = self.who(c.ip, regions[pid], loaders[pid])
        # The calls that take a directory's descriptor tell the current one; others do not.
        if c.args[0].startswith("AT_FDCWD<"):
            self.cwds[pid] = c.fd_path(0)
        c.cwd = self.cwds[pid]
        if c.name == "mmap" and c.fd(4) >= 0 and c.ret > 0:
            regions[pid].insert(0, (c.ret, c.ret + (c.number(1) or 0), c.fd_path(4) or ""))
        if who in ("loader", "tracer"):
            return
        o = kernel_op(c)
        who = ("before exec", c.tid) if pid in self.vforked else c.tid
        if c.name in ("chdir", "fchdir") and c.ret == 0:
            self.cwds[pid] = c.path(0, None, True) if c.name == "chdir" else c.fd_path(0)
        if o and is_traced(o.key[1]):
            self.ops[who].append(o)

    @staticmethod
    def who(ip, regions, loader):
        for begin, end, path in regions:
            if begin <= ip < end:
                return "tracer" if "libparatrace.so" in path else "library"
        return "loader" if abs(ip - loader) < 0x40000 else "program"


# ---- the trace -------------------------------------------------------------------------

def base_name(call):
    name = call
    for prefix in ("__isoc99_", "__isoc23_", "__", "_IO_"):
        if name.startswith(prefix):
            name = name[len(prefix):]
            break
    name = re.sub(r"_chk$", "", name)
    name = re.sub(r"64v2$", "v2", name)
    name = re.sub(r"64(_2|_r)?$", "", name)
    return re.sub(r"^(open|openat)_2$", r"\1", name)


TRACE_NAMES = {
    "unlink": "unlink", "rmdir": "rmdir", "mkdir": "mkdir", "mkdirat": "mkdir",
    "rename": "rename", "renameat": "rename", "renameat2": "rename", "link": "link",
    "linkat": "link", "symlink": "symlink", "symlinkat": "symlink", "chmod": "chmod",
    "fchmodat": "chmod", "lchmod": "chmod", "chown": "chown", "lchown": "chown",
    "fchownat": "chown", "truncate": "truncate", "mknod": "mknod", "mknodat": "mknod",
    "xmknod": "mknod", "xmknodat": "mknod", "mkfifo": "mknod", "mkfifoat": "mknod",
    "utime": "utime", "utimes": "utime", "lutimes": "utime", "futimesat": "utime",
    "utimensat": "utime", "chdir": "chdir", "stat": "stat", "lstat": "stat", "xstat": "stat",
    "lxstat": "stat", "fstatat": "stat", "fxstatat": "stat", "statx": "stat",
    "access": "access", "faccessat": "access", "eaccess": "access", "euidaccess": "access",
    "readlink": "readlink", "readlinkat": "readlink", "statfs": "statfs", "statvfs": "statfs",
    "setxattr": "setxattr", "lsetxattr": "setxattr", "getxattr": "getxattr",
    "lgetxattr": "getxattr", "listxattr": "listxattr", "llistxattr": "listxattr",
    "removexattr": "removexattr", "lremovexattr": "removexattr",
}
TRACE_FDS = {
    "fsync": "fsync", "fdatasync": "fdatasync", "fallocate": "fallocate",
    "posix_fallocate": "fallocate", "flock": "flock", "fchmod": "chmod", "fchown": "chown",
    "fstat": "fstat", "fxstat": "fstat", "fstatfs": "statfs", "fstatvfs": "statfs",
    "getdents": "getdents", "fchdir": "chdir", "syncfs": "syncfs",
    "sync_file_range": "sync_file_range", "fsetxattr": "setxattr", "fgetxattr": "getxattr",
    "flistxattr": "listxattr", "fremovexattr": "removexattr", "futimens": "utime",
    "futimes": "utime",
}
TRACE_DATA = {
    "read": ("read", "r"), "write": ("write", "w"), "pread": ("pread", "r"),
    "pwrite": ("pwrite", "w"), "readv": ("readv", "r"), "writev": ("writev", "w"),
    "preadv": ("preadv", "r"), "pwritev": ("pwritev", "w"), "preadv2": ("preadv", "r"),
    "pwritev2": ("pwritev", "w"),
}


def is_copy(e):
    return e["base"] in ("dup", "dup2", "dup3") or e["base"] == "fcntl" and e.get("cmd") in (0, 1030)


def is_lock(e):
    return e["base"] == "lockf" or e["base"] == "fcntl" and e.get("cmd") in (6, 7, 37, 38)


class Process:
    """One program in one process: its descriptors and directory, as time goes by."""

    def __init__(self, cwd):
        self.fds = collections.defaultdict(lambda: ([], []))  # fd -> (times, paths)
        self.cwds = ([0], [cwd])

    def set_fd(self, fd, when, path):
        times, paths = self.fds[fd]
        i = bisect.bisect_right(times, when)
        times.insert(i, when)
        paths.insert(i, path)

    def fd_path(self, fd, when):
        times, paths = self.fds[fd]
        i = bisect.bisect_right(times, when)
        return paths[i - 1] if i else None

    def cwd(self, when):
        return self.cwds[1][bisect.bisect_right(self.cwds[0], when) - 1]


def unfolded(e):
    """An event, and before it the looks in vain that it stands for."""
    if e["class"] == "io" and "polls" in e:
        missed = dict(e, ret=-1, errno=e.get("errno", errno.ENOENT))
        yield from (dict(missed) for _ in range(e["polls"]))
    yield e


class Trace:
    def __init__(self, name):
        with open(name, encoding="utf-8", errors="surrogateescape") as f:
            dump = json.load(f)
        self.ops = collections.defaultdict(list)        # tid -> [Op], direct calls
        self.opened = collections.defaultdict(collections.Counter)  # pid -> path -> openers
        self.closed = collections.defaultdict(collections.Counter)  # pid -> path -> closers
        self.streams = collections.defaultdict(set)     # pid -> (path, fd) used by the library
        self.stream_bytes = collections.defaultdict(lambda: [0, 0])  # (pid, path)
        self.resolved = collections.defaultdict(set)    # pid -> names given to realpath
        self.asked = collections.defaultdict(collections.Counter)     # pid -> path, euidaccess
        self.used_fds = collections.defaultdict(set)    # pid -> descriptors
        self.sought = set()                             # (pid, path) of streams
        self.unknown = collections.Counter()
        self.process = {}
        self.mpi = collections.Counter()
        nodes, processes = {}, {}
        for item in dump["items"]:
            if item["item"] == "node":
                key = tuple((item["node"] + ".0.0").split(".")[:2])
                nodes[item["node"]] = (key, item["pid"], item["tid"])
                self.process[item["tid"]] = item["pid"]
                processes.setdefault(key, Process(item["cwd"]))
        events = [e for i in dump["items"] if i["item"] == "event" and i["node"] in nodes
                  for e in unfolded(i)]
        for e in events:
            e["base"] = base_name(e["call"])
            e["end_ns"] = e["begin_ns"] + e["dur_ns"]
        for e in sorted(events, key=lambda e: e["end_ns"]):
            self.learn(e, processes[nodes[e["node"]][0]])
        for e in events:
            key, pid, tid = nodes[e["node"]]
            self.add(e, processes[key], pid, tid)

    @staticmethod
    def name_of(e, p, field="path", follow=False):
        if field not in e:
            return None
        when = e["begin_ns"]
        fd = e.get("dirfd" if field == "path" else "dirfd2", e.get("dirfd"))
        base = p.cwd(when) if fd is None or fd == -100 else p.fd_path(fd, when)
        if e[field] == "" and fd is not None and fd >= 0:
            return base
        return absolute(base, e[field], follow)

    def learn(self, e, p):
        """Descriptors and directories."""
        base, ret, when = e["base"], e["ret"], e["end_ns"]
        if base == "inherited":
            p.set_fd(e["fd"], when, absolute("/", e["path"]))
        elif base in ("chdir", "fchdir") and ret == 0:
            path = self.name_of(e, p, follow=True) or p.fd_path(e.get("fd", -1), e["begin_ns"])
            if path:
                p.cwds[0].append(when)
                p.cwds[1].append(path)
        elif is_copy(e) and ret >= 0:
            p.set_fd(ret, when, p.fd_path(e["fd"], e["begin_ns"]))
        elif "path" in e and ("open" in base or base in OPENERS or base == "creat"):
            if ret >= 0 and base not in ("mkdtemp", "remove", "scandir", "scandirat", "fchmodat"):
                p.set_fd(ret, when, self.name_of(e, p, follow=True))

    def add(self, e, p, pid, tid):
        base, when = e["base"], e["begin_ns"]
        if base.startswith(("MPI_", "PMPI_")):
            self.mpi[e["call"]] += 1
            return
        if "fd" in e:
            self.used_fds[pid].add(e["fd"])
        if base in OPENERS or is_copy(e) or "open" in base:
            self.used_fds[pid].add(e["ret"])
        if base in MARKS and not is_copy(e) and not is_lock(e):
            return
        if e["class"] in ("sync", "idle") and base != "flock" and not is_lock(e):
            return
        if base == "realpath":
            self.resolved[pid].add(self.name_of(e, p))
        elif base == "euidaccess":
            self.asked[pid][self.name_of(e, p)] += 1
        if base == "realpath" or base.startswith("fflush") and e.get("fd", -1) < 0:
            return
        path = p.fd_path(e["fd"], when) if "fd" in e else None
        o = self.direct(e, p, base, path)
        if o:
            if is_traced(o.key[1]):
                self.ops[tid].append(o)
            return
        name = self.name_of(e, p, follow=base != "fchmodat") or path
        if not name:
            self.unknown[base] += 1
            return
        if base in OPENERS and "path" in e:
            self.opened[pid][self.name_of(e, p)] += 2 if base == "remove" else 1
        if base in CLOSERS:
            self.closed[pid][name] += 1
        if base in ANY_FD:
            self.streams[pid].add((name, None))
        elif base not in NO_STREAM:
            self.streams[pid].add((name, e["ret"] if base in OPENERS else e.get("fd")))
        if base in SEEKERS:
            self.sought.add((pid, name))
        moved = e["len"] if base.startswith("aio_") and "len" in e else max(e["ret"], 0)
        if READERS.match(base):
            self.stream_bytes[pid, name][0] += moved
        elif WRITERS.match(base):
            self.stream_bytes[pid, name][1] += moved

    def direct(self, e, p, base, path):
        ret = -e["errno"] if "errno" in e else e["ret"]
        low = min(ret, 0)
        if base in ("open", "openat", "creat"):
            flags = e.get("flags", 0) & O_MASK
            return op("open", self.name_of(e, p), flags, ret)
        if base == "fchmodat" and e.get("flags", 0) & 0x100:
            return None  # libc opens the link, looks, and goes through /proc
        if base == "unlinkat":
            call = "rmdir" if e.get("flags", 0) & 0x200 else "unlink"
            return op(call, self.name_of(e, p), low)
        if base in TRACE_NAMES:
            call = TRACE_NAMES[base]
            paths = [self.name_of(e, p)]
            if call in ("rename", "link"):
                paths.append(self.name_of(e, p, "path2"))
            if call == "stat" and e["path"] == "":
                return op("fstat", paths[0], low, e["dirfd"])
            return op(call, *paths, ret if call == "readlink" else low)
        if base in TRACE_DATA:
            call, way = TRACE_DATA[base]
            more = [] if "v" in base else [e["len"]]
            if "off" in e:
                more.append(e["off"])
            return op(call, path, *more, ret, e["fd"], **bytes_of(way, ret))
        if base in TRACE_FDS:
            return op(TRACE_FDS[base], path, low, e["fd"])
        if base == "ftruncate":
            return op("ftruncate", path, e["len"], low, e["fd"])
        if base in ("posix_fadvise", "fadvise"):
            return op("fadvise", path, e.get("off"), low, e["fd"])
        if base == "close":
            return op("close", path, e["fd"])
        if is_copy(e):
            return op("dup", path, ret)
        if base == "lseek":
            return op("lseek", path, e["off"], e["whence"], ret)
        if is_lock(e):
            return op("lock", path, low)
        if base == "mmap":
            return op("mmap", path, e["len"], e.get("off", 0), -e.get("errno", 0))
        if base in ("sendfile", "copy_file_range", "splice"):
            return op(base, path, ret)
        return None


# ---- the comparison -----------------------------------------------------------------------

def walk(names):
    """All names that are looked at on the way to these, links included."""
    seen, todo = set(), list(names)
    while todo:
        path = todo.pop()
        if not path or path in seen or path == "/":
            continue
        seen.add(path)
        todo.append(os.path.dirname(path))
        todo.append(os.path.realpath(path))
        if os.path.islink(path):
            todo.append(absolute(os.path.dirname(path), os.readlink(path)))
    return seen


def merge(counter, one):
    result = collections.Counter()
    for path, n in counter.items():
        result[one(path)] += n
    return result


class Comparison:
    def __init__(self, strace, trace, below):
        self.strace, self.trace, self.below = strace, trace, below
        self.names = Names()
        self.missing = collections.Counter()
        self.phantom = collections.Counter()
        self.wrong = []
        self.total = self.same = self.explained = 0
        self.known = collections.Counter()
        for ops in strace.ops.values():
            for o in ops:
                if o.key[0] in ("rename", "link") and o.key[-1] == 0:
                    self.names.join(o.key[1], o.key[2])

    def key(self, o):
        return tuple(self.names.one(k) if isinstance(k, str) and k.startswith("/") else k
                     for k in o.key)

    def is_below(self, o):
        return not self.below or (o.key[1] or "").startswith(self.below + "/")

    def match_thread(self, theirs, ours):
        """Finds the trace's calls in strace's, in their order; returns strace's others."""
        keys = [self.key(o) for o in theirs]
        places = collections.defaultdict(list)
        for i, k in enumerate(keys):
            places[k].append(i)
        used, at, lost = set(), 0, []
        for o in ours:
            k = self.key(o)
            i = bisect.bisect_left(places[k], at)
            if i < len(places[k]):
                at = places[k][i] + 1
                used.add(places[k][i])
            else:
                lost.append(k)
        self.same += len(used)
        return [o for i, o in enumerate(theirs) if i not in used], lost

    def explain(self, pid, left):
        """What the library did for calls that are in the trace."""
        one = self.names.one
        opened, closed, asked = (merge(counter[pid], one) for counter in (
            self.trace.opened, self.trace.closed, self.trace.asked))
        streams = {(one(p), fd) for p, fd in self.trace.streams[pid]}
        paths = {p for p, _ in streams}
        looks = {p: max(opened[p], closed[p], 1) for p in paths}  # an fstat for each stream
        walked = walk(self.trace.resolved[pid])
        moved = collections.defaultdict(lambda: [0, 0])
        rest = []
        for o in left:
            call, path = o.key[0], one(o.key[1])
            is_stream = (path, o.fd) in streams or (path, None) in streams
            if call in ("open", "mkdir", "unlink", "rmdir") and opened[path] > 0:
                opened[path] -= 1
            elif call in ("fstat", "stat") and looks.get(path, 0) > 0 and (
                    is_stream or call == "stat" and (path, None) in streams):
                looks[path] -= 1
            elif call == "close" and is_stream and closed[path] > 0:
                closed[path] -= 1
            elif call == "close" and o.fd not in self.trace.used_fds[pid]:
                pass  # never used by this program
            elif call in ("read", "write", "writev", "lseek", "getdents", "fadvise", "pread",
                          "pwrite") and is_stream:
                moved[path][0] += o.read
                moved[path][1] += o.written
            elif call in ("readlink", "dircheck") and o.key[1] in walked:
                pass
            elif call == "stat" and asked[path] > 0:
                asked[path] -= 1
            else:
                rest.append(o)
                continue
            self.explained += 1
        self.check_bytes(pid, moved, paths)
        return rest

    def check_bytes(self, pid, moved, streams):
        program = self.strace.programs.get(pid, "?")
        asked = collections.defaultdict(lambda: [0, 0])
        for (who, path), (r, w) in self.trace.stream_bytes.items():
            if who == pid:
                asked[self.names.one(path)][0] += r
                asked[self.names.one(path)][1] += w
        for path in streams:
            if asked[path][1] != moved[path][1]:
                kind = "less" if asked[path][1] < moved[path][1] else "more"
                self.differ(kind + " written", path, program, asked[path][1], moved[path][1])
            # A buffer reads ahead; a seek may read a block, or lead back into the buffer.
            if (pid, path) in self.trace.sought:
                continue
            if moved[path][0] and not asked[path][0]:
                self.differ("nothing read", path, program, 0, moved[path][0])
            if asked[path][0] > moved[path][0]:
                self.differ("more read", path, program, asked[path][0], moved[path][0])

    def differ(self, kind, path, program, ours, theirs):
        if not self.is_known(op(kind, path), program):
            self.wrong.append("%s %s by %s: %d bytes in the trace, %d in strace" %
                              (kind, path, program, ours, theirs))

    def is_known(self, o, program):
        for calls, files, programs, reason in KNOWN:
            if (fnmatch.fnmatchcase(o.key[0], calls) and fnmatch.fnmatchcase(o.key[1], files) and
                    fnmatch.fnmatchcase(program, programs)):
                self.known[reason] += 1
                return True
        return False

    def run(self):
        left, lost = collections.defaultdict(list), collections.defaultdict(list)
        for tid in list(self.strace.ops) + [t for t in self.trace.ops if t not in self.strace.ops]:
            theirs = [o for o in self.strace.ops.get(tid, []) if self.is_below(o)]
            ours = [o for o in self.trace.ops.get(tid, []) if self.is_below(o)]
            pid = self.strace.process.get(tid, self.trace.process.get(tid, tid))
            self.total += len(theirs)
            if isinstance(tid, tuple):
                program = self.strace.programs.get(tid[1], "?") + " (between vfork and exec)"
                for o in theirs:
                    if not self.is_known(o, program):
                        self.missing[program, o.key] += 1
                continue
            rest, gone = self.match_thread(theirs, ours)
            left[pid] += rest
            lost[pid] += gone
        for pid in left:
            program = self.strace.programs.get(pid, "?")
            for k in lost[pid]:
                self.phantom[program, k] += 1
            for o in self.explain(pid, left[pid]):
                if not self.is_known(o, program):
                    self.missing[program, o.key] += 1
        return not (self.missing or self.phantom or self.wrong)


def show(kind, counter, limit):
    groups = collections.Counter()
    for (program, key), n in counter.items():
        groups[program, key[0]] += n
    for (program, call), n in groups.most_common():
        print("  %s %5d %s in %s" % (kind, n, call, program))
        keys = [(k, m) for (p, k), m in counter.items() if (p, k[0]) == (program, call)]
        for key, m in keys[:limit]:
            print("      %s%s" % (" ".join(str(k) for k in key), " (%d times)" % m if m > 1 else ""))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--below", help="compare only what is done to files below this directory")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("dump")
    parser.add_argument("strace", nargs="+")
    args = parser.parse_args()
    below = os.path.realpath(args.below) if args.below else None
    c = Comparison(Strace(args.strace), Trace(args.dump), below)
    good = c.run()
    print("%d calls on files in strace: %d the same in the trace, %d by library calls, "
          "%d known differences, %d missing; %d phantoms" %
          (c.total, c.same,
           c.explained, sum(c.known.values()), sum(c.missing.values()), sum(c.phantom.values())))
    limit = 1000 if args.verbose else 4
    show("missing", c.missing, limit)
    show("phantom", c.phantom, limit)
    for line in c.wrong[:limit * 4]:
        print("  bytes   %s" % line)
    if c.trace.unknown:
        print("  not understood:", ", ".join(sorted(c.trace.unknown)))
    if args.verbose:
        for reason, n in c.known.most_common():
            print("  known   %5d %s" % (n, reason))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
