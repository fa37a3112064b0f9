/*
 * Nodes are the threads of an OpenMP team, whose library waits by system calls of its own
 * that nobody can interpose.
 */
#define _GNU_SOURCE
#include "tests/truth/truth.h"

#include <errno.h>
#include <omp.h>
#include <stddef.h>

static void team(struct truth_node *n)
{
    for (int i = 0; i < truth_rounds; i++) {
        truth_write(n);
        truth_meet(n, truth_all());
        if (truth_running) {
#pragma omp barrier
        }
    }
}

static const struct truth_scenario scenarios[] = {
    {"omp", 3, team},
    {NULL, 0, NULL},
};

/* The team meets at the start and at the end of a parallel region. */
static void play(struct truth_node *n, const struct truth_scenario *s)
{
    truth_play(n, s);
    if (n->id == 0)
        for (int i = 1; i < truth_nodes; i++)
            truth_wait(n, truth_channel(CHANNEL_FROM, i, 0));
    else
        truth_post(n, truth_channel(CHANNEL_FROM, n->id, 0));
}

static void run(const struct truth_scenario *s)
{
    omp_set_dynamic(0);
#pragma omp parallel num_threads(s->nodes)
    {
        struct truth_node n = {.id = omp_get_thread_num()};
        truth_play(&n, s);
    }
}

int main(int argc, char **argv)
{
    static const struct truth_program program = {scenarios, "0.0.%d", run, play};

    return truth_main(argc, argv, &program);
}
