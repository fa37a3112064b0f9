/*
 * The calls of MPI, made by two ranks.  Each writes the trace it expects to expected.RANK, a
 * file that is not traced.  Run in an empty directory.
 */
#include "config.h"

#include <fcntl.h>
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/tracer/expect.h"

#define N   4
#define ALL MPI_COMM_WORLD

static int rank, peer;
static int in[2 * N], out[2 * N];
static const int counts[2] = {N, N}, starts[2] = {0, N}, none[2] = {0, N};
static const int byte_starts[2] = {0, sizeof(int) * N};
static const MPI_Aint far_starts[2] = {0, sizeof(int) * N};
static int posted;    /* requests and messages: each has a number of its own */
static int comms = 1; /* communicators and windows, too; the world is 0, self is 1 */

/* A call that makes a request, the number of which is the last thing recorded. */
#define post(call, ...)                           \
    do {                                          \
        long result = (call);                     \
        posted++;                                 \
        expect_sync(result, __VA_ARGS__, posted); \
    } while (0)

/* ... a communicator or window: a mark follows, with its number, the parent's, our rank and all
 * members. */
#define make(call, parent, own, members, ...)                                                  \
    do {                                                                                       \
        long result = (call);                                                                  \
        expect_sync(result, __VA_ARGS__);                                                      \
        expect_text("name MPI_Comm(%d, %d, %d, \"%s\") = 0\n", ++comms, parent, own, members); \
    } while (0)

/* ---- collective ------------------------------------------------------------------------- */

static void collectives(void)
{
    expect_sync(MPI_Barrier(ALL), "MPI_Barrier(0)");
    expect_sync(PMPI_Barrier(ALL), "MPI_Barrier(0)");
    expect_sync(MPI_Bcast(in, N, MPI_INT, 1, ALL), "MPI_Bcast(1, 4, 0)");
    expect_sync(MPI_Reduce(in, out, N, MPI_INT, MPI_SUM, 1, ALL), "MPI_Reduce(1, 4, 0)");
    expect_sync(MPI_Allreduce(in, out, 2, MPI_INT, MPI_SUM, ALL), "MPI_Allreduce(2, 0)");
    expect_sync(PMPI_Allreduce(in, out, 2, MPI_INT, MPI_SUM, ALL), "MPI_Allreduce(2, 0)");
    expect_sync(MPI_Gather(in, N, MPI_INT, out, N, MPI_INT, 0, ALL), "MPI_Gather(0, 4, 0)");
    expect_sync(MPI_Gatherv(in, N, MPI_INT, out, counts, starts, MPI_INT, 1, ALL),
                "MPI_Gatherv(1, 4, 0)");
    expect_sync(MPI_Scatter(in, N, MPI_INT, out, N, MPI_INT, 0, ALL), "MPI_Scatter(0, 4, 0)");
    expect_sync(MPI_Scatterv(in, counts, starts, MPI_INT, out, N, MPI_INT, 1, ALL),
                "MPI_Scatterv(1, 4, 0)");
    expect_sync(MPI_Allgather(in, N, MPI_INT, out, N, MPI_INT, ALL), "MPI_Allgather(4, 0)");
    /* With a count for each member: how many are not zero, or our own. */
    expect_sync(MPI_Allgatherv(in, N, MPI_INT, out, counts, starts, MPI_INT, ALL),
                "MPI_Allgatherv(2, 0)");
    expect_sync(MPI_Allgatherv(in, none[rank], MPI_INT, out, none, starts, MPI_INT, ALL),
                "MPI_Allgatherv(1, 0)");
    expect_sync(MPI_Alltoall(in, N, MPI_INT, out, N, MPI_INT, ALL), "MPI_Alltoall(4, 0)");
    expect_sync(MPI_Alltoallv(in, counts, starts, MPI_INT, out, counts, starts, MPI_INT, ALL),
                "MPI_Alltoallv(2, 0)");
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    expect_sync(MPI_Alltoallw(in, counts, byte_starts, types, out, counts, byte_starts, types, ALL),
                "MPI_Alltoallw(2, 0)");
    expect_sync(MPI_Reduce_scatter(in, out, none, MPI_INT, MPI_SUM, ALL),
                "MPI_Reduce_scatter(%d, 0)", none[rank]);
    expect_sync(MPI_Reduce_scatter_block(in, out, N, MPI_INT, MPI_SUM, ALL),
                "MPI_Reduce_scatter_block(4, 0)");
    expect_sync(MPI_Scan(in, out, 3, MPI_INT, MPI_SUM, ALL), "MPI_Scan(3, 0)");
    expect_sync(MPI_Exscan(in, out, 3, MPI_INT, MPI_SUM, ALL), "MPI_Exscan(3, 0)");
}

static void wait_one(MPI_Request *request)
{
    expect_sync(MPI_Wait(request, MPI_STATUS_IGNORE), "MPI_Wait(%d, -100, -100)", posted);
}

static void collectives_begun(void)
{
    MPI_Request r;
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    post(MPI_Ibarrier(ALL, &r), "MPI_Ibarrier(0, %d)");
    wait_one(&r);
    post(PMPI_Ibarrier(ALL, &r), "MPI_Ibarrier(0, %d)");
    wait_one(&r);
    post(MPI_Ibcast(in, N, MPI_INT, 1, ALL, &r), "MPI_Ibcast(1, 4, 0, %d)");
    wait_one(&r);
    post(MPI_Ireduce(in, out, N, MPI_INT, MPI_SUM, 1, ALL, &r), "MPI_Ireduce(1, 4, 0, %d)");
    wait_one(&r);
    post(MPI_Iallreduce(in, out, N, MPI_INT, MPI_SUM, ALL, &r), "MPI_Iallreduce(4, 0, %d)");
    wait_one(&r);
    post(MPI_Igather(in, N, MPI_INT, out, N, MPI_INT, 0, ALL, &r), "MPI_Igather(0, 4, 0, %d)");
    wait_one(&r);
    post(MPI_Igatherv(in, N, MPI_INT, out, counts, starts, MPI_INT, 1, ALL, &r),
         "MPI_Igatherv(1, 4, 0, %d)");
    wait_one(&r);
    post(MPI_Iscatter(in, N, MPI_INT, out, N, MPI_INT, 0, ALL, &r), "MPI_Iscatter(0, 4, 0, %d)");
    wait_one(&r);
    post(MPI_Iscatterv(in, counts, starts, MPI_INT, out, N, MPI_INT, 1, ALL, &r),
         "MPI_Iscatterv(1, 4, 0, %d)");
    wait_one(&r);
    post(MPI_Iallgather(in, N, MPI_INT, out, N, MPI_INT, ALL, &r), "MPI_Iallgather(4, 0, %d)");
    wait_one(&r);
    post(MPI_Iallgatherv(in, N, MPI_INT, out, counts, starts, MPI_INT, ALL, &r),
         "MPI_Iallgatherv(2, 0, %d)");
    wait_one(&r);
    post(MPI_Ialltoall(in, N, MPI_INT, out, N, MPI_INT, ALL, &r), "MPI_Ialltoall(4, 0, %d)");
    wait_one(&r);
    post(MPI_Ialltoallv(in, counts, starts, MPI_INT, out, counts, starts, MPI_INT, ALL, &r),
         "MPI_Ialltoallv(2, 0, %d)");
    wait_one(&r);
    post(MPI_Ialltoallw(in, counts, byte_starts, types, out, counts, byte_starts, types, ALL, &r),
         "MPI_Ialltoallw(2, 0, %d)");
    wait_one(&r);
    post(MPI_Ireduce_scatter(in, out, counts, MPI_INT, MPI_SUM, ALL, &r),
         "MPI_Ireduce_scatter(4, 0, %d)");
    wait_one(&r);
    post(MPI_Ireduce_scatter_block(in, out, N, MPI_INT, MPI_SUM, ALL, &r),
         "MPI_Ireduce_scatter_block(4, 0, %d)");
    wait_one(&r);
    post(MPI_Iscan(in, out, N, MPI_INT, MPI_SUM, ALL, &r), "MPI_Iscan(4, 0, %d)");
    wait_one(&r);
    post(MPI_Iexscan(in, out, N, MPI_INT, MPI_SUM, ALL, &r), "MPI_Iexscan(4, 0, %d)");
    wait_one(&r);
}

/* Of neighbours: in a ring of two, each has the other twice. */
static void neighbors(void)
{
    static int from[2 * N], to[2 * N];
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    MPI_Comm ring;
    MPI_Request r;
    make(MPI_Cart_create(ALL, 1, (int[]){2}, (int[]){1}, 0, &ring), 0, rank, "0-1",
         "MPI_Cart_create(0)");
    expect_sync(MPI_Neighbor_allgather(from, N, MPI_INT, to, N, MPI_INT, ring),
                "MPI_Neighbor_allgather(%d)", comms);
    expect_sync(MPI_Neighbor_allgatherv(from, N, MPI_INT, to, counts, starts, MPI_INT, ring),
                "MPI_Neighbor_allgatherv(%d)", comms);
    expect_sync(MPI_Neighbor_alltoall(from, N, MPI_INT, to, N, MPI_INT, ring),
                "MPI_Neighbor_alltoall(%d)", comms);
    expect_sync(
        MPI_Neighbor_alltoallv(from, counts, starts, MPI_INT, to, counts, starts, MPI_INT, ring),
        "MPI_Neighbor_alltoallv(%d)", comms);
    expect_sync(MPI_Neighbor_alltoallw(from, counts, far_starts, types, to, counts, far_starts,
                                       types, ring),
                "MPI_Neighbor_alltoallw(%d)", comms);
    post(MPI_Ineighbor_allgather(from, N, MPI_INT, to, N, MPI_INT, ring, &r),
         "MPI_Ineighbor_allgather(%d, %d)", comms);
    wait_one(&r);
    post(MPI_Ineighbor_allgatherv(from, N, MPI_INT, to, counts, starts, MPI_INT, ring, &r),
         "MPI_Ineighbor_allgatherv(%d, %d)", comms);
    wait_one(&r);
    post(MPI_Ineighbor_alltoall(from, N, MPI_INT, to, N, MPI_INT, ring, &r),
         "MPI_Ineighbor_alltoall(%d, %d)", comms);
    wait_one(&r);
    post(MPI_Ineighbor_alltoallv(from, counts, starts, MPI_INT, to, counts, starts, MPI_INT, ring,
                                 &r),
         "MPI_Ineighbor_alltoallv(%d, %d)", comms);
    wait_one(&r);
    post(MPI_Ineighbor_alltoallw(from, counts, far_starts, types, to, counts, far_starts, types,
                                 ring, &r),
         "MPI_Ineighbor_alltoallw(%d, %d)", comms);
    wait_one(&r);
    expect_sync(MPI_Comm_free(&ring), "MPI_Comm_free(%d)", comms);
}

/* ---- communicators and windows ----------------------------------------------------------- */

static void free_comm(MPI_Comm *comm)
{
    expect_sync(MPI_Comm_free(comm), "MPI_Comm_free(%d)", comms);
}

static void communicators(void)
{
    MPI_Comm comm, grid;
    MPI_Group group;
    const char *self = rank ? "1" : "0";
    const int one[1] = {1};
    make(MPI_Comm_dup(ALL, &comm), 0, rank, "=0", "MPI_Comm_dup(0)");
    expect_sync(MPI_Barrier(comm), "MPI_Barrier(%d)", comms);
    free_comm(&comm);
    make(MPI_Comm_dup_with_info(ALL, MPI_INFO_NULL, &comm), 0, rank, "=0",
         "MPI_Comm_dup_with_info(0)");
    expect_sync(MPI_Comm_disconnect(&comm), "MPI_Comm_disconnect(%d)", comms);
    make(MPI_Comm_split(ALL, rank, 0, &comm), 0, 0, self, "MPI_Comm_split(1, 0)");
    free_comm(&comm);
    make(MPI_Comm_split(ALL, 0, -rank, &comm), 0, peer, "1,0", "MPI_Comm_split(1, 0)");
    free_comm(&comm);
    expect_sync(MPI_Comm_split(ALL, MPI_UNDEFINED, 0, &comm), "MPI_Comm_split(0, 0)");
    make(MPI_Comm_split_type(ALL, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm), 0, rank, "0-1",
         "MPI_Comm_split_type(0)");
    free_comm(&comm);
    MPI_Comm_group(ALL, &group);
    make(MPI_Comm_create(ALL, group, &comm), 0, rank, "0-1", "MPI_Comm_create(0)");
    free_comm(&comm);
    make(MPI_Comm_create_group(ALL, group, 5, &comm), 0, rank, "0-1",
         "MPI_Comm_create_group(5, 0)");
    free_comm(&comm);
    MPI_Group_free(&group);
    make(MPI_Graph_create(ALL, 2, (int[]){1, 2}, (int[]){1, 0}, 0, &comm), 0, rank, "0-1",
         "MPI_Graph_create(0)");
    free_comm(&comm);
    make(MPI_Dist_graph_create(ALL, 1, &rank, (int[]){1}, &peer, one, MPI_INFO_NULL, 0, &comm), 0,
         rank, "0-1", "MPI_Dist_graph_create(0)");
    free_comm(&comm);
    make(MPI_Dist_graph_create_adjacent(ALL, 1, &peer, one, 1, &peer, one, MPI_INFO_NULL, 0, &comm),
         0, rank, "0-1", "MPI_Dist_graph_create_adjacent(0)");
    free_comm(&comm);
    make(MPI_Cart_create(ALL, 1, (int[]){2}, (int[]){0}, 0, &grid), 0, rank, "0-1",
         "MPI_Cart_create(0)");
    int number = comms;
    make(MPI_Cart_sub(grid, (int[]){0}, &comm), number, 0, self, "MPI_Cart_sub(%d)", number);
    free_comm(&comm);
    expect_sync(MPI_Comm_free(&grid), "MPI_Comm_free(%d)", number);
}

/* Two groups of one, and both as one. */
static void intercommunicators(void)
{
    MPI_Comm inter, both;
    make(MPI_Intercomm_create(MPI_COMM_SELF, 0, ALL, peer, 6, &inter), -1, 0, rank ? "1|0" : "0|1",
         "MPI_Intercomm_create(1)");
    int number = comms;
    expect_sync(MPI_Barrier(inter), "MPI_Barrier(%d)", number);
    make(MPI_Intercomm_merge(inter, rank, &both), number, rank, "0-1", "MPI_Intercomm_merge(%d)",
         number);
    free_comm(&both);
    expect_sync(MPI_Comm_free(&inter), "MPI_Comm_free(%d)", number);
}

/* One that is made while the program goes on: its number is known, but not in use yet. */
static void duplicate_begun(void)
{
    MPI_Comm comm;
    MPI_Request r;
    int rc = MPI_Comm_idup(ALL, &comm, &r);
    expect_sync(rc, "MPI_Comm_idup(0, %d)", ++posted);
    expect_text("name MPI_Comm(%d, 0, %d, \"=0\") = 0\n", ++comms, rank);
    wait_one(&r);
    free_comm(&comm);
}

static void free_win(MPI_Win *win)
{
    expect_sync(MPI_Win_free(win), "MPI_Win_free(%d)", comms);
}

static void windows(void)
{
    MPI_Win win;
    void *base;
    make(MPI_Win_create(in, sizeof(in), 1, MPI_INFO_NULL, ALL, &win), 0, rank, "=0",
         "MPI_Win_create(0)");
    expect_sync(MPI_Win_fence(MPI_MODE_NOPRECEDE, win), "MPI_Win_fence(2, %d)", comms);
    expect_sync(MPI_Win_fence(0, win), "MPI_Win_fence(0, %d)", comms);
    free_win(&win);
    make(MPI_Win_create_dynamic(MPI_INFO_NULL, ALL, &win), 0, rank, "=0",
         "MPI_Win_create_dynamic(0)");
    free_win(&win);
    make(MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, ALL, &base, &win), 0, rank, "=0",
         "MPI_Win_allocate_shared(0)");
    free_win(&win);
    make(MPI_Win_allocate(64, 1, MPI_INFO_NULL, ALL, &base, &win), 0, rank, "=0",
         "MPI_Win_allocate(0)");
    expect_sync(MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, win), "MPI_Win_lock(%d, %d)", peer, comms);
    expect_sync(MPI_Win_flush(peer, win), "MPI_Win_flush(%d, %d)", peer, comms);
    expect_sync(MPI_Win_flush_local(peer, win), "MPI_Win_flush_local(%d, %d)", peer, comms);
    expect_sync(MPI_Win_unlock(peer, win), "MPI_Win_unlock(%d, %d)", peer, comms);
    expect_sync(MPI_Win_lock_all(0, win), "MPI_Win_lock_all(%d)", comms);
    expect_sync(MPI_Win_flush_all(win), "MPI_Win_flush_all(%d)", comms);
    expect_sync(MPI_Win_flush_local_all(win), "MPI_Win_flush_local_all(%d)", comms);
    expect_sync(MPI_Win_unlock_all(win), "MPI_Win_unlock_all(%d)", comms);
    free_win(&win);
}

/* Rank 0 accesses what rank 1 exposes, twice. */
static void epochs(void)
{
    MPI_Win win;
    MPI_Group world, other;
    MPI_Comm_group(ALL, &world);
    MPI_Group_incl(world, 1, &peer, &other);
    make(MPI_Win_create(in, sizeof(in), 1, MPI_INFO_NULL, ALL, &win), 0, rank, "=0",
         "MPI_Win_create(0)");
    for (int i = 0; i < 2; i++) {
        const char *begin = rank ? "MPI_Win_post" : "MPI_Win_start";
        int rc = rank ? MPI_Win_post(other, 0, win) : MPI_Win_start(other, 0, win);
        expect_sync(rc, "%s(%d)", begin, comms);
        expect_text("name MPI_Group(%d, \"%d\") = 0\n", comms, peer);
        if (!rank)
            expect_sync(MPI_Win_complete(win), "MPI_Win_complete(%d)", comms);
        else if (i == 0)
            expect_sync(MPI_Win_wait(win), "MPI_Win_wait(%d)", comms);
        expect_sync(MPI_Barrier(ALL), "MPI_Barrier(0)");
        if (rank && i == 1) { /* complete since the barrier, though it may take a look to see it */
            int flag = 0, looks = 0;
            for (; !flag; looks++)
                MPI_Win_test(win, &flag);
            if (looks > 1)
                expect_text("sync MPI_Win_test(%d, 0) = 0\n", comms);
            expect_text("sync MPI_Win_test(%d, 1) = 0\n", comms);
        }
    }
    free_win(&win);
    MPI_Group_free(&other);
    MPI_Group_free(&world);
}

/* ---- from one to the other -------------------------------------------------------------- */

static void receive(int tag)
{
    expect_sync(MPI_Recv(out, N, MPI_INT, peer, tag, ALL, MPI_STATUS_IGNORE),
                "MPI_Recv(%d, %d, 4, 0)", peer, tag);
}

static void begin_receive(int tag, MPI_Request *r)
{
    post(MPI_Irecv(out, N, MPI_INT, peer, tag, ALL, r), "MPI_Irecv(%d, %d, 4, 0, %d)", peer, tag);
}

static void begin_send(int tag, MPI_Request *r)
{
    post(MPI_Isend(in, N, MPI_INT, peer, tag, ALL, r), "MPI_Isend(%d, %d, 16, 0, %d)", peer, tag);
}

static void blocking(void)
{
    static char room[4096];
    expect_sync(MPI_Sendrecv(in, N, MPI_INT, peer, 1, out, N, MPI_INT, MPI_ANY_SOURCE, 1, ALL,
                             MPI_STATUS_IGNORE),
                "MPI_Sendrecv(%d, 1, %d, 1, 16, 0)", peer, peer);
    expect_sync(
        MPI_Sendrecv_replace(in, N, MPI_INT, peer, 2, peer, MPI_ANY_TAG, ALL, MPI_STATUS_IGNORE),
        "MPI_Sendrecv_replace(%d, 2, %d, 2, 16, 0)", peer, peer);
    if (rank) {
        receive(3);
        /* A wildcard is recorded as what it has matched. */
        expect_sync(MPI_Recv(out, N, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, ALL, MPI_STATUS_IGNORE),
                    "MPI_Recv(0, 4, 4, 0)");
        MPI_Request r;
        begin_receive(5, &r); /* there before the ready send */
        expect_sync(MPI_Barrier(ALL), "MPI_Barrier(0)");
        wait_one(&r);
        receive(6);
        return;
    }
    expect_sync(MPI_Send(in, N, MPI_INT, 1, 3, ALL), "MPI_Send(1, 3, 16, 0)");
    expect_sync(MPI_Ssend(in, N, MPI_INT, 1, 4, ALL), "MPI_Ssend(1, 4, 16, 0)");
    expect_sync(MPI_Barrier(ALL), "MPI_Barrier(0)");
    expect_sync(MPI_Rsend(in, N, MPI_INT, 1, 5, ALL), "MPI_Rsend(1, 5, 16, 0)");
    MPI_Buffer_attach(room, sizeof(room));
    expect_sync(MPI_Bsend(in, N, MPI_INT, 1, 6, ALL), "MPI_Bsend(1, 6, 16, 0)");
    void *old;
    int size;
    MPI_Buffer_detach(&old, &size);
}

/* A request that was completed, in a mark after the call. */
static void done(int number)
{
    expect_text("name MPI_done(%d, -100, -100) = 0\n", number);
}

/* All have come when the other has said so: the order of completion is that of the array. */
static void begun(void)
{
    static char room[4096];
    MPI_Request r[4], s[4];
    int index, some, indexes[4], size, first = posted + 1;
    void *old;
    for (int i = 0; i < 3; i++)
        begin_receive(10 + i, &r[i]);
    post(MPI_Irecv(out, N, MPI_INT, MPI_ANY_SOURCE, 13, ALL, &r[3]), "MPI_Irecv(-1, 13, 4, 0, %d)");
    expect_sync(MPI_Barrier(ALL), "MPI_Barrier(0)");
    MPI_Buffer_attach(room, sizeof(room));
    begin_send(10, &s[0]);
    post(MPI_Issend(in, N, MPI_INT, peer, 11, ALL, &s[1]), "MPI_Issend(%d, 11, 16, 0, %d)", peer);
    post(MPI_Ibsend(in, N, MPI_INT, peer, 12, ALL, &s[2]), "MPI_Ibsend(%d, 12, 16, 0, %d)", peer);
    post(MPI_Irsend(in, N, MPI_INT, peer, 13, ALL, &s[3]), "MPI_Irsend(%d, 13, 16, 0, %d)", peer);
    expect_sync(MPI_Barrier(ALL), "MPI_Barrier(0)");
    expect_sync(MPI_Waitany(1, r, &index, MPI_STATUS_IGNORE), "MPI_Waitany(1, %d, -100, -100)",
                first);
    expect_sync(MPI_Waitsome(1, r + 1, &some, indexes, MPI_STATUSES_IGNORE), "MPI_Waitsome(1)");
    done(first + 1);
    expect_sync(MPI_Waitall(3, r + 1, MPI_STATUSES_IGNORE), "MPI_Waitall(3)");
    done(first + 2);
    expect_text("name MPI_done(%d, %d, 13) = 0\n", first + 3, peer); /* it was a wildcard's */
    /* Small sends are complete when they like; only a synchronous one tells something. */
    expect_sync(MPI_Waitall(4, s, MPI_STATUSES_IGNORE), "MPI_Waitall(4)");
    done(first + 5);
    MPI_Buffer_detach(&old, &size);
}

#define init(call, ...)                           \
    do {                                          \
        long result = (call);                     \
        posted++;                                 \
        expect_name(result, __VA_ARGS__, posted); \
    } while (0)

static void persistent(void)
{
    static char room[4096];
    MPI_Request r[2], other[3];
    int first = posted + 1, size;
    void *old;
    init(MPI_Recv_init(out, N, MPI_INT, peer, 20, ALL, &r[0]), "MPI_Recv_init(%d, 20, 4, 0, %d)",
         peer);
    init(MPI_Send_init(in, N, MPI_INT, peer, 20, ALL, &r[1]), "MPI_Send_init(%d, 20, 16, 0, %d)",
         peer);
    expect_sync(MPI_Start(&r[0]), "MPI_Start(%d)", first);
    expect_sync(MPI_Start(&r[1]), "MPI_Start(%d)", first + 1);
    expect_sync(MPI_Waitall(2, r, MPI_STATUSES_IGNORE), "MPI_Waitall(2)");
    done(first);
    expect_sync(MPI_Startall(2, r), "MPI_Startall(2)");
    for (int i = 0; i < 2; i++)
        expect_text("name MPI_started(%d) = 0\n", first + i);
    expect_sync(MPI_Waitall(2, r, MPI_STATUSES_IGNORE), "MPI_Waitall(2)");
    done(first);
    for (int i = 0; i < 2; i++)
        expect_name(MPI_Request_free(&r[i]), "MPI_Request_free(%d)", first + i);
    MPI_Buffer_attach(room, sizeof(room));
    first = posted + 1;
    init(MPI_Ssend_init(in, N, MPI_INT, peer, 21, ALL, &other[0]),
         "MPI_Ssend_init(%d, 21, 16, 0, %d)", peer);
    init(MPI_Bsend_init(in, N, MPI_INT, peer, 22, ALL, &other[1]),
         "MPI_Bsend_init(%d, 22, 16, 0, %d)", peer);
    init(MPI_Rsend_init(in, N, MPI_INT, peer, 23, ALL, &other[2]),
         "MPI_Rsend_init(%d, 23, 16, 0, %d)", peer);
    for (int i = 0; i < 3; i++)
        expect_name(MPI_Request_free(&other[i]), "MPI_Request_free(%d)", first + i);
    MPI_Buffer_detach(&old, &size);
}

static void cancelled(void)
{
    MPI_Request r;
    begin_receive(24, &r);
    expect_name(MPI_Cancel(&r), "MPI_Cancel(%d)", posted);
    expect_sync(MPI_Wait(&r, MPI_STATUS_IGNORE), "MPI_Wait(%d, -101, -100)", posted);
}

static void probes(void)
{
    MPI_Message message;
    MPI_Request r;
    if (rank) {
        for (int tag = 30; tag <= 32; tag++)
            expect_sync(MPI_Send(in, N, MPI_INT, 0, tag, ALL), "MPI_Send(0, %d, 16, 0)", tag);
        return;
    }
    expect_sync(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, ALL, MPI_STATUS_IGNORE),
                "MPI_Probe(1, 30, 0)");
    receive(30);
    /* A message has a number, which goes on with its request. */
    post(MPI_Mprobe(1, MPI_ANY_TAG, ALL, &message, MPI_STATUS_IGNORE), "MPI_Mprobe(1, 31, 0, %d)");
    expect_sync(MPI_Mrecv(out, N, MPI_INT, &message, MPI_STATUS_IGNORE), "MPI_Mrecv(4, %d)",
                posted);
    post(MPI_Mprobe(1, 32, ALL, &message, MPI_STATUS_IGNORE), "MPI_Mprobe(1, 32, 0, %d)");
    expect_sync(MPI_Imrecv(out, N, MPI_INT, &message, &r), "MPI_Imrecv(4, %d)", posted);
    wait_one(&r);
}

/* ---- asking without waiting ------------------------------------------------------------- */

#define TIMES 1000

/* Tests in vain that follow each other are one event. */
static void expect_vain(const char *text, unsigned long times)
{
    if (!times)
        return;
    expect_sync(0, "%s", text);
    expect_count(times);
}

/* Makes the test so often in vain: nothing is sent before the other has the go. */
#define ASK(in_vain, text, test, success)                                            \
    do {                                                                             \
        unsigned long more = 0;                                                      \
        for (int i = 0; i < TIMES; i++) {                                            \
            test;                                                                    \
            if (success)                                                             \
                abort();                                                             \
        }                                                                            \
        expect_vain(in_vain, TIMES);                                                 \
        expect_sync(MPI_Send(in, N, MPI_INT, 1, 40, ALL), "MPI_Send(1, 40, 16, 0)"); \
        for (;; more++) {                                                            \
            test;                                                                    \
            if (success)                                                             \
                break;                                                               \
        }                                                                            \
        expect_vain(in_vain, more);                                                  \
        expect_sync(0, "%s", text);                                                  \
    } while (0)

static const char *text_of(const char *fmt, int number)
{
    static char text[64];
    snprintf(text, sizeof(text), fmt, number);
    return text;
}

/* Asks for several things in turn, and sleeps in between. */
static int ask_for_both(MPI_Request *r)
{
    int flag, probed;
    MPI_Iprobe(1, 42, ALL, &probed, MPI_STATUS_IGNORE);
    if (probed)
        abort();
    usleep(1);
    MPI_Test(r, &flag, MPI_STATUS_IGNORE);
    return flag;
}

static void mixed_tests(void)
{
    static const char text[] = "MPI_Iprobe(1, 42, 0, 0)";
    unsigned long times = 0;
    MPI_Request r;
    if (rank) {
        receive(40);
        expect_sync(MPI_Send(in, N, MPI_INT, 0, 41, ALL), "MPI_Send(0, 41, 16, 0)");
        return;
    }
    begin_receive(41, &r);
    for (int i = 0; i < TIMES; i++)
        if (ask_for_both(&r))
            abort();
    expect_vain(text, 2 * TIMES);
    expect_sync(MPI_Send(in, N, MPI_INT, 1, 40, ALL), "MPI_Send(1, 40, 16, 0)");
    while (!ask_for_both(&r))
        times += 2;
    expect_vain(text, times + 1); /* the last MPI_Iprobe, before the test that succeeds */
    expect_sync(0, "MPI_Test(%d, -100, -100)", posted);
}

static void tests(void)
{
    int flag, index, some, indexes[2];
    MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Message message;
    if (rank) {
        for (int i = 0; i < 6; i++) {
            receive(40);
            expect_sync(MPI_Send(in, N, MPI_INT, 0, 41, ALL), "MPI_Send(0, 41, 16, 0)");
        }
        return;
    }
    begin_receive(41, r);
    ASK("MPI_Test(0, -100, -100)", text_of("MPI_Test(%d, -100, -100)", posted),
        MPI_Test(r, &flag, MPI_STATUS_IGNORE), flag);
    begin_receive(41, r);
    ASK("MPI_Testall(2)", "MPI_Testall(2)", MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE), flag);
    done(posted);
    begin_receive(41, r);
    ASK("MPI_Testany(2, 0, -100, -100)", text_of("MPI_Testany(2, %d, -100, -100)", posted),
        MPI_Testany(2, r, &index, &flag, MPI_STATUS_IGNORE), flag);
    begin_receive(41, r);
    ASK("MPI_Testsome(2)", "MPI_Testsome(2)",
        MPI_Testsome(2, r, &some, indexes, MPI_STATUSES_IGNORE), some == 1);
    done(posted);
    ASK("MPI_Iprobe(1, -1, 0, 0)", "MPI_Iprobe(1, 41, 0, 1)",
        MPI_Iprobe(1, MPI_ANY_TAG, ALL, &flag, MPI_STATUS_IGNORE), flag);
    receive(41);
    ASK("MPI_Improbe(1, 41, 0, 0)", text_of("MPI_Improbe(1, 41, 0, %d)", posted + 1),
        MPI_Improbe(1, 41, ALL, &flag, &message, MPI_STATUS_IGNORE), flag);
    expect_sync(MPI_Mrecv(out, N, MPI_INT, &message, MPI_STATUS_IGNORE), "MPI_Mrecv(4, %d)",
                ++posted);
}

/* ---- out of a call ------------------------------------------------------------------------- */

static jmp_buf before_error;

static void jump_out(MPI_Comm *comm, int *error, ...)
{
    (void)comm;
    longjmp(before_error, *error);
}

/* What the program's error handler leaves never returns; what comes after it is the program's. */
static void left_by_handler(void)
{
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(jump_out, &handler);
    MPI_Comm_set_errhandler(ALL, handler);
    for (int n = 0; n < 3; n++) {
        if (!setjmp(before_error) && !MPI_Send(out, 1, MPI_INT, 1000, 0, ALL))
            abort();
        expect_sync(MPI_Barrier(ALL), "MPI_Barrier(0)");
    }
    MPI_Comm_set_errhandler(ALL, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
}

int main(int argc, char **argv)
{
    char name[32];
    long rc = MPI_Init(&argc, &argv);
    MPI_Comm_rank(ALL, &rank);
    peer = 1 - rank;
    expect_sync(rc, "MPI_Init()");
    expect_world(rank);
    collectives();
    collectives_begun();
    neighbors();
    communicators();
    intercommunicators();
    duplicate_begun();
    windows();
    epochs();
    blocking();
    begun();
    persistent();
    cancelled();
    probes();
    tests();
    mixed_tests();
    left_by_handler();
    expect_sync(MPI_Finalize(), "MPI_Finalize()");
    snprintf(name, sizeof(name), "expected.%d", rank);
    return expect_print(open(name, O_WRONLY | O_CREAT, 0600));
}
