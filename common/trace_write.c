#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/trace.h"
#include "common/trace_codec.h"

/* A block is sent to the file before an event of this size would not fit any more. */
#define EVENTS_CAPACITY (64u << 10)
#define EVENT_MAX_BYTES (PT_NSTRINGS * 4096 + (11 + PT_MAX_FIELDS) * 10)

/* What the last event of one op looked like, to write only what differs. */
struct last {
    uint32_t block; /* valid if this is the stream's current block */
    int64_t field[PT_MAX_FIELDS];
    uint32_t str_at[PT_MAX_FIELDS], str_len[PT_MAX_FIELDS];
};

/* The events of one node on their way into a block. */
struct stream {
    unsigned char *buf; /* block head, events head, events */
    size_t len;
    uint32_t block, count;
    uint64_t first, end;        /* number of the first event; end of the last one, ns */
    struct last *last[PT_NOPS]; /* NULL: no such event yet */
};

struct pt_writer {
    int fd;
    int error;     /* errno of the first failure: nothing is written after it */
    off_t whole;   /* where the last whole block ends */
    uint64_t lost; /* events that could not be written */
    struct stream **streams;
    size_t nstreams;
    unsigned char has_len[PT_NOPS]; /* the call has a length: its result may be that */
};

static int fail(struct pt_writer *w, int error)
{
    if (!w->error)
        w->error = error;
    errno = w->error;
    return -1;
}

static int write_all(struct pt_writer *w, const unsigned char *p, size_t n)
{
    off_t whole = w->whole;
    if (w->error)
        return fail(w, w->error);
    while (n) {
        ssize_t done = write(w->fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            int error = done < 0 ? errno : ENOSPC;
            /* Half a block is of use to nobody, but its room may be, on a full disk. */
            int cut = ftruncate(w->fd, w->whole);
            (void)cut; /* a file that is cut off there can be read as well */
            return fail(w, error);
        }
        p += done;
        n -= (size_t)done;
        whole += done;
    }
    w->whole = whole;
    return 0;
}

/* `block` has room for the head in front of the payload. */
static int write_block(struct pt_writer *w, enum pt_block type, uint32_t node, unsigned char *block,
                       size_t payload)
{
    pt_put32(block, type);
    pt_put32(block + 4, (uint32_t)payload);
    pt_put32(block + 8, pt_crc32(block + PT_BLOCK_HEAD, payload));
    pt_put32(block + 12, node);
    return write_all(w, block, PT_BLOCK_HEAD + payload);
}

static int write_text(struct pt_writer *w, enum pt_block type, const char *text)
{
    size_t n = strlen(text);
    unsigned char *block = malloc(PT_BLOCK_HEAD + n);
    if (!block)
        return fail(w, ENOMEM);
    memcpy(block + PT_BLOCK_HEAD, text, n);
    int rc = write_block(w, type, 0, block, n);
    free(block);
    return rc;
}

/* "call NAME CLASS FIELD..." lines; a string field has a '$' in front. */
static int write_calls(struct pt_writer *w)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return fail(w, ENOMEM);
    for (int op = 0; op < PT_NOPS; op++) {
        fprintf(f, "call %s %s", pt_calls[op].name, pt_class_names[pt_calls[op].cls]);
        for (int i = 0; i < pt_calls[op].nfields; i++) {
            int kind = pt_calls[op].fields[i];
            fprintf(f, " %s%s", pt_field_is_string(kind) ? "$" : "", pt_fields[kind].name);
        }
        fputc('\n', f);
    }
    int rc = fclose(f) ? fail(w, ENOMEM) : write_text(w, PT_BLOCK_CALLS, text);
    free(text);
    return rc;
}

struct pt_writer *pt_writer_create(int dirfd, const char *name, const char *meta,
                                   struct pt_err *err)
{
    struct pt_writer *w = calloc(1, sizeof(*w));
    if (!w) {
        pt_err_errno(err, "cannot create run file '%s'", name);
        return NULL;
    }
    w->fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (w->fd < 0) {
        pt_err_errno(err, "cannot create run file '%s'", name);
        free(w);
        return NULL;
    }
    for (int op = 0; op < PT_NOPS; op++)
        w->has_len[op] = memchr(pt_calls[op].fields, PT_F_LEN, pt_calls[op].nfields) != NULL;
    unsigned char head[PT_RUN_HEAD_LEN] = {0};
    memcpy(head, PT_RUN_MAGIC, PT_RUN_MAGIC_LEN);
    pt_put32(head + PT_RUN_MAGIC_LEN, PT_RUN_VERSION);
    if (write_all(w, head, sizeof(head)) || write_text(w, PT_BLOCK_META, meta) || write_calls(w)) {
        pt_err_errno(err, "cannot write run file '%s'", name);
        close(w->fd);
        unlinkat(dirfd, name, 0);
        free(w);
        return NULL;
    }
    return w;
}

static struct stream *stream_get(struct pt_writer *w, uint32_t node)
{
    if (node >= w->nstreams) {
        size_t n = node + 16;
        struct stream **streams = realloc(w->streams, n * sizeof(*streams));
        if (!streams)
            return NULL;
        memset(streams + w->nstreams, 0, (n - w->nstreams) * sizeof(*streams));
        w->streams = streams;
        w->nstreams = n;
    }
    if (!w->streams[node]) {
        struct stream *s = calloc(1, sizeof(*s));
        if (!s || !(s->buf = malloc(EVENTS_CAPACITY + EVENT_MAX_BYTES))) {
            free(s);
            return NULL;
        }
        w->streams[node] = s;
    }
    return w->streams[node];
}

static void stream_destroy(struct stream *s)
{
    if (!s)
        return;
    for (int op = 0; op < PT_NOPS; op++)
        free(s->last[op]);
    free(s->buf);
    free(s);
}

static int stream_flush(struct pt_writer *w, uint32_t node)
{
    struct stream *s = w->streams[node];
    if (!s || !s->count)
        return 0;
    pt_put32(s->buf + PT_BLOCK_HEAD + 16, s->count);
    int rc = write_block(w, PT_BLOCK_EVENTS, node, s->buf, s->len - PT_BLOCK_HEAD);
    if (rc)
        w->lost += s->count;
    s->first += s->count;
    s->count = 0;
    return rc;
}

static void stream_begin(struct stream *s, uint64_t base)
{
    s->block++;
    s->end = base;
    s->len = PT_BLOCK_HEAD + PT_EVENTS_HEAD;
    pt_put64(s->buf + PT_BLOCK_HEAD, s->first);
    pt_put64(s->buf + PT_BLOCK_HEAD + 8, base);
}

static unsigned char *put_string(struct stream *s, struct last *last, int i, unsigned char *p,
                                 const char *str, size_t n)
{
    p += pt_put_varint(p, n);
    last->str_at[i] = (uint32_t)(p - s->buf);
    last->str_len[i] = (uint32_t)n;
    memcpy(p, str, n);
    return p + n;
}

static int same_string(const struct stream *s, const struct last *last, int i, const char *str,
                       size_t n)
{
    return last->str_len[i] == n && !memcmp(s->buf + last->str_at[i], str, n);
}

static const char *event_string(const struct pt_event *ev, int kind, size_t *len)
{
    const char *str = ev->str[pt_field_string(kind)];
    if (!str)
        str = "";
    *len = strnlen(str, 4096);
    return str;
}

/* The mask of what differs from the last event of this op, then the differences. */
static unsigned char *put_fields(struct stream *s, unsigned char *p, const struct pt_event *ev)
{
    const struct pt_call_info *call = &pt_calls[ev->op];
    struct last *last = s->last[ev->op];
    uint64_t mask = 0;
    size_t len;

    if (last->block != s->block) {
        memset(last, 0, sizeof(*last));
        last->block = s->block;
    }
    for (int i = 0; i < call->nfields; i++) {
        int kind = call->fields[i];
        if (pt_field_is_string(kind)) {
            const char *str = event_string(ev, kind, &len);
            mask |= (uint64_t)!same_string(s, last, i, str, len) << i;
        } else {
            mask |= (uint64_t)(last->field[i] != ev->field[kind]) << i;
        }
    }
    p += pt_put_varint(p, mask);
    for (int i = 0; i < call->nfields; i++) {
        if (!(mask >> i & 1))
            continue;
        int kind = call->fields[i];
        if (pt_field_is_string(kind)) {
            const char *str = event_string(ev, kind, &len);
            p = put_string(s, last, i, p, str, len);
        } else {
            uint64_t diff = (uint64_t)ev->field[kind] - (uint64_t)last->field[i];
            p += pt_put_varint(p, pt_zigzag((int64_t)diff));
            last->field[i] = ev->field[kind];
        }
    }
    return p;
}

int pt_writer_event(struct pt_writer *w, uint32_t node, const struct pt_event *ev)
{
    struct stream *s = stream_get(w, node);
    if (s && ev->op < PT_NOPS && !s->last[ev->op])
        s->last[ev->op] = calloc(1, sizeof(struct last));
    if (!s || ev->op >= PT_NOPS || !s->last[ev->op]) {
        w->lost++;
        return fail(w, s && ev->op >= PT_NOPS ? EINVAL : ENOMEM);
    }
    if (!s->count)
        stream_begin(s, ev->begin);

    int64_t gap = (int64_t)(ev->begin - s->end);
    uint64_t before = ev->hold + ev->waited;
    uint64_t think = gap > (int64_t)before ? (uint64_t)gap - before : 0;
    unsigned flags = ev->flags & PT_ENC_EV;
    if (ev->err)
        flags |= PT_ENC_ERR;
    else if (ev->ret == 0)
        flags |= PT_ENC_ZERO;
    else if (w->has_len[ev->op] && ev->ret == ev->field[PT_F_LEN])
        flags |= PT_ENC_FULL;
    if (ev->cpu != think)
        flags |= PT_ENC_CPU;
    if (ev->hold)
        flags |= PT_ENC_HOLD;
    if (ev->polls)
        flags |= PT_ENC_POLLS;
    if (ev->waited)
        flags |= PT_ENC_WAITED;
    if (ev->busy != ev->dur)
        flags |= PT_ENC_BUSY;

    unsigned char *p = s->buf + s->len;
    p += pt_put_varint(p, ev->op);
    p += pt_put_varint(p, flags);
    p += pt_put_varint(p, pt_zigzag(gap));
    p += pt_put_varint(p, ev->dur);
    if (flags & PT_ENC_BUSY)
        p += pt_put_varint(p, ev->busy);
    if (flags & PT_ENC_CPU)
        p += pt_put_varint(p, ev->cpu);
    if (flags & PT_ENC_HOLD)
        p += pt_put_varint(p, ev->hold);
    if (flags & PT_ENC_POLLS)
        p += pt_put_varint(p, ev->polls);
    if (flags & PT_ENC_WAITED)
        p += pt_put_varint(p, ev->waited);
    if (flags & PT_ENC_ERR)
        p += pt_put_varint(p, (uint32_t)ev->err);
    else if (!(flags & (PT_ENC_ZERO | PT_ENC_FULL)))
        p += pt_put_varint(p, pt_zigzag(ev->ret));
    p = put_fields(s, p, ev);

    s->len = (size_t)(p - s->buf);
    s->end = ev->begin + ev->dur;
    s->count++;
    return s->len > EVENTS_CAPACITY ? stream_flush(w, node) : w->error ? fail(w, w->error) : 0;
}

static unsigned char *put_name(unsigned char *p, const struct pt_name *name)
{
    pt_put32(p, (uint32_t)name->rank);
    pt_put32(p + 4, (uint32_t)name->process);
    pt_put32(p + 8, (uint32_t)name->thread);
    return p + 12;
}

int pt_writer_node(struct pt_writer *w, uint32_t node, const struct pt_node *info)
{
    unsigned char block[PT_BLOCK_HEAD + 28 + 2 * 4096 + 2];
    size_t exe = strnlen(info->exe, 4095), cwd = strnlen(info->cwd, 4095);

    unsigned char *p = put_name(block + PT_BLOCK_HEAD, &info->name);
    pt_put32(p, (uint32_t)info->pid);
    pt_put32(p + 4, (uint32_t)info->tid);
    pt_put64(p + 8, info->start);
    p += 16;
    memcpy(p, info->exe, exe);
    p[exe] = 0;
    p += exe + 1;
    memcpy(p, info->cwd, cwd);
    p[cwd] = 0;
    p += cwd + 1;
    return write_block(w, PT_BLOCK_NODE, node, block, (size_t)(p - block) - PT_BLOCK_HEAD);
}

int pt_writer_hold(struct pt_writer *w, const struct pt_hold *hold)
{
    size_t payload = PT_HOLD_HEAD + hold->npeers * PT_HOLD_PEER;
    if (payload > PT_BLOCK_MAX)
        return fail(w, EOVERFLOW);
    unsigned char *block = malloc(PT_BLOCK_HEAD + payload);
    if (!block)
        return fail(w, ENOMEM);
    unsigned char *p = put_name(block + PT_BLOCK_HEAD, &hold->name);
    pt_put64(p, hold->io_event);
    pt_put64(p + 8, hold->ns);
    pt_put32(p + 16, (uint32_t)hold->timed_out);
    pt_put32(p + 20, (uint32_t)hold->npeers);
    p += 24;
    for (size_t i = 0; i < hold->npeers; i++) {
        p = put_name(p, &hold->peers[i].name);
        pt_put32(p, hold->peers[i].state);
        pt_put64(p + 4, hold->peers[i].io_done);
        p += 12;
    }
    int rc = write_block(w, PT_BLOCK_HOLD, 0, block, payload);
    free(block);
    return rc;
}

int pt_writer_loss(struct pt_writer *w, uint32_t node, const struct pt_loss *loss)
{
    unsigned char block[PT_BLOCK_HEAD + 16];
    pt_put64(block + PT_BLOCK_HEAD, loss->after);
    pt_put64(block + PT_BLOCK_HEAD + 8, loss->count);
    return write_block(w, PT_BLOCK_LOSS, node, block, 16);
}

int pt_writer_flush(struct pt_writer *w)
{
    for (size_t i = 0; i < w->nstreams; i++)
        stream_flush(w, (uint32_t)i);
    return w->error ? fail(w, w->error) : 0;
}

uint64_t pt_writer_size(const struct pt_writer *w)
{
    return (uint64_t)w->whole;
}

uint64_t pt_writer_lost(const struct pt_writer *w)
{
    return w->lost;
}

int pt_writer_node_end(struct pt_writer *w, uint32_t node)
{
    if (node >= w->nstreams)
        return 0;
    int rc = stream_flush(w, node);
    stream_destroy(w->streams[node]);
    w->streams[node] = NULL;
    return rc;
}

int pt_writer_close(struct pt_writer *w, const char *text)
{
    if (!w)
        return 0;
    int rc = pt_writer_flush(w);
    if (!rc)
        rc = write_text(w, PT_BLOCK_END, text);
    if (close(w->fd) && !rc)
        rc = fail(w, errno);
    int error = w->error;
    for (size_t i = 0; i < w->nstreams; i++) {
        stream_destroy(w->streams[i]);
    }
    free(w->streams);
    free(w);
    errno = error;
    return rc;
}
