#include "config.h"

#include "tests/unit/merge_kit.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define REALTIME 1700000000000000000ull

char dir[] = "/tmp/test_merge.XXXXXX";
char *run_dirs[MAX_RUNS];
size_t nruns;
struct pt_writer *w;
uint64_t now[MAX_NODES];
struct merge_campaign c;
struct pt_err err;

void setup(void)
{
    strcpy(dir + strlen(dir) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    nruns = 0;
    memset(&c, 0, sizeof(c));
}

void teardown(void)
{
    char command[100];

    merge_campaign_free(&c);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
    for (size_t i = 0; i < nruns; i++)
        free(run_dirs[i]);
}

/* ---- making runs ------------------------------------------------------------------- */

void open_file(const char *name, const char *spec, const char *more)
{
    char path[200], meta[500];

    snprintf(path, sizeof(path), "%s/%s" PT_RUN_SUFFIX, run_dirs[nruns - 1], name);
    snprintf(meta, sizeof(meta),
             "%shost=%s\njob=%zu\nstep=0\nspec=%s\nrealtime=%llu\nmonotonic=%llu\n", more, name,
             100 + nruns, spec, REALTIME + nruns, MONOTONIC);
    w = pt_writer_create(AT_FDCWD, path, meta, &err);
    ck_assert_msg(w != NULL, "%s", err.text);
}

void make_run_dir(void)
{
    ck_assert_int_ge(asprintf(&run_dirs[nruns], "%s/run%zu", dir, nruns), 0);
    ck_assert_int_eq(mkdir(run_dirs[nruns++], 0755), 0);
}

void begin_run(const char *spec)
{
    make_run_dir();
    open_file("n0", spec, "");
}

void end_run(void)
{
    ck_assert_int_eq(pt_writer_close(w, ""), 0);
}

void node(uint32_t number, int rank, int process, int thread, const char *cwd)
{
    struct pt_node info = {{rank, process, thread}, 1, 1, MONOTONIC + 1000, "/bin/x", cwd};

    now[number] = info.start;
    ck_assert_int_eq(pt_writer_node(w, number, &info), 0);
}

struct pt_event event(uint32_t number, const char *call)
{
    struct pt_event ev = {.op = pt_op_by_name(call), .begin = now[number] + 10, .dur = 100};

    ev.field[PT_F_DIRFD] = ev.field[PT_F_DIRFD2] = AT_FDCWD;
    return ev;
}

void put(uint32_t number, struct pt_event ev)
{
    now[number] = ev.begin + ev.dur;
    ck_assert_int_eq(pt_writer_event(w, number, &ev), 0);
}

void put_opening(uint32_t number, const char *call, const char *path, int flags, int fd,
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

void put_open(uint32_t number, const char *path, int flags, int fd, uint32_t handle, uint64_t fsize)
{
    put_opening(number, "open", path, flags, fd, handle, fsize);
}

void put_failed(uint32_t number, const char *call, const char *path, int error)
{
    struct pt_event ev = event(number, call);

    ev.str[0] = path;
    ev.err = error;
    ev.ret = -1;
    put(number, ev);
}

void put_path(uint32_t number, const char *call, const char *path, const char *path2)
{
    struct pt_event ev = event(number, call);

    ev.str[0] = path;
    ev.str[1] = path2;
    put(number, ev);
}

void put_io(uint32_t number, const char *call, int fd, uint32_t handle, int64_t len, int64_t off)
{
    struct pt_event ev = event(number, call);

    ev.field[PT_F_FD] = PT_FD_WORD(fd, handle);
    ev.field[PT_F_LEN] = ev.ret = len;
    ev.field[PT_F_OFF] = off;
    put(number, ev);
}

void put_wait(uint32_t number, const char *call, uint64_t dur, uint64_t cpu)
{
    struct pt_event ev = event(number, call);

    ev.dur = dur;
    ev.cpu = cpu;
    put(number, ev);
}

void put_hold(int rank, uint64_t io, int peer, uint64_t done, enum pt_hold_state state)
{
    struct pt_hold_peer p = {{peer, 0, 0}, done, state};
    struct pt_hold hold = {.name = {rank, 0, 0}, .io_event = io, .npeers = 1, .peers = &p};

    ck_assert_int_eq(pt_writer_hold(w, &hold), 0);
}

/* ---- looking at the result ------------------------------------------------------------- */

void merge_all(void)
{
    int rc = merge_campaign_load(&c, run_dirs, nruns, &(struct merge_options){0}, &err);

    ck_assert_msg(rc == 0, "%s", err.text);
}

void refuse_all(int strict, const char *reason)
{
    ck_assert_int_eq(
        merge_campaign_load(&c, run_dirs, nruns, &(struct merge_options){.strict = strict}, &err),
        -1);
    ck_assert_msg(strstr(err.text, reason) != NULL, "%s", err.text);
}

const struct pt_store_event *at(size_t n, size_t i)
{
    ck_assert_uint_lt(n, c.base->nnodes);
    ck_assert_uint_lt(i, c.base->nodes[n].nevents);
    return &c.base->nodes[n].events[i];
}

const char *file_at(size_t n, size_t i)
{
    const char *text = names_text(&c.m.files, at(n, i)->file);

    return text ? text : "none";
}

const struct pt_store_file *find_file(const char *path)
{
    for (size_t i = 0; i < c.nfiles; i++)
        if (!strcmp(c.files[i].path, path))
            return &c.files[i];
    ck_abort_msg("no file %s", path);
}
