/*
 * The site's policy: who is traced unasked, who may, how much, and where to.
 */
#include "config.h"

#include <check.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spank/policy.h"
#include "tests/unit/run.h"

static struct pt_conf *conf;
static struct pt_err err;
static struct pt_spec spec;
static gid_t groups[2] = {4000001, 4000002};
static struct pt_who ada;

static void set_up(void)
{
    ada = (struct pt_who){.uid = 4000007,
                          .user = "ada",
                          .gid = 4000000,
                          .groups = groups,
                          .ngroups = 2,
                          .partition = "fast",
                          .account = "proj_x"};
    pt_spec_init(&spec);
}

static void tear_down(void)
{
    pt_conf_destroy(conf);
    conf = NULL;
}

static void use(const char *text)
{
    char path[] = "/tmp/test_policy.XXXXXX";
    FILE *fp = fdopen(mkstemp(path), "w");
    int rc;

    fputs(text, fp);
    fclose(fp);
    pt_conf_destroy(conf);
    rc = pt_conf_load(path, &conf, &err);
    unlink(path);
    ck_assert_msg(rc == 0, "%s", err.text);
}

static int judge(const char *text)
{
    pt_spec_init(&spec);
    ck_assert_int_eq(pt_spec_parse(&spec, text, &err), 0);
    return pt_policy_judge(conf, &ada, &spec, &err);
}

static void deny(const char *text, const char *message)
{
    ck_assert_msg(judge(text) == -1, "allowed: %s", text);
    ck_assert_str_eq(err.text, message);
}

/* Of the user's own names and numbers, with a list of that directive. */
static int may(const char *list)
{
    char text[300];

    snprintf(text, sizeof(text), "%s\n", list);
    use(text);
    return judge("on") == 0;
}

START_TEST(everybody)
{
    use("");
    ck_assert_int_eq(judge("on"), 0);
    ck_assert_int_eq(judge("throttle:3,period=1,buffer=1G,hold-max=100m,out=/any/../where"), 0);
    ck_assert_int_eq(pt_policy_judge(conf, NULL, &spec, &err), 0);
    ck_assert_ptr_null(pt_policy_unasked(conf, &ada));
}
END_TEST

START_TEST(who_may)
{
    char text[200];
    const struct group *real = getgrgid(0);

    ck_assert(may("allow_users = {\"ada\"}"));
    ck_assert(may("allow_users = {\"bob\", \"a*\"}"));
    ck_assert(may("allow_users = {\"4000007\"}"));
    ck_assert(may("allow_groups = {\"4000000\"}"));
    ck_assert(may("allow_groups = {\"4000002\"}"));
    ck_assert(may("allow_users = {\"bob\"} allow_groups = {\"4000001\"}"));
    ck_assert(may("allow_users = {\"*\", \"!ada\"}"));
    ck_assert(!may("allow_users = {\"!ada\", \"*\"}"));
    ck_assert(!may("allow_users = {\"!ada\"} allow_groups = {\"4000001\"}"));
    ck_assert(!may("allow_groups = {\"!4000001\", \"4000002\"}"));
    ck_assert(!may("allow_users = {}"));
    ck_assert(!may("allow_groups = {}"));
    ck_assert(!may("allow_users = {\"ad\", \"adam\", \"Ada\", \"40000070\"}"));
    ck_assert(!may("allow_groups = {\"no-such-group\"}"));
    if (real) {
        snprintf(text, sizeof(text), "allow_groups = {\"%s\"}", real->gr_name);
        ck_assert(!may(text));
        groups[1] = 0;
        ck_assert(may(text));
        groups[1] = 4000002;
    }
    use("allow_users = {\"bob\"}\n");
    deny("on", "user 'ada' may not trace here (the site's allow_users, allow_groups); only off is "
               "valid");
    ck_assert_int_eq(pt_policy_judge(conf, NULL, &spec, &err), -1);
}
END_TEST

START_TEST(who_may_hold)
{
    use("throttle_users = {\"bob\"}\n");
    ck_assert_int_eq(judge("on"), 0);
    ck_assert_int_eq(judge("throttle:1,throttle:none"), 0);
    deny("throttle:auto", "throttle: user 'ada' may not hold here (the site's throttle_users, "
                          "throttle_groups); only throttle:none is valid");
    ck_assert_int_eq(judge("throttle:1.2.3"), -1);
    use("throttle_users = {\"bob\"}\nthrottle_groups = {\"4000000\"}\n");
    ck_assert_int_eq(judge("throttle:auto"), 0);
    use("throttle_users = {\"*\"}\nallow_users = {}\n"); /* one does not follow from the other */
    ck_assert_int_eq(judge("throttle:auto"), -1);
}
END_TEST

START_TEST(how_much)
{
    use("min_period = 10\nmax_period = 1000\nmax_buffer = 3M\nmax_hold = 10s\n");
    ck_assert_int_eq(judge("period=10,buffer=4M,hold-max=10s"), 0);
    ck_assert_int_eq(judge("period=1000,hold-max=1ns"), 0);
    deny("hold-max=1s,period=9", "period=9: the site's smallest is 10 (min_period)");
    deny("hold-max=1s,period=1001", "period=1001: the site's greatest is 1000 (max_period)");
    deny("hold-max=1s,buffer=5M", "buffer=8M: the site's greatest is 4M (max_buffer)");
    deny("hold-max=10001ms", "hold-max=10001ms: the site's longest is 10s (max_hold)");
}
END_TEST

START_TEST(unasked)
{
    use("default_spec = \"period=3\"\n");
    ck_assert_str_eq(pt_policy_unasked(conf, &ada), "period=3");
    ck_assert_str_eq(pt_policy_unasked(conf, NULL), "period=3");
    use("always_users = {\"bob\"}\n");
    ck_assert_ptr_null(pt_policy_unasked(conf, &ada));
    use("always_users = {\"ada\"}\n");
    ck_assert_str_eq(pt_policy_unasked(conf, &ada), "on");
    ck_assert_ptr_null(pt_policy_unasked(conf, NULL));
    use("always_groups = {\"4000002\"}\ndefault_spec = \"full=drop\"\n");
    ck_assert_str_eq(pt_policy_unasked(conf, &ada), "full=drop");
    use("always_accounts = {\"proj_*\"}\n");
    ck_assert_str_eq(pt_policy_unasked(conf, &ada), "on");
    use("always_partitions = {\"slow\", \"fast\"}\n");
    ck_assert_str_eq(pt_policy_unasked(conf, &ada), "on");
    use("always_partitions = {\"fast\"}\nalways_users = {\"!ada\"}\n");
    ck_assert_ptr_null(pt_policy_unasked(conf, &ada));
    use("always_partitions = {\"*\"}\n"); /* one that is not known has no name */
    ada.partition[0] = '\0';
    ck_assert_ptr_null(pt_policy_unasked(conf, &ada));
    use("always_partitions = {}\ndefault_spec = \"on\"\n");
    ck_assert_ptr_null(pt_policy_unasked(conf, &ada));
}
END_TEST

static char root[PATH_MAX];

static const char *get_root(void)
{
    ck_assert_int_eq(pt_policy_root(conf, "ada", "/w", root, &err), 0);
    return root;
}

START_TEST(where_to)
{
    use("");
    ck_assert_str_eq(get_root(), "/w");
    ck_assert_int_eq(pt_policy_place(conf, root, "/any/../where", &err), 0);
    use("output_root = \"/s\"\n");
    ck_assert_str_eq(get_root(), "/s/ada");
    ck_assert_int_eq(pt_policy_place(conf, root, "/elsewhere", &err), 0);
    use("output_root = \"/home/%u/100%%\"\n");
    ck_assert_str_eq(get_root(), "/home/ada/100%");
}
END_TEST

START_TEST(confined)
{
    static const char *const inside[] = {"/s/ada/x", "/s/ada//x/y", "/s/ada/..x/y..z"};
    static const char *const outside[] = {
        "/elsewhere",  "/s/ada",    "/s/ada/",       "/s/adam/x", "/s/bob/x",
        "/s/ada/../x", "/s/ada/..", "/s/ada/x/../y", "/s",        "/s/ada/x/../../b/x"};

    use("output_root = \"/s\"\noutput_confined = true\n");
    get_root();
    for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++)
        ck_assert_msg(pt_policy_place(conf, root, inside[i], &err) == 0, "%s", err.text);
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
        ck_assert_msg(pt_policy_place(conf, root, outside[i], &err) < 0, "%s", outside[i]);
    ck_assert_int_eq(judge("out=x/y.%s"), 0);
    ck_assert_int_eq(judge("out=/s/%u//x"), 0);
    deny("out=/etc", "out=/etc: must be below '/s/ada' here (output_confined)");
    deny("out=../x", "out=/s/ada/../x: must be below '/s/ada' here (output_confined)");
    ck_assert_int_eq(judge("out=/s/ada/%x"), 0); /* known when there is a job */
}
END_TEST

START_TEST(too_long)
{
    char cwd[PATH_MAX + 10];

    use("");
    memset(cwd, 'x', sizeof(cwd));
    cwd[PATH_MAX] = '\0';
    ck_assert_int_eq(pt_policy_root(conf, "ada", cwd, root, &err), -1);
    cwd[PATH_MAX - 1] = '\0';
    ck_assert_int_eq(pt_policy_root(conf, "ada", cwd, root, &err), 0);
}
END_TEST

START_TEST(names)
{
    struct pt_who who = {0};

    pt_who_set_user(&who, 0);
    ck_assert_str_eq(who.user, "root");
    pt_who_set_user(&who, 4000007);
    ck_assert_str_eq(who.user, "4000007");
    ck_assert_uint_eq(who.uid, 4000007);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy");
    TCase *tc = tcase_create("policy");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, everybody);
    tcase_add_test(tc, who_may);
    tcase_add_test(tc, who_may_hold);
    tcase_add_test(tc, how_much);
    tcase_add_test(tc, unasked);
    tcase_add_test(tc, where_to);
    tcase_add_test(tc, confined);
    tcase_add_test(tc, too_long);
    tcase_add_test(tc, names);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
