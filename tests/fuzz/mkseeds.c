/*
 * Writes run files for the fuzzer to begin with: mkseeds DIR.  DIR/whole has one with
 * every call; those in DIR/small have the first rows of the table only, because most of
 * the time would otherwise go into reading the table.
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/trace.h"
#include "common/trace_codec.h"

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static struct pt_event make_event(uint16_t op, int i, char names[PT_NSTRINGS][64])
{
    struct pt_event ev = {.op = op,
                          .begin = 1000000u + (uint64_t)i * 5000,
                          .dur = 100 + (uint64_t)i,
                          .busy = 100 + (uint64_t)i % 50,
                          .cpu = (uint64_t)(i % 3) * 777,
                          .hold = i % 5 ? 0 : 1234,
                          .polls = i % 6 ? 0 : 300,
                          .flags = i & 1 ? PT_EV_SYNC : 0,
                          .ret = i % 4 ? i * 1000003ll : 0};
    if (i % 7 == 3) {
        ev.err = 2;
        ev.ret = -1;
    }
    for (int f = 0; f < pt_calls[op].nfields; f++) {
        int kind = pt_calls[op].fields[f], string = pt_field_string(kind);
        if (string >= 0) {
            snprintf(names[string], sizeof(names[0]), "/d/%d", i / 2);
            ev.str[string] = names[string];
        } else {
            ev.field[kind] = (i % 2 ? -1 : 1) * (int64_t)i * (kind + 1) * 1003;
        }
    }
    if (i % 4 == 1)
        ev.ret = ev.field[PT_F_LEN];
    return ev;
}

/* Writes a run file with events of the calls from `first` to before `last`. */
static void write_run(int dir, const char *name, int first, int last, int events)
{
    char names[PT_NSTRINGS][64];
    struct pt_err err;
    struct pt_hold_peer peers[] = {{{1, 0, 0}, 7, PT_STATE_BLOCKED}, {{2, 1, 4}, 9, PT_STATE_GONE}};
    struct pt_hold hold = {{0, 0, 0}, 3, 99, 0, 2, peers};
    struct pt_loss loss = {17, 4};
    struct pt_writer *w = pt_writer_create(dir, name, "host=n0\nspec=\n", &err);
    if (!w) {
        fprintf(stderr, "mkseeds: %s\n", err.text);
        exit(1);
    }
    for (uint32_t node = 0; node < 2; node++) {
        struct pt_node info = {{(int32_t)node, 0, 0}, 10, 11, 999, "/bin/x", "/"};
        pt_writer_node(w, node, &info);
        for (int i = 0; i < events; i++) {
            struct pt_event ev = make_event((uint16_t)(first + i % (last - first)), i, names);
            pt_writer_event(w, node, &ev);
        }
        pt_writer_flush(w);
        pt_writer_loss(w, node, &loss);
    }
    pt_writer_hold(w, &hold);
    if (pt_writer_close(w, "lost=8\nexit.0=256\n"))
        die(name);
}

/* Cuts the table of calls after its first `rows`. */
static void cut_table(int dir, const char *name, int rows)
{
    static unsigned char file[1 << 20];
    int fd = openat(dir, name, O_RDWR);
    ssize_t got = fd < 0 ? -1 : read(fd, file, sizeof(file));
    if (got < 0 || got == sizeof(file))
        die(name);
    size_t n = (size_t)got, at = PT_RUN_HEAD_LEN;
    while (pt_get32(file + at) != PT_BLOCK_CALLS)
        at += PT_BLOCK_HEAD + pt_get32(file + at + 4);
    unsigned char *text = file + at + PT_BLOCK_HEAD, *cut = text;
    unsigned char *behind = text + pt_get32(file + at + 4);
    while (rows-- && cut < behind)
        cut = (unsigned char *)memchr(cut, '\n', (size_t)(behind - cut)) + 1;
    pt_put32(file + at + 4, (uint32_t)(cut - text));
    pt_put32(file + at + 8, pt_crc32(text, (size_t)(cut - text)));
    memmove(cut, behind, (size_t)(file + n - behind));
    n -= (size_t)(behind - cut);
    if (ftruncate(fd, 0) || pwrite(fd, file, n, 0) != (ssize_t)n || close(fd))
        die(name);
}

int main(int argc, char **argv)
{
    static const int rows[] = {1, 4, 12, 24};
    int dir = argc == 2 ? open(argv[1], O_RDONLY | O_DIRECTORY) : -1;
    if (dir < 0) {
        fprintf(stderr, "usage: mkseeds DIR\n");
        return 2;
    }
    if (mkdirat(dir, "whole", 0700) || mkdirat(dir, "small", 0700))
        die(argv[1]);
    write_run(dir, "whole/every-call.ptrun", 0, PT_NOPS, 3 * PT_NOPS);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[64];
        int last = rows[i] < PT_NOPS ? rows[i] : PT_NOPS;
        snprintf(name, sizeof(name), "small/%d-calls.ptrun", last);
        write_run(dir, name, last > 12 ? last - 12 : 0, last, 16);
        cut_table(dir, name, last);
    }
    return 0;
}
