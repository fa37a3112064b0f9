/*
 * pseudo: defensive checkpointing, after the pseudo-application of Los Alamos.
 *
 * All ranks write one file, block by block, interleaved (block i of rank r is number i * ranks + r
 * of the file), wait for each other, and read it back. With --sync they also wait for each
 * other after each write; with --compute they work on what they have read.
 */
#define _GNU_SOURCE
#include "common.h"
#include "mpiutil.h"

#include <fcntl.h>
#include <stdlib.h>

static const char *dir = ".";
static size_t block = 64 << 10;
static unsigned count = 32;
static double compute;
static bool sync_writes, direct, osync, do_fsync, shift, verify, remove_files;

static const struct ex_opt opts[] = {
    {"dir", EX_TEXT, &dir, "directory of the file pseudo.dat"},
    {"block", EX_SIZE, &block, "size of one access"},
    {"count", EX_COUNT, &count, "blocks per rank"},
    {"sync", EX_FLAG, &sync_writes, "barrier after each write"},
    {"compute", EX_TIME, &compute, "CPU time used after each read"},
    {"direct", EX_FLAG, &direct, "direct I/O (O_DIRECT)"},
    {"osync", EX_FLAG, &osync, "synchronous writes (O_SYNC)"},
    {"fsync", EX_FLAG, &do_fsync, "fsync after the last write"},
    {"shift", EX_FLAG, &shift, "read the blocks that the next rank wrote"},
    {"verify", EX_FLAG, &verify, "check what is read"},
    {"remove", EX_FLAG, &remove_files, "remove the file at the end"},
    {0},
};

static int rank, size;

static off_t offset(unsigned i, int owner)
{
    return ((off_t)i * size + owner) * (off_t)block;
}

static void write_phase(const struct file *f, char *buf)
{
    for (unsigned i = 0; i < count; i++) {
        ex_pattern(buf, block, offset(i, rank));
        file_pwrite(f, buf, block, offset(i, rank));
        if (sync_writes)
            MPI_Barrier(MPI_COMM_WORLD);
    }
    if (do_fsync)
        file_sync(f);
}

static void read_phase(const struct file *f, char *buf)
{
    int owner = shift ? (rank + 1) % size : rank;

    for (unsigned i = 0; i < count; i++) {
        file_pread(f, buf, block, offset(i, owner));
        if (verify)
            ex_verify(f, buf, block, offset(i, owner));
        ex_burn(compute);
    }
}

int main(int argc, char **argv)
{
    struct file f;
    char *buf;
    double start;

    mpi_begin(&argc, &argv, "pseudo", &rank, &size);
    ex_parse(argc, argv, "All ranks write a checkpoint file, interleaved, and read it back.", opts);
    ex_check_direct(direct, "block", block);
    buf = ex_buffer(block);
    file_name(&f, dir, "pseudo.dat");

    /* Emptied by one rank before the others open it: each run writes a new file. */
    if (rank == 0)
        file_create(&f);
    start = mpi_start_clock();
    file_open(&f, O_RDWR | (direct ? O_DIRECT : 0) | (osync ? O_SYNC : 0));
    write_phase(&f, buf);
    MPI_Barrier(MPI_COMM_WORLD);
    read_phase(&f, buf);
    file_close(&f);

    mpi_report(start);
    if (rank == 0 && remove_files)
        file_remove(&f);
    free(buf);
    MPI_Finalize();
    return 0;
}
