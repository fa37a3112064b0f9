/*
 * For the tests of merging: runs made by hand, and what has become of them.
 */
#ifndef MERGE_KIT_H
#define MERGE_KIT_H

#include "hdf5store/merge_campaign.h"

#define MONOTONIC 5000000ull /* when a run began */
#define MAX_NODES 8
#define MAX_RUNS  16

extern char dir[]; /* of the test */
extern char *run_dirs[MAX_RUNS];
extern size_t nruns;
extern struct pt_writer *w;     /* of the run file that is being made */
extern uint64_t now[MAX_NODES]; /* the end of each node's last event */
extern struct merge_campaign c; /* the result */
extern struct pt_err err;

void setup(void);
void teardown(void);

/* ---- making runs ------------------------------------------------------------------- */

/* A run with the file of one host; a test that wants more of them makes both by itself. */
void begin_run(const char *spec);
void end_run(void);
void make_run_dir(void);
void open_file(const char *name, const char *spec, const char *more);

/* A node; its number is that in the file. */
void node(uint32_t number, int rank, int process, int thread, const char *cwd);

/* An event 10 ns behind the last of its node, of 100 ns; put() writes it. */
struct pt_event event(uint32_t number, const char *call);
void put(uint32_t number, struct pt_event ev);
/* An open of any kind, and one by open(). */
void put_opening(uint32_t number, const char *call, const char *path, int flags, int fd,
                 uint32_t handle, uint64_t fsize);
void put_open(uint32_t number, const char *path, int flags, int fd, uint32_t handle,
              uint64_t fsize);
void put_failed(uint32_t number, const char *call, const char *path, int error);
void put_path(uint32_t number, const char *call, const char *path, const char *path2);
void put_io(uint32_t number, const char *call, int fd, uint32_t handle, int64_t len, int64_t off);
void put_wait(uint32_t number, const char *call, uint64_t dur, uint64_t cpu);
void put_hold(int rank, uint64_t io, int peer, uint64_t done, enum pt_hold_state state);

/* ---- looking at the result ------------------------------------------------------------- */

void merge_all(void);
void refuse_all(int strict, const char *reason);
const struct pt_store_event *at(size_t n, size_t i);
const char *file_at(size_t n, size_t i);
const struct pt_store_file *find_file(const char *path);

#endif
