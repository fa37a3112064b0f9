#include "config.h"

#include <string.h>

#include "common/calls.h"

const char *const pt_class_names[PT_NCLASSES] = {
    [PT_CLASS_IO] = "io",     [PT_CLASS_SYNC] = "sync", [PT_CLASS_IDLE] = "idle",
    [PT_CLASS_NAME] = "name", [PT_CLASS_FDIO] = "fdio",
};

const struct pt_field_info pt_fields[PT_NFIELDS] = {
#define FIELD(kind, fname, fstyle) [PT_F_##kind] = {#fname, PT_STYLE_##fstyle},
#include "common/fields.def"
#undef FIELD
};

/* Each field macro of a row becomes the field's number, with a comma behind. */
#define FD(x)      PT_F_FD,
#define FD2(x)     PT_F_FD2,
#define LEN(x)     PT_F_LEN,
#define OFF(x)     PT_F_OFF,
#define WHENCE(x)  PT_F_WHENCE,
#define FLAGS(x)   PT_F_FLAGS,
#define MODE(x)    PT_F_MODE,
#define PEER(x)    PT_F_PEER,
#define TAG(x)     PT_F_TAG,
#define PEER2(x)   PT_F_PEER2,
#define TAG2(x)    PT_F_TAG2,
#define COUNT(x)   PT_F_COUNT,
#define COMM(x)    PT_F_COMM,
#define IDENT      PT_F_HANDLE, PT_F_DEV, PT_F_INO, PT_F_FSIZE,
#define PATH(...)  PT_F_DIRFD, PT_F_PATH,
#define PATH2(...) PT_F_PATH2,

#define ROW(cname, ccls, creplay, ...)                  \
    {.name = cname,                                     \
     .cls = PT_CLASS_##ccls,                            \
     .replay = PT_REPLAY_##creplay,                     \
     .nfields = sizeof((uint8_t[]){__VA_ARGS__ 0}) - 1, \
     .fields = {__VA_ARGS__}},

const struct pt_call_info pt_calls[PT_NOPS] = {
#define CALL(name, cls, replay, ret, params, args, fields) ROW(#name, cls, replay, fields)
#define ODD(name, cls, replay, ret, params, args, fields)  ROW(#name, cls, replay, fields)
#define MPI(name, cls, replay, params, args, fields)       ROW("MPI_" #name, cls, replay, fields)
#define MARK(name, cls, replay, fields)                    ROW(#name, cls, replay, fields)
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
