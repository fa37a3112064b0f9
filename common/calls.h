/*
 * The table of calls, as data: see calls.def for what a row means.
 */
#ifndef PT_CALLS_H
#define PT_CALLS_H

#include <stdint.h>

enum pt_class {
    PT_CLASS_IO,   /* replayed */
    PT_CLASS_SYNC, /* may wait for another node */
    PT_CLASS_IDLE, /* sleeps by itself */
    PT_CLASS_NAME, /* changes what names or descriptors mean */
    PT_CLASS_FDIO, /* IO on a file, SYNC on a pipe or socket; events say which */
    PT_NCLASSES,
    /* where a row's descriptor is; the same class otherwise */
    PT_CLASS_STDIO = PT_CLASS_FDIO,
    PT_CLASS_STDPUT = PT_CLASS_FDIO,
    PT_CLASS_STDLINE = PT_CLASS_FDIO,
    PT_CLASS_CHARIN = PT_CLASS_FDIO,
    PT_CLASS_CHAROUT = PT_CLASS_FDIO,
    PT_CLASS_STDOUT = PT_CLASS_FDIO,
    PT_CLASS_STDIN = PT_CLASS_FDIO,
    PT_CLASS_DIRIO = PT_CLASS_FDIO,
    PT_CLASS_AIO = PT_CLASS_FDIO,
    PT_CLASS_FDLOCK = PT_CLASS_SYNC,
    PT_CLASS_FDNAME = PT_CLASS_NAME,
    PT_CLASS_NFDS = PT_CLASS_SYNC, /* IDLE without descriptors; events say which */
};

enum pt_replay {
#define REPLAY(op, name) PT_REPLAY_##op,
#include "common/replay.def"
#undef REPLAY
    PT_NREPLAYS
};

enum pt_field {
#define FIELD(kind, name, style) PT_F_##kind,
#include "common/fields.def"
#undef FIELD
    PT_NFIELDS
};

enum pt_style {
    PT_STYLE_DEC,
    PT_STYLE_OCT,
    PT_STYLE_HEX,
    PT_STYLE_FD,
    PT_STYLE_DIRFD,
    PT_STYLE_WHENCE,
    PT_STYLE_OFLAGS,
    PT_STYLE_STRING,
    PT_STYLE_HIDDEN,
};

enum pt_op {
#define CALL(name, ...)    PT_OP_##name,
#define RES(name, ...)     PT_OP_##name,
#define ODD(name, ...)     PT_OP_##name,
#define NUM(name, ...)     PT_OP_##name,
#define HAND(name, ...)    PT_OP_##name,
#define ASK(name, ...)     PT_OP_##name,
#define TRY(name, ...)     PT_OP_##name,
#define LOCK(name, ...)    PT_OP_##name,
#define MPI(name, ...)     PT_OP_MPI_##name,
#define MPIODD(name, ...)  PT_OP_MPI_##name,
#define MPICOMM(name, ...) PT_OP_MPI_##name,
#define MPITEST(name, ...) PT_OP_MPI_##name,
#define MPIIO(name, ...)   PT_OP_MPI_##name,
#define MARK(name, ...)    PT_OP_##name,
#include "common/calls.def"
    PT_NOPS
};

#define PT_MAX_FIELDS 12 /* of one call */
#define PT_NAME_MAX   40 /* of a call or a field, with the final NUL */

struct pt_field_info {
    const char *name;
    enum pt_style style;
};

struct pt_call_info {
    const char *name;
    enum pt_class cls;
    enum pt_replay replay;
    uint8_t nfields;
    uint8_t fields[PT_MAX_FIELDS]; /* enum pt_field */
};

extern const struct pt_call_info pt_calls[PT_NOPS];
extern const struct pt_field_info pt_fields[PT_NFIELDS];
extern const char *const pt_class_names[PT_NCLASSES];
extern const char *const pt_replay_names[PT_NREPLAYS];

/* The op, field, class or replay operation of that name, -1 if there is none. */
int pt_op_by_name(const char *name);
int pt_field_by_name(const char *name);
int pt_class_by_name(const char *name);
int pt_replay_by_name(const char *name);

#define PT_NSTRINGS 3

/* Which of an event's strings holds that field; -1: it is a number. */
static inline int pt_field_string(int field)
{
    switch (field) {
    case PT_F_PATH:
        return 0;
    case PT_F_PATH2:
        return 1;
    case PT_F_TEXT:
        return 2;
    default:
        return -1;
    }
}

static inline int pt_field_is_string(int field)
{
    return pt_field_string(field) >= 0;
}

/* A descriptor and its handle in one word. */
#define PT_FD_WORD(fd, handle) ((int64_t)((uint64_t)(uint32_t)(handle) << 32 | (uint32_t)(fd)))
#define PT_FD_OF(word)         ((int32_t)(uint32_t)(uint64_t)(word))
#define PT_HANDLE_OF(word)     ((uint32_t)((uint64_t)(word) >> 32))

#endif
