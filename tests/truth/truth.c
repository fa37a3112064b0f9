#define _GNU_SOURCE
#include "tests/truth/truth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHANNELS 1024
#define MAX_OPS  4096

int truth_rounds = 3, truth_nodes, truth_running = 1;

static const struct truth_program *program;

void truth_die(const char *fmt, ...)
{
    int error = errno;
    va_list ap;

    va_start(ap, fmt);
    fputs("truth: ", stderr);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, " (%s)\n", strerror(error));
    va_end(ap);
    exit(1);
}

static void name_node(char *buf, size_t size, int id)
{
    snprintf(buf, size, id ? program->name_format : "0", id);
}

void truth_compute(double seconds)
{
    struct timespec now;
    double end = 0;

    if (!truth_running)
        return;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        double t = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
        if (end == 0)
            end = t + seconds;
        seconds = end - t;
    } while (seconds > 0);
}

/* ---- what is written down ------------------------------------------------------------ */

struct op {
    enum { EVENT, POST, WAIT, WAIT_ANY } kind;
    int channel, number, each;
};

struct post {
    int clock[TRUTH_NODES];
};

static struct story {
    struct op ops[MAX_OPS];
    int nops, at;
    int clock[TRUTH_NODES]; /* how many events of each node are done for sure */
    int waited[CHANNELS];   /* how often it has waited on a channel */
} stories[TRUTH_NODES];

static struct channel {
    struct post *posts;
    int n;
} channels[CHANNELS];

static void note(const struct truth_node *n, struct op op)
{
    struct story *s = &stories[n->id];

    if (truth_running)
        return;
    if (s->nops == MAX_OPS || op.channel < 0 || op.channel + op.number > CHANNELS)
        truth_die("too long a scenario");
    s->ops[s->nops++] = op;
}

void truth_event(struct truth_node *n)
{
    note(n, (struct op){.kind = EVENT});
}

void truth_post(struct truth_node *n, int channel)
{
    note(n, (struct op){.kind = POST, .channel = channel});
}

void truth_wait(struct truth_node *n, int channel)
{
    note(n, (struct op){.kind = WAIT, .channel = channel});
}

void truth_wait_any(struct truth_node *n, int first, int number, int each)
{
    note(n, (struct op){.kind = WAIT_ANY, .channel = first, .number = number, .each = each});
}

int truth_channel(int kind, int from, int to)
{
    return (kind * TRUTH_NODES + from) * TRUTH_NODES + to;
}

unsigned truth_all(void)
{
    return (1u << truth_nodes) - 1;
}

void truth_meet(struct truth_node *n, unsigned group)
{
    for (int i = 0; i < truth_nodes; i++)
        if (group & 1u << i && i != n->id)
            truth_post(n, truth_channel(CHANNEL_MEET, n->id, i));
    for (int i = 0; i < truth_nodes; i++)
        if (group & 1u << i && i != n->id)
            truth_wait(n, truth_channel(CHANNEL_MEET, i, n->id));
}

/* ---- the true order ---------------------------------------------------------------------- */

static void print_event(struct story *s, int id)
{
    char to[32], from[32];

    name_node(to, sizeof(to), id);
    for (int i = 0; i < truth_nodes; i++) {
        if (i == id || !s->clock[i])
            continue;
        name_node(from, sizeof(from), i);
        printf("%s:%d -> %s:%d\n", from, s->clock[i] - 1, to, s->clock[id]);
    }
    s->clock[id]++;
}

static void add_post(const struct story *s, struct channel *c)
{
    c->posts = realloc(c->posts, ((size_t)c->n + 1) * sizeof(*c->posts));
    if (!c->posts)
        truth_die("no memory");
    memcpy(c->posts[c->n++].clock, s->clock, sizeof(s->clock));
}

static void learn(struct story *s, const struct post *post)
{
    for (int i = 0; i < truth_nodes; i++)
        if (s->clock[i] < post->clock[i])
            s->clock[i] = post->clock[i];
}

/* 0: the post that is waited for is not there yet. */
static int take(struct story *s, const struct op *op)
{
    int number = op->kind == WAIT ? 1 : op->number;
    int needed = s->waited[op->channel] + 1; /* of each channel */

    if (op->kind == WAIT_ANY)
        needed -= (number - 1) * op->each;
    for (int i = 0; i < number && needed > 0; i++)
        if (channels[op->channel + i].n < needed)
            return 0;
    for (int i = 0; i < number && needed > 0; i++)
        learn(s, &channels[op->channel + i].posts[needed - 1]);
    s->waited[op->channel]++;
    return 1;
}

/* Goes on until the node has to wait; returns how far it came. */
static int proceed(int id)
{
    struct story *s = &stories[id];
    int from = s->at;

    for (; s->at < s->nops; s->at++) {
        const struct op *op = &s->ops[s->at];
        if (op->kind == EVENT)
            print_event(s, id);
        else if (op->kind == POST)
            add_post(s, &channels[op->channel]);
        else if (!take(s, op))
            break;
    }
    return s->at - from;
}

static void print_nodes(void)
{
    for (int i = 0; i < truth_nodes; i++) {
        char name[32];
        int events = 0;
        for (int k = 0; k < stories[i].nops; k++)
            events += stories[i].ops[k].kind == EVENT;
        name_node(name, sizeof(name), i);
        printf("node %s %d\n", name, events);
    }
}

static void print_edges(const struct truth_scenario *s)
{
    int came, left = 0;

    truth_running = 0;
    for (int i = 0; i < truth_nodes; i++) {
        struct truth_node n = {.id = i};
        (program->play ? program->play : truth_play)(&n, s);
        truth_event(&n); /* the exit */
    }
    print_nodes();
    do {
        came = 0;
        for (int i = 0; i < truth_nodes; i++)
            came += proceed(i);
    } while (came);
    for (int i = 0; i < truth_nodes; i++)
        left += stories[i].nops - stories[i].at;
    errno = 0;
    if (left)
        truth_die("the scenario never ends");
}

/* ---- I/O --------------------------------------------------------------------------------- */

void truth_open(struct truth_node *n)
{
    char name[32], path[64];

    truth_event(n);
    if (!truth_running)
        return;
    name_node(name, sizeof(name), n->id);
    snprintf(path, sizeof(path), "%s.dat", name);
    n->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (n->fd < 0)
        truth_die("cannot open '%s'", path);
}

void truth_write(struct truth_node *n)
{
    static const char data[512];

    truth_event(n);
    if (truth_running &&
        pwrite(n->fd, data, sizeof(data), (off_t)(n->writes++ * sizeof(data))) != sizeof(data))
        truth_die("cannot write");
}

void truth_close(struct truth_node *n)
{
    truth_event(n);
    if (truth_running && close(n->fd))
        truth_die("cannot close");
}

/* ---- the program --------------------------------------------------------------------------- */

void truth_play(struct truth_node *n, const struct truth_scenario *s)
{
    truth_open(n);
    s->play(n);
    truth_close(n);
}

static const struct truth_scenario *find_scenario(const char *name)
{
    for (const struct truth_scenario *s = program->scenarios; s->name; s++)
        if (!strcmp(s->name, name))
            return s;
    errno = EINVAL;
    truth_die("no scenario '%s'", name);
}

int truth_main(int argc, char **argv, const struct truth_program *p)
{
    const struct truth_scenario *s;
    int edges = argc > 1 && !strcmp(argv[argc - 1], "--edges");

    program = p;
    argc -= edges;
    if (argc == 2 && !strcmp(argv[1], "--list")) {
        for (s = p->scenarios; s->name; s++)
            printf("%s %d\n", s->name, s->nodes);
        return 0;
    }
    if (argc < 2 || argc > 3 || (argc == 3 && (truth_rounds = atoi(argv[2])) < 1)) {
        fprintf(stderr, "Usage: %s SCENARIO [ROUNDS] [--edges]\n       %s --list\n", argv[0],
                argv[0]);
        return 2;
    }
    s = find_scenario(argv[1]);
    truth_nodes = s->nodes;
    if (edges)
        print_edges(s);
    else
        p->run(s);
    return 0;
}
