/*
 * The calls of MPI-IO, made by two ranks.  Each writes the trace it expects to expected.RANK,
 * a file that is not traced; the calls below those of MPI-IO (inner) are not in it.  Run in
 * an empty directory.
 */
#include "config.h"

#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/tracer/expect.h"

#define ALL       MPI_COMM_WORLD
#define N         4
#define BYTES     (N * (long)sizeof(int))
#define number(h) ((unsigned long)(uintptr_t)(h))

static int rank;
static int in[N];
static MPI_File fh;
static MPI_Offset at;

static void wait_one(MPI_Request *request)
{
    expect_sync(MPI_Wait(request, MPI_STATUS_IGNORE), "MPI_Wait(0, -100, -100)");
}

#define PLAIN(name)                                                \
    expect(MPI_File_##name(fh, in, N, MPI_INT, MPI_STATUS_IGNORE), \
           "MPI_File_" #name "(%#lx, %ld)", number(fh), BYTES)
#define BEGUN(name)                                                                      \
    do {                                                                                 \
        MPI_Request r;                                                                   \
        expect(MPI_File_##name(fh, in, N, MPI_INT, &r), "MPI_File_" #name "(%#lx, %ld)", \
               number(fh), BYTES);                                                       \
        wait_one(&r);                                                                    \
    } while (0)
#define PLAIN_AT(name)                                                 \
    expect(MPI_File_##name(fh, at, in, N, MPI_INT, MPI_STATUS_IGNORE), \
           "MPI_File_" #name "(%#lx, %ld, %ld)", number(fh), BYTES, (long)at)
#define BEGUN_AT(name)                                                                            \
    do {                                                                                          \
        MPI_Request r;                                                                            \
        expect(MPI_File_##name(fh, at, in, N, MPI_INT, &r), "MPI_File_" #name "(%#lx, %ld, %ld)", \
               number(fh), BYTES, (long)at);                                                      \
        wait_one(&r);                                                                             \
    } while (0)
#define SPLIT(name)                                                                                \
    do {                                                                                           \
        expect(MPI_File_##name##_begin(fh, in, N, MPI_INT), "MPI_File_" #name "_begin(%#lx, %ld)", \
               number(fh), BYTES);                                                                 \
        expect(MPI_File_##name##_end(fh, in, MPI_STATUS_IGNORE), "MPI_File_" #name "_end(%#lx)",   \
               number(fh));                                                                        \
    } while (0)
#define SPLIT_AT(name)                                                                           \
    do {                                                                                         \
        expect(MPI_File_##name##_begin(fh, at, in, N, MPI_INT),                                  \
               "MPI_File_" #name "_begin(%#lx, %ld, %ld)", number(fh), BYTES, (long)at);         \
        expect(MPI_File_##name##_end(fh, in, MPI_STATUS_IGNORE), "MPI_File_" #name "_end(%#lx)", \
               number(fh));                                                                      \
    } while (0)

static void file_open(void)
{
    const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
    MPI_Offset size;
    int ret = MPI_File_open(ALL, "shared", mode, MPI_INFO_NULL, &fh);
    expect(ret, "MPI_File_open(\"shared\", %#x, %#lx)", mode, number(fh));
    expect(MPI_File_set_size(fh, 4096), "MPI_File_set_size(%#lx, 4096)", number(fh));
    expect(MPI_File_preallocate(fh, 8192), "MPI_File_preallocate(%#lx, 8192)", number(fh));
    expect(MPI_File_get_size(fh, &size), "MPI_File_get_size(%#lx)", number(fh));
    expect(MPI_File_set_view(fh, rank * BYTES, MPI_INT, MPI_INT, "native", MPI_INFO_NULL),
           "MPI_File_set_view(%#lx, %ld)", number(fh), rank * BYTES);
    expect(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL),
           "MPI_File_set_view(%#lx, 0)", number(fh));
    expect(MPI_File_seek(fh, 64, MPI_SEEK_SET), "MPI_File_seek(%#lx, 64, %d)", number(fh),
           MPI_SEEK_SET);
}

static void file_data(void)
{
    at = 100 + rank * BYTES;
    PLAIN_AT(write_at);
    PLAIN_AT(read_at);
    PLAIN_AT(write_at_all);
    PLAIN_AT(read_at_all);
    BEGUN_AT(iwrite_at);
    BEGUN_AT(iread_at);
    BEGUN_AT(iwrite_at_all);
    BEGUN_AT(iread_at_all);
    SPLIT_AT(write_at_all);
    SPLIT_AT(read_at_all);
    PLAIN(write);
    PLAIN(read);
    PLAIN(write_all);
    PLAIN(read_all);
    BEGUN(iwrite);
    BEGUN(iread);
    BEGUN(iwrite_all);
    BEGUN(iread_all);
    SPLIT(write_all);
    SPLIT(read_all);
    PLAIN(write_shared);
    PLAIN(read_shared);
    BEGUN(iwrite_shared);
    BEGUN(iread_shared);
    PLAIN(write_ordered);
    PLAIN(read_ordered);
    SPLIT(write_ordered);
    SPLIT(read_ordered);
}

static void file_close(void)
{
    const int mode = MPI_MODE_CREATE | MPI_MODE_WRONLY;
    unsigned long old = number(fh);
    expect(MPI_File_seek(fh, 0, MPI_SEEK_END), "MPI_File_seek(%#lx, 0, %d)", old, MPI_SEEK_END);
    expect(MPI_File_sync(fh), "MPI_File_sync(%#lx)", old);
    expect(MPI_File_close(&fh), "MPI_File_close(%#lx)", old);
    if (!rank)
        expect(MPI_File_delete("shared", MPI_INFO_NULL), "MPI_File_delete(\"shared\")");
    int ret = PMPI_File_open(MPI_COMM_SELF, rank ? "r1" : "r0", mode, MPI_INFO_NULL, &fh);
    expect(ret, "MPI_File_open(\"r%d\", %#x, %#lx)", rank, mode, number(fh));
    old = number(fh);
    expect(PMPI_File_close(&fh), "MPI_File_close(%#lx)", old);
}

int main(int argc, char **argv)
{
    char name[32];
    int got;
    expect_sync(MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &got), "MPI_Init_thread()");
    MPI_Comm_rank(ALL, &rank);
    expect_world(rank);
    file_open();
    file_data();
    file_close();
    expect_sync(MPI_Finalize(), "MPI_Finalize()");
    snprintf(name, sizeof(name), "expected.%d", rank);
    return expect_print(open(name, O_WRONLY | O_CREAT, 0600));
}
