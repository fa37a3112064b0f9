/*
 * paratrace.conf: what is read, and how a wrong file is described.
 */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/conf.h"
#include "common/hosts.h"
#include "tests/unit/run.h"

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
    ck_assert_ptr_null(conf->ports);
    ck_assert_ptr_null(conf->munge);
    ck_assert_ptr_null(conf->munge_socket);
    ck_assert_ptr_null(conf->output_root);
    ck_assert_ptr_null(conf->anonymise_key);
    ck_assert_int_eq(conf->anonymise, PT_ANONYMISE_NO);
    ck_assert_int_eq(conf->output_confined, 0);
    ck_assert_int_eq(conf->allow_users.set | conf->allow_groups.set | conf->throttle_users.set |
                         conf->throttle_groups.set | conf->always_users.set |
                         conf->always_groups.set | conf->always_accounts.set |
                         conf->always_partitions.set,
                     0);
    ck_assert_uint_eq(conf->min_period + conf->max_period + conf->max_buffer + conf->max_hold +
                          conf->max_size + conf->max_time,
                      0);
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
                       "ports = \"5000-5999\"\n"
                       "munge = yes\n"
                       "munge_socket = \"/x/munge.socket\"\n"
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
    ck_assert_str_eq(conf->ports, "5000-5999");
    ck_assert_str_eq(conf->munge, "yes");
    ck_assert_str_eq(conf->munge_socket, "/x/munge.socket");
    ck_assert_int_eq(conf->log_level, PT_LOG_DEBUG);
    ck_assert_int_eq(conf->quiet, 1);
}
END_TEST

START_TEST(policy)
{
    ck_assert_msg(load("always_users = {\"ada\", \"!bob\"}\n"
                       "always_groups = {}\n"
                       "always_accounts = {\"proj*\"}\n"
                       "always_partitions = main\n"
                       "allow_users = {\"*\"}\n"
                       "allow_groups = {\"staff\"}\n"
                       "throttle_users = {}\n"
                       "min_period = 10\n"
                       "max_period = 1000\n"
                       "max_hold = 10s\n"
                       "max_buffer = 3M\n"
                       "max_size = 2G\n"
                       "max_time = 90m\n"
                       "output_root = \"/scratch/%u\"\n"
                       "output_confined = yes\n"
                       "anonymise = user\n"
                       "anonymise_key = \"/etc/key\"\n") == 0,
                  "%s", err.text);
    ck_assert_uint_eq(conf->always_users.n, 2);
    ck_assert_str_eq(conf->always_users.item[1], "!bob");
    ck_assert(conf->always_groups.set && conf->always_groups.n == 0);
    ck_assert_str_eq(conf->always_partitions.item[0], "main");
    ck_assert(conf->throttle_users.set && conf->throttle_users.n == 0);
    ck_assert(!conf->throttle_groups.set);
    ck_assert_uint_eq(conf->min_period, 10);
    ck_assert_uint_eq(conf->max_period, 1000);
    ck_assert_uint_eq(conf->max_hold, 10000000000ULL);
    ck_assert_uint_eq(conf->max_buffer, 4 << 20);
    ck_assert_uint_eq(conf->max_size, 2ULL << 30);
    ck_assert_uint_eq(conf->max_time, 5400000000000ULL);
    ck_assert_str_eq(conf->output_root, "/scratch/%u");
    ck_assert_int_eq(conf->output_confined, 1);
    ck_assert_int_eq(conf->anonymise, PT_ANONYMISE_USER);
    ck_assert_str_eq(conf->anonymise_key, "/etc/key");
}
END_TEST

START_TEST(wrong_policy)
{
    refuse("allow_users = {\"\"}\n", ":1: directive 'allow_users': '' is no name");
    refuse("allow_users = {\"!\"}\n", ":1: directive 'allow_users': '!' is no name");
    refuse("allow_users = {\"a,b\"}\n",
           ":1: directive 'allow_users': 'a,b' is no name: blanks, commas and control characters "
           "are not part of one");
    refuse("throttle_groups = {\"a*\"}\n",
           ":1: directive 'throttle_groups': 'a*': a group cannot be a pattern");
    refuse("max_size = 100K\n", ":1: directive 'max_size': must be 1M at least");
    refuse("max_size = 1E\n", ":1: directive 'max_size': must be a size from 1 to 1024T (a number, "
                              "then K, M, G or T)");
    refuse("output_root = scratch\n",
           ":1: directive 'output_root': 'scratch' is not an absolute path");
    refuse("output_root = \"/a/../b\"\n", ":1: directive 'output_root': '/a/../b' contains '..'");
    refuse("output_root = \"/a/%j\"\n",
           ":1: directive 'output_root': '/a/%j': the only pattern here is %u");
    refuse("anonymise = yes\n", ":1: directive 'anonymise': 'yes' is not no, user or site");
    refuse("quiet = perhaps\n", ":1: directive 'quiet': 'perhaps' is not true or false");
}
END_TEST

/* Each is right, but they do not go together. */
START_TEST(contradictions)
{
    refuse("min_period = 5\n\nmax_period = 4\n",
           ":1: directive 'min_period': is greater than max_period");
    refuse("min_period = 5\nperiod = 4\n",
           ":2: directive 'period': is not between min_period and max_period");
    refuse("period = 40\nmax_period = 4\n",
           ":1: directive 'period': is not between min_period and max_period");
    refuse("# one\nmax_buffer = 64K\nbuffer = 65K\n",
           ":3: directive 'buffer': is greater than max_buffer");
    refuse("\noutput_confined = true\n", ":2: directive 'output_confined': needs an output_root");
    refuse("output_root = /s\noutput_confined = true\noutput = \"/t/%j\"\n",
           ":3: directive 'output': '/t/%j' is not below output_root");
    refuse("output_root = /s\noutput_confined = true\noutput = \"x/../%j\"\n",
           ":3: directive 'output': 'x/../%j' is not below output_root");
    ck_assert_int_eq(load("output_root = /s\noutput_confined = true\noutput = \"/s/%u/%j\"\n"), 0);
    refuse("anonymise = site\n", ":1: directive 'anonymise': needs an anonymise_key");
}
END_TEST

/* What is printed means the same. */
START_TEST(printing)
{
    static const char *const files[] = {
        "",
        "period = 7\nquiet = on\nallow_users = {\"a\\\"b\", \"c\\\\d\", \"\\$x\", '!${y}'}\n",
        "max_hold = 90s\nmax_size = 3000K\nmax_time = 1000ms\nthrottle_users = {}\n",
        "default_spec = \"on,note=a\\\\,b\"\nlog_level = error\nanonymise = site\n"
        "anonymise_key = '/k'\n",
    };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char *first = NULL, *second = NULL;
        size_t n;
        FILE *f = open_memstream(&first, &n);

        ck_assert_msg(load(files[i]) == 0, "%s", err.text);
        pt_conf_print(conf, f);
        fclose(f);
        ck_assert_msg(load(first) == 0, "%s in %s", err.text, first);
        f = open_memstream(&second, &n);
        pt_conf_print(conf, f);
        fclose(f);
        ck_assert_str_eq(first, second);
        free(first);
        free(second);
    }
}
END_TEST

/* ---- hostile files ---------------------------------------------------------------- */

static int load_bytes(const void *bytes, size_t n)
{
    FILE *fp = fopen(path, "w");

    fwrite(bytes, 1, n, fp);
    fclose(fp);
    pt_conf_destroy(conf);
    return pt_conf_load(path, &conf, &err);
}

START_TEST(hostile_structure)
{
    static const char *const texts[] = {"include(\"/etc/passwd\")\n",
                                        "include = \"/etc/passwd\"\n",
                                        "period\n",
                                        "period = {1\n",
                                        "period = 1 2\n",
                                        "= 3\n",
                                        "{{{{{{{{\n",
                                        "}\n",
                                        "period { x = 1 }\n",
                                        "period += 3 {\n",
                                        "\"period\" = \n",
                                        "period = \"1\n\n\n",
                                        "period = '1",
                                        "exclude_paths = {/proc/*}\n",
                                        "/* no end",
                                        "quiet = ${HOME}\n",
                                        "\\\n",
                                        "period = \"\\x00\"\n",
                                        "period = \"\\",
                                        "allow_users = {\"a\" \"b\"}\n",
                                        "function(1, 2)\n"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        ck_assert_msg(load(texts[i]) == -1, "accepted: %s", texts[i]);
        ck_assert_msg(strncmp(err.text, path, strlen(path)) == 0, "%s", err.text);
        /* and leaves the reader as it was */
        ck_assert_msg(load("period = 7\n") == 0, "after '%s': %s", texts[i], err.text);
        ck_assert_str_eq(conf->period, "7");
    }
    refuse("period = 3\n exclude_paths = {/proc/*}\n", ":2: '/*' outside of quotes");
    refuse("period = 3\noutput = \"x\nquiet = true\n\n",
           ":2: the string that begins here has no end");
}
END_TEST

START_TEST(hostile_bytes)
{
    static const char alphabet[] = "\"'{}=+,#\\/* \n$(){}aperiod_specquiet0\t\r\v\x80\xff\x01";
    static char bytes[70000];
    unsigned state = 1;

    for (int round = 0; round < 3000; round++) {
        size_t n = round % 50 ? (size_t)(round % 400) : sizeof(bytes) - (size_t)round;

        for (size_t i = 0; i < n; i++) {
            state = state * 1103515245u + 12345u;
            bytes[i] =
                round % 2 ? (char)(state >> 16) : alphabet[(state >> 16) % (sizeof(alphabet) - 1)];
        }
        load_bytes(bytes, n);
    }
    ck_assert_int_eq(load("period = 7\n"), 0);
    ck_assert_int_eq(load_bytes("period = 7\n\0", 12), -1);
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(hostile_lengths)
{
    static char text[80000];
    size_t n;

    memset(text, 'x', sizeof(text));
    n = (size_t)sprintf(text, "output = \"");
    text[n] = 'x';
    strcpy(text + 60000, "\"\n");
    ck_assert_int_eq(load(text), -1);
    ck_assert_ptr_nonnull(strstr(err.text, ":1: directive 'output'"));
    memset(text, 'x', 60000);
    strcpy(text + 60000, " = 1\n");
    ck_assert_int_eq(load(text), -1);
    memset(text, '#', sizeof(text));
    strcpy(text + 60000, "\nperiod = 7\n");
    ck_assert_int_eq(load(text), 0);
    ck_assert_int_eq(load_bytes(text, sizeof(text)), -1); /* larger than any such file */
    memset(text, '\n', 60000);
    strcpy(text + 60000, "perod = 7\n");
    ck_assert_int_eq(load(text), -1);
    ck_assert_ptr_nonnull(strstr(err.text, ":60001: directive 'perod': unknown"));
    n = (size_t)sprintf(text, "allow_users = {");
    for (int i = 0; i < 257; i++)
        n += (size_t)sprintf(text + n, "\"u%d\",", i);
    strcpy(text + n - 1, "}\n");
    refuse(text, ":1: directive 'allow_users': more than 256 values");
}
END_TEST

/* Nothing that could make a step wait, or that is no file at all. */
START_TEST(hostile_files)
{
    char expected[100];

    snprintf(expected, sizeof(expected), "%s: not a regular file", path);
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(pt_conf_load(path, &conf, &err), -1);
    ck_assert_str_eq(err.text, expected);
    unlink(path);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(pt_conf_load(path, &conf, &err), -1);
    ck_assert_str_eq(err.text, expected);
    rmdir(path);
    ck_assert_int_eq(pt_conf_load("/dev/zero", &conf, &err), -1);
    ck_assert_str_eq(err.text, "/dev/zero: not a regular file");
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
    refuse("munge = maybe\n", ":1: directive 'munge': 'maybe' is not yes, no or auto");
    refuse("munge_socket = x\n", ":1: directive 'munge_socket': 'x' is not an absolute path");
    refuse("ports = \"200-100\"\n",
           ":1: directive 'ports': '200-100' is no range of ports, such as " PT_HOSTS_PORTS);
    ck_assert_int_eq(load("default_spec = \"throttle:x\"\n"), -1);
    ck_assert_ptr_nonnull(strstr(err.text, ":1: directive 'default_spec': throttle:x: must be"));
    ck_assert_int_eq(load("quiet = perhaps\n"), -1);
    ck_assert_ptr_nonnull(strstr(err.text, ":1: "));
    ck_assert_int_eq(load("period = \n"), -1);
    ck_assert_int_eq(load("exclude_paths = {\"a\", \n"), -1);
}
END_TEST

START_TEST(wrong_ports)
{
    static const char *const ports[] = {"",
                                        "100",
                                        "0-10",
                                        "1-65536",
                                        "1-2-3",
                                        "a-b",
                                        " 1-2",
                                        "1- 2",
                                        "70000-70001",
                                        "-1",
                                        "1-",
                                        "1-2 ",
                                        "1-99999999999999999999"};
    char line[100];

    for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
        snprintf(line, sizeof(line), "ports = \"%s\"\n", ports[i]);
        ck_assert_msg(load(line) == -1, "accepted: %s", line);
    }
    ck_assert_int_eq(load("ports = \"1-1\"\n"), 0);
    ck_assert_int_eq(load("ports = \"1-65535\"\n"), 0);
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

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, defaults);
    tcase_add_test(tc, everything);
    tcase_add_test(tc, policy);
    tcase_add_test(tc, wrong_policy);
    tcase_add_test(tc, contradictions);
    tcase_add_test(tc, printing);
    tcase_add_test(tc, hostile_structure);
    tcase_add_test(tc, hostile_bytes);
    tcase_add_test(tc, hostile_lengths);
    tcase_add_test(tc, hostile_files);
    tcase_add_test(tc, comments);
    tcase_add_test(tc, wrong);
    tcase_add_test(tc, wrong_ports);
    tcase_add_test(tc, missing);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
