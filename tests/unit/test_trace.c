/*
 * Run files: what is written is read, whatever the table, and nothing that is no
 * run file does any harm.
 */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/trace.h"
#include "common/trace_codec.h"
#include "tests/unit/run.h"

static char dir[] = "/tmp/test_trace.XXXXXX";
static int dirfd_;

static void setup(void)
{
    strcpy(dir + strlen(dir) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    dirfd_ = open(dir, O_RDONLY | O_DIRECTORY);
}

static void teardown(void)
{
    unlinkat(dirfd_, "a.ptrun", 0);
    close(dirfd_);
    rmdir(dir);
}

static const char *path(void)
{
    static char buf[64];
    snprintf(buf, sizeof(buf), "%s/a.ptrun", dir);
    return buf;
}

static struct pt_writer *create(void)
{
    struct pt_err err;
    struct pt_writer *w = pt_writer_create(dirfd_, "a.ptrun", "host=n0\nspec=period=3\n", &err);
    ck_assert_msg(w != NULL, "%s", err.text);
    return w;
}

/* An event of that op in which every field differs from its neighbours. */
static struct pt_event make_event(uint16_t op, int i, char names[PT_NSTRINGS][64])
{
    struct pt_event ev = {.op = op,
                          .begin = 1000000u + (uint64_t)i * 5000,
                          .dur = 100 + i,
                          .busy = 100 + i % 50,
                          .cpu = (uint64_t)(i % 3) * 777,
                          .hold = i % 5 ? 0 : 1234};
    ev.flags = i & 1 ? PT_EV_SYNC : 0;
    ev.polls = i % 11 ? 0 : (uint64_t)i;
    ev.waited = i % 22 ? 0 : (uint64_t)i;
    if (i % 7 == 3) {
        ev.err = 2;
        ev.ret = -1;
    } else {
        ev.ret = i % 4 ? i * 1000003ll : 0;
    }
    for (int f = 0; f < pt_calls[op].nfields; f++) {
        int kind = pt_calls[op].fields[f];
        if (pt_field_is_string(kind)) {
            int n = pt_field_string(kind);
            snprintf(names[n], sizeof(names[n]), "/dir/%d.%d.%d", n, op, i / 2);
            ev.str[n] = names[n];
        } else {
            ev.field[kind] = (i % 2 ? -1 : 1) * (int64_t)i * (kind + 1) * 1000003;
        }
    }
    return ev;
}

static void assert_same(const struct pt_event *a, const struct pt_event *b)
{
    ck_assert_uint_eq(a->op, b->op);
    ck_assert_uint_eq(a->flags, b->flags);
    ck_assert_int_eq(a->err, b->err);
    ck_assert_uint_eq(a->begin, b->begin);
    ck_assert_uint_eq(a->dur, b->dur);
    ck_assert_uint_eq(a->cpu, b->cpu);
    ck_assert_uint_eq(a->busy, b->busy);
    ck_assert_uint_eq(a->polls, b->polls);
    ck_assert_uint_eq(a->waited, b->waited);
    ck_assert_uint_eq(a->hold, b->hold);
    ck_assert_int_eq(a->ret, b->ret);
    ck_assert_mem_eq(a->field, b->field, sizeof(a->field));
    for (int i = 0; i < PT_NSTRINGS; i++)
        ck_assert(a->str[i] ? b->str[i] && !strcmp(a->str[i], b->str[i]) : !b->str[i]);
}

#define EVENTS 20000

START_TEST(every_call_comes_back)
{
    char names[PT_NSTRINGS][64];
    struct pt_node node = {{3, 1, 2}, 10, 11, 999, "/bin/x", "/home"};
    struct pt_writer *w = create();
    ck_assert_int_eq(pt_writer_node(w, 0, &node), 0);
    for (int i = 0; i < EVENTS; i++) {
        struct pt_event ev = make_event((uint16_t)(i % PT_NOPS), i, names);
        ck_assert_int_eq(pt_writer_event(w, 0, &ev), 0);
    }
    ck_assert_int_eq(pt_writer_close(w, "exit.0=256\n"), 0);

    struct pt_err err;
    struct pt_item item;
    struct pt_reader *r = pt_reader_open(path(), &err);
    ck_assert_msg(r != NULL, "%s", err.text);
    ck_assert_str_eq(pt_reader_meta(r, "spec"), "period=3");
    ck_assert_ptr_null(pt_reader_meta(r, "spe"));
    ck_assert_int_eq(pt_reader_next(r, &item, &err), 1);
    ck_assert_int_eq(item.kind, PT_ITEM_NODE);
    ck_assert_int_eq(pt_name_compare(&item.info.name, &node.name), 0);
    ck_assert_str_eq(item.info.cwd, "/home");
    for (int i = 0; i < EVENTS; i++) {
        struct pt_event ev = make_event((uint16_t)(i % PT_NOPS), i, names);
        ck_assert_int_eq(pt_reader_next(r, &item, &err), 1);
        ck_assert_int_eq(item.kind, PT_ITEM_EVENT);
        assert_same(&item.event, &ev);
    }
    ck_assert_int_eq(pt_reader_next(r, &item, &err), 1);
    ck_assert_int_eq(item.kind, PT_ITEM_END);
    ck_assert_str_eq(pt_reader_meta(r, "exit.0"), "256");
    ck_assert_int_eq(pt_reader_next(r, &item, &err), 0);
    pt_reader_close(r);
}
END_TEST

START_TEST(holds_and_losses_come_back)
{
    struct pt_hold_peer peers[2] = {{{0, 0, 0}, 7, PT_STATE_BLOCKED},
                                    {{2, 1, 4}, 9, PT_STATE_BUSY}};
    struct pt_hold hold = {{1, 0, 0}, 3, 99, 1, 2, peers};
    struct pt_loss loss = {17, 4};
    struct pt_writer *w = create();
    ck_assert_int_eq(pt_writer_hold(w, &hold), 0);
    ck_assert_int_eq(pt_writer_loss(w, 5, &loss), 0);
    ck_assert_int_eq(pt_writer_close(w, ""), 0);

    struct pt_item item;
    struct pt_err err;
    struct pt_reader *r = pt_reader_open(path(), &err);
    ck_assert_int_eq(pt_reader_next(r, &item, &err), 1);
    ck_assert_int_eq(item.kind, PT_ITEM_HOLD);
    ck_assert_uint_eq(item.hold.io_event, 3);
    ck_assert_uint_eq(item.hold.npeers, 2);
    ck_assert_int_eq(item.hold.peers[1].name.thread, 4);
    ck_assert_int_eq(item.hold.peers[1].state, PT_STATE_BUSY);
    ck_assert_int_eq(pt_reader_next(r, &item, &err), 1);
    ck_assert_int_eq(item.kind, PT_ITEM_LOSS);
    ck_assert_uint_eq(item.node, 5);
    ck_assert_uint_eq(item.loss.count, 4);
    pt_reader_close(r);
}
END_TEST

START_TEST(a_sequential_write_takes_few_bytes)
{
    struct stat st;
    struct pt_event ev = {.op = PT_OP_pwrite, .begin = 1, .ret = 64};
    struct pt_writer *w = create();
    ev.field[PT_F_FD] = PT_FD_WORD(3, 1);
    ev.field[PT_F_LEN] = 64;
    for (int i = 0; i < 100000; i++) {
        ev.begin += 700;
        ev.busy = ev.dur = 450 + (uint64_t)i % 100;
        ev.cpu = 700 - (450 + (uint64_t)(i + 99) % 100);
        ev.field[PT_F_OFF] += 64;
        pt_writer_event(w, 0, &ev);
    }
    pt_writer_close(w, "");
    ck_assert_int_eq(stat(path(), &st), 0);
    ck_assert_int_le(st.st_size, 16 * 100000);
}
END_TEST

/* ---- files that are not as we would write them ------------------------------------ */

static size_t put_block(unsigned char *at, uint32_t type, const void *payload, size_t n)
{
    pt_put32(at, type);
    pt_put32(at + 4, (uint32_t)n);
    pt_put32(at + 8, pt_crc32(payload, n));
    pt_put32(at + 12, 0);
    memcpy(at + PT_BLOCK_HEAD, payload, n);
    return PT_BLOCK_HEAD + n;
}

static void write_file(const unsigned char *p, size_t n)
{
    int fd = openat(dirfd_, "a.ptrun", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_eq(write(fd, p, n), (ssize_t)n);
    close(fd);
}

/* The head and a table of two calls: one that we have lost, one with a field of its own. */
static size_t other_table(unsigned char *file)
{
    const char *calls = "call teleport io fd len\ncall pread io len colour off\n";
    memcpy(file, PT_RUN_MAGIC, PT_RUN_MAGIC_LEN);
    pt_put32(file + 8, PT_RUN_VERSION);
    pt_put32(file + 12, 0);
    size_t n = PT_RUN_HEAD_LEN;
    n += put_block(file + n, PT_BLOCK_META, "host=old\n", 9);
    return n + put_block(file + n, PT_BLOCK_CALLS, calls, strlen(calls));
}

START_TEST(another_table_is_understood)
{
    unsigned char file[1000], events[100] = {0};
    size_t n = other_table(file), e = PT_EVENTS_HEAD;
    pt_put64(events + 8, 5000);
    pt_put32(events + 16, 2);
    /* teleport(4, 9) = 0, then pread(len 8, colour 3, off -5) = 8 */
    e += pt_put_varint(events + e, 0);
    e += pt_put_varint(events + e, PT_ENC_ZERO);
    e += pt_put_varint(events + e, pt_zigzag(10));
    e += pt_put_varint(events + e, 20);
    e += pt_put_varint(events + e, 3);
    e += pt_put_varint(events + e, pt_zigzag(4));
    e += pt_put_varint(events + e, pt_zigzag(9));
    e += pt_put_varint(events + e, 1);
    e += pt_put_varint(events + e, PT_ENC_FULL);
    e += pt_put_varint(events + e, pt_zigzag(1));
    e += pt_put_varint(events + e, 2);
    e += pt_put_varint(events + e, 7);
    e += pt_put_varint(events + e, pt_zigzag(8));
    e += pt_put_varint(events + e, pt_zigzag(3));
    e += pt_put_varint(events + e, pt_zigzag(-5));
    n += put_block(file + n, PT_BLOCK_EVENTS, events, e);
    n += put_block(file + n, 4711, "from the future", 15);
    n += put_block(file + n, PT_BLOCK_END, "", 0);
    write_file(file, n);

    struct pt_item item;
    struct pt_err err;
    struct pt_reader *r = pt_reader_open(path(), &err);
    ck_assert_msg(r != NULL, "%s", err.text);
    ck_assert_int_eq(pt_reader_next(r, &item, &err), 1);
    ck_assert_str_eq(pt_reader_call(r, item.event.op)->name, "teleport");
    ck_assert_int_eq(pt_reader_call(r, item.event.op)->replay, PT_REPLAY_NONE);
    ck_assert_int_eq(item.event.field[PT_F_LEN], 9);
    ck_assert_int_eq(pt_reader_next(r, &item, &err), 1);
    ck_assert_int_eq(pt_reader_call(r, item.event.op)->replay, PT_REPLAY_PREAD);
    ck_assert_int_eq(item.event.ret, 8);
    ck_assert_int_eq(item.event.field[PT_F_OFF], -5);
    ck_assert_uint_eq(item.event.begin, 5031);
    ck_assert_int_eq(pt_reader_next(r, &item, &err), 1);
    ck_assert_int_eq(item.kind, PT_ITEM_END);
    pt_reader_close(r);
}
END_TEST

static void assert_refused(const char *why)
{
    struct pt_err err;
    ck_assert_ptr_null(pt_reader_open(path(), &err));
    ck_assert_msg(strstr(err.text, why) != NULL, "'%s' is not in '%s'", why, err.text);
    ck_assert_ptr_nonnull(strstr(err.text, path()));
}

START_TEST(foreign_files_are_refused)
{
    unsigned char file[1000];
    size_t n = other_table(file);
    write_file((const unsigned char *)"hello", 5);
    assert_refused("truncated");
    write_file((const unsigned char *)"#!/bin/sh\necho a longer text\n", 29);
    assert_refused("not a paratrace run file");
    write_file(file, n - 1);
    assert_refused("truncated");
    pt_put32(file + 8, PT_RUN_VERSION + 1);
    write_file(file, n);
    assert_refused("version 2");
    unlinkat(dirfd_, "a.ptrun", 0);
    assert_refused("No such file");
}
END_TEST

static unsigned char *read_file(size_t *n)
{
    struct stat st;
    int fd = openat(dirfd_, "a.ptrun", O_RDONLY);
    fstat(fd, &st);
    unsigned char *p = malloc((size_t)st.st_size);
    ck_assert_int_eq(read(fd, p, (size_t)st.st_size), st.st_size);
    close(fd);
    *n = (size_t)st.st_size;
    return p;
}

static void write_sample(int events)
{
    char names[PT_NSTRINGS][64];
    struct pt_node node = {{0, 0, 0}, 1, 1, 0, "x", "/"};
    struct pt_hold_peer peer = {{1, 0, 0}, 7, PT_STATE_BLOCKED};
    struct pt_hold hold = {{0, 0, 0}, 3, 99, 0, 1, &peer};
    struct pt_writer *w = create();
    pt_writer_node(w, 0, &node);
    for (int i = 0; i < events; i++) {
        struct pt_event ev = make_event((uint16_t)(i % PT_NOPS), i, names);
        pt_writer_event(w, 0, &ev);
    }
    pt_writer_hold(w, &hold);
    pt_writer_close(w, "lost=0\n");
}

/* Reads to the end or to the first complaint; 1: the file ended with its END block. */
static int read_all(long *items)
{
    struct pt_err err;
    struct pt_item item;
    int complete = 0;
    struct pt_reader *r = pt_reader_open(path(), &err);
    *items = 0;
    if (!r)
        return 0;
    while (pt_reader_next(r, &item, &err) > 0) {
        ++*items;
        complete = item.kind == PT_ITEM_END;
    }
    pt_reader_close(r);
    return complete;
}

START_TEST(a_cut_file_is_read_up_to_the_cut)
{
    long items, last = 0;
    size_t n;
    write_sample(20000);
    unsigned char *file = read_file(&n);
    ck_assert(read_all(&items));
    for (size_t cut = 5000; cut < n; cut += n / 7) {
        write_file(file, cut);
        ck_assert(!read_all(&items));
        ck_assert_int_ge(items, last);
        last = items;
    }
    ck_assert_int_gt(last, 1000);
    free(file);
}
END_TEST

/* Flips bytes and mends the checksums, so that the damage reaches the decoder. */
START_TEST(damaged_files_do_no_harm)
{
    long items;
    size_t n;
    write_sample(300);
    unsigned char *file = read_file(&n), *copy = malloc(n);
    srand(1);
    for (int round = 0; round < 20000; round++) {
        memcpy(copy, file, n);
        for (int flips = 1 + rand() % 4; flips; flips--)
            copy[(size_t)rand() % n] ^= (unsigned char)(1 << rand() % 8);
        for (size_t at = PT_RUN_HEAD_LEN; at + PT_BLOCK_HEAD < n;) {
            size_t len = pt_get32(copy + at + 4);
            if (len > n - at - PT_BLOCK_HEAD)
                break;
            pt_put32(copy + at + 8, pt_crc32(copy + at + PT_BLOCK_HEAD, len));
            at += PT_BLOCK_HEAD + len;
        }
        write_file(copy, n);
        read_all(&items);
    }
    free(copy);
    free(file);
}
END_TEST

START_TEST(an_existing_file_is_not_overwritten)
{
    struct pt_err err;
    write_sample(1);
    ck_assert_ptr_null(pt_writer_create(dirfd_, "a.ptrun", "", &err));
    ck_assert_ptr_nonnull(strstr(err.text, "File exists"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trace");
    TCase *tc = tcase_create("run files");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, every_call_comes_back);
    tcase_add_test(tc, holds_and_losses_come_back);
    tcase_add_test(tc, a_sequential_write_takes_few_bytes);
    tcase_add_test(tc, another_table_is_understood);
    tcase_add_test(tc, foreign_files_are_refused);
    tcase_add_test(tc, a_cut_file_is_read_up_to_the_cut);
    tcase_add_test(tc, damaged_files_do_no_harm);
    tcase_add_test(tc, an_existing_file_is_not_overwritten);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
