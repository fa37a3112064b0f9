/*
 * SPEC: what is accepted, what is refused and how, and the patterns of out=.
 */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/spec.h"
#include "tests/unit/run.h"

static struct pt_spec spec;
static struct pt_err err;

static void set_up(void)
{
    pt_spec_init(&spec);
    err.text[0] = '\0';
}

static void accept(const char *text)
{
    ck_assert_msg(pt_spec_parse(&spec, text, &err) == 0, "'%s' refused: %s", text, err.text);
}

/* Refused with exactly this message, and without a trace in *spec. */
static void refuse(const char *text, const char *message)
{
    struct pt_spec before = spec;

    ck_assert_int_eq(pt_spec_parse(&spec, text, &err), -1);
    ck_assert_str_eq(err.text, message);
    ck_assert_mem_eq(&spec, &before, sizeof(spec));
}

START_TEST(defaults)
{
    accept("");
    accept("on");
    ck_assert_int_eq(spec.off, 0);
    ck_assert_int_eq(spec.throttle, PT_THROTTLE_NONE);
    ck_assert_uint_eq(spec.period, 100);
    ck_assert_int_eq(spec.discover, PT_DISCOVER_BOTH);
    ck_assert_str_eq(spec.out, "ptrace.%j.%s");
    ck_assert_uint_eq(spec.buffer, 1 << 20);
    ck_assert_int_eq(spec.full, PT_FULL_WAIT);
    ck_assert_uint_eq(spec.hold_max, 60000000000ULL);
    ck_assert_uint_eq(spec.compute_max, 0);
    ck_assert_uint_eq(spec.exe.n + spec.noexe.n + spec.path.n + spec.nopath.n, 0);
}
END_TEST

START_TEST(every_item)
{
    accept("off,throttle:7,period=3,discover=hold,out=/x/%j,exe=a*,noexe=b*,path=/c/*,"
           "nopath=/d/*,buffer=2M,full=drop,compute-max=5us,call-max=6ms,hold-max=7s,note=hi");
    ck_assert_int_eq(spec.off, 1);
    ck_assert_int_eq(spec.throttle, PT_THROTTLE_NODE);
    ck_assert_int_eq(spec.node[0], 7);
    ck_assert_uint_eq(spec.period, 3);
    ck_assert_int_eq(spec.discover, PT_DISCOVER_HOLD);
    ck_assert_str_eq(spec.out, "/x/%j");
    ck_assert_str_eq(spec.exe.glob[0], "a*");
    ck_assert_str_eq(spec.noexe.glob[0], "b*");
    ck_assert_str_eq(spec.path.glob[0], "/c/*");
    ck_assert_str_eq(spec.nopath.glob[0], "/d/*");
    ck_assert_uint_eq(spec.buffer, 2 << 20);
    ck_assert_int_eq(spec.full, PT_FULL_DROP);
    ck_assert_uint_eq(spec.compute_max, 5000);
    ck_assert_uint_eq(spec.call_max, 6000000);
    ck_assert_uint_eq(spec.hold_max, 7000000000ULL);
    ck_assert_str_eq(spec.note, "hi");
}
END_TEST

/* Each item that the messages name is one that is accepted. */
START_TEST(listed_items)
{
    char list[] = PT_SPEC_ITEMS;
    static const struct {
        const char *form, *example;
    } values[] = {
        {"P", "1"}, {"DIR", "d"}, {"GLOB", "*"}, {"SIZE", "1M"}, {"T", "1s"}, {"TEXT", "t"},
    };

    for (char *item = strtok(list, " "); item; item = strtok(NULL, " ")) {
        char text[64], *value;

        item[strcspn(item, ",")] = '\0';
        strcpy(text, item);
        value = strpbrk(text, ":=");
        if (value) {
            value[1 + strcspn(value + 1, "|")] = '\0';
            for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
                if (strcmp(value + 1, values[i].form) == 0)
                    strcpy(value + 1, values[i].example);
            }
        }
        accept(text);
    }
}
END_TEST

START_TEST(later_items_win)
{
    accept("period=3,throttle:2,period=4");
    accept("throttle:auto,exe=a,exe=b");
    accept("off");
    accept("on");
    ck_assert_uint_eq(spec.period, 4);
    ck_assert_int_eq(spec.throttle, PT_THROTTLE_AUTO);
    ck_assert_uint_eq(spec.exe.n, 2);
    ck_assert_str_eq(spec.exe.glob[1], "b");
    ck_assert_int_eq(spec.off, 0);
}
END_TEST

START_TEST(throttle)
{
    static const char wrong[] = "must be none, auto, a rank K or a node RANK.PROCESS.THREAD";
    static const char *const bad[] = {"",
                                      "x",
                                      "1.2",
                                      "1.2.3.4",
                                      "1.",
                                      "-1",
                                      "1..2",
                                      " 1",
                                      "2147483648",
                                      "1.2.x",
                                      "0x1",
                                      "none ",
                                      "18446744073709551616"};

    accept("throttle:1.2.3");
    ck_assert_int_eq(spec.node[0], 1);
    ck_assert_int_eq(spec.node[1], 2);
    ck_assert_int_eq(spec.node[2], 3);
    accept("throttle:9");
    ck_assert_int_eq(spec.node[0], 9);
    ck_assert_int_eq(spec.node[1], 0);
    ck_assert_int_eq(spec.node[2], 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[64], message[200];

        snprintf(text, sizeof(text), "throttle:%s", bad[i]);
        snprintf(message, sizeof(message), "%s: %s", text, wrong);
        refuse(text, message);
    }
}
END_TEST

START_TEST(sizes)
{
    accept("buffer=64K");
    ck_assert_uint_eq(spec.buffer, 65536);
    accept("buffer=65537");
    ck_assert_uint_eq(spec.buffer, 131072);
    accept("buffer=3M");
    ck_assert_uint_eq(spec.buffer, 4 << 20);
    accept("buffer=1G");
    ck_assert_uint_eq(spec.buffer, 1 << 30);
    refuse("buffer=63K", "buffer=63K: must be a size from 64K to 1G (a number, then K, M or G)");
    refuse("buffer=2G", "buffer=2G: must be a size from 64K to 1G (a number, then K, M or G)");
    refuse("buffer=1T", "buffer=1T: must be a size from 64K to 1G (a number, then K, M or G)");
    refuse("buffer=18446744073709551615G", "buffer=18446744073709551615G: must be a size from "
                                           "64K to 1G (a number, then K, M or G)");
}
END_TEST

START_TEST(times)
{
    accept("compute-max=17ns,call-max=2m");
    ck_assert_uint_eq(spec.compute_max, 17);
    ck_assert_uint_eq(spec.call_max, 120000000000ULL);
    refuse("hold-max=5", "hold-max=5: must be a time from 1ns to 7 days (a number, then ns, us, "
                         "ms, s or m)");
    refuse("hold-max=0s", "hold-max=0s: must be a time from 1ns to 7 days (a number, then ns, "
                          "us, ms, s or m)");
    refuse("hold-max=20000m", "hold-max=20000m: must be a time from 1ns to 7 days (a number, "
                              "then ns, us, ms, s or m)");
}
END_TEST

/* Numbers of paratrace.conf, and back into text. */
START_TEST(numbers)
{
    static const char *const sizes[] = {"1", "1023", "1K", "1025", "3M", "5G", "1024T"};
    static const char *const times[] = {"1ns", "999us", "1ms", "1001ms",
                                        "59s", "1m",    "90s", "120m"};
    char text[PT_SPEC_NUMBER];
    uint64_t v;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ck_assert_int_eq(pt_spec_size(sizes[i], &v, &err), 0);
        ck_assert_str_eq(pt_spec_format_size(text, v), sizes[i]);
    }
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        ck_assert_int_eq(pt_spec_time(times[i], &v, &err), 0);
        ck_assert_str_eq(pt_spec_format_time(text, v), times[i]);
    }
    ck_assert_int_eq(pt_spec_size("0", &v, &err), -1);
    ck_assert_int_eq(pt_spec_size("1025T", &v, &err), -1);
    ck_assert_int_eq(pt_spec_size("-1", &v, &err), -1);
    ck_assert_int_eq(pt_spec_size("1k", &v, &err), -1);
    ck_assert_int_eq(pt_spec_time("1h", &v, &err), -1);
    ck_assert_int_eq(pt_spec_time("", &v, &err), -1);
}
END_TEST

START_TEST(wrong_items)
{
    refuse("perod=3", "unknown item 'perod=3': valid items are " PT_SPEC_ITEMS);
    refuse("period=5,offf", "unknown item 'offf': valid items are " PT_SPEC_ITEMS);
    refuse("throttle=3", "unknown item 'throttle=3': valid items are " PT_SPEC_ITEMS);
    refuse("period=0", "period=0: must be a whole number from 1 to 1000000000");
    refuse("period=1e3", "period=1e3: must be a whole number from 1 to 1000000000");
    refuse("discover=mpl", "discover=mpl: must be hold, mpi or both");
    refuse("discover=mpi,throttle:2", "throttle: discover=mpi holds nobody; say discover=both or "
                                      "throttle:none");
    refuse("full=", "full=: must be wait or drop");
    refuse("out=", "out=: must name a directory");
    refuse("out=a%", "out=a%: unknown pattern '%': valid ones are %j %A %a %s %u %x %%");
    refuse("out=%z", "out=%z: unknown pattern '%z': valid ones are %j %A %a %s %u %x %%");
    refuse("exe=", "exe=: must be a pattern");
    refuse("path=a\\,b", "path=a,b: must not contain a comma");
    refuse("on,,off", "empty item: valid items are " PT_SPEC_ITEMS);
    refuse("on,", "empty item: valid items are " PT_SPEC_ITEMS);
    refuse("note=a\nb", "control character 0x0a at position 7");
    refuse("note=\x7f", "control character 0x7f at position 6");
}
END_TEST

START_TEST(notes)
{
    accept("note=one\\, two\\, \\three,period=8");
    ck_assert_str_eq(spec.note, "one, two, \\three");
    ck_assert_uint_eq(spec.period, 8);
}
END_TEST

START_TEST(limits)
{
    char text[PT_SPEC_MAX + 2];

    memset(text, 'x', sizeof(text));
    memcpy(text, "note=", 5);
    text[PT_SPEC_MAX] = '\0';
    refuse(text, "longer than 4095 characters");
    text[5 + PT_SPEC_NOTE_MAX] = '\0';
    ck_assert_int_eq(pt_spec_parse(&spec, text, &err), -1);
    text[5 + PT_SPEC_NOTE_MAX - 1] = '\0';
    accept(text);
    ck_assert_uint_eq(strlen(spec.note), PT_SPEC_NOTE_MAX - 1);
    for (int i = 0; i < PT_SPEC_GLOBS; i++)
        accept("exe=a");
    refuse("exe=a", "exe=a: there may be 16 of this kind, the site's included");
}
END_TEST

START_TEST(patterns)
{
    const struct pt_spec_ids ids = {
        .job = 17, .step = 2, .array_job = 15, .array_task = 3, .user = "ada", .name = "a/b\n"};
    char out[32];

    ck_assert_int_eq(pt_spec_expand("%j.%A_%a.%s/%u-%x%%", &ids, out, sizeof(out), &err), 0);
    ck_assert_str_eq(out, "17.15_3.2/ada-a_b_%");
    ck_assert_int_eq(pt_spec_expand("123%j", &ids, out, 6, &err), 0);
    ck_assert_int_eq(pt_spec_expand("123%j", &ids, out, 5, &err), -1);
    ck_assert_str_eq(err.text, "'123%j' becomes too long");
    ck_assert_int_eq(pt_spec_expand("%", &ids, out, sizeof(out), &err), -1);
}
END_TEST

START_TEST(steps)
{
    struct pt_spec_ids ids = {.job = 7, .step = PT_SPEC_STEP_BATCH, .user = "u", .name = "n"};
    char out[32], buf[PT_SPEC_STEP_MAX];

    ck_assert_int_eq(pt_spec_expand("r.%j.%s", &ids, out, sizeof(out), NULL), 0);
    ck_assert_str_eq(out, "r.7.batch");
    ck_assert_str_eq(pt_spec_step(PT_SPEC_STEP_INTERACTIVE, buf), "interactive");
    ck_assert_str_eq(pt_spec_step(3, buf), "3");
    ck_assert(pt_spec_names_step("%j.%s"));
    ck_assert(pt_spec_names_step("%%%s"));
    ck_assert(!pt_spec_names_step("%%s"));
    ck_assert(!pt_spec_names_step("run"));
    ck_assert(!pt_spec_names_step("run%"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spec");
    TCase *tc = tcase_create("spec");

    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_test(tc, defaults);
    tcase_add_test(tc, every_item);
    tcase_add_test(tc, listed_items);
    tcase_add_test(tc, later_items_win);
    tcase_add_test(tc, throttle);
    tcase_add_test(tc, sizes);
    tcase_add_test(tc, times);
    tcase_add_test(tc, numbers);
    tcase_add_test(tc, wrong_items);
    tcase_add_test(tc, notes);
    tcase_add_test(tc, limits);
    tcase_add_test(tc, patterns);
    tcase_add_test(tc, steps);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
