/*
 * The plugin's options: who wins, and what the watchdog and the tasks are given.
 */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spank/options.h"
#include "tests/unit/run.h"

static struct pt_options options;
static struct pt_spec spec;
static struct pt_err err;
static char text[PT_SPEC_MAX];
static char path[] = "/tmp/test_options.XXXXXX";

static void set_up(void)
{
    pt_options_init(&options);
    path[0] = '\0';
}

static void tear_down(void)
{
    pt_options_clear(&options);
    if (path[0])
        unlink(path);
}

static void use_conf(const char *content)
{
    char arg[100];
    FILE *fp;

    if (path[0])
        unlink(path); /* the one before */
    strcpy(path, "/tmp/test_options.XXXXXX");
    fp = fdopen(mkstemp(path), "w");
    fputs(content, fp);
    fclose(fp);
    snprintf(arg, sizeof(arg), "conf=%s", path);
    ck_assert_int_eq(pt_options_argument(&options, arg, &err), 0);
}

static int decide(const char *env)
{
    return pt_options_decide(&options, env, &spec, text, &err);
}

START_TEST(nothing_asked)
{
    ck_assert_int_eq(pt_options_load(&options, &err), 0); /* there is no such file */
    ck_assert_int_eq(decide(NULL), 0);
    ck_assert_int_eq(decide("off"), 0);
    ck_assert_str_eq(pt_options_preload(&options), PT_PKGLIBDIR "/libparatrace.so");
    ck_assert_str_eq(pt_options_watchdog(&options), PT_PKGLIBEXECDIR "/ptwatchd");
}
END_TEST

START_TEST(who_wins)
{
    use_conf("default_spec = \"throttle:1\"\n");
    ck_assert_int_eq(pt_options_load(&options, &err), 0);
    ck_assert_int_eq(decide(NULL), 1);
    ck_assert_str_eq(text, "throttle:1");
    ck_assert_int_eq(decide("throttle:2"), 1);
    ck_assert_str_eq(text, "throttle:2");
    ck_assert_int_eq(pt_options_request(&options, "throttle:3", &err), 0);
    ck_assert_int_eq(pt_options_request(&options, "throttle:4", &err), 0);
    ck_assert_int_eq(decide("throttle:2"), 1);
    ck_assert_str_eq(text, "throttle:4");
    ck_assert_int_eq(spec.node[0], 4);
    ck_assert_int_eq(pt_options_request(&options, "off", &err), 0);
    ck_assert_int_eq(pt_options_request(&options, "off", &err), 0);
    ck_assert_int_eq(decide("throttle:2"), 0);
}
END_TEST

START_TEST(site_items)
{
    use_conf("period = 50\nbuffer = 2M\noutput = \"/s/%j\"\n"
             "exclude_paths = {\"/proc/*\", \"/sys/*\"}\nexclude_programs = {\"*/bash\"}\n");
    ck_assert_int_eq(pt_options_load(&options, &err), 0);
    ck_assert_int_eq(decide(NULL), 0);
    ck_assert_int_eq(pt_options_request(&options, "", &err), 0);
    ck_assert_int_eq(decide(NULL), 1);
    ck_assert_str_eq(text, "period=50,buffer=2M,out=/s/%j,nopath=/proc/*,nopath=/sys/*,"
                           "noexe=*/bash");
    ck_assert_int_eq(pt_options_request(&options, "period=7,nopath=/x,note=a\\,b", &err), 0);
    ck_assert_int_eq(decide(NULL), 1);
    ck_assert_uint_eq(spec.period, 7);
    ck_assert_uint_eq(spec.nopath.n, 3);
    ck_assert_str_eq(spec.nopath.glob[2], "/x");
    ck_assert_str_eq(spec.noexe.glob[0], "*/bash");
    ck_assert_str_eq(spec.out, "/s/%j");
    ck_assert_str_eq(spec.note, "a,b");
}
END_TEST

START_TEST(site_limits)
{
    use_conf("min_period = 200\nmax_buffer = 512K\nmax_hold = 5s\n");
    ck_assert_int_eq(pt_options_load(&options, &err), 0);
    ck_assert_int_eq(pt_options_request(&options, "on", &err), 0); /* defaults give way */
    ck_assert_int_eq(decide(NULL), 1);
    ck_assert_str_eq(text, "period=200,buffer=512K,hold-max=5s,on");
    ck_assert_int_eq(pt_options_request(&options, "hold-max=6s", &err), -1);
    ck_assert_str_eq(err.text, "hold-max=6s: the site's longest is 5s (max_hold)");
    ck_assert_int_eq(pt_options_request(&options, "hold-max=4s,period=300", &err), 0);
    ck_assert_int_eq(decide(NULL), 1);
    ck_assert_uint_eq(spec.period, 300);
    use_conf("max_period = 20\n");
    ck_assert_int_eq(pt_options_load(&options, &err), 0);
    ck_assert_int_eq(pt_options_request(&options, "on", &err), 0);
    ck_assert_int_eq(decide(NULL), 1);
    ck_assert_str_eq(text, "period=20,on");
}
END_TEST

/* What a user asks for is judged, what the site wants is not; who declines may always. */
START_TEST(site_policy)
{
    use_conf("allow_users = {\"bob\"}\nalways_partitions = {\"main\"}\nmax_period = 10\n"
             "default_spec = \"period=20\"\n");
    ck_assert_int_eq(pt_options_load(&options, &err), 0);
    strcpy(options.who.user, "ada");
    strcpy(options.who.partition, "main");
    options.who_known = 1;
    ck_assert_int_eq(decide(NULL), 1);
    ck_assert_uint_eq(spec.period, 20);
    ck_assert_int_eq(decide("off"), 0);
    ck_assert_int_eq(decide("on"), -1);
    ck_assert_ptr_nonnull(strstr(err.text, "user 'ada' may not trace here"));
    ck_assert_int_eq(pt_options_request(&options, "on", &err), -1);
    ck_assert_int_eq(pt_options_request(&options, "off", &err), 0);
    ck_assert_int_eq(decide("on"), 0);
    strcpy(options.who.user, "bob");
    ck_assert_int_eq(pt_options_request(&options, "on", &err), 0);
    ck_assert_int_eq(decide(NULL), 1);
    options.who_known = 0;
    ck_assert_int_eq(decide(NULL), -1);
}
END_TEST

/* In slurmstepd the request comes before the file is read. */
START_TEST(judged_late)
{
    ck_assert_int_eq(pt_options_request(&options, "throttle:1", &err), 0);
    use_conf("throttle_users = {}\n");
    ck_assert_int_eq(pt_options_load(&options, &err), 0);
    strcpy(options.who.user, "ada");
    options.who_known = 1;
    ck_assert_int_eq(decide(NULL), -1);
    ck_assert_ptr_nonnull(strstr(err.text, "throttle: user 'ada' may not hold here"));
}
END_TEST

START_TEST(wrong_spec)
{
    char longer[PT_SPEC_MAX];

    ck_assert_int_eq(pt_options_request(&options, "period=3", &err), 0);
    ck_assert_int_eq(pt_options_request(&options, "period=x", &err), -1);
    ck_assert_str_eq(err.text, "period=x: must be a whole number from 1 to 1000000000");
    ck_assert_int_eq(decide(NULL), 1);
    ck_assert_str_eq(text, "period=3");

    use_conf("period = 50\n");
    ck_assert_int_eq(pt_options_load(&options, &err), 0);
    memset(longer, 'x', sizeof(longer));
    longer[PT_SPEC_MAX - 1] = '\0';
    ck_assert_int_eq(pt_options_request(&options, longer, &err), -1);
    ck_assert_str_eq(err.text, "longer than 4095 characters, the site's items included");

    pt_options_clear(&options);
    ck_assert_int_eq(decide("perod=1"), -1);
    ck_assert_ptr_nonnull(strstr(err.text, "unknown item 'perod=1'"));
}
END_TEST

START_TEST(arguments)
{
    use_conf("preload_library = /c/lib.so\nwatchdog = /c/ptwatchd\n");
    ck_assert_int_eq(pt_options_load(&options, &err), 0);
    ck_assert_str_eq(pt_options_preload(&options), "/c/lib.so");
    ck_assert_str_eq(pt_options_watchdog(&options), "/c/ptwatchd");
    ck_assert_int_eq(pt_options_argument(&options, "preload=/p/lib.so", &err), 0);
    ck_assert_int_eq(pt_options_argument(&options, "watchdog=/p/ptwatchd", &err), 0);
    ck_assert_str_eq(pt_options_preload(&options), "/p/lib.so");
    ck_assert_str_eq(pt_options_watchdog(&options), "/p/ptwatchd");
    ck_assert_int_eq(pt_options_argument(&options, "preload=lib.so", &err), -1);
    ck_assert_str_eq(pt_options_preload(&options), "/p/lib.so");
    ck_assert_int_eq(pt_options_argument(&options, "verbose", &err), -1);
    ck_assert_str_eq(err.text, "plugstack.conf: unknown argument 'verbose': valid ones are "
                               "conf=FILE, preload=FILE, watchdog=FILE");
}
END_TEST

START_TEST(wrong_file)
{
    use_conf("period = 0\n");
    ck_assert_int_eq(pt_options_load(&options, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.text, ":1: directive 'period'"));
    ck_assert_ptr_nonnull(options.conf);
    unlink(path);
    ck_assert_int_eq(pt_options_load(&options, &err), -1); /* named, so it has to be there */
    ck_assert_ptr_nonnull(strstr(err.text, "No such file"));
}
END_TEST

START_TEST(ld_preload)
{
    static const struct {
        const char *old, *result;
    } cases[] = {
        {NULL, "/p/l.so"},
        {"", "/p/l.so"},
        {"/a.so", "/a.so:/p/l.so"},
        {"/a.so /b.so", "/a.so /b.so:/p/l.so"},
        {"/p/l.so", "/p/l.so"},
        {"/p/l.so:/a.so", "/p/l.so:/a.so"},
        {"/a.so /p/l.so", "/a.so /p/l.so"},
        {"/p/l.so.1:/x/p/l.so", "/p/l.so.1:/x/p/l.so:/p/l.so"},
    };
    char out[64];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_int_eq(pt_options_ld_preload(cases[i].old, "/p/l.so", out, sizeof(out)), 0);
        ck_assert_str_eq(out, cases[i].result);
    }
    ck_assert_int_eq(pt_options_ld_preload("/a", "/p/l.so", out, 11), 0);
    ck_assert_int_eq(pt_options_ld_preload("/a", "/p/l.so", out, 10), -1);
}
END_TEST

START_TEST(ld_preload_without)
{
    static const struct {
        const char *old, *new;
    } cases[] = {
        {"", ""},
        {"/p/l.so", ""},
        {"/a:/p/l.so", "/a"},
        {"/p/l.so /a", "/a"},
        {"/a:/p/l.so:/b", "/a:/b"},
        {"/p/l.so:/p/l.so", ""},
        {"/p/l.so.1:/x/p/l.so", "/p/l.so.1:/x/p/l.so"},
        {" :/a", "/a"},
    };
    char out[64];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        pt_options_ld_preload_without(cases[i].old, "/p/l.so", out);
        ck_assert_str_eq(out, cases[i].new);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("options");
    TCase *tc = tcase_create("options");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, nothing_asked);
    tcase_add_test(tc, who_wins);
    tcase_add_test(tc, site_items);
    tcase_add_test(tc, site_limits);
    tcase_add_test(tc, site_policy);
    tcase_add_test(tc, judged_late);
    tcase_add_test(tc, wrong_spec);
    tcase_add_test(tc, arguments);
    tcase_add_test(tc, wrong_file);
    tcase_add_test(tc, ld_preload);
    tcase_add_test(tc, ld_preload_without);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
