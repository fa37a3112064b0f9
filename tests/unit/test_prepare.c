/* The root and what is prepared in it. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replay/prepare.h"
#include "tests/unit/run.h"

static char top[64]; /* holds the root and what must stay outside */
static char dir[80];
static struct root *root;

static void setup(void)
{
    struct pt_err err;

    strcpy(top, "/tmp/test_prepare.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(top));
    snprintf(dir, sizeof(dir), "%s/root", top);
    ck_assert_int_eq(mkdir(dir, 0755), 0);
    root = root_create(dir, &err);
    ck_assert_ptr_nonnull(root);
}

static void teardown(void)
{
    char command[120];

    root_destroy(root);
    snprintf(command, sizeof(command), "rm -rf '%s'", top);
    ck_assert_int_eq(system(command), 0);
}

static const char *outside(const char *name)
{
    static char path[200];

    snprintf(path, sizeof(path), "%s/%s", top, name);
    return path;
}

static void touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "x", 1), 1);
    close(fd);
}

static void check_relative(const char *path, const char *name)
{
    char *got = root_relative(path);

    ck_assert_str_eq(got, name);
    free(got);
}

START_TEST(names_never_climb)
{
    check_relative("/", ".");
    check_relative("/a/b", "a/b");
    check_relative("//a/./b/", "a/b");
    check_relative("/a/../b", "b");
    check_relative("/../../etc/x", "etc/x");
    check_relative("/a/b/../../../c", "c");
    check_relative("/a/..", ".");
    check_relative("/..a/b..", "..a/b..");
}
END_TEST

static void check_target(const char *name, const char *target, const char *want)
{
    char *got = root_target(name, target);

    ck_assert_str_eq(got, want);
    free(got);
}

START_TEST(targets_stay_below)
{
    check_target("a/b/l", "x", "x");
    check_target("a/b/l", "../../x", "../../x");
    check_target("a/b/l", "../c/../../x", "../c/../../x");
    check_target("a/b/l", "../../../x", "../../x");
    check_target("a/b/l", "../../../../../x/../y", "../../y");
    check_target("l", "..", ".");
    check_target("l", "../x/..", ".");
    check_target("a/l", "/", "../.");
    check_target("l", "/etc/passwd", "etc/passwd");
    check_target("a/b/l", "/a/c", "../../a/c");
    check_target("a/l", "/../../x", "../x");
    check_target("l", "", "");
}
END_TEST

/* Nothing goes through a link that leads out, with openat2 (0) or without it (1). */
START_TEST(links_do_not_lead_out)
{
    char target[100];
    struct stat st;

    if (_i)
        root_without_openat2(root);
    snprintf(target, sizeof(target), "%s/dir", top);
    touch(outside("secret"));
    ck_assert_int_eq(mkdir(target, 0755), 0);
    touch(outside("dir/file"));
    ck_assert_int_eq(symlink("../secret", outside("root/link")), 0);
    ck_assert_int_eq(symlink(target, outside("root/to")), 0);
    ck_assert_int_eq(symlink("../new", outside("root/dangling")), 0);
    touch(outside("root/inside"));

    ck_assert_int_eq(root_open(root, "link", O_RDONLY, 0), -1);
    ck_assert(errno == EXDEV || errno == ELOOP);
    ck_assert_int_eq(root_open(root, "to/file", O_WRONLY | O_TRUNC, 0), -1);
    ck_assert_int_eq(root_open(root, "dangling", O_WRONLY | O_CREAT, 0644), -1);
    ck_assert_int_eq(root_unlink(root, "to/file"), -1);
    ck_assert_int_eq(root_mkdir(root, "to/sub", 0755), -1);
    ck_assert_int_eq(root_rename(root, "inside", "to/inside", 0), -1);
    ck_assert_int_eq(root_rename(root, "to/file", "stolen", 0), -1);
    ck_assert_int_eq(root_link(root, "to/file", "stolen"), -1);
    ck_assert_int_eq(root_link(root, "inside", "to/inside"), -1);
    ck_assert_int_eq(root_symlink(root, "x", "to/x"), -1);
    ck_assert_int_eq(root_chmod(root, "link", 0), -1);
    ck_assert_int_eq(root_chmod(root, "to/file", 0), -1);
    ck_assert_int_eq(root_touch(root, "to/file"), -1);
    ck_assert_int_eq(root_readlink(root, "to/file", target, sizeof(target)), -1);
    ck_assert_int_eq(root_pin(root, "link"), -1);
    ck_assert(errno == EXDEV || errno == ELOOP);
    ck_assert_int_eq(root_pin(root, "to/file"), -1);
    ck_assert_int_eq(stat(outside("dir/file"), &st), 0);
    ck_assert_int_eq(st.st_size, 1);
    ck_assert_int_eq(stat(outside("secret"), &st), 0);
    ck_assert_int_ne(st.st_mode & 0777, 0);
    ck_assert_int_eq(stat(outside("new"), &st), -1);
}
END_TEST

START_TEST(calls_work_below)
{
    char text[10];
    struct stat st;
    int fd;

    if (_i)
        root_without_openat2(root);
    ck_assert_int_eq(root_mkdir(root, "a", 0755), 0);
    ck_assert_int_eq(root_mkdir(root, "a/b", 0755), 0);
    fd = root_open(root, "a/b/f", O_RDWR | O_CREAT | O_EXCL, 0640);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(root_rename(root, "a/b/f", "a/g", 0), 0);
    ck_assert_int_eq(root_stat(root, "a/g", &st), 0);
    ck_assert_int_eq(root_link(root, "a/g", "a/hard"), 0);
    ck_assert_int_eq(root_symlink(root, "g", "a/soft"), 0);
    ck_assert_int_eq(root_readlink(root, "a/soft", text, sizeof(text)), 1);
    ck_assert_int_eq(root_chmod(root, "a/g", 0600), 0);
    ck_assert_int_eq(root_touch(root, "a/soft"), 0);
    fd = root_pin(root, "a/hard");
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_eq(st.st_nlink, 2);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    close(fd);
    fd = root_pin(root, "a/soft"); /* a link that is followed, or refused */
    ck_assert_int_eq(fd >= 0, !_i);
    close(fd);
    fd = root_open(root, "a", O_RDWR | O_TMPFILE, 0600);
    if (fd >= 0) {
        ck_assert_int_eq(root_link_fd(root, fd, "a/named"), 0);
        close(fd);
    }
    ck_assert_int_eq(root_unlink(root, "a/g"), 0);
    ck_assert_int_eq(root_open(root, "a/g", O_RDONLY, 0), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(root_rmdir(root, "a/b"), 0);
}
END_TEST

START_TEST(a_root_must_be_a_directory)
{
    struct pt_err err = {""};

    touch(outside("file"));
    ck_assert_ptr_null(root_create(outside("nowhere"), &err));
    ck_assert_ptr_nonnull(strstr(err.text, "nowhere"));
    ck_assert_ptr_null(root_create(outside("file"), &err));
}
END_TEST

START_TEST(a_root_of_others_is_refused)
{
    struct pt_err err = {""};
    struct prepare p;

    touch(outside("root/precious"));
    prepare_init(&p, root, NULL, 0);
    ck_assert_int_eq(prepare_claim(&p, false, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.text, "not ptreplay's"));
    ck_assert_int_eq(access(outside("root/" PREPARE_MARKER), F_OK), -1);
    ck_assert_int_eq(prepare_claim(&p, true, &err), 0);
    ck_assert_int_eq(access(outside("root/" PREPARE_MARKER), F_OK), -1);
    prepare_free(&p);
}
END_TEST

START_TEST(a_claimed_root_stays_ours)
{
    struct prepare p;
    struct pt_err err;

    prepare_init(&p, root, NULL, 0);
    ck_assert_int_eq(prepare_claim(&p, false, &err), 0);
    touch(outside("root/file"));
    prepare_init(&p, root, NULL, 0);
    ck_assert_int_eq(prepare_claim(&p, false, &err), 0);
    prepare_free(&p);
}
END_TEST

static void prepare_all(struct prepare *p, struct prepare_file *files, size_t n)
{
    struct pt_err err = {""};

    prepare_init(p, root, files, n);
    ck_assert_int_eq(prepare_claim(p, false, &err), 0);
    ck_assert_msg(prepare_tree(p, &err) == 0, "%s", err.text);
    ck_assert_msg(prepare_data(p, 0, 1, &err) == 0, "%s", err.text);
}

START_TEST(files_are_made_removed_and_cleaned)
{
    struct prepare_file files[] = {
        {.name = "in/deep/data", .size = 3000000, .need = NEED_FILE},
        {.name = "empty", .need = NEED_FILE},
        {.name = "out/result", .need = NEED_MADE},
        {.name = "made/sub", .need = NEED_MADE_DIR},
        {.name = "made/sub/file", .need = NEED_MADE},
        {.name = "never/there", .need = NEED_ABSENT},
        {.name = "dir", .need = NEED_DIR},
    };
    size_t n = sizeof(files) / sizeof(files[0]);
    struct prepare p;
    struct stat st;
    int fd, zeros = 0;
    char block[4096];

    prepare_all(&p, files, n);
    ck_assert_int_eq(stat(outside("root/in/deep/data"), &st), 0);
    ck_assert_int_eq(st.st_size, 3000000);
    ck_assert_int_ge(st.st_blocks * 512, 3000000);
    ck_assert_int_eq(stat(outside("root/out"), &st), 0);
    ck_assert_int_eq(stat(outside("root/made"), &st), 0);
    ck_assert_int_eq(stat(outside("root/dir"), &st), 0);
    ck_assert_int_eq(stat(outside("root/made/sub"), &st), -1);
    ck_assert_int_eq(stat(outside("root/never"), &st), -1);
    fd = open(outside("root/in/deep/data"), O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(pread(fd, block, sizeof(block), 2000000), sizeof(block));
    close(fd);
    for (size_t i = 0; i < sizeof(block); i++)
        zeros += block[i] == 0;
    ck_assert_int_lt(zeros, 100);

    /* What a replay leaves behind goes, too. */
    ck_assert_int_eq(mkdir(outside("root/made/sub"), 0755), 0);
    touch(outside("root/made/sub/file"));
    touch(outside("root/out/result"));
    prepare_clean_data(&p);
    prepare_clean_tree(&p);
    prepare_free(&p);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(what_the_trace_makes_is_removed_first)
{
    struct prepare_file files[] = {
        {.name = "d", .need = NEED_MADE_DIR},
        {.name = "d/f", .need = NEED_MADE},
    };
    struct prepare p;

    prepare_all(&p, files, 2);
    ck_assert_int_eq(mkdir(outside("root/d"), 0755), 0);
    touch(outside("root/d/f"));
    touch(outside("root/other"));
    prepare_free(&p);
    prepare_all(&p, files, 2);
    prepare_free(&p);
    ck_assert_int_eq(access(outside("root/d"), F_OK), -1);
    ck_assert_int_eq(access(outside("root/other"), F_OK), 0);
}
END_TEST

START_TEST(a_planted_link_stops_the_preparation)
{
    struct prepare_file file = {.name = "data/in", .size = 10, .need = NEED_FILE};
    struct pt_err err = {""};
    struct prepare p;

    prepare_init(&p, root, &file, 1);
    ck_assert_int_eq(prepare_claim(&p, false, &err), 0);
    ck_assert_int_eq(mkdir(outside("target"), 0755), 0);
    ck_assert_int_eq(symlink("../target", outside("root/data")), 0);
    ck_assert_int_eq(prepare_tree(&p, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.text, "leads out of the root"));
    ck_assert_int_eq(prepare_data(&p, 0, 1, &err), -1);
    ck_assert_int_eq(access(outside("target/in"), F_OK), -1);
    prepare_free(&p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prepare");
    TCase *tc = tcase_create("prepare");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, names_never_climb);
    tcase_add_test(tc, targets_stay_below);
    tcase_add_loop_test(tc, links_do_not_lead_out, 0, 2);
    tcase_add_loop_test(tc, calls_work_below, 0, 2);
    tcase_add_test(tc, a_root_must_be_a_directory);
    tcase_add_test(tc, a_root_of_others_is_refused);
    tcase_add_test(tc, a_claimed_root_stays_ours);
    tcase_add_test(tc, files_are_made_removed_and_cleaned);
    tcase_add_test(tc, what_the_trace_makes_is_removed_first);
    tcase_add_test(tc, a_planted_link_stops_the_preparation);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
