/*
 * Merging: think time, names, files, sameness and edges, from run files made here.
 */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hdf5store/merge_campaign.h"
#include "tests/unit/run.h"

#define REALTIME  1700000000000000000ull
#define MONOTONIC 5000000ull
#define MAX_NODES 8

static char dir[] = "/tmp/test_merge.XXXXXX";
static char *run_dirs[16];
static size_t nruns;
static struct pt_writer *w;
static uint64_t now[MAX_NODES];
static struct merge_campaign c;
static struct pt_err err;

static void setup(void)
{
    strcpy(dir + strlen(dir) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    nruns = 0;
    memset(&c, 0, sizeof(c));
}

static void teardown(void)
{
    char command[100];

    merge_campaign_free(&c);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
    for (size_t i = 0; i < nruns; i++)
        free(run_dirs[i]);
}

/* ---- making runs ------------------------------------------------------------------- */

static void open_file(const char *name, const char *spec, const char *more)
{
    char path[200], meta[500];

    snprintf(path, sizeof(path), "%s/%s" PT_RUN_SUFFIX, run_dirs[nruns - 1], name);
    snprintf(meta, sizeof(meta),
             "%shost=%s\njob=%zu\nstep=0\nspec=%s\nrealtime=%llu\nmonotonic=%llu\n", more, name,
             100 + nruns, spec, REALTIME + nruns, MONOTONIC);
    w = pt_writer_create(AT_FDCWD, path, meta, &err);
    ck_assert_msg(w != NULL, "%s", err.text);
}

static void make_run_dir(void)
{
    ck_assert_int_ge(asprintf(&run_dirs[nruns], "%s/run%zu", dir, nruns), 0);
    ck_assert_int_eq(mkdir(run_dirs[nruns++], 0755), 0);
}

static void begin_run(const char *spec)
{
    make_run_dir();
    open_file("n0", spec, "");
}

static void end_run(void)
{
    ck_assert_int_eq(pt_writer_close(w, ""), 0);
}

static void node(uint32_t number, int rank, int process, int thread, const char *cwd)
{
    struct pt_node info = {{rank, process, thread}, 1, 1, MONOTONIC + 1000, "/bin/x", cwd};

    now[number] = info.start;
    ck_assert_int_eq(pt_writer_node(w, number, &info), 0);
}

/* An event 10 ns behind the last of its node, of 100 ns. */
static struct pt_event event(uint32_t number, const char *call)
{
    struct pt_event ev = {.op = pt_op_by_name(call), .begin = now[number] + 10, .dur = 100};

    ev.field[PT_F_DIRFD] = ev.field[PT_F_DIRFD2] = AT_FDCWD;
    return ev;
}

static void put(uint32_t number, struct pt_event ev)
{
    now[number] = ev.begin + ev.dur;
    ck_assert_int_eq(pt_writer_event(w, number, &ev), 0);
}

static void put_open(uint32_t number, const char *path, int flags, int fd, uint32_t handle,
                     uint64_t fsize)
{
    struct pt_event ev = event(number, "open");

    ev.str[0] = path;
    ev.field[PT_F_FLAGS] = flags;
    ev.field[PT_F_HANDLE] = handle;
    ev.field[PT_F_FSIZE] = fsize;
    ev.ret = fd;
    put(number, ev);
}

static void put_failed(uint32_t number, const char *call, const char *path, int error)
{
    struct pt_event ev = event(number, call);

    ev.str[0] = path;
    ev.err = error;
    ev.ret = -1;
    put(number, ev);
}

static void put_path(uint32_t number, const char *call, const char *path, const char *path2)
{
    struct pt_event ev = event(number, call);

    ev.str[0] = path;
    ev.str[1] = path2;
    put(number, ev);
}

static void put_io(uint32_t number, const char *call, int fd, uint32_t handle, int64_t len,
                   int64_t off)
{
    struct pt_event ev = event(number, call);

    ev.field[PT_F_FD] = PT_FD_WORD(fd, handle);
    ev.field[PT_F_LEN] = ev.ret = len;
    ev.field[PT_F_OFF] = off;
    put(number, ev);
}

static void put_wait(uint32_t number, const char *call, uint64_t dur, uint64_t cpu)
{
    struct pt_event ev = event(number, call);

    ev.dur = dur;
    ev.cpu = cpu;
    put(number, ev);
}

static void put_hold(int rank, uint64_t io, int peer, uint64_t done, enum pt_hold_state state)
{
    struct pt_hold_peer p = {{peer, 0, 0}, done, state};
    struct pt_hold hold = {.name = {rank, 0, 0}, .io_event = io, .npeers = 1, .peers = &p};

    ck_assert_int_eq(pt_writer_hold(w, &hold), 0);
}

/* ---- looking at the result ------------------------------------------------------------- */

static void merge_all(void)
{
    int rc = merge_campaign_load(&c, run_dirs, nruns, &(struct merge_options){0}, &err);

    ck_assert_msg(rc == 0, "%s", err.text);
}

static void refuse_all(int strict, const char *reason)
{
    ck_assert_int_eq(
        merge_campaign_load(&c, run_dirs, nruns, &(struct merge_options){.strict = strict}, &err),
        -1);
    ck_assert_msg(strstr(err.text, reason) != NULL, "%s", err.text);
}

static const struct pt_store_event *at(size_t n, size_t i)
{
    ck_assert_uint_lt(n, c.base->nnodes);
    ck_assert_uint_lt(i, c.base->nodes[n].nevents);
    return &c.base->nodes[n].events[i];
}

static const char *file_at(size_t n, size_t i)
{
    const char *text = names_text(&c.m.files, at(n, i)->file);

    return text ? text : "none";
}

static const struct pt_store_file *find_file(const char *path)
{
    for (size_t i = 0; i < c.nfiles; i++)
        if (!strcmp(c.files[i].path, path))
            return &c.files[i];
    ck_abort_msg("no file %s", path);
}

/* ---- the tests ---------------------------------------------------------------------------- */

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

/* An open of any kind: its flags, descriptor and handle. */
static void put_opening(uint32_t number, const char *call, const char *path, int flags, int fd,
                        uint32_t handle, uint64_t fsize)
{
    struct pt_event ev = event(number, call);

    ev.str[0] = path;
    ev.field[PT_F_FLAGS] = flags;
    ev.field[PT_F_HANDLE] = handle;
    ev.field[PT_F_FSIZE] = fsize;
    ev.ret = fd;
    put(number, ev);
}

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

/* The same for calls that look: until the file is there. */
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
    Suite *suite = suite_create("merge");
    TCase *tc = tcase_create("merge");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, think_time_has_three_parts);
    tcase_add_test(tc, names_are_absolute);
    tcase_add_test(tc, files_before_a_replay);
    tcase_add_test(tc, names_relative_to_directories);
    tcase_add_test(tc, what_was_looked_at);
    tcase_add_test(tc, sizes_that_are_needed);
    tcase_add_test(tc, texts_are_kept);
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
    tcase_add_test(tc, identity_comes_after_the_open);
    tcase_add_test(tc, looking_for_a_file_is_one_event);
    tcase_add_test(tc, same_run_twice);
    tcase_add_test(tc, names_of_runs);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
