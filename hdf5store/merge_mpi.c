#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "hdf5store/merge_mpi.h"

#define CALL(name, role, order, flags)                          \
    {                                                           \
        "MPI_" #name, MPI_ROLE_##role, MPI_ORDER_##order, flags \
    }
#define COLL(name, begun, order) CALL(name, COLL, order, 0), CALL(begun, COLL, order, MPI_BEGUN)

static const struct mpi_call calls[] = {
    CALL(Send, SEND, NONE, 0),
    CALL(Rsend, SEND, NONE, 0),
    CALL(Ssend, SEND, NONE, MPI_SYNC),
    CALL(Bsend, SEND, NONE, MPI_BUFFERED),
    CALL(Isend, SEND, NONE, MPI_BEGUN),
    CALL(Irsend, SEND, NONE, MPI_BEGUN),
    CALL(Issend, SEND, NONE, MPI_BEGUN | MPI_SYNC),
    CALL(Ibsend, SEND, NONE, MPI_BEGUN | MPI_BUFFERED),
    CALL(Send_init, SEND, NONE, MPI_PERSISTENT),
    CALL(Rsend_init, SEND, NONE, MPI_PERSISTENT),
    CALL(Ssend_init, SEND, NONE, MPI_PERSISTENT | MPI_SYNC),
    CALL(Bsend_init, SEND, NONE, MPI_PERSISTENT | MPI_BUFFERED),
    CALL(Recv, RECV, NONE, 0),
    CALL(Irecv, RECV, NONE, MPI_BEGUN),
    CALL(Recv_init, RECV, NONE, MPI_PERSISTENT),
    CALL(Sendrecv, SENDRECV, NONE, 0),
    CALL(Sendrecv_replace, SENDRECV, NONE, 0),
    CALL(Probe, PROBE, NONE, 0),
    CALL(Iprobe, PROBE, NONE, 0),
    CALL(Mprobe, MPROBE, NONE, 0),
    CALL(Improbe, MPROBE, NONE, 0),
    CALL(Mrecv, MRECV, NONE, 0),
    CALL(Imrecv, MRECV, NONE, 0),
    CALL(Start, START, NONE, 0),
    CALL(started, START, NONE, 0),
    CALL(Wait, DONE, NONE, 0),
    CALL(Waitany, DONE, NONE, 0),
    CALL(Test, DONE, NONE, 0),
    CALL(Testany, DONE, NONE, 0),
    CALL(done, DONE, NONE, 0),
    CALL(Comm, COMM, NONE, 0),
    CALL(Group, GROUP, NONE, 0),
    COLL(Barrier, Ibarrier, BARRIER),
    COLL(Bcast, Ibcast, FROM_ROOT),
    COLL(Scatter, Iscatter, FROM_ROOT),
    COLL(Scatterv, Iscatterv, FROM_ROOT),
    COLL(Reduce, Ireduce, TO_ROOT),
    COLL(Gather, Igather, TO_ROOT),
    COLL(Gatherv, Igatherv, TO_ROOT),
    COLL(Allreduce, Iallreduce, ALL),
    COLL(Allgather, Iallgather, ALL),
    COLL(Allgatherv, Iallgatherv, EACH),
    COLL(Alltoall, Ialltoall, ALL),
    COLL(Alltoallv, Ialltoallv, EACH),
    COLL(Alltoallw, Ialltoallw, EACH),
    COLL(Reduce_scatter, Ireduce_scatter, ALL),
    COLL(Reduce_scatter_block, Ireduce_scatter_block, ALL),
    COLL(Scan, Iscan, LOWER),
    COLL(Exscan, Iexscan, LOWER),
    COLL(Neighbor_allgather, Ineighbor_allgather, NONE),
    COLL(Neighbor_allgatherv, Ineighbor_allgatherv, NONE),
    COLL(Neighbor_alltoall, Ineighbor_alltoall, NONE),
    COLL(Neighbor_alltoallv, Ineighbor_alltoallv, NONE),
    COLL(Neighbor_alltoallw, Ineighbor_alltoallw, NONE),
    /* Of those that make communicators only a split needs to know what all others say. */
    CALL(Comm_split, COLL, ALL, 0),
    COLL(Comm_dup, Comm_idup, NONE),
    CALL(Comm_dup_with_info, COLL, NONE, 0),
    CALL(Comm_create, COLL, NONE, 0),
    CALL(Comm_split_type, COLL, NONE, 0),
    CALL(Win_fence, COLL, FENCE, 0),
    CALL(Win_start, ACCESS, NONE, 0),
    CALL(Win_complete, ACCESS_END, NONE, 0),
    CALL(Win_post, EXPOSE, NONE, 0),
    CALL(Win_wait, EXPOSE_END, NONE, 0),
    CALL(Win_test, EXPOSE_END, NONE, 0),
};

const struct mpi_call *mpi_find_call(const char *name)
{
    if (strncmp(name, "MPI_", 4) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (!strcmp(calls[i].name, name))
            return &calls[i];
    return NULL;
}

/* ---- while a run is read ------------------------------------------------------------------- */

/* A call that asked in vain is no success, a request that nobody follows says nothing. */
static int says_nothing(const struct pt_call_desc *desc, const struct mpi_call *call,
                        const struct pt_event *ev)
{
    if (ev->err)
        return 1;
    switch (call->role) {
    case MPI_ROLE_DONE:
    case MPI_ROLE_START:
    case MPI_ROLE_MPROBE:
    case MPI_ROLE_MRECV:
        return ev->field[PT_F_REQ] == 0;
    case MPI_ROLE_PROBE:
    case MPI_ROLE_EXPOSE_END:
        return merge_has_field(desc, PT_F_COUNT) && !ev->field[PT_F_COUNT];
    default:
        return 0;
    }
}

static int64_t size_of(const struct pt_call_desc *desc, const struct pt_event *ev)
{
    if (merge_has_field(desc, PT_F_LEN))
        return ev->field[PT_F_LEN];
    if (merge_has_field(desc, PT_F_CMD))
        return ev->field[PT_F_CMD];
    return merge_has_field(desc, PT_F_COUNT) ? ev->field[PT_F_COUNT] : 0;
}

int merge_add_mpi(struct merge *m, struct merge_run *run, struct merge_node *node, unsigned op,
                  const struct pt_event *ev, int64_t clock, struct pt_err *err)
{
    const struct pt_call_desc *desc = &m->calls[op];
    const struct mpi_call *call = m->mpi[op];
    struct mpi_record *r;

    if (!call || says_nothing(desc, call, ev))
        return 0;
    r = merge_grow(node->mpi, node->nmpi, &node->mpi_size, sizeof(*r), err);
    if (!r)
        return -1;
    node->mpi = r;
    r += node->nmpi;
    *r = (struct mpi_record){
        .call = call,
        .begin = ev->begin + (uint64_t)clock,
        .end = ev->begin + ev->dur + (uint64_t)clock,
        .len = size_of(desc, ev),
        .io = (uint32_t)node->nio,
        .text = NAMES_NONE,
        .req = (uint64_t)ev->field[PT_F_REQ],
        .comm = (int32_t)ev->field[PT_F_COMM],
        .parent = (int32_t)ev->field[PT_F_PARENT],
        .peer = (int32_t)ev->field[PT_F_PEER],
        .tag = (int32_t)ev->field[PT_F_TAG],
        .peer2 = (int32_t)ev->field[PT_F_PEER2],
        .tag2 = (int32_t)ev->field[PT_F_TAG2],
    };
    if (ev->str[2] && (r->text = names_add(&run->names, ev->str[2])) == NAMES_NONE)
        return pt_err_set(err, "not enough memory");
    node->nmpi++;
    return 0;
}
