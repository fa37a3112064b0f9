#include "config.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "replay/backoff.h"
#include "replay/team.h"

/*
 * How many nodes a rank gets is known only when MPI runs and the store is read, so
 * the level for several threads is always asked for, and insisted on by who needs it.
 */
void team_start(struct team *team, int *argc, char ***argv)
{
    int level;

    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &team->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &team->size);
    team->threads = level >= MPI_THREAD_MULTIPLE;
}

void team_end(void)
{
    MPI_Finalize();
}

void team_barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

void team_rest(void)
{
    struct backoff wait = {0};
    MPI_Request request;
    int done = 0;

    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (;;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done)
            return;
        backoff_pause(&wait);
    }
}

int team_agree(const struct team *team, int rc, struct pt_err *err)
{
    int failed = rc < 0 ? team->rank : INT_MAX, first;

    MPI_Allreduce(&failed, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == INT_MAX)
        return 0;
    MPI_Bcast(err->text, sizeof(err->text), MPI_CHAR, first, MPI_COMM_WORLD);
    return -1;
}

static void reduce(uint64_t *values, size_t n, MPI_Op op)
{
    while (n > 0) {
        int part = n < 1 << 20 ? (int)n : 1 << 20;

        MPI_Allreduce(MPI_IN_PLACE, values, part, MPI_UINT64_T, op, MPI_COMM_WORLD);
        values += part;
        n -= (size_t)part;
    }
}

void team_sum(uint64_t *values, size_t n)
{
    reduce(values, n, MPI_SUM);
}

void team_max(uint64_t *values, size_t n)
{
    reduce(values, n, MPI_MAX);
}

void team_min(uint64_t *values, size_t n)
{
    reduce(values, n, MPI_MIN);
}

uint64_t team_share(uint64_t value)
{
    MPI_Bcast(&value, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return value;
}

char *team_gather(const struct team *team, const char *text)
{
    int len = (int)strlen(text), total = 0;
    int *lens = calloc((size_t)team->size * 2, sizeof(*lens)), *starts = lens + team->size;
    char *all = NULL;

    if (!lens)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Gather(&len, 1, MPI_INT, lens, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int r = 0; r < team->size; r++) {
        starts[r] = total;
        total += lens[r];
    }
    if (team->rank == 0 && !(all = calloc((size_t)total + 1, 1)))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Gatherv(text, len, MPI_CHAR, all, lens, starts, MPI_CHAR, 0, MPI_COMM_WORLD);
    free(lens);
    return all;
}
