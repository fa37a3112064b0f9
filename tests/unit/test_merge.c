/*
 * Merging: think time, sameness of runs, holds and edges.
 */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "tests/unit/merge_kit.h"
#include "tests/unit/run.h"

START_TEST(think_time_has_three_parts)
{
    const struct pt_store_event *e;
    struct pt_event held;

    begin_run("throttle:none");
    node(0, 0, 0, 0, "/w");
    put_open(0, "a", O_RDWR, 5, 1, 10);
    put_wait(0, "nanosleep", 7000, 1000);
    put_wait(0, "MPI_Barrier", 50, 20);
    put_wait(0, "usleep", 300, 4);
    put_wait(0, "MPI_Recv", 60, 5);
    put_wait(0, "sleep", 8, 6);
    held = event(0, "pwrite");
    held.field[PT_F_FD] = PT_FD_WORD(5, 1);
    held.cpu = 9;
    held.hold = 1000000;
    put(0, held);
    put_wait(0, "nanosleep", 11, 3);
    put_wait(0, "exit", 0, 2);
    end_run();
    merge_all();
    e = at(0, 1);
    ck_assert_uint_eq(e->compute0_ns, 1020);
    ck_assert_uint_eq(e->idle0_ns, 7000);
    ck_assert_uint_eq(e->compute1_ns, 9);
    ck_assert_uint_eq(e->idle1_ns, 300);
    ck_assert_uint_eq(e->compute2_ns, 15);
    ck_assert_uint_eq(e->idle2_ns, 8);
    ck_assert_uint_eq(e->sync_ns, 110);
    ck_assert_uint_eq(e->syncs, 2);
    e = at(0, 2); /* exit closes the last think time */
    ck_assert_uint_eq(e->compute0_ns, 5);
    ck_assert_uint_eq(e->idle0_ns, 11);
    ck_assert_uint_eq(e->syncs, 0);
}
END_TEST

/* Calls below one of MPI-IO are neither events nor numbered; the holds fit all the same. */
START_TEST(inner_events_are_left_out)
{
    for (int i = 0; i < 2; i++) {
        struct pt_event ev;

        if (i == 0)
            begin_run("throttle:0");
        node(i, i, 0, 0, "/w");
        put_open(i, "a", O_RDONLY, 5, 1, 1);
        ev = event(i, "open");
        ev.str[0] = "inner";
        ev.flags = PT_EV_INNER;
        put(i, ev);
        ev = event(i, "pwrite");
        ev.flags = PT_EV_INNER;
        put(i, ev);
        put_wait(i, "MPI_File_write_at_all", 500, 0);
        put_io(i, "pread", 5, 1, 1, 0);
        put_wait(i, "exit", 0, 0);
    }
    put_hold(0, 2, 1, 3, PT_STATE_BLOCKED); /* before pread; the other before exit */
    end_run();
    merge_all();
    ck_assert_uint_eq(c.base->nodes[0].nevents, 4);
    ck_assert_uint_eq(c.nfiles, 1);
    ck_assert_uint_eq(c.nedges, 1);
    ck_assert_uint_eq(c.edges[0].src_event, 2);
    ck_assert_uint_eq(c.edges[0].dst_event, 3);
}
END_TEST

START_TEST(what_was_not_seen)
{
    struct pt_event ev;

    begin_run("throttle:none");
    node(0, 0, 0, 0, "/w");
    for (int i = 0; i < 2; i++) {
        ev = event(0, "blind");
        ev.str[0] = "/bin/y";
        ev.str[2] = "static program";
        put(0, ev);
    }
    put_path(0, "stat", "a", NULL);
    end_run();
    merge_all();
    ck_assert_uint_eq(c.nwarnings, 1);
    ck_assert_ptr_nonnull(strstr(c.warnings[0], "': not seen: static program: /bin/y"));
    ck_assert_str_eq(file_at(0, 0), "/w/a"); /* no change of directory */
    merge_campaign_free(&c);
    refuse_all(1, "not seen");
}
END_TEST

/* Two ranks: each opens, writes, meets the other, writes. */
static void write_pair(const char *spec, const char *name, uint64_t times)
{
    begin_run(spec);
    for (int i = 0; i < 2; i++) {
        struct pt_event inherited = event(i, "inherited");

        node(i, i, 0, 0, "/w");
        inherited.begin = now[i];
        inherited.dur = 0;
        inherited.str[0] = "/w/slurm.out";
        inherited.field[PT_F_HANDLE] = 9;
        now[i] += times;
        put_open(i, name, O_CREAT | O_RDWR, 5 + i * times, 1, 0);
        put(i, inherited);
        put_io(i, "pwrite", 5, 1, 100, i * 100);
        put_wait(i, "MPI_Barrier", 50 * times, 20);
        put_io(i, "pwrite", 5, 1, 100, 1000 + i * 100);
        put_wait(i, "exit", 0, 0);
    }
}

START_TEST(holds_become_a_barrier)
{
    write_pair("throttle:none", "f.101", 1);
    end_run();
    write_pair("throttle:0", "f.102", 2); /* only the job's number differs */
    put_hold(0, 0, 1, 2, PT_STATE_BLOCKED);
    put_hold(0, 1, 1, 2, PT_STATE_BLOCKED);
    put_hold(0, 2, 1, 4, PT_STATE_GONE);
    put_hold(0, 3, 1, 4, PT_STATE_BLOCKED); /* behind its last event */
    end_run();
    write_pair("throttle:1", "f.103", 3);
    put_hold(1, 1, 0, 2, PT_STATE_BLOCKED);
    put_hold(1, 2, 0, 3, PT_STATE_BUSY);
    end_run();
    merge_all();
    ck_assert_uint_eq(c.base->nodes[0].nevents, 5); /* with the inherited one */
    ck_assert_uint_eq(c.nunited, 2);
    ck_assert_uint_eq(c.nedges, 0);
    ck_assert_uint_eq(c.barriers.nbarriers, 1);
    ck_assert_uint_eq(c.barriers.barriers[0].members[0].event, 3);
    ck_assert_uint_eq(c.nwarnings, 0);
    ck_assert_str_eq(c.base->dir, run_dirs[0]);
}
END_TEST

START_TEST(first_run_is_the_baseline_without_one)
{
    write_pair("throttle:1", "f", 1);
    end_run();
    write_pair("throttle:0", "f", 1);
    end_run();
    merge_all();
    ck_assert_str_eq(c.base->dir, run_dirs[0]);
    merge_campaign_free(&c);
    write_pair("throttle:none", "f", 1);
    end_run();
    merge_all();
    ck_assert_str_eq(c.base->dir, run_dirs[2]);
}
END_TEST

START_TEST(non_deterministic)
{
    write_pair("throttle:none", "f", 1);
    end_run();
    write_pair("throttle:0", "g", 1);
    end_run();
    refuse_all(0, "non-deterministic: node 0, event 0: open(\"/w/f\"");
    ck_assert_ptr_nonnull(strstr(err.text, "open(\"/w/g\", O_RDWR|O_CREAT, 0) in "));
}
END_TEST

START_TEST(more_in_one_run)
{
    write_pair("throttle:none", "f", 1);
    end_run();
    write_pair("throttle:0", "f", 1);
    put_io(1, "pwrite", 5, 1, 7, 8);
    end_run();
    refuse_all(0, "non-deterministic: node 1, event 5: nothing more in ");
    ck_assert_ptr_nonnull(strstr(err.text, "pwrite(5</w/f>, 7, 8) in "));
}
END_TEST

START_TEST(different_nodes)
{
    write_pair("throttle:none", "f", 1);
    end_run();
    write_pair("throttle:0", "f", 1);
    node(2, 2, 0, 0, "/w");
    end_run();
    refuse_all(0, "runs have different nodes: node 2 is in ");
}
END_TEST

START_TEST(cycle_is_refused)
{
    write_pair("throttle:none", "f", 1);
    put_hold(0, 2, 1, 1, PT_STATE_BLOCKED);
    put_hold(1, 2, 0, 1, PT_STATE_BLOCKED);
    end_run();
    refuse_all(0, "cycle");
}
END_TEST

START_TEST(cut_off_run)
{
    write_pair("throttle:none", "f", 1);
    end_run();
    begin_run("throttle:0");
    node(0, 0, 0, 0, "/w");
    put_open(0, "f", O_CREAT | O_RDWR, 5, 1, 0);
    ck_assert_int_eq(pt_writer_flush(w), 0); /* killed here */
    merge_all();
    ck_assert_uint_eq(c.nwarnings, 1);
    ck_assert_ptr_nonnull(strstr(c.warnings[0], "cut off"));
    ck_assert_uint_eq(c.runs[1].complete, 0);
    merge_campaign_free(&c);
    refuse_all(1, "cut off");
    end_run();
}
END_TEST

START_TEST(loss_ends_comparing)
{
    struct pt_loss loss = {.after = 2, .count = 3};

    write_pair("throttle:none", "f", 1);
    end_run();
    write_pair("throttle:0", "f", 1);
    put_io(1, "pwrite", 5, 1, 7, 8); /* behind the loss: not compared */
    ck_assert_int_eq(pt_writer_loss(w, 1, &loss), 0);
    put_hold(0, 1, 1, 2, PT_STATE_BLOCKED); /* behind the loss: no edge */
    end_run();
    merge_all();
    ck_assert_uint_eq(c.runs[1].lost, 3);
    ck_assert_uint_eq(c.runs[1].complete, 0);
    ck_assert_uint_eq(c.nunited, 0);
    ck_assert_uint_eq(c.nwarnings, 1);
}
END_TEST

/* Two of three hosts, with clocks of their own. */
START_TEST(missing_host_and_clock)
{
    make_run_dir();
    open_file("n0", "", "nhosts=3\nrealtime=1000000000\nmonotonic=900000000\n");
    node(0, 0, 0, 0, "/w");
    put_wait(0, "exit", 0, 0);
    end_run();
    open_file("n1", "", "nhosts=3\nrealtime=1000000000\nmonotonic=1000\n");
    node(0, 1, 0, 0, "/w"); /* starts at MONOTONIC + 1000 of its own clock */
    put_wait(0, "exit", 0, 0);
    end_run();
    merge_all();
    ck_assert_uint_eq(c.base->nnodes, 2);
    ck_assert_str_eq(c.base->hosts, "n0,n1");
    ck_assert_uint_eq(c.runs[0].complete, 0);
    ck_assert_uint_eq(merge_campaign_epoch(&c), 100000000 + MONOTONIC + 1000);
    ck_assert_uint_eq(c.base->nodes[1].start, 1000000000 - 1000 + MONOTONIC + 1000);
}
END_TEST

/* The tracer has folded the loop itself: its time is sync, what was computed before is not. */
START_TEST(folded_looks_are_a_wait)
{
    for (int run = 0; run < 2; run++) {
        begin_run("throttle:none");
        node(0, 0, 0, 0, "/w");
        struct pt_event ev = event(0, "stat");
        ev.str[0] = "flag";
        ev.cpu = 10;
        ev.polls = 3 + (uint64_t)run * 4;
        ev.waited = 1000 * ev.polls;
        ev.begin += ev.waited;
        put(0, ev);
        put_wait(0, "usleep", 300, 4);
        put_wait(0, "exit", 0, 2);
        end_run();
    }
    merge_all();
    ck_assert_uint_eq(c.base->nodes[0].nevents, 2);
    ck_assert_uint_eq(at(0, 0)->compute0_ns, 10);
    ck_assert_uint_eq(at(0, 0)->sync_ns, 3000);
    ck_assert_uint_eq(at(0, 0)->syncs, 1);
    ck_assert_uint_eq(at(0, 0)->dur_ns, 100);
    ck_assert_uint_eq(at(0, 1)->idle0_ns, 300);
    ck_assert_uint_eq(at(0, 1)->compute0_ns, 6);
}
END_TEST

START_TEST(poll_loop_is_one_event)
{
    for (int run = 0; run < 2; run++) {
        begin_run(run ? "throttle:0" : "throttle:none");
        node(0, 0, 0, 0, "/w");
        node(1, 1, 0, 0, "/w");
        put_open(0, "a", O_RDONLY, 5, 1, 1);
        for (int i = 0; i < 3 + run * 4; i++) {
            put_failed(0, "open", "flag", ENOENT);
            put_wait(0, "usleep", 1000, 10);
        }
        put_open(0, "flag", O_RDONLY, 6, 2, 0);
        put_wait(0, "exit", 0, 0);
        put_open(1, "b", O_RDONLY, 5, 1, 1);
        put_wait(1, "exit", 0, 0);
        if (run) {
            put_hold(0, 3, 1, 1, PT_STATE_BLOCKED); /* a try that fails: `a` is done */
            put_hold(0, 9, 1, 1, PT_STATE_BLOCKED); /* exit, event 2 */
        }
        end_run();
    }
    merge_all();
    ck_assert_uint_eq(c.base->nodes[0].nevents, 3);
    ck_assert_int_eq(at(0, 1)->err, 0);
    ck_assert_uint_eq(at(0, 1)->idle0_ns + at(0, 1)->idle1_ns + at(0, 1)->idle2_ns, 0);
    ck_assert_uint_ge(at(0, 1)->sync_ns, 3000);
    ck_assert_uint_eq(c.nedges, 1);
    ck_assert_uint_eq(c.edges[0].src_event, 2);
}
END_TEST

START_TEST(same_run_twice)
{
    write_pair("throttle:none", "f", 1);
    end_run();
    run_dirs[nruns++] = strdup(run_dirs[0]);
    refuse_all(0, "the same run as");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("merge");
    TCase *tc = tcase_create("merge");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, think_time_has_three_parts);
    tcase_add_test(tc, inner_events_are_left_out);
    tcase_add_test(tc, what_was_not_seen);
    tcase_add_test(tc, holds_become_a_barrier);
    tcase_add_test(tc, first_run_is_the_baseline_without_one);
    tcase_add_test(tc, non_deterministic);
    tcase_add_test(tc, more_in_one_run);
    tcase_add_test(tc, different_nodes);
    tcase_add_test(tc, cycle_is_refused);
    tcase_add_test(tc, cut_off_run);
    tcase_add_test(tc, loss_ends_comparing);
    tcase_add_test(tc, missing_host_and_clock);
    tcase_add_test(tc, folded_looks_are_a_wait);
    tcase_add_test(tc, poll_loop_is_one_event);
    tcase_add_test(tc, same_run_twice);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
