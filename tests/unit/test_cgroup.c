#include <check.h>
#include <stdlib.h>

#include "spank/cgroup.h"
#include "tests/unit/run.h"

static const struct {
    const char *line, *file;
} ways[] = {
    {"4:memory:/slurm/uid_7/job_8/step_0", "/sys/fs/cgroup/memory/slurm/cgroup.procs"},
    {"4:memory:/slurm_n0/uid_7/job_8/step_batch/task_0",
     "/sys/fs/cgroup/memory/slurm_n0/cgroup.procs"},
    {"11:cpu,memory:/a/slurm/uid_7/job_8", "/sys/fs/cgroup/memory/a/slurm/cgroup.procs"},
    {"0::/system.slice/slurmstepd.scope/job_8/step_0/slurm",
     "/sys/fs/cgroup/system.slice/slurmstepd.scope/system/cgroup.procs"},
    /* Nothing to leave: another controller, no job, no cgroup of Slurm's, nonsense. */
    {"6:freezer:/slurm/uid_7/job_8/step_0", NULL},
    {"4:memory:/", NULL},
    {"4:memory:/user.slice/user-7.slice", NULL},
    {"4:memory:/kubepods/job_8", NULL},
    {"1:name=systemd:/slurm/uid_7/job_8", NULL},
    {"0::/", NULL},
    {"4:nomemory:/slurm/uid_7/job_8", NULL},
    {"4:memory", NULL},
    {"", NULL},
    {"::job_8", NULL},
};

START_TEST(way_out)
{
    char file[256];

    if (ways[_i].file) {
        ck_assert_int_eq(pt_cgroup_way_out(ways[_i].line, file, sizeof(file)), 0);
        ck_assert_str_eq(file, ways[_i].file);
    } else {
        ck_assert_int_eq(pt_cgroup_way_out(ways[_i].line, file, sizeof(file)), -1);
    }
}
END_TEST

START_TEST(too_long)
{
    char file[20];

    ck_assert_int_eq(pt_cgroup_way_out(ways[0].line, file, sizeof(file)), -1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cgroup");
    TCase *t = tcase_create("all");

    tcase_add_loop_test(t, way_out, 0, sizeof(ways) / sizeof(ways[0]));
    tcase_add_test(t, too_long);
    suite_add_tcase(s, t);
    return run_suite(s);
}
