/*
 * paratrace.conf: what is read, and how a wrong file is described.
 */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/conf.h"

static char path[] = "/tmp/test_conf.XXXXXX";
static struct pt_conf *conf;
static struct pt_err err;

static void set_up(void)
{
    int fd;

    strcpy(path + strlen(path) - 6, "XXXXXX");
    fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void tear_down(void)
{
    pt_conf_destroy(conf);
    conf = NULL;
    unlink(path);
}

static int load(const char *text)
{
    FILE *fp = fopen(path, "w");

    fputs(text, fp);
    fclose(fp);
    pt_conf_destroy(conf);
    return pt_conf_load(path, &conf, &err);
}

/* Refused with "file:message". */
static void refuse(const char *text, const char *message)
{
    ck_assert_int_eq(load(text), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(conf);
    ck_assert_msg(strncmp(err.text, path, strlen(path)) == 0 &&
                      strcmp(err.text + strlen(path), message) == 0,
                  "expected '%s', not '%s'", message, err.text);
}

static void check_defaults(void)
{
    ck_assert_ptr_null(conf->default_spec);
    ck_assert_ptr_null(conf->preload_library);
    ck_assert_ptr_null(conf->watchdog);
    ck_assert_ptr_null(conf->period);
    ck_assert_ptr_null(conf->buffer);
    ck_assert_ptr_null(conf->output);
    ck_assert_uint_eq(conf->exclude_paths.n, 0);
    ck_assert_uint_eq(conf->exclude_programs.n, 0);
    ck_assert_int_eq(conf->log_level, PT_LOG_INFO);
    ck_assert_int_eq(conf->quiet, 0);
}

START_TEST(defaults)
{
    ck_assert_int_eq(pt_conf_load(NULL, &conf, &err), 0);
    check_defaults();
    ck_assert_int_eq(load("# nothing but a comment\n"), 0);
    check_defaults();
    ck_assert_int_eq(load("default_spec = \"\"\n"), 0);
    check_defaults();
}
END_TEST

START_TEST(everything)
{
    ck_assert_msg(load("default_spec = \"throttle:none,full=drop\"\n"
                       "preload_library = /x/lib.so\n"
                       "watchdog = \"/x/ptwatchd\"\n"
                       "period = 50\n"
                       "buffer = 4M\n"
                       "output = \"/scratch/%u/%j.%s\"\n"
                       "exclude_paths = {\"/proc/*\", \"/sys/*\"}\n"
                       "exclude_programs += \"*/bash\"\n"
                       "log_level = debug\n"
                       "quiet = true\n") == 0,
                  "%s", err.text);
    ck_assert_str_eq(conf->default_spec, "throttle:none,full=drop");
    ck_assert_str_eq(conf->preload_library, "/x/lib.so");
    ck_assert_str_eq(conf->watchdog, "/x/ptwatchd");
    ck_assert_str_eq(conf->period, "50");
    ck_assert_str_eq(conf->buffer, "4M");
    ck_assert_str_eq(conf->output, "/scratch/%u/%j.%s");
    ck_assert_uint_eq(conf->exclude_paths.n, 2);
    ck_assert_str_eq(conf->exclude_paths.item[1], "/sys/*");
    ck_assert_uint_eq(conf->exclude_programs.n, 1);
    ck_assert_str_eq(conf->exclude_programs.item[0], "*/bash");
    ck_assert_int_eq(conf->log_level, PT_LOG_DEBUG);
    ck_assert_int_eq(conf->quiet, 1);
}
END_TEST

START_TEST(comments)
{
    ck_assert_int_eq(load("output = \"a#b\" # why\nexclude_paths = {\"/a\", # one\n"
                          "# none\n\"/b\"}"),
                     0);
    ck_assert_str_eq(conf->output, "a#b");
    ck_assert_uint_eq(conf->exclude_paths.n, 2);
    refuse("# one\n\n## two\nlog_level = info # three\nperiod = x\n",
           ":5: directive 'period': period=x: must be a whole number from 1 to 1000000000");
}
END_TEST

START_TEST(wrong)
{
    refuse("\nperiod = 0\n",
           ":2: directive 'period': period=0: must be a whole number from 1 to 1000000000");
    refuse("perod = 3\n", ":1: directive 'perod': unknown");
    refuse("watchdog = \"bin/x\"\n", ":1: directive 'watchdog': 'bin/x' is not an absolute path");
    refuse("preload_library = \"/a b\"\n",
           ":1: directive 'preload_library': '/a b' contains a blank or colon");
    refuse("# one\n# two\nexclude_paths = {\"/a\",\n  \"/b,c\"}\n",
           ":4: directive 'exclude_paths': '/b,c' contains a comma");
    refuse("log_level = loud\n", ":1: directive 'log_level': 'loud' is not error, info or debug");
    refuse("output = \"%z\"\n", ":1: directive 'output': out=%z: unknown pattern '%z': valid "
                                "ones are %j %A %a %s %u %x %%");
    ck_assert_int_eq(load("default_spec = \"throttle:x\"\n"), -1);
    ck_assert_ptr_nonnull(strstr(err.text, ":1: directive 'default_spec': throttle:x: must be"));
    ck_assert_int_eq(load("quiet = perhaps\n"), -1);
    ck_assert_ptr_nonnull(strstr(err.text, ":1: "));
    ck_assert_int_eq(load("period = \n"), -1);
    ck_assert_int_eq(load("exclude_paths = {\"a\", \n"), -1);
}
END_TEST

START_TEST(missing)
{
    char expected[100];

    unlink(path);
    ck_assert_int_eq(pt_conf_load(path, &conf, &err), -1);
    ck_assert_int_eq(errno, ENOENT);
    snprintf(expected, sizeof(expected), "%s: No such file or directory", path);
    ck_assert_str_eq(err.text, expected);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conf");
    TCase *tc = tcase_create("conf");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, defaults);
    tcase_add_test(tc, everything);
    tcase_add_test(tc, comments);
    tcase_add_test(tc, wrong);
    tcase_add_test(tc, missing);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed;
}
