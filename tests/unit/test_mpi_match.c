/*
 * Edges from MPI calls, from records made here: each test is a short program, rank by rank.
 */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5store/graph.h"
#include "hdf5store/merge_mpi.h"
#include "tests/unit/run.h"

#define MAX_NODES   6
#define MAX_RECORDS 64
#define MAX_IO      32
#define RENDEZVOUS  65536

static struct merge_run run;
static struct merge_node nodes[MAX_NODES];
static struct mpi_record records[MAX_NODES][MAX_RECORDS];
static uint32_t ios[MAX_NODES][MAX_IO];
static uint64_t now;
static struct mpi_report report;
static struct pt_store_edge *edges;
static size_t nedges;
static struct pt_err err;

static void setup(void)
{
    memset(&run, 0, sizeof(run));
    memset(nodes, 0, sizeof(nodes));
    memset(records, 0, sizeof(records));
    run.nodes = nodes;
    now = 1000;
}

static void teardown(void)
{
    free(edges);
    edges = NULL;
    nedges = 0;
    names_free(&run.names);
}

/* ---- making programs --------------------------------------------------------------------- */

/* All calls come one after the other, unless a test sets the times. */
static struct mpi_record *call(int node, const char *name)
{
    struct merge_node *n = &nodes[node];
    struct mpi_record *r = &records[node][n->nmpi++];

    ck_assert_uint_le(n->nmpi, MAX_RECORDS);
    *r = (struct mpi_record){
        .call = mpi_find_call(name),
        .begin = now,
        .end = now + 5,
        .io = (uint32_t)n->nio,
        .text = NAMES_NONE,
        .peer = PT_MPI_AS_ASKED,
        .len = 1,
    };
    ck_assert_msg(r->call != NULL, "no call %s", name);
    now += 10;
    return r;
}

static void comm(int node, int number, int parent, int rank, const char *members)
{
    struct mpi_record *r = call(node, "MPI_Comm");

    r->comm = number;
    r->parent = parent;
    r->peer = rank;
    r->text = names_add(&run.names, members);
}

static void add_node(int rank, int process, int thread)
{
    struct merge_node *n = &nodes[run.nnodes];

    n->name = (struct pt_name){rank, process, thread};
    n->mpi = records[run.nnodes];
    n->io = ios[run.nnodes];
    n->valid = n->mpi_valid = SIZE_MAX;
    run.nnodes++;
}

/* Ranks 0 to n - 1 of one world, a node each. */
static void world(int n)
{
    char members[20];

    snprintf(members, sizeof(members), "0-%d@job", n - 1);
    for (int i = 0; i < n; i++) {
        add_node(i, 0, 0);
        comm(i, 0, -1, i, members);
    }
}

static void io(int node)
{
    struct merge_node *n = &nodes[node];

    ck_assert_uint_lt(n->nio, MAX_IO);
    n->io[n->nio] = (uint32_t)n->nio;
    n->nevents = ++n->nio;
}

static struct mpi_record *message(int node, const char *name, int peer, int tag)
{
    struct mpi_record *r = call(node, name);

    r->peer = peer;
    r->tag = tag;
    return r;
}

static void begun(int node, const char *name, int peer, int tag, uint64_t req)
{
    message(node, name, peer, tag)->req = req;
}

static void done(int node, uint64_t req)
{
    call(node, "MPI_Wait")->req = req;
}

static void done_from(int node, uint64_t req, int peer, int tag)
{
    message(node, "MPI_done", peer, tag)->req = req;
}

/* ---- what comes out --------------------------------------------------------------------- */

static void match(void)
{
    memset(&report, 0, sizeof(report));
    ck_assert_msg(mpi_collect_edges(&run, &run, RENDEZVOUS, &edges, &nedges, &report, &err) == 0,
                  "%s", err.text);
    nedges = graph_unite_edges(edges, nedges);
    for (size_t i = 0; i < nedges; i++)
        ck_assert_uint_eq(edges[i].by, PT_BY_MPI);
}

/* "SOURCE:EVENT>DESTINATION:EVENT ...", by destination. */
static void expect(const char *text)
{
    char got[2000] = "";

    match();
    for (size_t i = 0; i < nedges; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%u:%d>%u:%d", i ? " " : "",
                 edges[i].src_node, (int)edges[i].src_event, edges[i].dst_node,
                 (int)edges[i].dst_event);
    ck_assert_str_eq(got, text);
}

/* ---- messages --------------------------------------------------------------------------- */

START_TEST(message_is_an_edge)
{
    world(2);
    io(0);
    io(0);
    message(0, "MPI_Send", 1, 7);
    io(0);
    io(1);
    message(1, "MPI_Recv", 0, 7);
    io(1);
    expect("0:1>1:1");
    ck_assert_uint_eq(report.sends + report.receives, 0);
}
END_TEST

START_TEST(no_io_before_no_edge)
{
    world(2);
    message(0, "MPI_Send", 1, 7);
    io(0);
    message(1, "MPI_Recv", 0, 7);
    io(1);
    expect("");
}
END_TEST

START_TEST(no_io_after_no_edge)
{
    world(2);
    io(0);
    message(0, "MPI_Send", 1, 7);
    message(1, "MPI_Recv", 0, 7);
    expect("");
}
END_TEST

START_TEST(other_tags_are_other_messages)
{
    world(2);
    io(0);
    message(0, "MPI_Send", 1, 1);
    io(0);
    message(0, "MPI_Send", 1, 2);
    message(1, "MPI_Recv", 0, 2);
    io(1);
    message(1, "MPI_Recv", 0, 1);
    io(1);
    expect("0:1>1:0 0:0>1:1");
}
END_TEST

/* A receive is in its place when it is posted, whenever it ends. */
START_TEST(posting_counts)
{
    world(2);
    io(0);
    message(0, "MPI_Send", 1, 1);
    io(0);
    message(0, "MPI_Send", 1, 1);
    begun(1, "MPI_Irecv", 0, 1, 5);
    begun(1, "MPI_Irecv", PT_MPI_ANY, PT_MPI_ANY, 6);
    done_from(1, 6, 0, 1); /* the second message, though completed first */
    io(1);
    done(1, 5);
    io(1);
    expect("0:1>1:0 0:0>1:1");
}
END_TEST

START_TEST(wildcard_resolved_at_completion)
{
    world(3);
    io(1);
    io(2);
    message(1, "MPI_Send", 0, 3);
    message(2, "MPI_Send", 0, 4);
    begun(0, "MPI_Irecv", PT_MPI_ANY, PT_MPI_ANY, 1);
    begun(0, "MPI_Irecv", PT_MPI_ANY, PT_MPI_ANY, 2);
    done_from(0, 1, 2, 4);
    io(0);
    done_from(0, 2, 1, 3);
    io(0);
    expect("2:0>0:0 1:0>0:1");
}
END_TEST

START_TEST(cancelled_takes_nothing)
{
    world(2);
    io(0);
    message(0, "MPI_Send", 1, 1);
    begun(1, "MPI_Irecv", 0, 1, 1);
    done_from(1, 1, PT_MPI_CANCELLED, PT_MPI_AS_ASKED);
    message(1, "MPI_Recv", 0, 1);
    io(1);
    expect("0:0>1:0");
    ck_assert_uint_eq(report.open_receives + report.receives, 0);
}
END_TEST

START_TEST(probe_sees_the_next_message)
{
    world(2);
    io(0);
    message(0, "MPI_Send", 1, 1);
    io(0);
    message(0, "MPI_Send", 1, 1);
    io(0);
    message(0, "MPI_Send", 1, 1);
    begun(1, "MPI_Irecv", 0, 1, 9); /* takes the first one */
    message(1, "MPI_Probe", 0, 1);
    io(1);
    message(1, "MPI_Recv", 0, 1); /* what the probe has seen */
    io(1);
    message(1, "MPI_Recv", 0, 1);
    io(1);
    expect("0:1>1:0 0:2>1:2");
}
END_TEST

/* The sender of a message that was probed may go on when it is received. */
START_TEST(matched_probe_and_its_receive)
{
    world(2);
    io(0);
    message(0, "MPI_Ssend", 1, 1);
    io(0);
    message(1, "MPI_Mprobe", 0, 1)->req = 3;
    io(1);
    io(1);
    call(1, "MPI_Mrecv")->req = 3;
    io(1);
    expect("1:1>0:1 0:0>1:0");
}
END_TEST

START_TEST(large_and_synchronous_sends_wait)
{
    world(2);
    io(0);
    io(1);
    message(0, "MPI_Send", 1, 1)->len = RENDEZVOUS; /* not more */
    io(0);
    message(0, "MPI_Send", 1, 1)->len = RENDEZVOUS + 1;
    io(0);
    begun(0, "MPI_Issend", 1, 1, 4);
    io(0);
    done(0, 4);
    io(0);
    message(0, "MPI_Bsend", 1, 1)->len = 10 * RENDEZVOUS;
    io(0);
    for (int i = 0; i < 4; i++) {
        message(1, "MPI_Recv", 0, 1);
        io(1);
    }
    /* Rank 1 has done 1 + k I/Os when it receives message k. */
    expect("1:1>0:2 1:2>0:4 0:0>1:1 0:1>1:2 0:2>1:3 0:4>1:4");
}
END_TEST

START_TEST(persistent_is_posted_by_start)
{
    world(2);
    begun(0, "MPI_Send_init", 1, 1, 1);
    begun(1, "MPI_Recv_init", PT_MPI_ANY, 1, 1);
    for (int i = 0; i < 2; i++) {
        io(0);
        call(0, i ? "MPI_Start" : "MPI_started")->req = 1;
        done(0, 1);
        call(1, "MPI_Start")->req = 1;
        done_from(1, 1, 0, 1);
        io(1);
    }
    expect("0:0>1:0 0:1>1:1");
}
END_TEST

START_TEST(both_ways_at_once)
{
    world(2);
    for (int i = 0; i < 2; i++) {
        io(i);
        struct mpi_record *r = message(i, "MPI_Sendrecv", 1 - i, 1);
        r->peer2 = 1 - i;
        r->tag2 = 1;
        io(i);
    }
    expect("1:0>0:1 0:0>1:1");
}
END_TEST

START_TEST(nobody_is_no_partner)
{
    world(2);
    io(0);
    message(0, "MPI_Send", PT_MPI_PROC_NULL, 1);
    message(0, "MPI_Recv", PT_MPI_PROC_NULL, PT_MPI_ANY);
    io(0);
    expect("");
    ck_assert_uint_eq(report.sends + report.receives + report.open_receives, 0);
}
END_TEST

/* ---- leftovers ------------------------------------------------------------------------------ */

START_TEST(leftovers_are_counted)
{
    world(2);
    io(0);
    message(0, "MPI_Send", 1, 1);
    message(0, "MPI_Send", 1, 2);
    message(1, "MPI_Recv", 0, 3);
    begun(1, "MPI_Irecv", PT_MPI_ANY, 1, 4);
    message(1, "MPI_Recv", 0, 1)->comm = 17;
    io(1);
    expect("");
    ck_assert_uint_eq(report.sends, 2);
    ck_assert_uint_eq(report.receives, 1);
    ck_assert_uint_eq(report.open_receives, 1);
    ck_assert_uint_eq(report.unknown, 1);
}
END_TEST

START_TEST(nothing_behind_a_loss)
{
    world(2);
    io(0);
    message(0, "MPI_Send", 1, 1);
    io(0);
    nodes[0].lost = 1;
    nodes[0].mpi_valid = nodes[0].nmpi;
    message(0, "MPI_Send", 1, 1); /* perhaps not the second one */
    message(1, "MPI_Recv", 0, 1);
    io(1);
    message(1, "MPI_Recv", 0, 1);
    io(1);
    expect("0:0>1:0");
    ck_assert_uint_eq(report.cut, 1);
    ck_assert_uint_eq(report.receives, 1);
}
END_TEST

START_TEST(rank_that_was_not_traced)
{
    add_node(0, 0, 0);
    comm(0, 0, -1, 0, "0-2@job");
    expect("");
    ck_assert_uint_eq(report.missing_ranks, 2);
}
END_TEST

/* Two programs, one after the other, in one step: their ranks are not the same. */
START_TEST(two_worlds)
{
    for (int rank = 0; rank < 2; rank++)
        for (int process = 0; process < 2; process++) {
            int node = 2 * rank + process;
            add_node(rank, process, 0);
            comm(node, 0, -1, rank, process ? "0-1@second" : "0-1@first");
            io(node);
            call(node, "MPI_Barrier");
            io(node);
        }
    expect("2:0>0:1 3:0>1:1 0:0>2:1 1:0>3:1");
    ck_assert_uint_eq(report.twice, 0);
}
END_TEST

START_TEST(same_rank_twice)
{
    for (int process = 0; process < 2; process++) {
        add_node(0, process, 0);
        comm(process, 0, -1, 0, "0-1@job");
        io(process);
        call(process, "MPI_Barrier");
        io(process);
    }
    expect("");
    ck_assert_uint_eq(report.twice, 1);
}
END_TEST

/* ---- threads -------------------------------------------------------------------------------- */

static void two_threads_each(void)
{
    for (int i = 0; i < 4; i++)
        add_node(i / 2, 0, i % 2);
    comm(0, 0, -1, 0, "0-1@job");
    comm(2, 0, -1, 1, "0-1@job");
}

START_TEST(edge_between_threads)
{
    two_threads_each();
    io(1);
    begun(1, "MPI_Isend", 1, 1, 8);
    begun(2, "MPI_Irecv", 0, 1, 8); /* posted by one thread */
    io(2);
    done(3, 8); /* completed by the other */
    io(3);
    expect("1:0>3:0");
}
END_TEST

START_TEST(threads_at_once_are_doubtful)
{
    two_threads_each();
    io(0);
    io(1);
    uint64_t begin = message(0, "MPI_Send", 1, 1)->begin;
    message(1, "MPI_Send", 1, 1)->begin = begin + 1;
    message(2, "MPI_Recv", 0, 1);
    io(2);
    message(2, "MPI_Recv", 0, 1);
    io(2);
    expect("");
    ck_assert_uint_eq(report.doubtful, 2);
}
END_TEST

START_TEST(threads_that_were_not_traced)
{
    world(2);
    io(0);
    message(0, "MPI_Send", 1, 7);
    message(1, "MPI_Recv", 0, 7);
    io(1);
    run.untraced_threads = 1; /* which may have sent one before */
    expect("");
}
END_TEST

/* ---- collectives ---------------------------------------------------------------------------- */

/* All ranks call it between two I/Os; the count is `len`, of the rank `odd` it is `odd_len`. */
static void all_call(int n, const char *name, int root, int64_t len, int odd, int64_t odd_len)
{
    world(n);
    for (int i = 0; i < n; i++) {
        io(i);
        struct mpi_record *r = call(i, name);
        r->peer = root;
        r->len = i == odd ? odd_len : len;
        io(i);
    }
}

static const struct {
    const char *name;
    int root;
    int64_t len;
    int odd; /* the rank with another count */
    int64_t odd_len;
    const char *edges;
} orders[] = {
    {"MPI_Barrier", 0, 0, -1, 0, "1:0>0:1 2:0>0:1 0:0>1:1 2:0>1:1 0:0>2:1 1:0>2:1"},
    {"MPI_Bcast", 1, 4, -1, 0, "1:0>0:1 1:0>2:1"},
    {"MPI_Bcast", 1, 0, -1, 0, ""},
    {"MPI_Scatterv", 1, 4, 2, 0, "1:0>0:1"},
    {"MPI_Gather", 2, 4, -1, 0, "0:0>2:1 1:0>2:1"},
    {"MPI_Gatherv", 2, 4, 0, 0, "1:0>2:1"},
    {"MPI_Reduce", 0, 0, -1, 0, ""},
    {"MPI_Allreduce", 0, 1, -1, 0, "1:0>0:1 2:0>0:1 0:0>1:1 2:0>1:1 0:0>2:1 1:0>2:1"},
    {"MPI_Allreduce", 0, 0, -1, 0, ""},
    {"MPI_Alltoallv", 0, 3, 1, 2, "1:0>0:1 2:0>0:1 0:0>2:1 1:0>2:1"},
    {"MPI_Reduce_scatter", 0, 1, 2, 0, "1:0>0:1 2:0>0:1 0:0>1:1 2:0>1:1"},
    {"MPI_Comm_split", 0, 1, 2, 0, "1:0>0:1 2:0>0:1 0:0>1:1 2:0>1:1"},
    {"MPI_Comm_dup", 0, 1, -1, 0, ""},
    {"MPI_Scan", 0, 1, -1, 0, "0:0>1:1 0:0>2:1 1:0>2:1"},
    {"MPI_Exscan", 0, 0, -1, 0, ""},
    {"MPI_Neighbor_alltoall", 0, 1, -1, 0, ""},
    {"MPI_Win_fence", 0, 0, -1, 0, "1:0>0:1 2:0>0:1 0:0>1:1 2:0>1:1 0:0>2:1 1:0>2:1"},
    {"MPI_Win_fence", 0, 2, -1, 0, ""}, /* MPI_MODE_NOPRECEDE */
};

START_TEST(order_of_a_collective)
{
    all_call(3, orders[_i].name, orders[_i].root, orders[_i].len, orders[_i].odd,
             orders[_i].odd_len);
    expect(orders[_i].edges);
}
END_TEST

/* The second barrier is over when all have begun it, whoever waits for it first. */
START_TEST(begun_collectives_in_the_order_of_posting)
{
    world(2);
    for (int i = 0; i < 2; i++) {
        call(i, "MPI_Ibarrier")->req = 1;
        io(i);
        call(i, "MPI_Ibarrier")->req = 2;
        io(i);
        done(i, i ? 1 : 2);
        io(i);
        done(i, i ? 2 : 1);
        io(i);
    }
    expect("1:0>0:2 0:0>1:3");
}
END_TEST

START_TEST(no_order_from_collectives_that_differ)
{
    world(2);
    for (int i = 0; i < 2; i++) {
        io(i);
        call(i, i ? "MPI_Barrier" : "MPI_Allreduce");
        io(i);
        call(i, "MPI_Barrier");
        io(i);
    }
    expect("");
    ck_assert_uint_eq(report.mixed, 1);
}
END_TEST

START_TEST(killed_in_a_collective)
{
    world(3);
    for (int i = 0; i < 3; i++) {
        io(i);
        if (i < 2) /* rank 2 never came: nobody has left it, but this one says so */
            call(i, "MPI_Ibarrier")->req = 1;
        io(i);
    }
    expect("");
}
END_TEST

/* Thousands in a row without I/O make no more edges than one. */
START_TEST(idle_members_make_no_edges)
{
    world(2);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 2; i++) {
            if (k == 0 || (k == 2 && i == 1))
                io(i);
            call(i, "MPI_Allreduce");
        }
    io(0);
    io(1);
    expect("1:1>0:1 0:0>1:1");
}
END_TEST

/* ---- communicators -------------------------------------------------------------------------- */

START_TEST(split_in_two)
{
    world(4);
    for (int i = 0; i < 4; i++) {
        comm(i, 2, 0, i / 2, i % 2 ? "1,3" : "0,2");
        io(i);
        call(i, "MPI_Barrier")->comm = 2;
        io(i);
    }
    expect("2:0>0:1 3:0>1:1 0:0>2:1 1:0>3:1");
}
END_TEST

START_TEST(members_in_steps)
{
    static const int32_t expected[] = {1, 4, 7, 10, 0, 1};
    static const char *const wrong[] = {"?",     "1-",   "-1",  "3-1",
                                        "1-5/0", "1,,2", "1 2", "99999999999"};
    size_t n;
    int32_t *ranks = mpi_parse_ranks("1,4-10/3,0-1", 12, &n);

    ck_assert_uint_eq(n, 6);
    ck_assert_mem_eq(ranks, expected, sizeof(expected));
    free(ranks);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_ptr_null(mpi_parse_ranks(wrong[i], strlen(wrong[i]), &n));
}
END_TEST

/* Numbers differ from rank to rank; what counts is the parent, the members and the order. */
START_TEST(numbers_of_their_own)
{
    world(2);
    comm(0, 2, 0, 0, "0"); /* only rank 0 has this one */
    comm(0, 3, 0, 0, "=0");
    comm(0, 4, 0, 0, "=0");
    comm(1, 2, 0, 1, "=0");
    comm(1, 3, 0, 1, "=0");
    io(0);
    message(0, "MPI_Send", 1, 1)->comm = 4;
    io(0);
    message(0, "MPI_Send", 1, 1)->comm = 3;
    message(1, "MPI_Recv", 0, 1)->comm = 3; /* the second copy */
    io(1);
    message(1, "MPI_Recv", 0, 1)->comm = 2;
    io(1);
    expect("0:0>1:0 0:1>1:1");
}
END_TEST

START_TEST(ranks_are_those_of_the_communicator)
{
    world(3);
    for (int i = 0; i < 3; i++)
        comm(i, 2, 0, 2 - i, "2,1,0");
    io(0);
    message(0, "MPI_Send", 0, 1)->comm = 2; /* to rank 2 of the world */
    message(2, "MPI_Recv", 2, 1)->comm = 2;
    io(2);
    expect("0:0>2:0");
}
END_TEST

START_TEST(intercommunicator)
{
    world(4);
    for (int i = 0; i < 4; i++) {
        comm(i, 2, -1, i % 2, i < 2 ? "0-1|2-3" : "2-3|0-1");
        io(i);
    }
    message(1, "MPI_Send", 0, 1)->comm = 2; /* to rank 2 */
    message(2, "MPI_Recv", 1, 1)->comm = 2;
    for (int i = 0; i < 4; i++)
        io(i);
    for (int i = 0; i < 4; i++) {
        struct mpi_record *r = call(i, "MPI_Bcast");
        r->comm = 2;
        r->peer = i == 3 ? PT_MPI_ROOT : i == 2 ? PT_MPI_PROC_NULL : 1;
        io(i);
    }
    expect("3:1>0:2 3:1>1:2 1:0>2:1");
}
END_TEST

START_TEST(unknown_members)
{
    world(2);
    for (int i = 0; i < 2; i++) {
        comm(i, 2, 0, i, "?");
        comm(i, 3, 2, i, "=2");
        io(i);
        call(i, "MPI_Barrier")->comm = 3;
        io(i);
    }
    expect("");
    ck_assert_uint_eq(report.unknown, 2);
}
END_TEST

/* Rank 0 accesses what rank 1 exposes. */
START_TEST(epochs_of_windows)
{
    world(2);
    for (int i = 0; i < 2; i++) {
        comm(i, 2, 0, i, "=0");
        io(i);
        call(i, i ? "MPI_Win_post" : "MPI_Win_start")->comm = 2;
        struct mpi_record *r = call(i, "MPI_Group");
        r->comm = 2;
        r->text = names_add(&run.names, i ? "0" : "1");
        io(i);
        call(i, i ? "MPI_Win_wait" : "MPI_Win_complete")->comm = 2;
        io(i);
    }
    expect("0:1>1:2");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mpi_match");
    TCase *t = tcase_create("match");

    suite_add_tcase(s, t);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, message_is_an_edge);
    tcase_add_test(t, no_io_before_no_edge);
    tcase_add_test(t, no_io_after_no_edge);
    tcase_add_test(t, other_tags_are_other_messages);
    tcase_add_test(t, posting_counts);
    tcase_add_test(t, wildcard_resolved_at_completion);
    tcase_add_test(t, cancelled_takes_nothing);
    tcase_add_test(t, probe_sees_the_next_message);
    tcase_add_test(t, matched_probe_and_its_receive);
    tcase_add_test(t, large_and_synchronous_sends_wait);
    tcase_add_test(t, persistent_is_posted_by_start);
    tcase_add_test(t, both_ways_at_once);
    tcase_add_test(t, nobody_is_no_partner);
    tcase_add_test(t, leftovers_are_counted);
    tcase_add_test(t, nothing_behind_a_loss);
    tcase_add_test(t, rank_that_was_not_traced);
    tcase_add_test(t, two_worlds);
    tcase_add_test(t, same_rank_twice);
    tcase_add_test(t, edge_between_threads);
    tcase_add_test(t, threads_at_once_are_doubtful);
    tcase_add_loop_test(t, order_of_a_collective, 0, sizeof(orders) / sizeof(orders[0]));
    tcase_add_test(t, begun_collectives_in_the_order_of_posting);
    tcase_add_test(t, no_order_from_collectives_that_differ);
    tcase_add_test(t, killed_in_a_collective);
    tcase_add_test(t, idle_members_make_no_edges);
    tcase_add_test(t, split_in_two);
    tcase_add_test(t, members_in_steps);
    tcase_add_test(t, threads_that_were_not_traced);
    tcase_add_test(t, numbers_of_their_own);
    tcase_add_test(t, ranks_are_those_of_the_communicator);
    tcase_add_test(t, intercommunicator);
    tcase_add_test(t, unknown_members);
    tcase_add_test(t, epochs_of_windows);
    return run_suite(s);
}
