/*
 * One replay by all ranks, phase by phase.  Every phase is collective and ends alike
 * on all ranks: 0, or -1 and the reason of the first rank that failed.
 */
#ifndef PT_REPLAY_SESSION_H
#define PT_REPLAY_SESSION_H

#include "common/err.h"
#include "replay/options.h"
#include "replay/plan.h"
#include "replay/prepare.h"
#include "replay/report.h"
#include "replay/root.h"
#include "replay/run.h"
#include "replay/schedule.h"
#include "replay/sync.h"
#include "replay/team.h"

struct session {
    const struct options *options;
    struct team team;
    struct pt_store *store;
    struct plan plan;
    struct schedule schedule;
    struct root *root;
    struct prepare_file *files;
    struct prepare prepare;
    bool owned;      /* the root is ours, so files may be made and removed there */
    uint64_t errors; /* of all ranks */
};

/* Reads the store and plans. */
int session_load(struct session *s, struct pt_err *err);

/* Refuses what cannot be replayed; rank 0 lists what is left out. */
int session_check(struct session *s, struct pt_err *err);

/* Takes the root and makes the files. */
int session_prepare(struct session *s, struct pt_err *err);

/* Replays and writes the result; fails if calls failed that must not. */
int session_replay(struct session *s, struct pt_err *err);

/* Removes the files, if they are not to stay. */
void session_clean(struct session *s);

/* Cleans and frees everything. */
void session_end(struct session *s);

#endif
