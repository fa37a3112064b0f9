/*
 * Nodes are the ranks of an MPI program.
 */
#define _GNU_SOURCE
#include "tests/truth/truth.h"

#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE (1 << 20) /* more than any transport sends before the receiver has asked */

#define HUGE_SIZE (64 << 20) /* takes tens of milliseconds to copy */

static char large[HUGE_SIZE];

/* ---- messages -------------------------------------------------------------------------- */

/*
 * A small message is on its way when MPI_Send returns, whether its receiver is there or
 * not; and what is received has been sent.
 */
static void send_to(struct truth_node *n, int to)
{
    truth_post(n, truth_channel(CHANNEL_MESSAGE, n->id, to));
    if (truth_running)
        MPI_Send(large, 1, MPI_CHAR, to, 0, MPI_COMM_WORLD);
}

static void means_receive(struct truth_node *n, int from)
{
    truth_wait(n, truth_channel(CHANNEL_MESSAGE, from, n->id));
}

static void receive_from(struct truth_node *n, int from)
{
    means_receive(n, from);
    if (truth_running)
        MPI_Recv(large, 1, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The same by the profiling names, as a program that brings its own layer calls them. */
static void psend_to(struct truth_node *n, int to)
{
    truth_post(n, truth_channel(CHANNEL_MESSAGE, n->id, to));
    if (truth_running)
        PMPI_Send(large, 1, MPI_CHAR, to, 0, MPI_COMM_WORLD);
}

static void preceive_from(struct truth_node *n, int from)
{
    means_receive(n, from);
    if (truth_running)
        PMPI_Recv(large, 1, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The receiver asks again and again. */
static void test_from(struct truth_node *n, int from)
{
    MPI_Request request;
    int done = 0;

    means_receive(n, from);
    if (!truth_running)
        return;
    MPI_Irecv(large, 1, MPI_CHAR, from, 0, MPI_COMM_WORLD, &request);
    while (!done)
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

static void probe_from(struct truth_node *n, int from)
{
    int there = 0;

    while (truth_running && !there)
        MPI_Iprobe(from, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    receive_from(n, from);
}

/* Sender and receiver meet: neither call returns before the other has begun. */
static void means_meet_sender(struct truth_node *n, int from)
{
    truth_post(n, truth_channel(CHANNEL_TAKEN, n->id, from));
    means_receive(n, from);
}

static void means_meet_receiver(struct truth_node *n, int to)
{
    truth_post(n, truth_channel(CHANNEL_MESSAGE, n->id, to));
    truth_wait(n, truth_channel(CHANNEL_TAKEN, to, n->id));
}

static void send_large_to(struct truth_node *n, int to)
{
    means_meet_receiver(n, to);
    if (truth_running)
        MPI_Send(large, LARGE, MPI_CHAR, to, 0, MPI_COMM_WORLD);
}

static void receive_large_from(struct truth_node *n, int from)
{
    means_meet_sender(n, from);
    if (truth_running)
        MPI_Recv(large, LARGE, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send_huge_to(struct truth_node *n, int to)
{
    means_meet_receiver(n, to);
    if (truth_running)
        MPI_Send(large, HUGE_SIZE, MPI_CHAR, to, 0, MPI_COMM_WORLD);
}

static void receive_huge_from(struct truth_node *n, int from)
{
    means_meet_sender(n, from);
    if (truth_running)
        MPI_Recv(large, HUGE_SIZE, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void ssend_to(struct truth_node *n, int to)
{
    means_meet_receiver(n, to);
    if (truth_running)
        MPI_Ssend(large, 1, MPI_CHAR, to, 0, MPI_COMM_WORLD);
}

static void sreceive_from(struct truth_node *n, int from)
{
    means_meet_sender(n, from);
    if (truth_running)
        MPI_Recv(large, 1, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* ---- orders of messages ------------------------------------------------------------------ */

typedef void transfer(struct truth_node *n, int peer);

/* Rank r writes, and then r + 1 may. */
static void chain_by(struct truth_node *n, transfer *send, transfer *receive)
{
    for (int i = 0; i < truth_rounds; i++) {
        if (n->id > 0)
            receive(n, n->id - 1);
        truth_write(n);
        if (n->id + 1 < truth_nodes)
            send(n, n->id + 1);
    }
}

static void chain(struct truth_node *n)
{
    chain_by(n, send_to, receive_from);
}

static void pmpi(struct truth_node *n)
{
    chain_by(n, psend_to, preceive_from);
}

static void test(struct truth_node *n)
{
    chain_by(n, send_to, test_from);
}

static void iprobe(struct truth_node *n)
{
    chain_by(n, send_to, probe_from);
}

static void rendezvous(struct truth_node *n)
{
    chain_by(n, send_large_to, receive_large_from);
}

static void huge(struct truth_node *n)
{
    chain_by(n, send_huge_to, receive_huge_from);
}

static void ssend(struct truth_node *n)
{
    chain_by(n, ssend_to, sreceive_from);
}

/* One token goes round; there is also a write without it. */
static void ring(struct truth_node *n)
{
    for (int i = 0; i < truth_rounds; i++) {
        if (n->id > 0 || i > 0)
            receive_from(n, (n->id + truth_nodes - 1) % truth_nodes);
        truth_write(n);
        if (n->id + 1 < truth_nodes || i + 1 < truth_rounds)
            send_to(n, (n->id + 1) % truth_nodes);
        truth_write(n);
    }
}

/* Rank 1 passes messages on and does no I/O of its own in between. */
static void relay(struct truth_node *n)
{
    for (int i = 0; i < truth_rounds; i++) {
        if (n->id != 1)
            truth_write(n);
        if (n->id > 0)
            receive_from(n, n->id - 1);
        if (n->id + 1 < truth_nodes)
            send_to(n, n->id + 1);
    }
    truth_write(n);
}

/* While rank 0 computes, it is not stuck, whoever waits for it. */
static void compute(struct truth_node *n)
{
    for (int i = 0; i < truth_rounds; i++) {
        truth_write(n);
        if (n->id == 0) {
            truth_compute(i ? 0.02 : 0.3);
            for (int to = 1; to < truth_nodes; to++)
                send_to(n, to);
        } else {
            receive_from(n, 0);
        }
        truth_write(n);
    }
}

/* ---- any source ------------------------------------------------------------------------- */

static int receive_any(struct truth_node *n)
{
    MPI_Status status = {.MPI_SOURCE = 0};

    truth_wait_any(n, truth_channel(CHANNEL_FROM, 0, 1), truth_nodes - 1, truth_rounds);
    if (truth_running)
        MPI_Recv(large, 1, MPI_CHAR, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
    return status.MPI_SOURCE;
}

static void send_result(struct truth_node *n)
{
    truth_post(n, truth_channel(CHANNEL_FROM, 0, n->id));
    if (truth_running)
        MPI_Send(large, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
}

/* Rank 0 writes what comes, in the order in which it comes. */
static void any(struct truth_node *n)
{
    int messages = n->id ? truth_rounds : truth_rounds * (truth_nodes - 1);

    for (int i = 0; i < messages; i++) {
        if (n->id == 0)
            receive_any(n);
        truth_write(n);
        if (n->id > 0)
            send_result(n);
    }
}

static void reply(struct truth_node *n, int to)
{
    truth_post(n, truth_channel(CHANNEL_REPLY, 0, 0));
    if (truth_running)
        MPI_Send(large, 1, MPI_CHAR, to, 1, MPI_COMM_WORLD);
}

/* The r-th answer to this rank comes no sooner than the r-th answer to anybody. */
static void receive_reply(struct truth_node *n)
{
    truth_wait(n, truth_channel(CHANNEL_REPLY, 0, 0));
    if (truth_running)
        MPI_Recv(large, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/*
 * Master and workers: rank 0 writes each result down, then its sender gets new work.  Who
 * comes first differs, so the edges here are the least that must be found.
 */
static void farm(struct truth_node *n)
{
    for (int i = 0; n->id > 0 && i < truth_rounds; i++) {
        truth_write(n);
        send_result(n);
        receive_reply(n);
    }
    for (int i = 0; n->id == 0 && i < truth_rounds * (truth_nodes - 1); i++) {
        int worker = receive_any(n);
        truth_write(n);
        reply(n, worker);
    }
}

/* ---- collectives ------------------------------------------------------------------------- */

static void barrier(struct truth_node *n)
{
    for (int i = 0; i < truth_rounds; i++) {
        truth_write(n);
        truth_meet(n, truth_all());
        if (truth_running)
            MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void allreduce(struct truth_node *n)
{
    int one = 1, sum;

    for (int i = 0; i < truth_rounds; i++) {
        truth_write(n);
        truth_meet(n, truth_all());
        if (truth_running)
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
}

/* Even and odd ranks have nothing to do with each other. */
static void split(struct truth_node *n)
{
    MPI_Comm half;
    unsigned group = 0;

    for (int i = n->id % 2; i < truth_nodes; i += 2)
        group |= 1u << i;
    truth_meet(n, truth_all());
    if (truth_running)
        MPI_Comm_split(MPI_COMM_WORLD, n->id % 2, n->id, &half);
    for (int i = 0; i < truth_rounds; i++) {
        truth_write(n);
        truth_meet(n, group);
        if (truth_running)
            MPI_Barrier(half);
    }
}

/*
 * Gather and broadcast, by the algorithm that the harness has the library use; a small
 * part is sent as a small message is.  `parent` says whose messages a rank gets, or
 * whom it sends to.
 */
typedef int parent_fn(int rank);

static int parent_root(int rank)
{
    (void)rank;
    return 0;
}

/* Binomial tree in which a subtree is a row of ranks: gather needs no sorting then. */
static int parent_lowest_bit(int rank)
{
    return rank & (rank - 1);
}

static int parent_highest_bit(int rank)
{
    int bit = 1;

    while (bit * 2 <= rank)
        bit *= 2;
    return rank - bit;
}

static void means_gather(struct truth_node *n, parent_fn *parent)
{
    for (int i = 1; i < truth_nodes; i++)
        if (parent(i) == n->id)
            means_receive(n, i);
    if (n->id)
        truth_post(n, truth_channel(CHANNEL_MESSAGE, n->id, parent(n->id)));
}

static void means_bcast(struct truth_node *n, parent_fn *parent)
{
    if (n->id)
        means_receive(n, parent(n->id));
    for (int i = 1; i < truth_nodes; i++)
        if (parent(i) == n->id)
            truth_post(n, truth_channel(CHANNEL_MESSAGE, n->id, i));
}

static void gather_by(struct truth_node *n, parent_fn *parent)
{
    char all[TRUTH_NODES];

    for (int i = 0; i < truth_rounds; i++) {
        truth_write(n);
        means_gather(n, parent);
        if (truth_running)
            MPI_Gather(large, 1, MPI_CHAR, all, 1, MPI_CHAR, 0, MPI_COMM_WORLD);
    }
}

static void bcast_by(struct truth_node *n, parent_fn *parent)
{
    for (int i = 0; i < truth_rounds; i++) {
        truth_write(n);
        means_bcast(n, parent);
        if (truth_running)
            MPI_Bcast(large, 1, MPI_CHAR, 0, MPI_COMM_WORLD);
    }
}

static void gather(struct truth_node *n)
{
    gather_by(n, parent_root);
}

static void gather_tree(struct truth_node *n)
{
    gather_by(n, parent_lowest_bit);
}

static void bcast(struct truth_node *n)
{
    bcast_by(n, parent_root);
}

static void bcast_tree(struct truth_node *n)
{
    bcast_by(n, parent_highest_bit);
}

/* ---- MPI-IO ------------------------------------------------------------------------------- */

/*
 * Collective I/O: an event in which the ranks wait for each other.  Who has come is
 * taken for done: what a rank waits for there is the others' coming.
 */
static void mpi_file(struct truth_node *n)
{
    MPI_File f = MPI_FILE_NULL;

    truth_event(n);
    truth_meet(n, truth_all());
    if (truth_running && MPI_File_open(MPI_COMM_WORLD, "shared.dat",
                                       MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &f))
        truth_die("cannot open 'shared.dat'");
    truth_write(n);
    truth_event(n);
    truth_meet(n, truth_all());
    if (truth_running)
        MPI_File_close(&f);
}

/* ---- nobody waits ------------------------------------------------------------------------- */

static void none(struct truth_node *n)
{
    for (int i = 0; i < truth_rounds; i++)
        truth_write(n);
}

/* ---- the program --------------------------------------------------------------------------- */

static const struct truth_scenario scenarios[] = {
    {"barrier", 4, barrier},
    {"barrier-8", 8, barrier},
    {"allreduce", 3, allreduce},
    {"chain", 4, chain},
    {"chain-2", 2, chain},
    {"relay", 3, relay},
    {"ring", 3, ring},
    {"ring-8", 8, ring},
    {"gather", 4, gather},
    {"gather-tree", 4, gather_tree},
    {"bcast", 4, bcast},
    {"bcast-tree", 4, bcast_tree},
    {"any", 3, any},
    {"farm", 3, farm},
    {"split", 4, split},
    {"rendezvous", 3, rendezvous},
    {"huge", 3, huge},
    {"ssend", 3, ssend},
    {"test", 3, test},
    {"iprobe", 3, iprobe},
    {"pmpi", 3, pmpi},
    {"compute", 3, compute},
    {"mpi-file", 3, mpi_file},
    {"none", 3, none},
    {"init", 3, none},
    {"init-late", 3, none},
    {NULL, 0, NULL},
};

/*
 * Everybody is in MPI_Init before anybody leaves it, and the same in MPI_Finalize.
 */
static void play(struct truth_node *n, const struct truth_scenario *s)
{
    truth_play(n, s);
    truth_meet(n, truth_all());
}

/*
 * The first message between two hosts needs both sides to make the connection.  That is
 * done before the first I/O; but in "init" and "init-late" the I/O comes right behind MPI_Init.  Of
 * a pair the lower rank begins: Open MPI may hang where both do at the same moment.  And under
 * Slurm a rank may leave MPI_Init before one on another host can take messages (it crashes
 * then), so it is given time.
 */
static void connect_all(int rank, int size)
{
    char byte = 0;

    if (getenv("SLURM_JOB_ID"))
        usleep(200000);
    for (int i = 0; i < size; i++) {
        if (i < rank) {
            MPI_Recv(&byte, 1, MPI_CHAR, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&byte, 1, MPI_CHAR, i, 0, MPI_COMM_WORLD);
        } else if (i > rank) {
            MPI_Send(&byte, 1, MPI_CHAR, i, 0, MPI_COMM_WORLD);
            MPI_Recv(&byte, 1, MPI_CHAR, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void run(const struct truth_scenario *s)
{
    struct truth_node n = {.id = 0};
    int size;

    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &n.id);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    errno = EINVAL;
    if (size != s->nodes)
        truth_die("'%s' needs %d ranks", s->name, s->nodes);
    if (!strcmp(s->name, "init-late") && !getenv("LATE_INIT"))
        truth_die("the MPI_Init of a tool was passed over");
    if (strncmp(s->name, "init", 4))
        connect_all(n.id, size);
    play(&n, s);
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    static const struct truth_program program = {scenarios, "%d", run, play};

    return truth_main(argc, argv, &program);
}
