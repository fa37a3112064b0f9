#include "config.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "hdf5store/format.h"

struct symbol {
    int64_t value;
    const char *name;
};

#define SYMBOL(name) \
    {                \
        name, #name  \
    }

/* O_SYNC contains O_DSYNC, O_TMPFILE contains O_DIRECTORY: the larger come first. */
static const struct symbol open_flags[] = {
    SYMBOL(O_CREAT),    SYMBOL(O_EXCL),     SYMBOL(O_NOCTTY),  SYMBOL(O_TRUNC),
    SYMBOL(O_APPEND),   SYMBOL(O_NONBLOCK), SYMBOL(O_SYNC),    SYMBOL(O_DSYNC),
    SYMBOL(O_ASYNC),    SYMBOL(O_DIRECT),   SYMBOL(O_TMPFILE), SYMBOL(O_DIRECTORY),
    SYMBOL(O_NOFOLLOW), SYMBOL(O_NOATIME),  SYMBOL(O_CLOEXEC), SYMBOL(O_PATH),
};
static const char *const access_modes[] = {"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"};
static const char *const whences[] = {"SEEK_SET", "SEEK_CUR", "SEEK_END", "SEEK_DATA", "SEEK_HOLE"};

/* What a store keeps of an event. */
#define BIT(field) (UINT64_C(1) << PT_F_##field)
#define KNOWN_OF_STORE                                                                             \
    (BIT(FD) | BIT(FD2) | BIT(LEN) | BIT(OFF) | BIT(OFF2) | BIT(WHENCE) | BIT(FLAGS) | BIT(MODE) | \
     BIT(ADDR) | BIT(HANDLE) | BIT(DIRFD) | BIT(PATH) | BIT(DIRFD2) | BIT(PATH2) | BIT(TEXT))

void format_from_store(struct format_event *out, const struct pt_call_desc *call,
                       const struct pt_store_event *in, const char *path, const char *path2,
                       const char *text)
{
    struct pt_event *ev = &out->event;

    memset(out, 0, sizeof(*out));
    out->call = call;
    out->file = path;
    out->file2 = path2;
    out->unknown = ~KNOWN_OF_STORE;
    ev->op = in->op;
    ev->flags = in->flags;
    ev->err = in->err;
    ev->begin = in->begin_ns;
    ev->dur = in->dur_ns;
    ev->ret = in->ret;
    ev->field[PT_F_FD] = PT_FD_WORD(in->fd, in->handle);
    ev->field[PT_F_FD2] = PT_FD_WORD(in->fd2, in->handle2);
    ev->field[PT_F_LEN] = in->len;
    ev->field[PT_F_OFF] = in->off;
    ev->field[PT_F_OFF2] = in->off2;
    ev->field[PT_F_WHENCE] = in->whence;
    ev->field[PT_F_FLAGS] = in->oflags;
    ev->field[PT_F_MODE] = in->mode;
    ev->field[PT_F_HANDLE] = in->handle;
    ev->field[PT_F_ADDR] = (int64_t)in->addr;
    ev->field[PT_F_DIRFD] = ev->field[PT_F_DIRFD2] = AT_FDCWD;
    ev->str[0] = path;
    ev->str[1] = path2;
    ev->str[2] = text;
}

void format_quoted(FILE *out, const char *text)
{
    putc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if (*p == '\n')
            fputs("\\n", out);
        else if (*p == '\t')
            fputs("\\t", out);
        else if (isascii(*p) && isprint(*p))
            putc(*p, out);
        else
            fprintf(out, "\\%03o", *p);
    }
    putc('"', out);
}

static void put_open_flags(FILE *out, int64_t flags)
{
    fputs(access_modes[flags & O_ACCMODE], out);
    flags &= ~(int64_t)O_ACCMODE;
    for (size_t i = 0; i < sizeof(open_flags) / sizeof(open_flags[0]); i++) {
        int64_t value = open_flags[i].value;
        if (value && (flags & value) == value) {
            fprintf(out, "|%s", open_flags[i].name);
            flags &= ~value;
        }
    }
    if (flags)
        fprintf(out, "|%#" PRIx64, flags);
}

static void put_descriptor(FILE *out, int fd, const char *file, unsigned options)
{
    if (fd == AT_FDCWD)
        fputs("AT_FDCWD", out);
    else
        fprintf(out, "%d", fd);
    if (file && options & FORMAT_PATHS)
        fprintf(out, "<%s>", file);
}

static const char *string_of(const struct format_event *e, int field)
{
    const char *text = e->event.str[pt_field_string(field)];

    return text ? text : "";
}

/* The file behind a descriptor, as far as it is known. */
static const char *file_of(const struct format_event *e, int field)
{
    if (field == PT_F_FD)
        return e->file;
    return field == PT_F_FD2 ? (e->file2 ? e->file2 : e->file) : NULL;
}

static void put_value(FILE *out, const struct format_event *e, int field, unsigned options)
{
    int64_t value = e->event.field[field];

    switch (pt_fields[field].style) {
    case PT_STYLE_STRING:
        format_quoted(out, string_of(e, field));
        break;
    case PT_STYLE_FD:
    case PT_STYLE_DIRFD:
        put_descriptor(out, PT_FD_OF(value), file_of(e, field), options);
        break;
    case PT_STYLE_OCT:
        fprintf(out, "%#" PRIo64, value);
        break;
    case PT_STYLE_HEX:
        fprintf(out, "%#" PRIx64, value);
        break;
    case PT_STYLE_WHENCE:
        if (value >= 0 && value < (int64_t)(sizeof(whences) / sizeof(whences[0])))
            fputs(whences[value], out);
        else
            fprintf(out, "%" PRId64, value);
        break;
    case PT_STYLE_OFLAGS:
        if (e->call->replay == PT_REPLAY_OPEN)
            put_open_flags(out, value);
        else
            fprintf(out, "%#" PRIx64, value);
        break;
    default:
        fprintf(out, "%" PRId64, value);
    }
}

/* A mode only where a file may be created, a dirfd only where it is not the cwd. */
static int is_shown(const struct format_event *e, int field, unsigned options)
{
    const int64_t *value = e->event.field;

    if (field < 0 || pt_fields[field].style == PT_STYLE_HIDDEN || e->unknown >> field & 1)
        return 0;
    if (pt_fields[field].style == PT_STYLE_DIRFD)
        return !(options & FORMAT_NO_DIRFD) && PT_FD_OF(value[field]) != AT_FDCWD;
    if (field == PT_F_MODE && e->call->replay == PT_REPLAY_OPEN)
        return (value[PT_F_FLAGS] & O_CREAT) || (value[PT_F_FLAGS] & O_TMPFILE) == O_TMPFILE;
    return 1;
}

void format_call(FILE *out, const struct format_event *e, unsigned options)
{
    const char *comma = "";

    fprintf(out, "%s(", e->call->name);
    for (unsigned i = 0; i < e->call->nfields; i++) {
        int field = e->call->fields[i];
        if (!is_shown(e, field, options))
            continue;
        fputs(comma, out);
        put_value(out, e, field, options);
        comma = ", ";
    }
    putc(')', out);
}

void format_result(FILE *out, const struct format_event *e)
{
    const struct pt_event *ev = &e->event;

    if (ev->err && !strncmp(e->call->name, "MPI_", 4)) {
        fprintf(out, " = error %d", ev->err); /* MPI's own number */
    } else if (ev->err) {
        const char *name = strerrorname_np(ev->err);
        if (name)
            fprintf(out, " = -1 %s (%s)", name, strerrordesc_np(ev->err));
        else
            fprintf(out, " = -1 errno %d", ev->err);
    } else {
        fprintf(out, " = %" PRId64, ev->ret);
    }
    if (ev->polls)
        fprintf(out, " (%" PRIu64 " polls)", ev->polls);
    fprintf(out, " <%.6f>", ev->dur / 1e9);
}

void format_json(FILE *out, const struct format_event *e, unsigned options)
{
    fputs("\"call\":", out);
    pt_json_string(out, e->call->name);
    for (unsigned i = 0; i < e->call->nfields; i++) {
        int field = e->call->fields[i];
        if (!is_shown(e, field, options))
            continue;
        fprintf(out, ",\"%s\":", pt_fields[field].name);
        if (pt_fields[field].style == PT_STYLE_STRING)
            pt_json_string(out, string_of(e, field));
        else if (pt_fields[field].style == PT_STYLE_FD || pt_fields[field].style == PT_STYLE_DIRFD)
            fprintf(out, "%d", PT_FD_OF(e->event.field[field]));
        else
            fprintf(out, "%" PRId64, e->event.field[field]);
    }
    if (e->file) {
        fputs(",\"file\":", out);
        pt_json_string(out, e->file);
    }
    fprintf(out, ",\"ret\":%" PRId64, e->event.ret);
    if (e->event.err)
        fprintf(out, ",\"errno\":%d", e->event.err);
    fprintf(out, ",\"begin_ns\":%" PRIu64 ",\"dur_ns\":%" PRIu64, e->event.begin, e->event.dur);
}
