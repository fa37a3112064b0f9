/*
 * mkrun FILE < script: writes a run file.
 *
 *   meta KEY=VALUE...                 before anything else; defaults below
 *   node NUMBER RANK.PROCESS.THREAD [cwd=DIR] [start=NS]
 *   NUMBER CALL [FIELD=VALUE...]      an event of that node; also begin= dur= cpu= hold=
 *                                     ret= err= inner= sync=; fd=FD:HANDLE
 *   hold RANK IO_EVENT [timeout] RANK:IO_DONE:STATE...    STATE: blocked, gone, busy
 *   loss NUMBER AFTER COUNT
 *   cut                               no END block
 *
 * Where nothing is said, an event begins 1 us after the last of its node and
 * takes 100 ns.
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/trace.h"

#define MAX_NODES 256
#define MAX_PEERS 64

struct script {
    const char *file;
    unsigned line;
    char meta[4096];
    struct pt_writer *w;
    uint64_t clock[MAX_NODES];
    int cut;
};

__attribute__((noreturn)) static void die(const struct script *s, const char *what)
{
    fprintf(stderr, "mkrun: line %u: %s\n", s->line, what);
    exit(2);
}

static void check(const struct script *s, int rc)
{
    if (rc < 0)
        die(s, "cannot write");
}

/* The default META comes last: the first value of a key counts. */
static void start(struct script *s)
{
    struct pt_err err;

    if (s->w)
        return;
    strcat(s->meta, "host=n0\njob=7\nstep=0\nnhosts=1\nspec=throttle:none\n"
                    "realtime=1000000000000\nmonotonic=1000000\n");
    s->w = pt_writer_create(AT_FDCWD, s->file, s->meta, &err);
    if (!s->w) {
        fprintf(stderr, "mkrun: %s\n", err.text);
        exit(1);
    }
}

static struct pt_name parse_name(const char *text)
{
    struct pt_name name = {0};

    sscanf(text, "%d.%d.%d", &name.rank, &name.process, &name.thread);
    return name;
}

static unsigned node_number(const struct script *s, const char *text)
{
    unsigned long n = strtoul(text, NULL, 10);

    if (n >= MAX_NODES)
        die(s, "node number too large");
    return n;
}

static void do_node(struct script *s, char **words)
{
    struct pt_node node = {.start = 1000000, .exe = "/bin/app", .cwd = "/home", .pid = 100};
    unsigned number = node_number(s, words[0]);

    node.name = parse_name(words[1]);
    node.tid = node.pid + number;
    for (char **w = words + 2; *w; w++) {
        if (!strncmp(*w, "cwd=", 4))
            node.cwd = *w + 4;
        else if (!strncmp(*w, "start=", 6))
            node.start = strtoull(*w + 6, NULL, 10);
        else
            die(s, "unknown attribute of a node");
    }
    s->clock[number] = node.start;
    check(s, pt_writer_node(s->w, number, &node));
}

static void set_field(const struct script *s, struct pt_event *ev, const char *key, char *value)
{
    int field = pt_field_by_name(key);
    char *end;

    if (field < 0)
        die(s, "unknown field");
    if (pt_field_is_string(field)) {
        ev->str[pt_field_string(field)] = value;
        return;
    }
    ev->field[field] = strtoll(value, &end, 0);
    if (*end == ':')
        ev->field[field] = PT_FD_WORD(ev->field[field], strtoul(end + 1, NULL, 10));
}

static void set_value(const struct script *s, struct pt_event *ev, char *word)
{
    char *value = strchr(word, '=');

    if (!value)
        die(s, "KEY=VALUE expected");
    *value++ = '\0';
    if (!strcmp(word, "begin"))
        ev->begin = strtoull(value, NULL, 10);
    else if (!strcmp(word, "dur"))
        ev->dur = strtoull(value, NULL, 10);
    else if (!strcmp(word, "cpu"))
        ev->cpu = strtoull(value, NULL, 10);
    else if (!strcmp(word, "hold"))
        ev->hold = strtoull(value, NULL, 10);
    else if (!strcmp(word, "ret"))
        ev->ret = strtoll(value, NULL, 10);
    else if (!strcmp(word, "err"))
        ev->err = atoi(value);
    else if (!strcmp(word, "inner"))
        ev->flags |= PT_EV_INNER;
    else if (!strcmp(word, "sync"))
        ev->flags |= PT_EV_SYNC;
    else
        set_field(s, ev, word, value);
}

static void do_event(struct script *s, unsigned number, char **words)
{
    int op = pt_op_by_name(words[0]);
    struct pt_event ev = {.begin = s->clock[number] + 1000, .dur = 100};

    if (op < 0)
        die(s, "unknown call");
    ev.op = op;
    ev.field[PT_F_DIRFD] = ev.field[PT_F_DIRFD2] = AT_FDCWD;
    for (char **w = words + 1; *w; w++)
        set_value(s, &ev, *w);
    if (ev.err)
        ev.ret = -1;
    s->clock[number] = ev.begin + ev.dur;
    check(s, pt_writer_event(s->w, number, &ev));
}

static enum pt_hold_state parse_state(const struct script *s, const char *text)
{
    if (!strcmp(text, "blocked"))
        return PT_STATE_BLOCKED;
    if (!strcmp(text, "gone"))
        return PT_STATE_GONE;
    if (!strcmp(text, "busy"))
        return PT_STATE_BUSY;
    die(s, "unknown state");
}

static void do_hold(struct script *s, char **words)
{
    struct pt_hold_peer peers[MAX_PEERS];
    struct pt_hold hold = {.name = parse_name(words[0]), .ns = 2000000, .peers = peers};

    hold.io_event = strtoull(words[1], NULL, 10);
    for (char **w = words + 2; *w && hold.npeers < MAX_PEERS; w++) {
        char name[64], state[64];
        unsigned long long done;

        if (!strcmp(*w, "timeout")) {
            hold.timed_out = 1;
            continue;
        }
        if (sscanf(*w, "%63[^:]:%llu:%63s", name, &done, state) != 3)
            die(s, "RANK:IO_DONE:STATE expected");
        peers[hold.npeers++] = (struct pt_hold_peer){parse_name(name), done, parse_state(s, state)};
    }
    check(s, pt_writer_hold(s->w, &hold));
}

static void do_line(struct script *s, char **words, size_t n)
{
    if (!strcmp(words[0], "meta")) {
        for (size_t i = 1; i < n; i++) {
            strcat(s->meta, words[i]);
            strcat(s->meta, "\n");
        }
        return;
    }
    start(s);
    if (!strcmp(words[0], "node") && n >= 3) {
        do_node(s, words + 1);
    } else if (!strcmp(words[0], "hold") && n >= 3) {
        do_hold(s, words + 1);
    } else if (!strcmp(words[0], "loss") && n == 4) {
        struct pt_loss loss = {strtoull(words[2], NULL, 10), strtoull(words[3], NULL, 10)};
        check(s, pt_writer_loss(s->w, node_number(s, words[1]), &loss));
    } else if (!strcmp(words[0], "cut")) {
        s->cut = 1;
    } else if (n >= 2) {
        do_event(s, node_number(s, words[0]), words + 1);
    } else {
        die(s, "unknown line");
    }
}

int main(int argc, char **argv)
{
    static struct script s;
    char line[1000];

    if (argc != 2)
        die(&s, "usage: mkrun FILE < script");
    s.file = argv[1];
    while (s.line++, fgets(line, sizeof(line), stdin)) {
        char *words[64], *save;
        size_t n = 0;

        for (char *w = strtok_r(line, " \n", &save); w && n < 63; w = strtok_r(NULL, " \n", &save))
            words[n++] = w;
        words[n] = NULL;
        if (n && words[0][0] != '#')
            do_line(&s, words, n);
    }
    start(&s);
    if (s.cut) {
        check(&s, pt_writer_flush(s.w));
        return 0;
    }
    check(&s, pt_writer_close(s.w, "complete=1\n"));
    return 0;
}
