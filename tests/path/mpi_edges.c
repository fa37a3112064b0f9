/*
 * Waits for other ranks in every way that MPI has, with an I/O before and after, and says
 * which order that makes.  Four ranks; each writes a byte to its own file, file.RANK, at the
 * place that is the I/O's number.  Rank 0 writes the orders to expected.edges, which is not
 * traced: "RANK NUMBER RANK NUMBER", the first before the second.
 *
 * With the argument `killed` a rank dies half way, with `busy` threads exchange many messages,
 * and that is all.
 *
 * A part of the program is a `scene`: I/O number 10 * scene + k is its k-th.
 */
#include "config.h"

#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ALL   MPI_COMM_WORLD
#define RANKS 4
#define LARGE (1 << 20)
#define MANY  200

static int rank, fd, scene;
static FILE *expected;
static char small[64], large[2 * LARGE];
static int in[MANY], out[MANY];

static void die(const char *what)
{
    fprintf(stderr, "mpi_edges: rank %d, scene %d: %s\n", rank, scene, what);
    MPI_Abort(ALL, 1);
}

static void io(int k)
{
    if (pwrite(fd, "x", 1, 10 * scene + k) != 1)
        die("cannot write");
}

/* I/O k of rank a comes before I/O l of rank b. */
static void order(int a, int k, int b, int l)
{
    if (rank == 0)
        fprintf(expected, "%d %d %d %d\n", a, 10 * scene + k, b, 10 * scene + l);
}

static void before(int a, int b)
{
    order(a, 0, b, 1);
}

static void all_before_all(void)
{
    for (int a = 0; a < RANKS; a++)
        for (int b = 0; b < RANKS; b++)
            if (a != b)
                before(a, b);
}

static void one_before_others(int one)
{
    for (int b = 0; b < RANKS; b++)
        if (b != one)
            before(one, b);
}

static void others_before_one(int one)
{
    for (int a = 0; a < RANKS; a++)
        if (a != one)
            before(a, one);
}

static void lower_before_higher(void)
{
    for (int a = 0; a < RANKS; a++)
        for (int b = a + 1; b < RANKS; b++)
            before(a, b);
}

/* Scenes are kept apart, so that no wildcard takes a message of the next one. */
static void new_scene(void)
{
    MPI_Barrier(ALL);
    for (int a = 0; rank == 0 && scene && a < RANKS; a++)
        for (int b = 0; b < RANKS; b++)
            if (a != b)
                order(a, 1, b, 10);
    scene++;
}

/* Between I/O 0 and 1 of a new scene: what follows. */
#define SCENE(...)   \
    do {             \
        new_scene(); \
        io(0);       \
        __VA_ARGS__; \
        io(1);       \
    } while (0)

static void send_to(int to, int tag)
{
    MPI_Send(out, 1, MPI_INT, to, tag, ALL);
}

static void receive_from(int from, int tag)
{
    MPI_Recv(in, 1, MPI_INT, from, tag, ALL, MPI_STATUS_IGNORE);
}

/* ---- blocking messages ------------------------------------------------------------------- */

static void blocking(void)
{
    SCENE(if (rank == 0) send_to(1, 7); if (rank == 1) receive_from(0, 7));
    before(0, 1);

    SCENE(if (rank) PMPI_Send(out, 1, MPI_INT, 0, rank, ALL); else for (int i = 1; i < RANKS; i++)
              PMPI_Recv(in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, ALL, MPI_STATUS_IGNORE));
    others_before_one(0);

    /* Messages do not overtake each other, whatever the receiver asks for. */
    SCENE(for (int i = 0; i < 3; i++) {
        if (rank == 2) {
            io(2 + i);
            send_to(3, 5);
        } else if (rank == 3) {
            receive_from(i == 1 ? MPI_ANY_SOURCE : 2, i == 2 ? MPI_ANY_TAG : 5);
            io(2 + i);
        }
    });
    for (int i = 0; i < 3; i++)
        order(2, 2 + i, 3, 2 + i);
    before(2, 3);

    int next = (rank + 1) % RANKS, last = (rank + RANKS - 1) % RANKS;
    SCENE(MPI_Sendrecv(out, 1, MPI_INT, next, 1, in, 1, MPI_INT, MPI_ANY_SOURCE, 1, ALL,
                       MPI_STATUS_IGNORE));
    for (int a = 0; a < RANKS; a++)
        before(a, (a + 1) % RANKS);
    SCENE(MPI_Sendrecv_replace(in, 1, MPI_INT, rank == 3 ? MPI_PROC_NULL : next, 2,
                               rank == 0 ? MPI_PROC_NULL : last, 2, ALL, MPI_STATUS_IGNORE));
    for (int a = 0; a < RANKS - 1; a++)
        before(a, a + 1);
}

/* Sends that wait for their receive. */
static void both_ways(void)
{
    MPI_Request r;
    SCENE(if (rank == 0) MPI_Ssend(out, 1, MPI_INT, 1, 1, ALL); if (rank == 1) receive_from(0, 1));
    before(0, 1);
    before(1, 0);
    SCENE(if (rank == 2) MPI_Send(large, LARGE, MPI_CHAR, 3, 1, ALL);
          if (rank == 3) MPI_Recv(large, LARGE, MPI_CHAR, 2, 1, ALL, MPI_STATUS_IGNORE));
    before(2, 3);
    before(3, 2);
    SCENE(if (rank == 1) {
        MPI_Issend(out, 1, MPI_INT, 2, 1, ALL, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    } if (rank == 2) receive_from(1, 1));
    before(1, 2);
    before(2, 1);
    SCENE(if (rank == 0) {
        MPI_Isend(large, LARGE, MPI_CHAR, 1, 1, ALL, &r);
        io(2); /* does not wait yet */
        MPI_Waitall(1, &r, MPI_STATUSES_IGNORE);
    } if (rank == 1) MPI_Recv(large, LARGE, MPI_CHAR, 0, 1, ALL, MPI_STATUS_IGNORE));
    before(0, 1);
    before(1, 0);
}

/* ---- begun and completed -------------------------------------------------------------------- */

enum how { WAIT, WAITALL, WAITANY, WAITSOME, TEST, TESTALL, TESTANY, TESTSOME, WAYS };

static void complete(enum how how, int n, MPI_Request *r)
{
    int left = n, flag = 0, index, indexes[RANKS], count;
    MPI_Status statuses[RANKS];
    switch (how) {
    case WAIT:
        for (int i = 0; i < n; i++)
            MPI_Wait(&r[i], i % 2 ? MPI_STATUS_IGNORE : statuses);
        break;
    case WAITALL:
        MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
        break;
    case WAITANY:
        for (; left; left--)
            MPI_Waitany(n, r, &index, MPI_STATUS_IGNORE);
        break;
    case WAITSOME:
        for (; left; left -= count)
            MPI_Waitsome(n, r, &count, indexes, left > 1 ? MPI_STATUSES_IGNORE : statuses);
        break;
    case TEST:
        for (int i = 0; i < n; i++)
            do
                MPI_Test(&r[i], &flag, MPI_STATUS_IGNORE);
            while (!flag);
        break;
    case TESTALL:
        while (!flag)
            MPI_Testall(n, r, &flag, MPI_STATUSES_IGNORE);
        break;
    case TESTANY:
        for (; left; left -= flag)
            MPI_Testany(n, r, &index, &flag, MPI_STATUS_IGNORE);
        break;
    default:
        for (; left; left -= count)
            MPI_Testsome(n, r, &count, indexes, statuses);
    }
}

static void begun(void)
{
    for (enum how how = WAIT; how < WAYS; how++) {
        MPI_Request r[RANKS];
        int from = rank == 1 ? MPI_ANY_SOURCE : 0;
        SCENE(
            if (rank == 0 || rank == 2) {
                MPI_Isend(out, 1, MPI_INT, 1, 3, ALL, &r[0]);
                MPI_Isend(out, 1, MPI_INT, rank ? 1 : 3, rank ? 3 : 4, ALL, &r[1]);
                complete(how, 2, r);
            } else {
                int n = rank == 1 ? 3 : 1;
                for (int i = 0; i < n; i++)
                    MPI_Irecv(&in[i], 1, MPI_INT, from, rank == 1 ? 3 : MPI_ANY_TAG, ALL, &r[i]);
                io(2); /* waits for nobody */
                complete(how, n, r);
            });
        before(0, 1);
        before(2, 1);
        before(0, 3);
    }
}

/* More requests than the tracer has room for on the stack. */
static void many(void)
{
    static MPI_Request r[MANY];
    for (int statuses = 0; statuses < 2; statuses++) {
        static MPI_Status status[MANY];
        SCENE(for (int i = 0; i < MANY; i++) {
            if (rank == 3)
                MPI_Irecv(&in[i], 1, MPI_INT, MPI_ANY_SOURCE, i, ALL, &r[i]);
            else if (i % 3 == rank)
                send_to(3, i);
        } if (rank == 3) MPI_Waitall(MANY, r, statuses ? status : MPI_STATUSES_IGNORE));
        others_before_one(3);
    }
}

static void persistent(void)
{
    MPI_Request r[2];
    SCENE(
        if (rank == 1) {
            MPI_Recv_init(&in[0], 1, MPI_INT, MPI_ANY_SOURCE, 1, ALL, &r[0]);
            MPI_Recv_init(&in[1], 1, MPI_INT, 0, 2, ALL, &r[1]);
        } if (rank == 0) {
            MPI_Send_init(out, 1, MPI_INT, 1, 1, ALL, &r[0]);
            MPI_Ssend_init(out, 1, MPI_INT, 1, 2, ALL, &r[1]);
        } for (int round = 0; rank < 2 && round < 3; round++) {
            io(2 + 2 * round);
            if (round == 1) {
                MPI_Start(&r[0]);
                MPI_Start(&r[1]);
            } else {
                MPI_Startall(2, r);
            }
            MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
            io(3 + 2 * round);
        } if (rank < 2) {
            MPI_Request_free(&r[0]);
            MPI_Request_free(&r[1]);
        });
    for (int round = 0; round < 3; round++) {
        order(0, 2 + 2 * round, 1, 3 + 2 * round);
        order(1, 2 + 2 * round, 0, 3 + 2 * round);
    }
}

static void cancelled(void)
{
    MPI_Request r;
    MPI_Status status;
    SCENE(
        if (rank == 1) {
            MPI_Irecv(in, 1, MPI_INT, 0, 1, ALL, &r);
            MPI_Cancel(&r);
            MPI_Wait(&r, &status);
            int yes;
            MPI_Test_cancelled(&status, &yes);
            if (!yes)
                die("not cancelled");
            send_to(0, 9);
            receive_from(0, 1);
            io(2);
            receive_from(0, 1);
        } if (rank == 0) {
            receive_from(1, 9);
            send_to(1, 1);
            io(2);
            send_to(1, 1);
        });
    order(1, 0, 0, 2);
    order(0, 0, 1, 2);
    order(0, 2, 1, 1);
}

static void probes(void)
{
    MPI_Status status;
    MPI_Message message;
    MPI_Request r;
    int flag = 1 << 30; /* nobody may take it for a number of bytes before it is an answer */
    SCENE(
        if (rank == 2) {
            send_to(0, 4);
            io(2);
            send_to(0, 4);
        } if (rank == 0) {
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, ALL, MPI_STATUS_IGNORE);
            io(2);
            receive_from(2, 4);
            io(4); /* the message that was probed, not the next one */
            do
                MPI_Iprobe(2, MPI_ANY_TAG, ALL, &flag, &status);
            while (!flag);
            io(3);
            receive_from(2, 4);
        });
    order(2, 0, 0, 2);
    order(2, 2, 0, 3);
    SCENE(
        if (rank == 3) {
            send_to(1, 4);
            io(2);
            MPI_Ssend(out, 1, MPI_INT, 1, 4, ALL);
            io(3);
            send_to(1, 4);
        } if (rank == 1) {
            MPI_Mprobe(MPI_ANY_SOURCE, 4, ALL, &message, MPI_STATUS_IGNORE);
            io(2);
            MPI_Mrecv(in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
            do
                MPI_Improbe(3, MPI_ANY_TAG, ALL, &flag, &message, MPI_STATUS_IGNORE);
            while (!flag);
            io(3);
            MPI_Imrecv(in, 1, MPI_INT, &message, &r);
            MPI_Wait(&r, MPI_STATUS_IGNORE);
            receive_from(3, 4);
        });
    order(3, 0, 1, 2);
    order(3, 2, 1, 3);
    order(1, 3, 3, 3);
    order(3, 3, 1, 1);
}

/* ---- collectives ------------------------------------------------------------------------ */

static const int ones[RANKS] = {1, 1, 1, 1}, places[RANKS] = {0, 1, 2, 3};
static int bytes_at[RANKS] = {0, 4, 8, 12};
static const int some[RANKS] = {1, 1, 0, 1};
static MPI_Datatype types[RANKS];

/* Each in its two forms, which `wait` ends. */
#define BOTH(name, begun, ...)              \
    SCENE(MPI_##name(__VA_ARGS__, ALL));    \
    expect();                               \
    SCENE({                                 \
        MPI_Request r;                      \
        PMPI_##begun(__VA_ARGS__, ALL, &r); \
        io(2);                              \
        MPI_Wait(&r, MPI_STATUS_IGNORE);    \
    });                                     \
    expect();

static void (*expect_order)(int);
static int expect_root;
static void expect(void)
{
    if (expect_order)
        expect_order(expect_root);
}

static void expect_all(int root)
{
    (void)root;
    all_before_all();
}

static void expect_scan(int root)
{
    (void)root;
    lower_before_higher();
}

static void collectives(void)
{
    MPI_Request r;
    for (int i = 0; i < RANKS; i++)
        types[i] = MPI_INT;
    SCENE(MPI_Barrier(ALL));
    all_before_all();
    SCENE(MPI_Ibarrier(ALL, &r); io(2); MPI_Waitall(1, &r, MPI_STATUSES_IGNORE));
    all_before_all();

    expect_order = one_before_others;
    expect_root = 2;
    BOTH(Bcast, Ibcast, in, 1, MPI_INT, 2);
    BOTH(Scatter, Iscatter, out, 1, MPI_INT, in, 1, MPI_INT, 2);
    BOTH(Scatterv, Iscatterv, out, ones, places, MPI_INT, in, 1, MPI_INT, 2);
    expect_order = others_before_one;
    expect_root = 1;
    BOTH(Reduce, Ireduce, out, in, 1, MPI_INT, MPI_SUM, 1);
    BOTH(Gather, Igather, out, 1, MPI_INT, in, 1, MPI_INT, 1);
    BOTH(Gatherv, Igatherv, out, 1, MPI_INT, in, ones, places, MPI_INT, 1);
    expect_order = expect_all;
    BOTH(Allreduce, Iallreduce, out, in, 1, MPI_INT, MPI_SUM);
    BOTH(Allgather, Iallgather, out, 1, MPI_INT, in, 1, MPI_INT);
    BOTH(Allgatherv, Iallgatherv, out, 1, MPI_INT, in, ones, places, MPI_INT);
    BOTH(Alltoall, Ialltoall, out, 1, MPI_INT, in, 1, MPI_INT);
    BOTH(Alltoallv, Ialltoallv, out, ones, places, MPI_INT, in, ones, places, MPI_INT);
    BOTH(Alltoallw, Ialltoallw, out, ones, bytes_at, types, in, ones, bytes_at, types);
    BOTH(Reduce_scatter, Ireduce_scatter, out, in, ones, MPI_INT, MPI_SUM);
    BOTH(Reduce_scatter_block, Ireduce_scatter_block, out, in, 1, MPI_INT, MPI_SUM);
    expect_order = expect_scan;
    BOTH(Scan, Iscan, out, in, 1, MPI_INT, MPI_SUM);
    BOTH(Exscan, Iexscan, out, in, 1, MPI_INT, MPI_SUM);
    expect_order = NULL; /* nothing to wait for */
    BOTH(Bcast, Ibcast, in, 0, MPI_INT, 2);
    BOTH(Allreduce, Iallreduce, out, in, 0, MPI_INT, MPI_SUM);
    BOTH(Alltoall, Ialltoall, out, 0, MPI_INT, in, 0, MPI_INT);
}

/* Rank 2 has nothing to give or to get. */
static void partly_empty(void)
{
    SCENE(MPI_Gatherv(out, some[rank], MPI_INT, in, some, places, MPI_INT, 0, ALL));
    before(1, 0);
    before(3, 0);
    SCENE(MPI_Scatterv(out, some, places, MPI_INT, in, some[rank], MPI_INT, 0, ALL));
    before(0, 1);
    before(0, 3);
    SCENE(MPI_Reduce_scatter(out, in, some, MPI_INT, MPI_SUM, ALL));
    for (int a = 0; a < RANKS; a++)
        for (int b = 0; b < RANKS; b++)
            if (a != b && b != 2)
                before(a, b);
    /* Who waits for whom is not recorded: nothing is claimed. */
    SCENE(MPI_Allgatherv(out, some[rank], MPI_INT, in, some, places, MPI_INT, ALL));
}

/* Begun in one order on all ranks, completed in others; with blocking ones in between. */
static void interleaved(void)
{
    MPI_Request r[2];
    SCENE(MPI_Ibarrier(ALL, &r[0]); io(2); MPI_Ibcast(in, 1, MPI_INT, 0, ALL, &r[1]); io(3);
          MPI_Reduce(out, in, 1, MPI_INT, MPI_SUM, 3, ALL); io(4);
          MPI_Wait(&r[(rank + 1) % 2], MPI_STATUS_IGNORE); io(5);
          MPI_Wait(&r[rank % 2], MPI_STATUS_IGNORE));
    for (int a = 0; a < RANKS; a++)
        for (int b = 0; b < RANKS; b++)
            if (a != b)
                order(a, 0, b, b % 2 ? 5 : 1); /* odd ones complete the barrier first */
    for (int b = 1; b < RANKS; b++)
        order(0, 2, b, b % 2 ? 1 : 5);
    for (int a = 0; a < RANKS - 1; a++)
        order(a, 3, 3, 4);
}

/* ---- communicators -------------------------------------------------------------------------- */

static void communicators(void)
{
    MPI_Comm half, copy, grid, row, inter, both, none;
    int mine, dims[2] = {2, 2}, loops[2] = {0, 0}, keep_columns[2] = {0, 1};
    /* {0, 2} in the other order and {1, 3} */
    SCENE(MPI_Comm_split(ALL, rank % 2, -rank, &half));
    all_before_all();
    SCENE(MPI_Barrier(half));
    for (int a = 0; a < RANKS; a++)
        before(a, (a + 2) % RANKS);
    MPI_Comm_rank(half, &mine);
    SCENE(if (mine) MPI_Send(out, 1, MPI_INT, 0, 1, half);
          else MPI_Recv(in, 1, MPI_INT, 1, 1, half, MPI_STATUS_IGNORE));
    before(0, 2);
    before(1, 3);
    /* A copy has messages of its own. */
    SCENE(MPI_Comm_dup(half, &copy));
    SCENE(
        if (mine) {
            MPI_Send(out, 1, MPI_INT, 0, 1, half);
            io(2);
            MPI_Send(out, 1, MPI_INT, 0, 1, copy);
        } else {
            MPI_Recv(in, 1, MPI_INT, 1, MPI_ANY_TAG, copy, MPI_STATUS_IGNORE);
            io(2);
            MPI_Recv(in, 1, MPI_INT, 1, MPI_ANY_TAG, half, MPI_STATUS_IGNORE);
        });
    order(0, 2, 2, 2);
    order(1, 2, 3, 2);
    MPI_Comm_free(&copy);
    /* Rows {0, 1} and {2, 3}. */
    SCENE(MPI_Cart_create(ALL, 2, dims, loops, 0, &grid); MPI_Cart_sub(grid, keep_columns, &row));
    SCENE(MPI_Bcast(in, 1, MPI_INT, 1, row));
    before(1, 0);
    before(3, 2);
    /* Rank 3 stays outside; it needs nobody's colour. */
    SCENE(MPI_Comm_split(ALL, rank == 3 ? MPI_UNDEFINED : 0, 0, &none));
    for (int a = 0; a < RANKS; a++)
        for (int b = 0; b < RANKS - 1; b++)
            if (a != b)
                before(a, b);
    SCENE(if (rank < 3) MPI_Reduce(out, in, 1, MPI_INT, MPI_SUM, 0, none));
    before(1, 0);
    before(2, 0);

    SCENE(MPI_Intercomm_create(row, 0, ALL, rank < 2 ? 2 : 0, 1, &inter));
    int place = rank % 2;
    SCENE(if (place == 0 && rank < 2) MPI_Send(out, 1, MPI_INT, 1, 1, inter);
          if (rank == 3) MPI_Recv(in, 1, MPI_INT, MPI_ANY_SOURCE, 1, inter, MPI_STATUS_IGNORE));
    before(0, 3);
    SCENE(MPI_Bcast(in, 1, MPI_INT, rank == 3 ? MPI_ROOT : rank == 2 ? MPI_PROC_NULL : 1, inter));
    before(3, 0);
    before(3, 1);
    SCENE(MPI_Allreduce(out, in, 1, MPI_INT, MPI_SUM, inter));
    for (int a = 0; a < RANKS; a++)
        for (int b = 0; b < RANKS; b++)
            if ((a < 2) != (b < 2))
                before(a, b);
    SCENE(MPI_Intercomm_merge(inter, rank < 2, &both)); /* 2, 3, 0, 1 */
    SCENE(MPI_Exscan(out, in, 1, MPI_INT, MPI_SUM, both));
    before(2, 3);
    before(2, 0);
    before(2, 1);
    before(3, 0);
    before(3, 1);
    before(0, 1);
}

static void windows(void)
{
    MPI_Win win;
    MPI_Group world, group;
    int origin = 0, target = 3;
    SCENE(MPI_Win_create(small, sizeof(small), 1, MPI_INFO_NULL, ALL, &win));
    SCENE(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    SCENE(MPI_Win_fence(0, win));
    all_before_all();
    MPI_Comm_group(ALL, &world);
    SCENE(
        if (rank == origin) {
            MPI_Group_incl(world, 1, &target, &group);
            MPI_Win_start(group, 0, win);
            MPI_Put(out, 1, MPI_INT, target, 0, 1, MPI_INT, win);
            MPI_Win_complete(win);
        } if (rank == target) {
            MPI_Group_incl(world, 1, &origin, &group);
            MPI_Win_post(group, 0, win);
            MPI_Win_wait(win);
        });
    before(origin, target);
}

/* ---- threads -------------------------------------------------------------------------------- */

/* Thread 1 of rank r sends to thread 2 of the next, which then writes. */
static void *thread_main(void *arg)
{
    if (*(int *)arg) {
        receive_from((rank + RANKS - 1) % RANKS, 70);
        io(3);
    } else {
        io(2);
        send_to((rank + 1) % RANKS, 70);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t thread[2];
    int which[2] = {0, 1};
    SCENE(for (int i = 0; i < 2; i++) pthread_create(&thread[i], NULL, thread_main, &which[i]);
          for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL));
    for (int a = 0; a < RANKS; a++)
        order(a, 2, (a + 1) % RANKS, 3);
}

/*
 * The library gives a request that one thread has completed to another at once, while the
 * first is still on its way back to the program.
 */
static void *exchange(void *arg)
{
    int tag = *(int *)arg, partner = rank ^ 1, from[20], to[20] = {0};
    MPI_Request r[40];
    for (int round = 0; round < 600; round++) {
        int n = 1 + round % 20, index;
        for (int i = 0; i < n; i++)
            MPI_Irecv(&from[i], 1, MPI_INT, round % 3 ? partner : MPI_ANY_SOURCE, tag, ALL, &r[i]);
        for (int i = 0; i < n; i++)
            MPI_Isend(&to[i], 1, MPI_INT, partner, tag, ALL, &r[n + i]);
        if (round % 2)
            MPI_Waitall(2 * n, r, MPI_STATUSES_IGNORE);
        for (int i = 0; round % 2 == 0 && i < 2 * n; i++)
            MPI_Waitany(2 * n, r, &index, MPI_STATUS_IGNORE);
    }
    return NULL;
}

static void busy_threads(void)
{
    pthread_t thread[4];
    int tags[4] = {0, 1, 2, 3};
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, exchange, &tags[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
}

/* ---- a job that ends too early -------------------------------------------------------------- */

/* Rank 1 is killed when it has received one of two messages. */
static void killed(void)
{
    scene++;
    io(0);
    if (rank == 0) {
        send_to(1, 1);
        send_to(1, 1);
    } else if (rank == 1) {
        receive_from(0, 1);
        io(1);
    }
    before(0, 1);
    if (expected)
        fclose(expected);
    MPI_Barrier(ALL);
    if (rank == 1)
        raise(SIGKILL);
    pause();
}

int main(int argc, char **argv)
{
    char name[32];
    int level, size;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(ALL, &rank);
    MPI_Comm_size(ALL, &size);
    snprintf(name, sizeof(name), "file.%d", rank);
    fd = open(name, O_WRONLY | O_CREAT, 0600);
    if (rank == 0)
        expected = fopen("expected.edges", "w");
    if (size != RANKS || fd < 0 || (rank == 0 && !expected))
        die("needs four ranks and a directory to write in");
    if (argc > 1 && !strcmp(argv[1], "killed"))
        killed();
    if (argc > 1 && !strcmp(argv[1], "busy")) {
        busy_threads();
        MPI_Finalize();
        return 0;
    }
    blocking();
    both_ways();
    begun();
    many();
    persistent();
    cancelled();
    probes();
    collectives();
    partly_empty();
    interleaved();
    communicators();
    windows();
    if (level == MPI_THREAD_MULTIPLE)
        threads();
    if (expected)
        fclose(expected);
    MPI_Finalize();
    return 0;
}
