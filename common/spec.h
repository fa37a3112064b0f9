/*
 * SPEC, the argument of --ptrace: comma-separated items, see paratrace(7).
 */
#ifndef PT_SPEC_H
#define PT_SPEC_H

#include <stdint.h>
#include <stddef.h>

#include "common/err.h"

#define PT_SPEC_MAX      4096 /* of the text */
#define PT_SPEC_GLOBS    16   /* of each kind */
#define PT_SPEC_GLOB_MAX 256
#define PT_SPEC_OUT_MAX  1024
#define PT_SPEC_NOTE_MAX 256

enum pt_throttle { PT_THROTTLE_NONE, PT_THROTTLE_NODE, PT_THROTTLE_AUTO };
enum pt_discover { PT_DISCOVER_BOTH, PT_DISCOVER_HOLD, PT_DISCOVER_MPI };
enum pt_judge { PT_JUDGE_REST, PT_JUDGE_MAX };
enum pt_full { PT_FULL_WAIT, PT_FULL_DROP };

struct pt_globs {
    unsigned n;
    char glob[PT_SPEC_GLOBS][PT_SPEC_GLOB_MAX];
};

struct pt_spec {
    int off;
    enum pt_throttle throttle;
    int32_t node[3]; /* throttle:K (then process and thread are 0) or throttle:R.P.T */
    uint64_t period;
    enum pt_discover discover;
    enum pt_judge judge;                      /* who is stuck: quiescence, or only the maxima */
    char plan[PT_SPEC_OUT_MAX];               /* file: the I/Os that throttle:auto holds; "": all */
    char out[PT_SPEC_OUT_MAX];                /* with Slurm's patterns still in it */
    struct pt_globs exe, noexe, path, nopath; /* in the order given */
    uint64_t buffer;                          /* bytes of ring a node: a power of two */
    enum pt_full full;
    uint64_t compute_max, call_max; /* ns, 0: from the baseline run */
    uint64_t hold_max;              /* ns */
    char note[PT_SPEC_NOTE_MAX];
};

/* The compiled-in defaults. */
void pt_spec_init(struct pt_spec *spec);

/*
 * Applies the items of `text` to *spec, from left to right: a later item wins
 * over an earlier one, globs add up.  An empty text changes nothing.  On a wrong
 * item returns -1, *spec is unchanged and err names the item, the reason and the
 * valid ones.
 */
int pt_spec_parse(struct pt_spec *spec, const char *text, struct pt_err *err);

/* The valid items in one line, for usage texts. */
#define PT_SPEC_ITEMS                                                                      \
    "on, off, throttle:none|K|auto, period=P, discover=hold|mpi|both, out=DIR, exe=GLOB, " \
    "noexe=GLOB, path=GLOB, nopath=GLOB, buffer=SIZE, full=wait|drop, compute-max=T, "     \
    "call-max=T, hold-max=T, judge=rest|max, plan=FILE, note=TEXT"

/*
 * Single values, for those who read them elsewhere (paratrace.conf).  -1 and err,
 * which gives the reason only ("must be ..."), if wrong.  A buffer is rounded up to
 * a power of two.
 */
int pt_spec_time(const char *text, uint64_t *ns, struct pt_err *err);
int pt_spec_size(const char *text, uint64_t *bytes, struct pt_err *err); /* up to 1024T */
int pt_spec_period(const char *text, uint64_t *period, struct pt_err *err);
int pt_spec_buffer(const char *text, uint64_t *bytes, struct pt_err *err);

/* The steps of a batch script, and of the shell of salloc; Slurm's numbers. */
#define PT_SPEC_STEP_BATCH       0xfffffffbu
#define PT_SPEC_STEP_INTERACTIVE 0xfffffffau
#define PT_SPEC_STEP_MAX         16

/* A step as %s shows it: its number, "batch" or "interactive". */
const char *pt_spec_step(uint32_t step, char buf[PT_SPEC_STEP_MAX]);

/* Does %s occur in the pattern? */
int pt_spec_names_step(const char *pattern);

/* What the patterns of out= stand for. */
struct pt_spec_ids {
    uint32_t job, step, array_job, array_task; /* array_*: job and 0 for a lone job */
    const char *user, *name;
};

/*
 * Expands %j %A %a %s %u %x %%; -1 and err if unknown or longer than size.  A
 * slash or control character in a name becomes '_'.
 */
int pt_spec_expand(const char *pattern, const struct pt_spec_ids *ids, char *out, size_t size,
                   struct pt_err *err);

/* A size or time as text that reads the same, in the largest unit that it is whole in. */
#define PT_SPEC_NUMBER 32
char *pt_spec_format_time(char text[PT_SPEC_NUMBER], uint64_t ns);
char *pt_spec_format_size(char text[PT_SPEC_NUMBER], uint64_t bytes);

#endif
