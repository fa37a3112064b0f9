#include "config.h"

#include <string.h>

#include "common/calls.h"

const char *const pt_class_names[PT_NCLASSES] = {
    [PT_CLASS_IO] = "io",     [PT_CLASS_SYNC] = "sync", [PT_CLASS_IDLE] = "idle",
    [PT_CLASS_NAME] = "name", [PT_CLASS_FDIO] = "fdio",
};

const char *const pt_replay_names[PT_NREPLAYS] = {
#define REPLAY(op, name) [PT_REPLAY_##op] = #name,
#include "common/replay.def"
#undef REPLAY
};

const struct pt_field_info pt_fields[PT_NFIELDS] = {
#define FIELD(kind, fname, fstyle) [PT_F_##kind] = {#fname, PT_STYLE_##fstyle},
#include "common/fields.def"
#undef FIELD
};

/* Each field macro of a row becomes the field's number, with a comma behind. */
#define FD(...)     PT_F_FD,
#define FD2(...)    PT_F_FD2,
#define LEN(...)    PT_F_LEN,
#define OFF(...)    PT_F_OFF,
#define OFF2(...)   PT_F_OFF2,
#define WHENCE(...) PT_F_WHENCE,
#define FLAGS(...)  PT_F_FLAGS,
#define MODE(...)   PT_F_MODE,
#define PEER(...)   PT_F_PEER,
#define TAG(...)    PT_F_TAG,
#define PEER2(...)  PT_F_PEER2,
#define TAG2(...)   PT_F_TAG2,
#define COUNT(...)  PT_F_COUNT,
#define COMM(...)   PT_F_COMM,
#define FREED(...)  PT_F_COMM,
#define PARENT(...) PT_F_PARENT,
#define REQ(...)    PT_F_REQ,
#define CMD(...)    PT_F_CMD,
#define UID(...)    PT_F_UID,
#define GID(...)    PT_F_GID,
#define ADDR(...)   PT_F_ADDR,
#define FILEH(...)  PT_F_FILEH,
#define TEXT(...)   PT_F_TEXT,
#define COPY        PT_F_FD2,
#define IDENT       PT_F_HANDLE, PT_F_DEV, PT_F_INO, PT_F_FSIZE,
#define PATH(...)   PT_F_DIRFD, PT_F_PATH,
#define PATH2(...)  PT_F_DIRFD2, PT_F_PATH2,

#define ROW(cname, ccls, creplay, ...)                  \
    {.name = cname,                                     \
     .cls = PT_CLASS_##ccls,                            \
     .replay = PT_REPLAY_##creplay,                     \
     .nfields = sizeof((uint8_t[]){__VA_ARGS__ 0}) - 1, \
     .fields = {__VA_ARGS__}},

const struct pt_call_info pt_calls[PT_NOPS] = {
#define CALL(name, cls, replay, ret, params, args, fields)        ROW(#name, cls, replay, fields)
#define RES(name, cls, replay, ret, params, args, result, fields) ROW(#name, cls, replay, fields)
#define ODD(name, cls, replay, ret, params, args, result, fields) ROW(#name, cls, replay, fields)
#define NUM(name, cls, replay, params, args, result, fields)      ROW(#name, cls, replay, fields)
#define HAND(name, cls, replay, fields)                           ROW(#name, cls, replay, fields)
#define ASK(name, cls, replay, ret, params, args, vain, fields)   ROW(#name, cls, replay, fields)
#define TRY(name, ret, params, args, vain, fields)                ROW(#name, SYNC, NONE, fields)
#define LOCK(name, try, taken, params, args, vain, fields)        ROW(#name, SYNC, NONE, fields)
#define MPI(name, cls, replay, params, args, fields)              ROW("MPI_" #name, cls, replay, fields)
#define MPIODD(name, cls, params, args, fields)                   ROW("MPI_" #name, cls, NONE, fields)
#define MPICOMM(name, same, params, args, old, made, fields)      ROW("MPI_" #name, SYNC, NONE, fields)
#define MPITEST(name, params, args, success, fields)              ROW("MPI_" #name, SYNC, NONE, fields)
#define MPIIO(name, replay, params, args, fields)                 ROW("MPI_" #name, IO, replay, fields)
#define MARK(name, cls, replay, fields)                           ROW(#name, cls, replay, fields)
#include "common/calls.def"
};

int pt_op_by_name(const char *name)
{
    for (int i = 0; i < PT_NOPS; i++)
        if (!strcmp(pt_calls[i].name, name))
            return i;
    return -1;
}

int pt_field_by_name(const char *name)
{
    for (int i = 0; i < PT_NFIELDS; i++)
        if (!strcmp(pt_fields[i].name, name))
            return i;
    return -1;
}

int pt_class_by_name(const char *name)
{
    for (int i = 0; i < PT_NCLASSES; i++)
        if (!strcmp(pt_class_names[i], name))
            return i;
    return -1;
}

int pt_replay_by_name(const char *name)
{
    for (int i = 0; i < PT_NREPLAYS; i++)
        if (!strcmp(pt_replay_names[i], name))
            return i;
    return -1;
}
