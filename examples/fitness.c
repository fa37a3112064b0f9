/*
 * fitness: ranks read their parts of one file in turn, after a workload generator of Intel.
 *
 * Rank 0 reads its part from beginning to end and sends a message to rank 1, which then reads
 * its part, and so on: n - 1 dependencies, and without them a quite different workload.
 */
#define _GNU_SOURCE
#include "common.h"
#include "mpiutil.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static const char *dir = ".";
static size_t block = 256 << 10;
static unsigned count = 64;
static double compute;
static bool create, direct, verify, remove_files;

static const struct ex_opt opts[] = {
    {"dir", EX_TEXT, &dir, "directory of the file fitness.dat"},
    {"block", EX_SIZE, &block, "size of one access"},
    {"count", EX_COUNT, &count, "blocks per rank"},
    {"compute", EX_TIME, &compute, "CPU time used after each read"},
    {"create", EX_FLAG, &create, "make the file first"},
    {"direct", EX_FLAG, &direct, "direct I/O (O_DIRECT) for the reads"},
    {"verify", EX_FLAG, &verify, "check what is read"},
    {"remove", EX_FLAG, &remove_files, "remove the file at the end"},
    {0},
};

static int rank, size;

/* On disk, not only in the cache: the reads shall not race with the writing back. */
static void create_file(struct file *f, char *buf)
{
    file_open(f, O_WRONLY | O_CREAT | O_TRUNC);
    for (off_t i = 0; i < (off_t)size * count; i++) {
        ex_pattern(buf, block, i * (off_t)block);
        file_write(f, buf, block);
    }
    file_sync(f);
    file_close(f);
}

/*
 * Wait for the turn. A failed open() is told only now: rank 0 is the first to have its turn and to
 * end the program, so that a missing file is said once and not by each rank.
 */
static void await_turn(const struct file *f, int error)
{
    if (rank > 0)
        MPI_Recv(NULL, 0, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (f->fd >= 0)
        return;
    if (error == ENOENT)
        ex_die("cannot open '%s': no such file; use --create to make it", f->path);
    errno = error;
    ex_fail("open", f->path);
}

static void read_part(const struct file *f, char *buf)
{
    off_t part = (off_t)block * count * rank;

    file_seek(f, part);
    for (unsigned i = 0; i < count; i++) {
        file_read(f, buf, block);
        if (verify)
            ex_verify(f, buf, block, part + (off_t)i * (off_t)block);
        ex_burn(compute);
    }
}

int main(int argc, char **argv)
{
    struct file f;
    char *buf;
    double start;

    mpi_begin(&argc, &argv, "fitness", &rank, &size);
    ex_parse(argc, argv, "The ranks read their parts of one file, one rank after the other.", opts);
    ex_check_direct(direct, "block", block);
    buf = ex_buffer(block);
    file_name(&f, dir, "fitness.dat");

    if (create && rank == 0)
        create_file(&f, buf);
    start = mpi_start_clock();
    f.fd = open(f.path, O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
    await_turn(&f, errno);
    read_part(&f, buf);
    if (rank + 1 < size)
        MPI_Send(NULL, 0, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD);
    file_close(&f);

    mpi_report(start);
    if (rank == 0 && remove_files)
        file_remove(&f);
    free(buf);
    MPI_Finalize();
    return 0;
}
