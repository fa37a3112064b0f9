/*
 * The calls of MPI, made by two ranks.  Each writes the trace it expects to expected.RANK, a
 * file that is not traced.  Run in an empty directory.
 */
#include "config.h"

#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/tracer/expect.h"

#define N         4
#define ALL       MPI_COMM_WORLD
#define WORLD     number(MPI_COMM_WORLD)
#define number(h) ((unsigned long)(uintptr_t)(h))

static int rank, peer;
static int in[2 * N], out[2 * N];
static const int counts[2] = {N, N}, starts[2] = {0, N};
static int failed; /* unsuccessful tests since the last event */

/* ---- collective ------------------------------------------------------------------------- */

static void collectives(void)
{
    expect_sync(MPI_Barrier(ALL), "MPI_Barrier(%#lx)", WORLD);
    expect_sync(PMPI_Barrier(ALL), "MPI_Barrier(%#lx)", WORLD);
    expect_sync(MPI_Bcast(in, N, MPI_INT, 1, ALL), "MPI_Bcast(1, 4, %#lx)", WORLD);
    expect_sync(MPI_Reduce(in, out, N, MPI_INT, MPI_SUM, 1, ALL), "MPI_Reduce(1, 4, %#lx)", WORLD);
    expect_sync(MPI_Allreduce(in, out, 2, MPI_INT, MPI_SUM, ALL), "MPI_Allreduce(2, %#lx)", WORLD);
    expect_sync(PMPI_Allreduce(in, out, 2, MPI_INT, MPI_SUM, ALL), "MPI_Allreduce(2, %#lx)", WORLD);
    expect_sync(MPI_Gather(in, N, MPI_INT, out, N, MPI_INT, 0, ALL), "MPI_Gather(0, 4, %#lx)",
                WORLD);
    expect_sync(MPI_Gatherv(in, N, MPI_INT, out, counts, starts, MPI_INT, 1, ALL),
                "MPI_Gatherv(1, 4, %#lx)", WORLD);
    expect_sync(MPI_Scatter(in, N, MPI_INT, out, N, MPI_INT, 0, ALL), "MPI_Scatter(0, 4, %#lx)",
                WORLD);
    expect_sync(MPI_Scatterv(in, counts, starts, MPI_INT, out, N, MPI_INT, 1, ALL),
                "MPI_Scatterv(1, 4, %#lx)", WORLD);
    expect_sync(MPI_Allgather(in, N, MPI_INT, out, N, MPI_INT, ALL), "MPI_Allgather(4, %#lx)",
                WORLD);
    expect_sync(MPI_Allgatherv(in, N, MPI_INT, out, counts, starts, MPI_INT, ALL),
                "MPI_Allgatherv(4, %#lx)", WORLD);
    expect_sync(MPI_Alltoall(in, N, MPI_INT, out, N, MPI_INT, ALL), "MPI_Alltoall(4, %#lx)", WORLD);
    expect_sync(MPI_Alltoallv(in, counts, starts, MPI_INT, out, counts, starts, MPI_INT, ALL),
                "MPI_Alltoallv(%#lx)", WORLD);
    expect_sync(MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, ALL),
                "MPI_Reduce_scatter(%#lx)", WORLD);
    expect_sync(MPI_Reduce_scatter_block(in, out, N, MPI_INT, MPI_SUM, ALL),
                "MPI_Reduce_scatter_block(4, %#lx)", WORLD);
    expect_sync(MPI_Scan(in, out, 3, MPI_INT, MPI_SUM, ALL), "MPI_Scan(3, %#lx)", WORLD);
    expect_sync(MPI_Exscan(in, out, 3, MPI_INT, MPI_SUM, ALL), "MPI_Exscan(3, %#lx)", WORLD);
}

static void wait_one(MPI_Request *request)
{
    expect_sync(MPI_Wait(request, MPI_STATUS_IGNORE), "MPI_Wait()");
}

static void collectives_begun(void)
{
    MPI_Request r;
    expect_sync(MPI_Ibarrier(ALL, &r), "MPI_Ibarrier(%#lx)", WORLD);
    wait_one(&r);
    expect_sync(MPI_Ibcast(in, N, MPI_INT, 1, ALL, &r), "MPI_Ibcast(1, 4, %#lx)", WORLD);
    wait_one(&r);
    expect_sync(MPI_Iallreduce(in, out, N, MPI_INT, MPI_SUM, ALL, &r), "MPI_Iallreduce(4, %#lx)",
                WORLD);
    wait_one(&r);
}

static void communicators(void)
{
    MPI_Comm comm;
    MPI_Group group;
    expect_sync(MPI_Comm_dup(ALL, &comm), "MPI_Comm_dup(%#lx)", WORLD);
    expect_sync(MPI_Barrier(comm), "MPI_Barrier(%#lx)", number(comm));
    expect_sync(MPI_Comm_free(&comm), "MPI_Comm_free()");
    expect_sync(MPI_Comm_split(ALL, rank, 0, &comm), "MPI_Comm_split(%#lx)", WORLD);
    expect_sync(MPI_Comm_free(&comm), "MPI_Comm_free()");
    MPI_Comm_group(ALL, &group);
    expect_sync(MPI_Comm_create(ALL, group, &comm), "MPI_Comm_create(%#lx)", WORLD);
    MPI_Group_free(&group);
    expect_sync(MPI_Comm_free(&comm), "MPI_Comm_free()");
    expect_sync(MPI_Comm_split_type(ALL, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm),
                "MPI_Comm_split_type(%#lx)", WORLD);
    expect_sync(MPI_Comm_free(&comm), "MPI_Comm_free()");
}

static void windows(void)
{
    MPI_Win win;
    void *base;
    expect_sync(MPI_Win_create(in, sizeof(in), 1, MPI_INFO_NULL, ALL, &win), "MPI_Win_create(%#lx)",
                WORLD);
    expect_sync(MPI_Win_fence(0, win), "MPI_Win_fence(%#lx)", number(win));
    expect_sync(MPI_Win_fence(0, win), "MPI_Win_fence(%#lx)", number(win));
    expect_sync(MPI_Win_free(&win), "MPI_Win_free()");
    expect_sync(MPI_Win_allocate(64, 1, MPI_INFO_NULL, ALL, &base, &win), "MPI_Win_allocate(%#lx)",
                WORLD);
    expect_sync(MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, win), "MPI_Win_lock(%d, %#lx)", peer,
                number(win));
    expect_sync(MPI_Win_unlock(peer, win), "MPI_Win_unlock(%d, %#lx)", peer, number(win));
    expect_sync(MPI_Win_free(&win), "MPI_Win_free()");
}

/* ---- from one to the other -------------------------------------------------------------- */

static void receive(int tag)
{
    expect_sync(MPI_Recv(out, N, MPI_INT, peer, tag, ALL, MPI_STATUS_IGNORE),
                "MPI_Recv(%d, %d, 4, %#lx)", peer, tag, WORLD);
}

static void begin_receive(int tag, MPI_Request *r)
{
    expect_sync(MPI_Irecv(out, N, MPI_INT, peer, tag, ALL, r), "MPI_Irecv(%d, %d, 4, %#lx)", peer,
                tag, WORLD);
}

static void begin_send(int tag, MPI_Request *r)
{
    expect_sync(MPI_Isend(in, N, MPI_INT, peer, tag, ALL, r), "MPI_Isend(%d, %d, 4, %#lx)", peer,
                tag, WORLD);
}

static void blocking(void)
{
    static char room[4096];
    expect_sync(
        MPI_Sendrecv(in, N, MPI_INT, peer, 1, out, N, MPI_INT, peer, 1, ALL, MPI_STATUS_IGNORE),
        "MPI_Sendrecv(%d, 1, %d, 1, 4, %#lx)", peer, peer, WORLD);
    expect_sync(MPI_Sendrecv_replace(in, N, MPI_INT, peer, 2, peer, 2, ALL, MPI_STATUS_IGNORE),
                "MPI_Sendrecv_replace(%d, 2, %d, 2, 4, %#lx)", peer, peer, WORLD);
    if (rank) {
        for (int tag = 3; tag <= 4; tag++)
            receive(tag);
        MPI_Request r;
        begin_receive(5, &r); /* there before the ready send */
        expect_sync(MPI_Barrier(ALL), "MPI_Barrier(%#lx)", WORLD);
        wait_one(&r);
        receive(6);
        return;
    }
    expect_sync(MPI_Send(in, N, MPI_INT, 1, 3, ALL), "MPI_Send(1, 3, 4, %#lx)", WORLD);
    expect_sync(MPI_Ssend(in, N, MPI_INT, 1, 4, ALL), "MPI_Ssend(1, 4, 4, %#lx)", WORLD);
    expect_sync(MPI_Barrier(ALL), "MPI_Barrier(%#lx)", WORLD);
    expect_sync(MPI_Rsend(in, N, MPI_INT, 1, 5, ALL), "MPI_Rsend(1, 5, 4, %#lx)", WORLD);
    MPI_Buffer_attach(room, sizeof(room));
    expect_sync(MPI_Bsend(in, N, MPI_INT, 1, 6, ALL), "MPI_Bsend(1, 6, 4, %#lx)", WORLD);
    void *old;
    int size;
    MPI_Buffer_detach(&old, &size);
}

static void begun(void)
{
    static char room[4096];
    MPI_Request r[4];
    int index, done, indexes[4], size;
    void *old;
    for (int i = 0; i < 4; i++)
        begin_receive(10 + i, &r[i]);
    expect_sync(MPI_Barrier(ALL), "MPI_Barrier(%#lx)", WORLD);
    MPI_Request s[4];
    MPI_Buffer_attach(room, sizeof(room));
    begin_send(10, &s[0]);
    expect_sync(MPI_Issend(in, N, MPI_INT, peer, 11, ALL, &s[1]), "MPI_Issend(%d, 11, 4, %#lx)",
                peer, WORLD);
    expect_sync(MPI_Ibsend(in, N, MPI_INT, peer, 12, ALL, &s[2]), "MPI_Ibsend(%d, 12, 4, %#lx)",
                peer, WORLD);
    expect_sync(MPI_Irsend(in, N, MPI_INT, peer, 13, ALL, &s[3]), "MPI_Irsend(%d, 13, 4, %#lx)",
                peer, WORLD);
    expect_sync(MPI_Waitany(4, r, &index, MPI_STATUS_IGNORE), "MPI_Waitany(4)");
    expect_sync(MPI_Waitsome(4, r, &done, indexes, MPI_STATUSES_IGNORE), "MPI_Waitsome(4)");
    expect_sync(MPI_Waitall(4, r, MPI_STATUSES_IGNORE), "MPI_Waitall(4)");
    expect_sync(MPI_Waitall(4, s, MPI_STATUSES_IGNORE), "MPI_Waitall(4)");
    MPI_Buffer_detach(&old, &size);
}

static void persistent(void)
{
    MPI_Request r[2];
    MPI_Recv_init(out, N, MPI_INT, peer, 20, ALL, &r[0]);
    MPI_Send_init(in, N, MPI_INT, peer, 20, ALL, &r[1]);
    expect_sync(MPI_Start(&r[0]), "MPI_Start()");
    expect_sync(MPI_Start(&r[1]), "MPI_Start()");
    expect_sync(MPI_Waitall(2, r, MPI_STATUSES_IGNORE), "MPI_Waitall(2)");
    expect_sync(MPI_Startall(2, r), "MPI_Startall(2)");
    expect_sync(MPI_Waitall(2, r, MPI_STATUSES_IGNORE), "MPI_Waitall(2)");
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

static void probes(void)
{
    MPI_Message message;
    if (rank) {
        for (int tag = 30; tag <= 31; tag++)
            expect_sync(MPI_Send(in, N, MPI_INT, 0, tag, ALL), "MPI_Send(0, %d, 4, %#lx)", tag,
                        WORLD);
        return;
    }
    expect_sync(MPI_Probe(1, 30, ALL, MPI_STATUS_IGNORE), "MPI_Probe(1, 30, %#lx)", WORLD);
    receive(30);
    expect_sync(MPI_Mprobe(1, 31, ALL, &message, MPI_STATUS_IGNORE), "MPI_Mprobe(1, 31, %#lx)",
                WORLD);
    expect_sync(MPI_Mrecv(out, N, MPI_INT, &message, MPI_STATUS_IGNORE), "MPI_Mrecv(4)");
}

/* ---- asking without waiting ------------------------------------------------------------- */

/* Unsuccessful tests in a row are one event, before what ended them. */
static void tested(int success, const char *text)
{
    failed += !success;
    if (success && failed)
        expect_text("sync %s = 0\n", text);
    if (success) {
        expect_text("sync %s = 0\n", text);
        failed = 0;
    }
}

/* Makes the test three times in vain: nothing is sent before the other has the go. */
#define ASK(text, test, success)                                                              \
    do {                                                                                      \
        for (int i = 0; i < 3; i++) {                                                         \
            test;                                                                             \
            if (success)                                                                      \
                abort();                                                                      \
        }                                                                                     \
        expect_text("sync %s = 0\n", text);                                                   \
        expect_sync(MPI_Send(in, N, MPI_INT, 1, 40, ALL), "MPI_Send(1, 40, 4, %#lx)", WORLD); \
        do {                                                                                  \
            test;                                                                             \
            tested(success, text);                                                            \
        } while (!(success));                                                                 \
    } while (0)

static void tests(void)
{
    char text[64];
    int flag, index, done, indexes[2];
    MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Message message;
    if (rank) {
        for (int i = 0; i < 6; i++) {
            receive(40);
            expect_sync(MPI_Send(in, N, MPI_INT, 0, 41, ALL), "MPI_Send(0, 41, 4, %#lx)", WORLD);
        }
        return;
    }
    begin_receive(41, r);
    ASK("MPI_Test()", MPI_Test(r, &flag, MPI_STATUS_IGNORE), flag);
    begin_receive(41, r);
    ASK("MPI_Testall(2)", MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE), flag);
    begin_receive(41, r);
    ASK("MPI_Testany(2)", MPI_Testany(2, r, &index, &flag, MPI_STATUS_IGNORE), flag);
    begin_receive(41, r);
    ASK("MPI_Testsome(2)", MPI_Testsome(2, r, &done, indexes, MPI_STATUSES_IGNORE), done == 1);
    snprintf(text, sizeof(text), "MPI_Iprobe(1, 41, %#lx)", WORLD);
    ASK(text, MPI_Iprobe(1, 41, ALL, &flag, MPI_STATUS_IGNORE), flag);
    receive(41);
    snprintf(text, sizeof(text), "MPI_Improbe(1, 41, %#lx)", WORLD);
    ASK(text, MPI_Improbe(1, 41, ALL, &flag, &message, MPI_STATUS_IGNORE), flag);
    expect_sync(MPI_Mrecv(out, N, MPI_INT, &message, MPI_STATUS_IGNORE), "MPI_Mrecv(4)");
}

int main(int argc, char **argv)
{
    char name[32];
    expect_sync(MPI_Init(&argc, &argv), "MPI_Init()");
    MPI_Comm_rank(ALL, &rank);
    peer = 1 - rank;
    collectives();
    collectives_begun();
    communicators();
    windows();
    blocking();
    begun();
    persistent();
    probes();
    tests();
    expect_sync(MPI_Finalize(), "MPI_Finalize()");
    snprintf(name, sizeof(name), "expected.%d", rank);
    return expect_print(open(name, O_WRONLY | O_CREAT, 0600));
}
