#!/usr/bin/env bash
# Real programs run the same with and without the tracer: same output, same exit status,
# same files.  Their trace is compared with what strace saw of the same run (compare.py).
set -u
watchd=$top_builddir/watchdog/ptwatchd
tracer=$top_builddir/preload/libparatrace.so
ptdump=$top_builddir/hdf5store/ptdump
compare=$top_srcdir/tests/tracer/compare.py
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0 checked=0
export LC_ALL=C TZ=UTC0
unset "${!SLURM@}" "${!OMPI_@}" "${!PMIX_@}" "${!GIT_@}"

note() { printf '%-4s %s\n' "$1" "$2"; }
bad() {
    note FAIL "$1"
    failed=1
}
have() {
    local program=$1 name=$2
    type -P "$program" >/dev/null && return 0
    note skip "$name: no program '$program'"
    return 1
}

# ---- the harness -------------------------------------------------------------------------

# -i tells who made a call: the loader, the tracer itself, or the program.
strace_options=(-f -i -y -qq -s 0 --seccomp-bpf -e 'trace=%file,%desc,%process' -e signal=none)
type -P strace >/dev/null || { echo "skipped: no program 'strace'"; exit 77; }
strace "${strace_options[@]}" -o "$work/probe" true 2>/dev/null ||
    { echo "skipped: strace cannot trace here"; exit 77; }

# What a run left behind: names, modes, links and contents.
listing() {
    (cd "$1" && find . \( -type f -o -type l -o -type d \) ! -path "${ignore:-}" -printf '%y %m %p %l\n' |
        LC_ALL=C sort
    find . -type f ! -path "${ignore:-}" -print0 | LC_ALL=C sort -z | xargs -0r sha256sum)
}

# traced NAME SPEC COMMAND...: in $work/NAME.traced, into $work/NAME.run.
traced() {
    local name=$1 spec=$2
    shift 2
    (cd "$work/$name.traced" && timeout -k 2 60 "$watchd" --preload "$tracer" \
        --out "$work/$name.run" --spec "$spec" -- "$@") \
        >"$work/$name.traced.out" 2>"$work/$name.traced.err" </dev/null
}

# run_twice NAME WITH... -- COMMAND...: plain, and traced with WITH... in front.
run_twice() {
    local name=$1 with=() plain status
    shift
    while [ "$1" != -- ]; do
        with+=("$1")
        shift
    done
    shift
    mkdir "$work/$name.plain" "$work/$name.traced" || exit 1
    (cd "$work/$name.plain" && timeout -k 2 60 "$@") \
        >"$work/$name.plain.out" 2>"$work/$name.plain.err" </dev/null
    plain=$?
    traced "$name" 'noexe=*strace' "${with[@]}" "$@"
    status=$?
    checked=$((checked + 1))
    if [ $plain != "${want:-0}" ]; then
        bad "$name: exit status $plain without the tracer: the test itself is wrong"
        head -n 10 "$work/$name.plain.err"
        return 1
    fi
    if [ $status != $plain ]; then
        bad "$name: exit status $status, not $plain"
        tail -n 10 "$work/$name.traced.err"
        return 1
    fi
    if ! diff "$work/$name.plain.out" "$work/$name.traced.out" >"$work/$name.diff"; then
        bad "$name: another output"
        head -n 10 "$work/$name.diff"
        return 1
    fi
    if ! diff <(listing "$work/$name.plain") <(listing "$work/$name.traced") >"$work/$name.diff"; then
        bad "$name: other files"
        head -n 10 "$work/$name.diff"
        return 1
    fi
    "$ptdump" --json "$work/$name.run"/*.ptrun >"$work/$name.json" || bad "$name: ptdump"
}

# judge NAME OPTION... STRACE...: the trace against strace.
judge() {
    local name=$1
    shift
    if python3 "$compare" "$@" >"$work/$name.report"; then
        note ok "$name: $(head -n 1 "$work/$name.report")"
    else
        bad "$name: $(head -n 1 "$work/$name.report")"
        sed 1d "$work/$name.report" | head -n "${PT_TEST_LINES:-60}"
    fi
}

real() {
    local name=$1
    shift
    run_twice "$name" strace "${strace_options[@]}" -o "$work/$name.strace" -- "$@" || return
    judge "$name" "$work/$name.json" "$work/$name.strace"
}

# count NAME CALL: how often each node made it, as "node count" lines.
count() {
    python3 - "$work/$1.json" "$2" <<'PY'
import collections, json, sys
n = collections.Counter(i["node"].split(".")[0] for i in json.load(open(sys.argv[1]))["items"]
                        if i["item"] == "event" and i["call"] == sys.argv[2])
print(" ".join("%s:%d" % p for p in sorted(n.items())))
PY
}

# expect_calls NAME CALL COUNTS...: "rank:count" for each rank.
expect_calls() {
    local got
    got=$(count "$1" "$2")
    [ "$got" = "$3" ] || bad "$1: $2 recorded '$got' times, not '$3'"
}

# ---- something to work on ------------------------------------------------------------------

make_source() {
    mkdir -p "$work/src/a/b" "$work/src/empty" &&
        for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
            seq $((i * i * 40)) >"$work/src/a/f$i"
            echo "file $i" >"$work/src/a/b/g$i"
        done
    : >"$work/src/none"
    head -c 300000 /dev/zero >"$work/src/zeros"
    truncate -s 1M "$work/src/sparse"
    ln -s a/f1 "$work/src/link"
    ln "$work/src/a/f2" "$work/src/hard"
    chmod 600 "$work/src/a/f3"
    touch -d 2020-01-02 "$work/src/a/f4"
}
make_source

# ---- the programs --------------------------------------------------------------------------

real cp cp -r ../src copy
real cp-a cp -a ../src copy

have tar tar && real tar bash -c 'tar -cf a.tar -C .. src && mkdir out && tar -xf a.tar -C out &&
    tar -tf a.tar | sort && rm -r out/src/a'

want=3 real bash bash -c '
    mkdir -p d/e && cd d || exit 1
    for i in 1 2 3 4 5; do echo "line $i" >>log; done
    while read -r word number; do echo "$number $word"; done <log >turned
    cat log turned | sort -r | tee e/sorted | wc -l
    exec 7>kept; echo kept >&7; exec 7>&-
    cat <<END >here
a document, $(wc -c <log) bytes
END
    for f in *; do [ -f "$f" ] && [ -s "$f" ] && echo "$f"; done
    mv turned e/; ln -s ../log e/link; readlink e/link; rm -f kept nothing
    (cd e && echo sub >shell)
    test -e nothing; : >empty
    umask 077; mkdir private; rmdir private
    exit 3'

if have python3 python; then
    cat >"$work/script.py" <<'PY'
import json, mmap, os, shutil, subprocess, sys, tempfile, threading

os.makedirs("d/e/f")
with open("d/text", "w") as f:
    for i in range(1000):
        f.write("line %d\n" % i)
with open("d/text") as f:
    print(sum(len(line) for line in f))
with open("d/binary", "wb", buffering=0) as f:
    f.write(bytes(5000))
    f.seek(100)
    f.write(b"x" * 10)
    os.fsync(f.fileno())
fd = os.open("d/direct", os.O_RDWR | os.O_CREAT, 0o640)
print(os.pwrite(fd, b"y" * 300, 1000), len(os.pread(fd, 500, 900)), os.writev(fd, [b"a", b"bc"]))
os.ftruncate(fd, 2000)
print(os.lseek(fd, 0, os.SEEK_END), os.fstat(fd).st_size)
copy = os.dup(fd)
os.close(fd)
os.close(copy)
shutil.copyfile("d/text", "d/copy")
os.rename("d/copy", "d/moved")
os.link("d/moved", "d/linked")
os.symlink("moved", "d/symbolic")
os.chmod("d/moved", 0o600)
os.utime("d/moved", (1, 1))
print(sorted(os.listdir("d")), os.path.exists("d/none"), os.readlink("d/symbolic"))
with open("d/binary", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
    m[0:3] = b"map"
    m.flush()
print(subprocess.run(["sort", "-rn", "d/text"], stdout=subprocess.PIPE).stdout[:10])
with open("d/out", "w") as f:
    print(subprocess.call(["cat", "d/moved"], stdout=f))
print(subprocess.run("echo shell > d/shell; exit 4", shell=True).returncode)


def work(n):
    with open("d/e/thread%d" % n, "w") as f:
        f.write(str(n) * 10000)
    with open("d/e/thread%d" % n) as f:
        assert len(f.read()) == 10000 * len(str(n))


threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
pid = os.fork()
if not pid:
    with open("d/child", "w") as f:
        f.write("child")
    os._exit(0)
os.waitpid(pid, 0)
with tempfile.TemporaryDirectory(dir="d") as t:
    with open(os.path.join(t, "x"), "w") as f:
        json.dump({"a": 1}, f)
print([len(files) for _, _, files in os.walk("d")])
shutil.rmtree("d/e/f")
sys.exit(5)
PY
    # Not a wrapper script that may stand in front of it.
    python=$(python3 -c 'import sys; print(sys.executable)')
    want=5 real python "$python" -B ../script.py
fi

if have git git; then
    cat >"$work/git.sh" <<'SH'
set -e
export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='1000000000 +0000' \
    GIT_COMMITTER_DATE='1000000000 +0000' GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b \
    GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_PAGER=cat
git init -q -b main repo
cd repo
cp -r ../../src/a .
git add .
git commit -q -m first
echo more >>a/f1
git mv a/f2 a/f2.moved
git commit -q -a -m second
git log --stat --format='%H %s'
git checkout -q -b side HEAD~1
git diff main --shortstat
git gc -q
git fsck --no-progress
SH
    # The index holds times and inodes.
    ignore='*/.git/index' real git bash ../git.sh
fi

if have sqlite3 sqlite; then
    cat >"$work/script.sql" <<'SQL'
pragma journal_mode = delete;
create table t (a integer primary key, b text);
begin;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000)
    insert into t select i, 'row ' || i from n;
commit;
update t set b = 'changed' where a % 10 = 0;
select count(*), sum(length(b)) from t;
pragma journal_mode = wal;
delete from t where a > 1000;
pragma wal_checkpoint;
vacuum;
select count(*) from t;
SQL
    real sqlite sqlite3 -batch t.db '.read ../script.sql'
fi

if have gcc gcc; then
    cat >"$work/one.c" <<'C'
#include <stdio.h>
int two(int);
int main(void) { return printf("%d\n", two(20)) < 0; }
C
    echo 'int two(int x) { return 2 * x; }' >"$work/two.c"
    real gcc bash -c 'TMPDIR=. gcc -O1 -c ../one.c ../two.c && TMPDIR=. gcc -o prog one.o two.o && ./prog'
fi

h5cc=$(type -P h5pcc || type -P h5cc || echo h5cc)
if have "$h5cc" hdf5; then
    cat >"$work/h5.c" <<'C'
#include <hdf5.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    static double in[1000][20], out[1000][20];
    hsize_t dims[2] = {1000, 20}, chunk[2] = {100, 20};
    for (int i = 0; i < 1000; i++)
        for (int j = 0; j < 20; j++)
            in[i][j] = i * j;
    hid_t file = H5Fcreate("data.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(2, dims, NULL);
    hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(how, 0);
    H5Pset_chunk(how, 2, chunk);
    hid_t set = H5Dcreate2(file, "numbers", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    if (H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, in) < 0)
        return 1;
    H5Dclose(set);
    H5Fclose(file);
    file = H5Fopen("data.h5", H5F_ACC_RDWR, H5P_DEFAULT);
    set = H5Dopen2(file, "numbers", H5P_DEFAULT);
    if (H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) < 0)
        return 1;
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    H5Dclose(set);
    H5Fclose(file);
    printf("%g\n", out[999][19]);
    return 0;
}
C
    if "$h5cc" -o "$work/h5" "$work/h5.c" >"$work/h5.err" 2>&1; then
        real hdf5 "$work/h5"
    else
        note skip "hdf5: '$h5cc' cannot compile"
    fi
    rm -f h5.o
fi

cat >"$work/threads.c" <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int shared;

static void *work(void *arg)
{
    long me = (long)arg;
    char name[32], buf[512];
    struct stat st;
    snprintf(name, sizeof(name), "own%ld", me);
    memset(buf, (int)('a' + me % 26), sizeof(buf));
    int fd = open(name, O_RDWR | O_CREAT, 0600);
    for (int i = 0; i < 10; i++)
        if (write(fd, buf, sizeof(buf)) != sizeof(buf) ||
            pwrite(shared, buf, sizeof(buf), (me * 10 + i) * (long)sizeof(buf)) != sizeof(buf))
            abort();
    if (fstat(fd, &st) || st.st_size != 5120 || pread(fd, buf, 100, 0) != 100 || close(fd))
        abort();
    FILE *f = fopen(name, "a");
    fprintf(f, "thread %ld\n", me);
    fclose(f);
    if (me % 2)
        unlink(name);
    return NULL;
}

int main(void)
{
    pthread_t t[64];
    shared = open("shared", O_RDWR | O_CREAT, 0600);
    for (long i = 0; i < 64; i++)
        if (pthread_create(&t[i], NULL, work, (void *)i))
            abort();
    for (int i = 0; i < 64; i++)
        pthread_join(t[i], NULL);
    close(shared);
    puts("done");
    return 0;
}
C
if gcc -O1 -pthread -o "$work/threads" "$work/threads.c" 2>"$work/threads.err"; then
    real threads "$work/threads"
else
    note skip 'threads: gcc cannot compile'
fi

# ---- MPI: two ranks, each under an strace of its own ----------------------------------------

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
cat >"$work/rank.sh" <<'SH'
# rank.sh NAME COMMAND...: strace around this rank
name=$1
shift
case $PWD in
*.traced) exec strace $PT_STRACE -o "../$name.strace.$OMPI_COMM_WORLD_RANK" "$@" ;;
*) exec "$@" ;;
esac
SH
export PT_STRACE="${strace_options[*]}"

# real_mpi NAME PROGRAM
real_mpi() {
    local name=$1
    run_twice "$name" -- mpirun -n 2 sh "$work/rank.sh" "$name" "$2" || return
    judge "$name" --below "$work/$name.traced" "$work/$name.json" \
        "$work/$name.strace.0" "$work/$name.strace.1"
}

if have mpicc mpi-io && have mpirun mpi-io; then
    cat >"$work/mpiio.c" <<'C'
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    static int data[1000], back[1000];
    int rank;
    MPI_File f;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 1000; i++)
        data[i] = rank * 1000 + i;
    MPI_File_open(MPI_COMM_WORLD, "shared", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
    for (int i = 0; i < 5; i++)
        MPI_File_write_at(f, (i * 2 + rank) * (MPI_Offset)sizeof(data), data, 1000, MPI_INT,
                          MPI_STATUS_IGNORE);
    MPI_File_sync(f);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_write_at_all(f, (10 + rank) * (MPI_Offset)sizeof(data), data, 1000, MPI_INT,
                          MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++)
        MPI_File_read_at(f, (1 - rank) * (MPI_Offset)sizeof(data), back, 1000, MPI_INT,
                         MPI_STATUS_IGNORE);
    MPI_File_close(&f);
    if (!rank)
        printf("%d\n", back[10]);
    MPI_Finalize();
    return 0;
}
C
    if mpicc -o "$work/mpiio" "$work/mpiio.c" 2>"$work/mpiio.err"; then
        real_mpi mpi-io "$work/mpiio"
        expect_calls mpi-io MPI_File_open '0:1 1:1'
        expect_calls mpi-io MPI_File_write_at '0:5 1:5'
        expect_calls mpi-io MPI_File_write_at_all '0:1 1:1'
        expect_calls mpi-io MPI_File_read_at '0:3 1:3'
        expect_calls mpi-io MPI_File_sync '0:1 1:1'
        expect_calls mpi-io MPI_File_close '0:1 1:1'
        expect_calls mpi-io MPI_Barrier '0:1 1:1'
    else
        note skip 'mpi-io: mpicc cannot compile'
    fi
fi

if have mpifort fortran && have mpirun fortran; then
    cat >"$work/fortran.f90" <<'F'
program fortran
    use mpi
    implicit none
    integer :: ierr, rank, total, i, f, status(MPI_STATUS_SIZE), line(100)
    character(len=16) :: name
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    write (name, '(a,i0)') 'out', rank
    open (unit=10, file=name, form='formatted', status='replace')
    do i = 1, 200
        write (10, '(i8)') i * (rank + 1)
    end do
    close (10)
    open (unit=11, file=name, status='old')
    total = 0
    do i = 1, 200
        read (11, *) ierr
        total = total + ierr
    end do
    close (11)
    do i = 1, 4
        call MPI_Barrier(MPI_COMM_WORLD, ierr)
    end do
    if (rank == 0) call MPI_Send(total, 1, MPI_INTEGER, 1, 7, MPI_COMM_WORLD, ierr)
    if (rank == 1) call MPI_Recv(i, 1, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, status, ierr)
    call MPI_Allreduce(total, i, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    line = rank
    call MPI_File_open(MPI_COMM_WORLD, 'shared', MPI_MODE_CREATE + MPI_MODE_WRONLY, &
                       MPI_INFO_NULL, f, ierr)
    call MPI_File_write_at(f, int(rank * 400, MPI_OFFSET_KIND), line, 100, MPI_INTEGER, status, ierr)
    call MPI_File_close(f, ierr)
    if (rank == 0) print *, i
    call MPI_Finalize(ierr)
end program
F
    if (cd "$work" && mpifort -o fortran fortran.f90) 2>"$work/fortran.err"; then
        real_mpi fortran "$work/fortran"
        expect_calls fortran MPI_Init '0:1 1:1'
        expect_calls fortran MPI_Barrier '0:4 1:4'
        expect_calls fortran MPI_Send '0:1'
        expect_calls fortran MPI_Recv '1:1'
        expect_calls fortran MPI_Allreduce '0:1 1:1'
        expect_calls fortran MPI_Finalize '0:1 1:1'
        expect_calls fortran MPI_File_write_at '0:1 1:1'
    else
        note skip 'fortran: mpifort cannot compile'
    fi
fi

[ $checked -gt 0 ] || { echo 'skipped: none of the programs is here'; exit 77; }
exit $failed
