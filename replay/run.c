#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/run.h"

struct start {
    struct run *run;
    struct node_run *node;
};

static void set_state(struct run *run, int state)
{
    pthread_mutex_lock(&run->lock);
    run->state = state;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
}

static int wait_for_start(struct run *run)
{
    int state;

    pthread_mutex_lock(&run->lock);
    while (run->state == RUN_WAITING)
        pthread_cond_wait(&run->changed, &run->lock);
    state = run->state;
    pthread_mutex_unlock(&run->lock);
    return state;
}

static void *node_thread(void *arg)
{
    struct start start = *(struct start *)arg;

    free(arg);
    if (wait_for_start(start.run) == RUN_STARTED)
        node_replay(start.node);
    return NULL;
}

static int start_thread(struct run *run, struct node_run *node)
{
    struct start *start = malloc(sizeof(*start));
    int rc;

    if (!start)
        return ENOMEM;
    *start = (struct start){run, node};
    rc = pthread_create(&run->threads[run->nthreads], NULL, node_thread, start);
    if (rc)
        free(start);
    else
        run->nthreads++;
    return rc;
}

/* A single node runs in the main thread, so that MPI needs no locks for it. */
static int start_threads(struct run *run, struct pt_err *err)
{
    for (size_t i = 0; run->nnodes > 1 && i < run->nnodes; i++) {
        errno = start_thread(run, &run->nodes[i]);
        if (errno)
            return pt_err_errno(err, "cannot start %zu threads", run->nnodes);
    }
    return 0;
}

static int create_nodes(struct run *run, struct pt_err *err)
{
    const struct plan *plan = run->common.plan;

    run->nodes = calloc(plan->nnodes + 1, sizeof(*run->nodes));
    run->threads = calloc(plan->nnodes + 1, sizeof(*run->threads));
    if (!run->nodes || !run->threads)
        return pt_err_errno(err, "cannot replay %zu nodes", plan->nnodes);
    for (; run->nnodes < plan->nnodes; run->nnodes++)
        if (node_create(&run->nodes[run->nnodes], &run->common, &plan->nodes[run->nnodes], err) < 0)
            return -1;
    return 0;
}

int run_create(struct run *run, const struct node_common *common, struct pt_err *err)
{
    memset(run, 0, sizeof(*run));
    run->common = *common;
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->changed, NULL);
    if (create_nodes(run, err) < 0 || start_threads(run, err) < 0) {
        run_destroy(run);
        return -1;
    }
    burn_calibrate();
    for (size_t i = 0; i < run->nnodes; i++)
        node_open_inherited(&run->nodes[i]);
    return 0;
}

static void join_threads(struct run *run)
{
    while (run->nthreads > 0)
        pthread_join(run->threads[--run->nthreads], NULL);
}

void run_replay(struct run *run, void (*together)(void))
{
    together();
    run->common.start = burn_now();
    if (run->nnodes == 1)
        node_replay(&run->nodes[0]);
    set_state(run, RUN_STARTED);
    join_threads(run);
}

void run_destroy(struct run *run)
{
    set_state(run, RUN_CANCELLED);
    join_threads(run);
    for (size_t i = 0; i < run->nnodes; i++)
        node_destroy(&run->nodes[i]);
    free(run->nodes);
    free(run->threads);
    pthread_cond_destroy(&run->changed);
    pthread_mutex_destroy(&run->lock);
    memset(run, 0, sizeof(*run));
}
