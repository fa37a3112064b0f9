/*
 * Merging: names, and the files that a replay needs.
 */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "tests/unit/merge_kit.h"
#include "tests/unit/run.h"

START_TEST(names_are_absolute)
{
    struct pt_event ev;

    begin_run("throttle:none");
    node(0, 0, 0, 0, "/home//me/.");
    node(1, 0, 0, 1, "/home/me");
    put_open(0, "./d/../x", O_RDWR, 5, 1, 10);
    put_path(0, "chdir", "sub", NULL);
    put_open(0, "y", O_RDONLY | O_DIRECTORY, 6, 2, 0);
    ev = event(0, "openat");
    ev.str[0] = "z";
    ev.field[PT_F_DIRFD] = 6; /* a plain descriptor, as openat() has it */
    ev.field[PT_F_HANDLE] = 3;
    ev.ret = 7;
    put(0, ev);
    ev = event(0, "dup");
    ev.field[PT_F_FD] = PT_FD_WORD(7, 3);
    ev.field[PT_F_FD2] = PT_FD_WORD(8, 4);
    ev.ret = 8;
    put(0, ev);
    now[1] = now[0];
    put_io(1, "pwrite", 8, 4, 10, 0); /* another thread uses the copy */
    put_path(1, "rename", "p", "/q//r");
    put_io(1, "read", 9, 77, 10, 0);
    end_run();
    merge_all();
    ck_assert_str_eq(file_at(0, 0), "/home/me/d/../x");
    ck_assert_str_eq(file_at(0, 1), "/home/me/sub/y");
    ck_assert_str_eq(file_at(0, 2), "/home/me/sub/y/z");
    ck_assert_str_eq(file_at(0, 3), "/home/me/sub/y/z");
    ck_assert_uint_eq(at(0, 3)->handle2, 4);
    ck_assert_str_eq(file_at(1, 0), "/home/me/sub/y/z");
    ck_assert_str_eq(file_at(1, 1), "/home/me/sub/p");
    ck_assert_str_eq(names_text(&c.m.files, at(1, 1)->file2), "/q/r");
    ck_assert_str_eq(file_at(1, 2), "none");
    ck_assert_uint_eq(find_file("/home/me/sub/y")->dir, 1);
}
END_TEST

START_TEST(files_before_a_replay)
{
    begin_run("throttle:none");
    node(0, 0, 0, 0, "/w");
    node(1, 1, 0, 0, "/w");
    now[1] += 50; /* a little later */
    put_open(0, "new", O_CREAT | O_RDWR, 5, 1, 0);
    put_open(1, "new", O_CREAT | O_RDWR, 5, 1, 0);
    put_open(1, "old", O_CREAT | O_RDWR, 6, 2, 4096);
    put_open(1, "short", O_RDONLY, 7, 3, 100);
    put_io(1, "read", 7, 3, 60, 0);
    put_io(1, "read", 7, 3, 60, 0); /* up to 120 */
    put_io(1, "pwrite", 6, 2, 10, 9000);
    put_io(1, "pread", 6, 2, 10, 9000); /* was written before */
    put_failed(1, "open", "absent", ENOENT);
    put_open(1, "truncated", O_WRONLY | O_CREAT | O_TRUNC, 8, 4, 0);
    put_path(1, "mkdir", "made", NULL);
    put_failed(1, "mkdir", "there", EEXIST);
    put_path(1, "unlink", "victim", NULL);
    put_path(1, "rename", "from", "to");
    end_run();
    merge_all();
    ck_assert_uint_eq(find_file("/w/new")->made, 1);
    ck_assert_uint_eq(find_file("/w/old")->made, 0);
    ck_assert_uint_eq(find_file("/w/old")->size, 4096);
    ck_assert_uint_eq(find_file("/w/short")->size, 120);
    ck_assert_uint_eq(find_file("/w/absent")->made, 1);
    ck_assert_uint_eq(find_file("/w/truncated")->made, 1);
    ck_assert_uint_eq(find_file("/w/made")->made, 1);
    ck_assert_uint_eq(find_file("/w/made")->dir, 1);
    ck_assert_uint_eq(find_file("/w/there")->made, 0);
    ck_assert_uint_eq(find_file("/w/victim")->made, 0);
    ck_assert_uint_eq(find_file("/w/from")->made, 0);
    ck_assert_uint_eq(find_file("/w/to")->made, 1);
}
END_TEST

static void put_at(uint32_t number, const char *call, int64_t dirfd, const char *path,
                   int64_t dirfd2, const char *path2)
{
    struct pt_event ev = event(number, call);

    ev.str[0] = path;
    ev.str[1] = path2;
    ev.field[PT_F_DIRFD] = dirfd;
    ev.field[PT_F_DIRFD2] = dirfd2;
    put(number, ev);
}

static void put_symlink(uint32_t number, const char *target, const char *path)
{
    struct pt_event ev = event(number, "symlink");

    ev.str[0] = path;
    ev.str[2] = target;
    put(number, ev);
}

START_TEST(names_relative_to_directories)
{
    struct pt_event ev;

    begin_run("throttle:none");
    node(0, 0, 0, 0, "/w");
    put_opening(0, "opendir", "a", O_RDONLY | O_DIRECTORY, 5, 1, 0);
    put_opening(0, "open", "/b", O_RDONLY, 6, 2, 0);
    put_at(0, "renameat", PT_FD_WORD(5, 1), "x", PT_FD_WORD(6, 2), "y");
    put_at(0, "linkat", AT_FDCWD, "/z", PT_FD_WORD(5, 1), "z");
    ev = event(0, "fchdir");
    ev.field[PT_F_FD] = PT_FD_WORD(6, 2);
    put(0, ev);
    put_opening(0, "fopen", "in", O_RDONLY, 7, 3, 100);
    put_io(0, "fread", 7, 3, 10, 0);
    put_at(0, "fstatat", PT_FD_WORD(7, 3), "", 0, NULL); /* of the descriptor itself */
    ev = event(0, "copy_file_range");
    ev.field[PT_F_FD] = PT_FD_WORD(7, 3);
    ev.field[PT_F_FD2] = PT_FD_WORD(6, 2);
    put(0, ev);
    put_io(0, "readdir", 5, 1, 0, 0);
    end_run();
    merge_all();
    ck_assert_str_eq(file_at(0, 2), "/w/a/x");
    ck_assert_str_eq(names_text(&c.m.files, at(0, 2)->file2), "/b/y");
    ck_assert_str_eq(file_at(0, 3), "/z");
    ck_assert_str_eq(names_text(&c.m.files, at(0, 3)->file2), "/w/a/z");
    ck_assert_str_eq(file_at(0, 4), "/b/in");
    ck_assert_str_eq(file_at(0, 5), "/b/in");
    ck_assert_str_eq(file_at(0, 6), "/b/in");
    ck_assert_uint_eq(at(0, 6)->handle, 3);
    ck_assert_str_eq(names_text(&c.m.files, at(0, 7)->file2), "/b");
    ck_assert_str_eq(file_at(0, 8), "/w/a");
    ck_assert_uint_eq(find_file("/w/a")->dir, PT_KIND_DIR);
    ck_assert_uint_eq(find_file("/b")->dir, PT_KIND_DIR); /* has names below */
    ck_assert_uint_eq(find_file("/b/in")->dir, PT_KIND_FILE);
}
END_TEST

START_TEST(what_was_looked_at)
{
    struct pt_event ev;

    begin_run("throttle:none");
    node(0, 0, 0, 0, "/w");
    put_path(0, "stat", "seen", NULL);
    put_failed(0, "access", "absent", ENOENT);
    put_failed(0, "open", "forbidden", EACCES);
    put_path(0, "stat", "later", NULL);
    put_opening(0, "fopen", "later", O_RDONLY, 5, 1, 700); /* its size is known then */
    put_path(0, "scandir", "list", NULL);
    put_path(0, "stat", "way", NULL);
    put_failed(0, "stat", "way/x", ENOENT);
    put_failed(0, "rmdir", "full", ENOTEMPTY);
    put_path(0, "stat", "d/../seen2", NULL);
    put_opening(0, "open", "seen2", O_RDONLY, 6, 2, 50); /* the same file */
    ev = event(0, "readlink");
    ev.str[0] = "link";
    ev.ret = 7;
    put(0, ev);
    put_symlink(0, "target", "new");
    put_symlink(0, "nowhere", "dangling");
    put_opening(0, "open", "new", O_RDONLY, 7, 3, 30);
    put_path(0, "link", "seen", "hard");
    put_opening(0, "tmpfile", "/tmp", O_RDWR | O_TMPFILE, 8, 4, 0);
    put_path(0, "opendir", "moved.tmp", NULL);
    put_path(0, "rename", "moved.tmp", "moved");
    put_path(0, "stat", "moved/in", NULL);
    put_path(0, "MPI_File_open", "mpi", NULL);
    put_path(0, "truncate", "cut", NULL);
    end_run();
    merge_all();
    ck_assert_uint_eq(find_file("/w/seen")->made, PT_MADE_BEFORE);
    ck_assert_uint_eq(find_file("/w/seen")->size, 0);
    ck_assert_uint_eq(find_file("/w/absent")->made, PT_MADE_BY_TRACE);
    ck_assert_uint_eq(find_file("/w/forbidden")->made, PT_MADE_UNKNOWN);
    ck_assert_uint_eq(find_file("/w/later")->size, 700);
    ck_assert_uint_eq(find_file("/w/list")->dir, PT_KIND_DIR);
    ck_assert_uint_eq(find_file("/w/way")->dir, PT_KIND_DIR);
    ck_assert_uint_eq(find_file("/w/full")->dir, PT_KIND_DIR);
    ck_assert_uint_eq(find_file("/w/d/../seen2")->size, 50);
    ck_assert_uint_eq(find_file("/w/link")->dir, PT_KIND_LINK);
    ck_assert_uint_eq(find_file("/w/link")->size, 7);
    ck_assert_uint_eq(find_file("/w/new")->made, PT_MADE_BY_TRACE);
    ck_assert_uint_eq(find_file("/w/target")->made, PT_MADE_BEFORE);
    ck_assert_uint_eq(find_file("/w/target")->size, 30);
    ck_assert_uint_eq(find_file("/w/nowhere")->made, PT_MADE_UNKNOWN);
    ck_assert_uint_eq(find_file("/w/hard")->made, PT_MADE_BY_TRACE);
    ck_assert_uint_eq(find_file("/tmp")->dir, PT_KIND_DIR);
    ck_assert_uint_eq(find_file("/w/moved")->made, PT_MADE_BY_TRACE);
    ck_assert_uint_eq(find_file("/w/moved/in")->made, PT_MADE_UNKNOWN);
    ck_assert_uint_eq(find_file("/w/mpi")->made, PT_MADE_UNKNOWN);
    ck_assert_uint_eq(find_file("/w/cut")->made, PT_MADE_BEFORE);
}
END_TEST

START_TEST(sizes_that_are_needed)
{
    struct pt_event ev;

    begin_run("throttle:none");
    node(0, 0, 0, 0, "/w");
    put_opening(0, "fopen", "stream", O_RDONLY, 5, 1, 100);
    put_io(0, "fread", 5, 1, 60, 0);
    ev = event(0, "fseek");
    ev.field[PT_F_FD] = PT_FD_WORD(5, 1);
    ev.field[PT_F_OFF] = 200;
    ev.field[PT_F_WHENCE] = SEEK_CUR;
    put(0, ev);
    put_io(0, "fgets", 5, 1, 40, 0); /* up to 300 */
    put_opening(0, "open", "from", O_RDONLY, 6, 2, 0);
    put_opening(0, "open", "to", O_RDWR, 7, 3, 0);
    ev = event(0, "copy_file_range");
    ev.field[PT_F_FD] = PT_FD_WORD(6, 2);
    ev.field[PT_F_FD2] = PT_FD_WORD(7, 3);
    ev.field[PT_F_OFF] = 1000;
    ev.field[PT_F_OFF2] = -1;
    ev.ret = 500;
    put(0, ev);
    put_io(0, "pread", 7, 3, 500, 0); /* was copied there */
    ev = event(0, "sendfile");
    ev.field[PT_F_FD] = PT_FD_WORD(6, 2);
    ev.field[PT_F_OFF] = -1;
    ev.ret = 70;
    put(0, ev);
    put_io(0, "read", 6, 2, 30, 0); /* behind it: up to 100 */
    put_opening(0, "open", "room", O_RDWR, 8, 4, 0);
    put_io(0, "fallocate", 8, 4, 0, 0);
    ev = event(0, "fallocate");
    ev.field[PT_F_FD] = PT_FD_WORD(8, 4);
    ev.field[PT_F_LEN] = 5000;
    put(0, ev);
    put_io(0, "pread", 8, 4, 100, 2000);
    put_opening(0, "open", "aio", O_RDONLY, 9, 5, 0);
    ev = event(0, "aio_read");
    ev.field[PT_F_FD] = PT_FD_WORD(9, 5);
    ev.field[PT_F_LEN] = 400;
    ev.field[PT_F_OFF] = 100;
    ev.field[PT_F_ADDR] = 0x1234;
    put(0, ev);
    ev = event(0, "aio_return");
    ev.field[PT_F_ADDR] = 0x1234;
    ev.ret = 300;
    put(0, ev);
    end_run();
    merge_all();
    ck_assert_uint_eq(find_file("/w/stream")->size, 300);
    ck_assert_uint_eq(find_file("/w/from")->size, 1500);
    ck_assert_uint_eq(find_file("/w/to")->size, 0);
    ck_assert_uint_eq(find_file("/w/room")->size, 0);
    ck_assert_uint_eq(find_file("/w/aio")->size, 400);
}
END_TEST

START_TEST(texts_are_kept)
{
    struct pt_store_writer *out;
    struct pt_store *store;
    struct pt_store_event e;
    char path[100];

    begin_run("throttle:none");
    node(0, 0, 0, 0, "/w");
    put_path(0, "stat", "a", NULL);
    put_symlink(0, "../target", "b");
    put_symlink(0, "../target", "c");
    end_run();
    merge_all();
    snprintf(path, sizeof(path), "%s/store.h5", dir);
    out = pt_store_create(path, 0, &err);
    ck_assert_ptr_nonnull(out);
    ck_assert_msg(merge_campaign_write(&c, out, &err) == 0, "%s", err.text);
    ck_assert_int_eq(pt_store_commit(out, &err), 0);
    store = pt_store_open(path, &err);
    ck_assert_msg(store != NULL, "%s", err.text);
    ck_assert_int_eq(pt_store_read_events(store, 0, 0, 1, &e, &err), 0);
    ck_assert_ptr_null(pt_store_text(store, e.text));
    ck_assert_int_eq(pt_store_read_events(store, 0, 2, 1, &e, &err), 0);
    ck_assert_str_eq(pt_store_text(store, e.text), "../target");
    pt_store_close(store);
}
END_TEST

static void put_identity(uint32_t number, int fd, uint32_t handle, uint64_t ino, uint64_t fsize)
{
    struct pt_event ev = event(number, "identity");

    ev.field[PT_F_FD] = PT_FD_WORD(fd, handle);
    ev.field[PT_F_HANDLE] = handle;
    ev.field[PT_F_DEV] = ino ? 1 : 0;
    ev.field[PT_F_INO] = ino;
    ev.field[PT_F_FSIZE] = fsize;
    put(number, ev);
}

/* Another thread may be the first to use a descriptor, and its clock may be behind. */
START_TEST(identity_comes_after_the_open)
{
    begin_run("throttle:none");
    node(0, 0, 0, 0, "/w");
    node(1, 0, 0, 1, "/w");
    put_identity(1, 5, 1, 77, 4096);
    now[0] += 1000000;
    put_open(0, "data", O_RDONLY, 5, 1, 0);
    put_open(0, "fifo", O_RDONLY, 6, 2, 0);
    put_identity(0, 6, 2, 0, 0); /* it was no file */
    put_open(0, "unused", O_RDONLY, 7, 3, 0);
    end_run();
    merge_all();
    ck_assert_uint_eq(find_file("/w/data")->ino, 77);
    ck_assert_uint_eq(find_file("/w/data")->size, 4096);
    ck_assert_uint_eq(at(0, 0)->handle, 1);
    ck_assert_uint_eq(at(0, 1)->handle, 0);
    ck_assert_uint_eq(at(0, 2)->handle, 3);
    ck_assert_uint_eq(find_file("/w/unused")->ino, 0);
}
END_TEST

/* Calls that look for a file, again and again, until it is there. */
START_TEST(looking_for_a_file_is_one_event)
{
    static const char *const calls[] = {"stat", "access", "lstat"};

    begin_run("throttle:none");
    node(0, 0, 0, 0, "/w");
    for (size_t k = 0; k < 3; k++) {
        for (int i = 0; i < 4; i++) {
            put_failed(0, calls[k], calls[k], ENOENT);
            put_wait(0, "usleep", 1000, 10);
        }
        put_path(0, calls[k], calls[k], NULL);
        put_failed(0, calls[k], "another", ENOENT);
        put_failed(0, calls[k], "yet another", ENOENT);
    }
    end_run();
    merge_all();
    ck_assert_uint_eq(c.base->nodes[0].nevents, 9);
    for (size_t k = 0; k < 3; k++) {
        ck_assert_int_eq(at(0, 3 * k)->err, 0);
        ck_assert_uint_ge(at(0, 3 * k)->sync_ns, 4000);
        ck_assert_int_eq(at(0, 3 * k + 1)->err, ENOENT);
    }
    ck_assert_uint_eq(find_file("/w/stat")->made, PT_MADE_BEFORE);
}
END_TEST

START_TEST(names_of_runs)
{
    struct merge_run a = {.job = 12, .array_job = 10, .array_task = 1, .step = 0};
    struct merge_run b = {.job = 13, .array_job = 10, .array_task = 2, .step = 0};

    ck_assert(merge_same_name("/o.12/x", &a, "/o.13/x", &b));
    ck_assert(merge_same_name("/slurm-10_1.out", &a, "/slurm-10_2.out", &b));
    ck_assert(merge_same_name("/runs/001/x", &a, "/runs/002/x", &b));
    ck_assert(!merge_same_name("/o.12/x", &a, "/o.14/x", &b));
    ck_assert(!merge_same_name("/o.7/x", &a, "/o.8/x", &b));
    ck_assert(!merge_same_name("/o.12", &a, "/o.13x", &b));
    ck_assert(!merge_same_name("/o.12", &a, NULL, &b));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("merge_files");
    TCase *tc = tcase_create("merge_files");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, names_are_absolute);
    tcase_add_test(tc, files_before_a_replay);
    tcase_add_test(tc, names_relative_to_directories);
    tcase_add_test(tc, what_was_looked_at);
    tcase_add_test(tc, sizes_that_are_needed);
    tcase_add_test(tc, texts_are_kept);
    tcase_add_test(tc, identity_comes_after_the_open);
    tcase_add_test(tc, looking_for_a_file_is_one_event);
    tcase_add_test(tc, names_of_runs);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
