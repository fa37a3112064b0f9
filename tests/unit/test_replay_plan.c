/* Plan, schedule and check, on a store that is only in memory. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "replay/check.h"
#include "replay/plan.h"
#include "replay/schedule.h"
#include "tests/unit/run.h"

enum { MAX_NODES = 4, MAX_EVENTS = 16 };

struct pt_store {
    size_t nnodes, nfiles, nedges, nbarriers;
    struct pt_store_node nodes[MAX_NODES];
    struct pt_store_event events[MAX_NODES][MAX_EVENTS];
    struct pt_store_file files[4];
    struct pt_store_edge edges[8];
    struct pt_store_barrier barriers[2];
    struct pt_call_desc calls[PT_NOPS];
};

static struct pt_store store;
static struct plan plan;
static struct schedule schedule;
static struct pt_err err;

/* ---- the store's functions ------------------------------------------------------ */

size_t pt_store_nnodes(const struct pt_store *s)
{
    return s->nnodes;
}

const struct pt_store_node *pt_store_node(const struct pt_store *s, size_t i)
{
    return &s->nodes[i];
}

size_t pt_store_nfiles(const struct pt_store *s)
{
    return s->nfiles;
}

const struct pt_store_file *pt_store_file(const struct pt_store *s, size_t i)
{
    return &s->files[i];
}

size_t pt_store_ncalls(const struct pt_store *s)
{
    (void)s;
    return PT_NOPS;
}

const struct pt_call_desc *pt_store_call(const struct pt_store *s, size_t op)
{
    return &s->calls[op];
}

size_t pt_store_nedges(const struct pt_store *s)
{
    return s->nedges;
}

const struct pt_store_edge *pt_store_edges(const struct pt_store *s)
{
    return s->edges;
}

size_t pt_store_nbarriers(const struct pt_store *s)
{
    return s->nbarriers;
}

const struct pt_store_barrier *pt_store_barrier(const struct pt_store *s, size_t i)
{
    return &s->barriers[i];
}

int pt_store_read_events(struct pt_store *s, size_t node, uint64_t first, uint64_t count,
                         struct pt_store_event *out, struct pt_err *e)
{
    (void)e;
    memcpy(out, &s->events[node][first], count * sizeof(*out));
    return 0;
}

/* ---- making one ------------------------------------------------------------------- */

static void setup(void)
{
    memset(&store, 0, sizeof(store));
    for (int op = 0; op < PT_NOPS; op++) {
        store.calls[op].cls = pt_calls[op].cls;
        store.calls[op].replay = pt_calls[op].replay;
        strcpy(store.calls[op].name, pt_calls[op].name);
    }
    store.files[0] = (struct pt_store_file){.path = "/d/in", .size = 100};
    store.files[1] = (struct pt_store_file){.path = "/d/out", .made = 1};
    store.files[2] = (struct pt_store_file){.path = "/dev/null"};
    store.files[3] = (struct pt_store_file){.path = "pipe:[1]"};
    store.nfiles = 4;
}

static void teardown(void)
{
    plan_destroy(&plan);
    schedule_destroy(&schedule);
}

static void add_node(int rank, int process, int thread)
{
    store.nodes[store.nnodes++].name = (struct pt_name){rank, process, thread};
}

/* Adds an event to the last node; each begins later than the one before. */
static struct pt_store_event *add(enum pt_op op, uint32_t handle, uint32_t file)
{
    struct pt_store_node *n = &store.nodes[store.nnodes - 1];
    struct pt_store_event *ev = &store.events[store.nnodes - 1][n->count++];

    *ev = (struct pt_store_event){
        .op = op, .handle = handle, .file = file, .file2 = PT_NO_FILE, .begin_ns = n->count * 1000};
    return ev;
}

static struct pt_store_event *use(enum pt_op op, uint32_t handle)
{
    return add(op, handle, PT_NO_FILE);
}

static void add_edge(uint32_t a, uint64_t i, uint32_t b, uint64_t j)
{
    store.edges[store.nedges++] = (struct pt_store_edge){
        .src_node = a, .src_event = i, .dst_node = b, .dst_event = j, .by = PT_BY_HOLD};
}

static void add_events(int n)
{
    for (int i = 0; i < n; i++)
        add(PT_OP_unlink, 0, 0);
}

static void make_plan(int rank, int nranks)
{
    ck_assert_msg(plan_create(&plan, &store, rank, nranks, &err) == 0, "%s", err.text);
}

static void make_schedule(int rank, int nranks)
{
    schedule_destroy(&schedule);
    ck_assert_msg(schedule_create(&schedule, &store, rank, nranks, &err) == 0, "%s", err.text);
}

static int action(size_t node, size_t event)
{
    return plan.nodes[node].steps[event].action;
}

/* ---- nodes and ranks ---------------------------------------------------------------- */

START_TEST(nodes_go_to_their_rank)
{
    for (int rank = 0; rank < 4; rank++)
        add_node(rank, 0, 0);
    make_plan(1, 2);
    ck_assert_uint_eq(plan.nnodes, 2);
    ck_assert_int_eq(plan.nodes[0].info->name.rank, 1);
    ck_assert_int_eq(plan.nodes[1].info->name.rank, 3);
    ck_assert_uint_eq(plan.nprocesses, 2);
}
END_TEST

START_TEST(threads_share_a_process_and_start_later)
{
    add_node(0, 0, 0);
    add_node(0, 0, 1);
    add_node(0, 1, 0);
    store.nodes[0].start_ns = 500;
    store.nodes[1].start_ns = 700;
    store.nodes[2].start_ns = 600;
    make_plan(0, 1);
    ck_assert_uint_eq(plan.nodes[0].process, plan.nodes[1].process);
    ck_assert_uint_ne(plan.nodes[0].process, plan.nodes[2].process);
    ck_assert_uint_eq(plan.nodes[0].delay_ns, 0);
    ck_assert_uint_eq(plan.nodes[1].delay_ns, 200);
    ck_assert_uint_eq(plan.nodes[2].delay_ns, 100);
}
END_TEST

/* ---- actions ------------------------------------------------------------------------ */

START_TEST(a_plain_file_is_replayed)
{
    add_node(0, 0, 0);
    add(PT_OP_open, 1, 0);
    use(PT_OP_read, 1)->len = 70;
    use(PT_OP_close, 1);
    use(PT_OP_exit, 0);
    make_plan(0, 1);
    ck_assert_int_eq(action(0, 0), PLAN_ISSUE);
    ck_assert_int_eq(action(0, 1), PLAN_ISSUE);
    ck_assert_int_eq(action(0, 2), PLAN_ISSUE);
    ck_assert_int_eq(action(0, 3), PLAN_NOTHING);
    ck_assert_uint_eq(plan.nodes[0].steps[0].slot, plan.nodes[0].steps[1].slot);
    ck_assert_uint_eq(plan.max_read, 70);
    ck_assert_str_eq(plan.paths[0], "d/in");
}
END_TEST

START_TEST(descriptors_from_nowhere_are_found)
{
    uint64_t counts[NPLAN_ACTIONS * PT_NOPS] = {0};

    add_node(0, 0, 0);
    use(PT_OP_read, 9);
    use(PT_OP_read, 1);
    add(PT_OP_open, 1, 0);
    use(PT_OP_close, 0)->err = EBADF;
    make_plan(0, 1);
    ck_assert_int_eq(action(0, 0), PLAN_NO_HANDLE);
    ck_assert_int_eq(action(0, 1), PLAN_NO_HANDLE);
    ck_assert_int_eq(action(0, 3), PLAN_FAILED);
    ck_assert_uint_eq(check_size(&store), NPLAN_ACTIONS * PT_NOPS);
    check_count(&plan, counts);
    ck_assert_uint_eq(check_impossible(&store, counts), 2);
}
END_TEST

START_TEST(handles_belong_to_a_process)
{
    add_node(0, 0, 0);
    add(PT_OP_open, 1, 0);
    add_node(0, 1, 0);
    use(PT_OP_read, 1);
    make_plan(0, 1);
    ck_assert_int_eq(action(1, 0), PLAN_NO_HANDLE);
}
END_TEST

START_TEST(a_dup_opens_its_own_handle)
{
    add_node(0, 0, 0);
    add(PT_OP_open, 1, 0);
    use(PT_OP_dup, 1)->handle2 = 2;
    use(PT_OP_close, 1);
    use(PT_OP_read, 2);
    make_plan(0, 1);
    ck_assert_int_eq(action(0, 1), PLAN_ISSUE);
    ck_assert_int_eq(action(0, 3), PLAN_ISSUE);
    ck_assert_uint_eq(plan.nodes[0].steps[1].slot2, plan.nodes[0].steps[3].slot);
}
END_TEST

START_TEST(devices_and_pipes_are_left_alone)
{
    add_node(0, 0, 0);
    add(PT_OP_open, 1, 2);
    use(PT_OP_write, 1);
    add(PT_OP_inherited, 2, 3);
    use(PT_OP_write, 2);
    use(PT_OP_dup, 2)->handle2 = 3;
    use(PT_OP_write, 3);
    make_plan(0, 1);
    for (size_t i = 0; i < 6; i++)
        ck_assert_int_eq(action(0, i), PLAN_IGNORED);
}
END_TEST

START_TEST(inherited_files_are_opened_before)
{
    add_node(0, 0, 0);
    add(PT_OP_inherited, 1, 0);
    use(PT_OP_read, 1);
    add(PT_OP_inherited, 2, 1);
    make_plan(0, 1);
    ck_assert_int_eq(action(0, 0), PLAN_BEFORE);
    ck_assert_int_eq(action(0, 1), PLAN_ISSUE);
    ck_assert_int_eq(action(0, 2), PLAN_REOPEN);
}
END_TEST

START_TEST(only_harmless_failures_are_repeated)
{
    add_node(0, 0, 0);
    add(PT_OP_open, 0, 0)->err = ENOENT;
    add(PT_OP_open, 0, 0)->err = EACCES;
    add(PT_OP_unlink, 0, 0)->err = EPERM;
    add(PT_OP_open, 1, 0)->flags = PT_EV_INNER;
    make_plan(0, 1);
    ck_assert_int_eq(action(0, 0), PLAN_ISSUE);
    ck_assert_int_eq(action(0, 1), PLAN_FAILED);
    ck_assert_int_eq(action(0, 2), PLAN_FAILED);
    ck_assert_int_eq(action(0, 3), PLAN_NOTHING);
}
END_TEST

START_TEST(a_close_knows_the_uses_of_other_threads)
{
    add_node(0, 0, 0);
    add(PT_OP_open, 1, 0); /* 1000 */
    use(PT_OP_read, 1);    /* 2000 */
    use(PT_OP_close, 1)->begin_ns = 9000;
    add_node(0, 0, 1);
    use(PT_OP_read, 1)->begin_ns = 1500;
    use(PT_OP_read, 1)->begin_ns = 9500;
    make_plan(0, 1);
    ck_assert_int_eq(action(1, 0), PLAN_ISSUE);
    ck_assert_uint_eq(plan.nodes[0].steps[2].uses, 2);
}
END_TEST

START_TEST(first_touches_tell_what_was_there)
{
    uint64_t words[4];

    add_node(0, 0, 0);
    add(PT_OP_open, 0, 0)->err = ENOENT;
    add(PT_OP_open, 1, 0);
    add(PT_OP_mkdir, 0, 1);
    add(PT_OP_mkdir, 0, 2)->err = EEXIST;
    make_plan(0, 1);
    plan_first_touch(&plan, words);
    ck_assert_int_eq(PLAN_TOUCH(words[0]), TOUCH_ABSENT);
    ck_assert_int_eq(PLAN_TOUCH(words[1]), TOUCH_MKDIR);
    ck_assert_int_eq(PLAN_TOUCH(words[2]), TOUCH_DIR);
    ck_assert_uint_eq(words[3], PLAN_UNTOUCHED);
    ck_assert_uint_eq(plan_first_begin(&plan), 1000);
}
END_TEST

START_TEST(streams_and_directories_are_handles_too)
{
    add_node(0, 0, 0);
    add(PT_OP_fopen, 1, 0);
    use(PT_OP_fread, 1)->len = 10;
    *use(PT_OP_fgets, 1) = (struct pt_store_event){.op = PT_OP_fgets,
                                                   .handle = 1,
                                                   .file = PT_NO_FILE,
                                                   .file2 = PT_NO_FILE,
                                                   .len = 4096,
                                                   .ret = 33,
                                                   .begin_ns = 3000};
    use(PT_OP_fflush, 0); /* of all streams */
    use(PT_OP_fclose, 1);
    add(PT_OP_opendir, 2, 0);
    use(PT_OP_readdir, 2);
    use(PT_OP_vfprintf, 1)->len = -1;
    store.events[0][7].err = EBADF;
    make_plan(0, 1);
    for (size_t i = 0; i < 8; i++)
        ck_assert_int_eq(action(0, i), PLAN_ISSUE);
    ck_assert_uint_eq(plan.nodes[0].steps[3].slot, HANDLE_NO_SLOT);
    ck_assert_int_eq(plan.nodes[0].events[2].len, 33);
    ck_assert_uint_eq(plan.max_read, 33);
}
END_TEST

START_TEST(copies_use_two_handles)
{
    add_node(0, 0, 0);
    add(PT_OP_open, 1, 0);
    add(PT_OP_open, 2, 1);
    add(PT_OP_open, 3, 2); /* a device */
    use(PT_OP_copy_file_range, 1)->handle2 = 2;
    use(PT_OP_sendfile, 1)->handle2 = 3;
    use(PT_OP_sendfile, 1)->handle2 = 0;
    use(PT_OP_close, 2)->begin_ns = 20000;
    add_node(0, 0, 1);
    use(PT_OP_copy_file_range, 1)->handle2 = 2;
    store.events[1][0].begin_ns = 15000;
    make_plan(0, 1);
    for (size_t i = 3; i < 6; i++)
        ck_assert_int_eq(action(0, i), PLAN_ISSUE);
    ck_assert_uint_eq(plan.nodes[0].steps[3].slot2, plan.nodes[0].steps[1].slot);
    ck_assert_uint_eq(plan.nodes[0].steps[4].slot2, HANDLE_NO_SLOT);
    ck_assert_uint_eq(plan.nodes[0].steps[5].slot2, HANDLE_NO_SLOT);
    ck_assert_uint_eq(plan.nodes[0].steps[6].uses, 2);
}
END_TEST

START_TEST(names_may_be_descriptors)
{
    add_node(0, 0, 0);
    add(PT_OP_open, 1, 0);
    add(PT_OP_fstatat, 1, 0); /* of the descriptor */
    add(PT_OP_fstatat, 0, 0);
    add(PT_OP_link, 0, 0)->file2 = 1;
    add(PT_OP_link, 0, 0);
    add(PT_OP_stat, 0, 2);
    add(PT_OP_munmap, 0, PT_NO_FILE);
    add(PT_OP_rmdir, 0, 0)->err = ENOTEMPTY;
    make_plan(0, 1);
    ck_assert_uint_eq(plan.nodes[0].steps[1].slot, plan.nodes[0].steps[0].slot);
    ck_assert_uint_eq(plan.nodes[0].steps[2].slot, HANDLE_NO_SLOT);
    ck_assert_int_eq(action(0, 3), PLAN_ISSUE);
    ck_assert_int_eq(action(0, 4), PLAN_UNSUPPORTED);
    ck_assert_int_eq(action(0, 5), PLAN_IGNORED);
    ck_assert_int_eq(action(0, 6), PLAN_ISSUE);
    ck_assert_int_eq(action(0, 7), PLAN_FAILED);
}
END_TEST

START_TEST(mpi_io_does_not_stop_a_replay)
{
    uint64_t counts[NPLAN_ACTIONS * PT_NOPS] = {0};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    add_node(0, 0, 0);
    add(PT_OP_MPI_File_open, 0, 0);
    use(PT_OP_MPI_File_write_at, 0);
    make_plan(0, 1);
    ck_assert_int_eq(action(0, 0), PLAN_MPI_IO);
    check_count(&plan, counts);
    ck_assert_uint_eq(check_impossible(&store, counts), 0);
    check_print(&store, counts, "me", out);
    fclose(out);
    ck_assert_str_eq(text, "me: MPI-IO calls are not replayed: 2 events\n");
    free(text);
}
END_TEST

START_TEST(a_negative_length_is_refused)
{
    add_node(0, 0, 0);
    add(PT_OP_open, 1, 0);
    use(PT_OP_write, 1)->len = -1;
    ck_assert_int_eq(plan_create(&plan, &store, 0, 1, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.text, "length"));
}
END_TEST

/* ---- dependencies ------------------------------------------------------------------- */

START_TEST(signals_and_waits_match_one_to_one)
{
    add_node(0, 0, 0);
    add_events(6);
    add_node(1, 0, 0);
    add_events(6);
    add_edge(0, 1, 1, 2);
    add_edge(0, 0, 1, 2); /* implied: same destination, earlier source */
    add_edge(0, 1, 1, 4); /* implied: same source, later destination */
    add_edge(0, 3, 1, 5);
    make_schedule(0, 2);
    ck_assert_uint_eq(schedule.nchannels, 1);
    ck_assert_uint_eq(schedule.nodes[0].signals.n, 2);
    ck_assert_uint_eq(schedule.nodes[0].signals.acts[0].event, 2);
    ck_assert_uint_eq(schedule.nodes[0].signals.acts[1].event, 4);
    ck_assert_uint_eq(schedule.nodes[1].waits.n, 0);
    make_schedule(1, 2);
    ck_assert_uint_eq(schedule.nodes[1].waits.n, 2);
    ck_assert_uint_eq(schedule.nodes[1].waits.acts[0].event, 2);
    ck_assert_uint_eq(schedule.nodes[1].waits.acts[1].event, 5);
}
END_TEST

START_TEST(both_ends_number_channels_alike)
{
    uint32_t here, there;

    for (int i = 0; i < 4; i++) {
        add_node(i, 0, 0);
        add_events(3);
    }
    /* On two ranks: nodes 0 and 2 on the first, 1 and 3 on the second. */
    add_edge(0, 0, 1, 1);
    add_edge(2, 0, 3, 1);
    add_edge(2, 0, 0, 1);
    add_edge(1, 0, 3, 1);
    make_schedule(0, 2);
    ck_assert_uint_eq(schedule.nchannels, 3);
    here = schedule.channels[schedule.nodes[2].signals.acts[1].what].number;
    make_schedule(1, 2);
    ck_assert_uint_eq(schedule.nchannels, 3);
    there = schedule.channels[schedule.nodes[3].waits.acts[0].what].number;
    ck_assert_uint_eq(schedule.channels[schedule.nodes[3].waits.acts[0].what].src_node, 2);
    ck_assert_uint_eq(here, there);
    ck_assert_uint_eq(here, 1);
}
END_TEST

START_TEST(barriers_are_of_their_members)
{
    static const struct pt_store_member members[] = {{0, 1}, {1, 2}, {2, 1}};

    for (int i = 0; i < 4; i++) {
        add_node(i, 0, 0);
        add_events(3);
    }
    store.barriers[0] = (struct pt_store_barrier){3, members, PT_BY_HOLD};
    store.nbarriers = 1;
    make_schedule(0, 2);
    ck_assert_uint_eq(schedule.nbarriers, 1);
    ck_assert_uint_eq(schedule.barriers[0].nlocal, 2);
    ck_assert_uint_eq(schedule.nodes[2].barriers.acts[0].event, 1);
    make_schedule(3, 4);
    ck_assert_uint_eq(schedule.nbarriers, 0);
}
END_TEST

START_TEST(an_edge_to_nowhere_is_refused)
{
    add_node(0, 0, 0);
    add_events(1);
    add_edge(0, 0, 5, 0);
    ck_assert_int_eq(schedule_create(&schedule, &store, 0, 1, &err), -1);
}
END_TEST

static TCase *make_case(void)
{
    TCase *tc = tcase_create("plan");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, nodes_go_to_their_rank);
    tcase_add_test(tc, threads_share_a_process_and_start_later);
    tcase_add_test(tc, a_plain_file_is_replayed);
    tcase_add_test(tc, descriptors_from_nowhere_are_found);
    tcase_add_test(tc, handles_belong_to_a_process);
    tcase_add_test(tc, a_dup_opens_its_own_handle);
    tcase_add_test(tc, devices_and_pipes_are_left_alone);
    tcase_add_test(tc, inherited_files_are_opened_before);
    tcase_add_test(tc, only_harmless_failures_are_repeated);
    tcase_add_test(tc, a_close_knows_the_uses_of_other_threads);
    tcase_add_test(tc, first_touches_tell_what_was_there);
    tcase_add_test(tc, streams_and_directories_are_handles_too);
    tcase_add_test(tc, copies_use_two_handles);
    tcase_add_test(tc, names_may_be_descriptors);
    tcase_add_test(tc, mpi_io_does_not_stop_a_replay);
    tcase_add_test(tc, a_negative_length_is_refused);
    tcase_add_test(tc, signals_and_waits_match_one_to_one);
    tcase_add_test(tc, both_ends_number_channels_alike);
    tcase_add_test(tc, barriers_are_of_their_members);
    tcase_add_test(tc, an_edge_to_nowhere_is_refused);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("replay plan");

    suite_add_tcase(suite, make_case());
    return run_suite(suite);
}
