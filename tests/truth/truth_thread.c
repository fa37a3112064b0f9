/*
 * Nodes are the threads of one process; the first is main(), which starts the others and
 * joins them.
 */
#define _GNU_SOURCE
#include "tests/truth/truth.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <string.h>

static const struct truth_scenario *scenario;
static pthread_barrier_t meeting;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int sent[TRUTH_NODES], received[TRUTH_NODES]; /* by / for a thread, under the mutex */
static int arrived;                                  /* threads */
static sem_t semaphores[TRUTH_NODES];

static void check(int error, const char *what)
{
    errno = error;
    if (error)
        truth_die("cannot %s", what);
}

/* All threads but the first. */
static unsigned workers(void)
{
    return truth_all() & ~1u;
}

static void barrier(struct truth_node *n)
{
    for (int i = 0; i < truth_rounds; i++) {
        truth_write(n);
        truth_meet(n, workers());
        if (truth_running)
            pthread_barrier_wait(&meeting);
    }
}

/* ---- one after the other ------------------------------------------------------------------ */

/* Nobody writes under the mutex, so to have it tells nothing: only the numbers do. */
static void cond_send(struct truth_node *n)
{
    truth_post(n, truth_channel(CHANNEL_MESSAGE, n->id, n->id + 1));
    if (!truth_running)
        return;
    pthread_mutex_lock(&mutex);
    sent[n->id]++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void cond_receive(struct truth_node *n)
{
    truth_wait(n, truth_channel(CHANNEL_MESSAGE, n->id - 1, n->id));
    if (!truth_running)
        return;
    pthread_mutex_lock(&mutex);
    while (sent[n->id - 1] == received[n->id])
        pthread_cond_wait(&changed, &mutex);
    received[n->id]++;
    pthread_mutex_unlock(&mutex);
}

static void sem_send(struct truth_node *n)
{
    truth_post(n, truth_channel(CHANNEL_MESSAGE, n->id, n->id + 1));
    if (truth_running)
        check(sem_post(&semaphores[n->id]) ? errno : 0, "post a semaphore");
}

static void sem_receive(struct truth_node *n)
{
    truth_wait(n, truth_channel(CHANNEL_MESSAGE, n->id - 1, n->id));
    if (truth_running)
        check(sem_wait(&semaphores[n->id - 1]) ? errno : 0, "wait for a semaphore");
}

static void chain_by(struct truth_node *n, void (*send)(struct truth_node *),
                     void (*receive)(struct truth_node *))
{
    for (int i = 0; i < truth_rounds; i++) {
        if (n->id > 1)
            receive(n);
        truth_write(n);
        if (n->id + 1 < truth_nodes)
            send(n);
    }
}

static void cond(struct truth_node *n)
{
    chain_by(n, cond_send, cond_receive);
}

static void sem(struct truth_node *n)
{
    chain_by(n, sem_send, sem_receive);
}

/*
 * In each round the mutex keeps them apart, but who comes first is a matter of luck: nobody
 * has to wait for anybody's write of the same round.
 */
static void exclusive(struct truth_node *n)
{
    for (int i = 0; i < truth_rounds; i++) {
        truth_meet(n, workers());
        if (truth_running) {
            pthread_barrier_wait(&meeting);
            pthread_mutex_lock(&mutex);
        }
        truth_write(n);
        if (truth_running)
            pthread_mutex_unlock(&mutex);
    }
}

static void none(struct truth_node *n)
{
    for (int i = 0; i < truth_rounds; i++)
        truth_write(n);
}

/* ---- the program ----------------------------------------------------------------------------- */

static const struct truth_scenario scenarios[] = {
    {"thread-barrier", 4, barrier},
    {"thread-barrier-8", 8, barrier},
    {"thread-cond", 4, cond},
    {"thread-sem", 4, sem},
    {"thread-none", 4, none},
    {"thread-late", 4, none},
    {"thread-mutex", 3, exclusive},
    {NULL, 0, NULL},
};

static void *thread(void *arg)
{
    truth_play(arg, scenario);
    return NULL;
}

/* They all wait for main(), which waits until all are there; not in "thread-late". */
static void *gated_thread(void *arg)
{
    pthread_mutex_lock(&mutex);
    arrived++;
    pthread_cond_broadcast(&changed);
    while (!sent[0])
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    return thread(arg);
}

/* The first thread writes, starts the others, writes, joins them, and writes again. */
static void play(struct truth_node *n, const struct truth_scenario *s)
{
    if (n->id) {
        truth_wait(n, truth_channel(CHANNEL_FROM, 0, 0));
        truth_play(n, s);
        truth_post(n, truth_channel(CHANNEL_FROM, n->id, 0));
        return;
    }
    truth_open(n);
    truth_write(n);
    truth_post(n, truth_channel(CHANNEL_FROM, 0, 0));
    truth_write(n);
    for (int i = 1; i < truth_nodes; i++)
        truth_wait(n, truth_channel(CHANNEL_FROM, i, 0));
    truth_write(n);
    truth_close(n);
}

static void await_all(void)
{
    pthread_mutex_lock(&mutex);
    while (arrived + 1 < truth_nodes)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void start(pthread_t threads[TRUTH_NODES], struct truth_node nodes[TRUTH_NODES])
{
    for (int i = 1; i < truth_nodes; i++) {
        nodes[i].id = i;
        check(pthread_create(&threads[i], NULL, gated_thread, &nodes[i]), "start a thread");
    }
}

static void run(const struct truth_scenario *s)
{
    struct truth_node nodes[TRUTH_NODES] = {{.id = 0}};
    pthread_t threads[TRUTH_NODES];

    scenario = s;
    pthread_barrier_init(&meeting, NULL, (unsigned)truth_nodes - 1);
    for (int i = 0; i < TRUTH_NODES; i++)
        sem_init(&semaphores[i], 0, 0);
    start(threads, nodes);
    if (strcmp(s->name, "thread-late"))
        await_all();
    truth_open(&nodes[0]);
    truth_write(&nodes[0]);
    pthread_mutex_lock(&mutex);
    sent[0] = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    truth_write(&nodes[0]);
    for (int i = 1; i < truth_nodes; i++)
        check(pthread_join(threads[i], NULL), "join a thread");
    truth_write(&nodes[0]);
    truth_close(&nodes[0]);
}

int main(int argc, char **argv)
{
    static const struct truth_program program = {scenarios, "0.0.%d", run, play};

    return truth_main(argc, argv, &program);
}
