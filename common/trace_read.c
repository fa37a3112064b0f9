#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/trace.h"
#include "common/trace_codec.h"

#define STRING_MAX 4096

/* What the last event of one op looked like. */
struct last {
    uint64_t block; /* valid if this is the current EVENTS block */
    int64_t field[PT_MAX_FIELDS];
    char *str[PT_MAX_FIELDS]; /* NULL: empty; allocated on first use */
};

struct pt_reader {
    FILE *f;
    char *path;
    char *meta; /* "key=value" strings, the END block's behind the META block's */
    size_t meta_len;
    struct pt_call_desc *calls;
    struct last *last;
    unsigned ncalls;

    unsigned char *block; /* the current block's payload */
    uint32_t type, node;
    size_t len;

    /* within an EVENTS block */
    const unsigned char *at, *stop;
    uint64_t nblocks; /* EVENTS blocks so far */
    uint32_t left;
    uint64_t end; /* of the last event, ns */

    struct pt_hold_peer *peers;
    int ended;
};

static int damaged(const struct pt_reader *r, struct pt_err *err, const char *what)
{
    return pt_err_set(err, "run file '%s' is damaged: %s", r->path, what);
}

/* 1: a block was read, 0: the file ends here (also in the middle of a block), -1: damaged. */
static int read_block(struct pt_reader *r, struct pt_err *err)
{
    unsigned char head[PT_BLOCK_HEAD];
    if (fread(head, 1, sizeof(head), r->f) != sizeof(head))
        return ferror(r->f) ? pt_err_errno(err, "cannot read run file '%s'", r->path) : 0;
    r->type = pt_get32(head);
    r->len = pt_get32(head + 4);
    r->node = pt_get32(head + 12);
    if (r->len > PT_BLOCK_MAX)
        return damaged(r, err, "a block is too large");
    free(r->block);
    r->block = malloc(r->len + 1);
    if (!r->block)
        return pt_err_errno(err, "cannot read run file '%s'", r->path);
    if (fread(r->block, 1, r->len, r->f) != r->len)
        return ferror(r->f) ? pt_err_errno(err, "cannot read run file '%s'", r->path) : 0;
    if (pt_crc32(r->block, r->len) != pt_get32(head + 8))
        return damaged(r, err, "a block's checksum is wrong");
    r->block[r->len] = 0;
    return 1;
}

/* Appends the block's lines, each as a string. */
static int add_meta(struct pt_reader *r, struct pt_err *err)
{
    char *meta = realloc(r->meta, r->meta_len + r->len + 1);
    if (!meta)
        return pt_err_errno(err, "cannot read run file '%s'", r->path);
    memcpy(meta + r->meta_len, r->block, r->len + 1);
    for (size_t i = r->meta_len; i < r->meta_len + r->len; i++)
        if (meta[i] == '\n')
            meta[i] = 0;
    r->meta = meta;
    r->meta_len += r->len + 1;
    return 0;
}

/* One "call NAME CLASS FIELD..." line of the table. */
static int parse_call(const struct pt_reader *r, char *line, struct pt_call_desc *call,
                      struct pt_err *err)
{
    char *save, *word = strtok_r(line, " ", &save);
    if (!word || strcmp(word, "call"))
        return damaged(r, err, "its table of calls has a line that is no call");
    char *name = strtok_r(NULL, " ", &save), *cls = strtok_r(NULL, " ", &save);
    if (!name || !cls || strlen(name) >= PT_NAME_MAX || pt_class_by_name(cls) < 0)
        return damaged(r, err, "its table of calls has a bad row");
    memset(call, 0, sizeof(*call));
    memcpy(call->name, name, strlen(name) + 1);
    call->cls = (enum pt_class)pt_class_by_name(cls);
    int op = pt_op_by_name(name);
    call->replay = op < 0 ? PT_REPLAY_NONE : pt_calls[op].replay;
    while ((word = strtok_r(NULL, " ", &save))) {
        if (call->nfields == PT_MAX_FIELDS)
            return damaged(r, err, "a call of its table has too many fields");
        int string = *word == '$', kind = pt_field_by_name(word + string);
        if (kind >= 0 && pt_field_is_string(kind) != string)
            return damaged(r, err, "a field of its table has another type than ours");
        call->fields[call->nfields] = (int8_t)kind;
        call->string[call->nfields++] = (uint8_t)string;
    }
    return 0;
}

static int parse_calls(struct pt_reader *r, struct pt_err *err)
{
    unsigned max = 1; /* the last line may lack its end */
    for (size_t i = 0; i < r->len; i++)
        max += r->block[i] == '\n';
    if (max > 0x7fff || strlen((char *)r->block) != r->len)
        return damaged(r, err, "its table of calls is no text");
    r->calls = calloc(max, sizeof(*r->calls));
    r->last = calloc(max, sizeof(*r->last));
    if (!r->calls || !r->last)
        return pt_err_errno(err, "cannot read run file '%s'", r->path);
    char *save, *line = strtok_r((char *)r->block, "\n", &save);
    for (; line; line = strtok_r(NULL, "\n", &save))
        if (parse_call(r, line, &r->calls[r->ncalls++], err))
            return -1;
    return 0;
}

static int read_head(struct pt_reader *r, struct pt_err *err)
{
    unsigned char head[PT_RUN_HEAD_LEN];
    size_t n = fread(head, 1, sizeof(head), r->f);
    if (ferror(r->f))
        return pt_err_errno(err, "cannot read run file '%s'", r->path);
    if (n < sizeof(head) || memcmp(head, PT_RUN_MAGIC, PT_RUN_MAGIC_LEN))
        return pt_err_set(err, "cannot open run file '%s': %s", r->path,
                          n < sizeof(head) ? "truncated file" : "not a paratrace run file");
    uint32_t version = pt_get32(head + PT_RUN_MAGIC_LEN);
    if (version != PT_RUN_VERSION)
        return pt_err_set(err, "cannot open run file '%s': version %u, this program reads %d",
                          r->path, version, PT_RUN_VERSION);
    for (uint32_t want = PT_BLOCK_META; want <= PT_BLOCK_CALLS; want++) {
        int rc = read_block(r, err);
        if (rc < 0)
            return -1;
        if (!rc)
            return pt_err_set(err, "cannot open run file '%s': truncated file", r->path);
        if (r->type != want)
            return damaged(r, err, "it does not begin with its description");
        if (want == PT_BLOCK_META ? add_meta(r, err) : parse_calls(r, err))
            return -1;
    }
    return 0;
}

struct pt_reader *pt_reader_open(const char *path, struct pt_err *err)
{
    struct pt_reader *r = calloc(1, sizeof(*r));
    if (!r || !(r->path = strdup(path)) || !(r->f = fopen(path, "rbe"))) {
        pt_err_errno(err, "cannot open run file '%s'", path);
        pt_reader_close(r);
        return NULL;
    }
    if (read_head(r, err)) {
        pt_reader_close(r);
        return NULL;
    }
    return r;
}

static void forget(struct last *last)
{
    for (int i = 0; i < PT_MAX_FIELDS; i++)
        free(last->str[i]);
    memset(last, 0, sizeof(*last));
}

void pt_reader_close(struct pt_reader *r)
{
    if (!r)
        return;
    int saved = errno;
    if (r->f)
        fclose(r->f);
    for (unsigned op = 0; r->last && op < r->ncalls; op++)
        forget(&r->last[op]);
    free(r->last);
    free(r->calls);
    free(r->path);
    free(r->meta);
    free(r->block);
    free(r->peers);
    free(r);
    errno = saved;
}

static int get_varint(struct pt_reader *r, uint64_t *v)
{
    return pt_get_varint(&r->at, r->stop, v) ? 0 : -1;
}

static int get_string(struct pt_reader *r, char **str)
{
    uint64_t n;
    if (get_varint(r, &n) || n > STRING_MAX || n > (size_t)(r->stop - r->at))
        return -1;
    char *copy = realloc(*str, n + 1);
    if (!copy)
        return -1;
    memcpy(copy, r->at, n);
    copy[n] = 0;
    *str = copy;
    r->at += n;
    return 0;
}

static int get_fields(struct pt_reader *r, struct pt_event *ev)
{
    const struct pt_call_desc *call = &r->calls[ev->op];
    struct last *last = &r->last[ev->op];
    uint64_t mask, diff;

    if (last->block != r->nblocks) {
        forget(last);
        last->block = r->nblocks;
    }
    if (get_varint(r, &mask) || mask >> call->nfields)
        return -1;
    for (int i = 0; i < call->nfields; i++) {
        int kind = call->fields[i];
        if (mask >> i & 1) {
            if (call->string[i]) {
                if (get_string(r, &last->str[i]))
                    return -1;
            } else {
                if (get_varint(r, &diff))
                    return -1;
                last->field[i] = (int64_t)((uint64_t)last->field[i] + (uint64_t)pt_unzigzag(diff));
            }
        }
        if (kind < 0)
            continue;
        if (call->string[i])
            ev->str[pt_field_string(kind)] = last->str[i] ? last->str[i] : "";
        else
            ev->field[kind] = last->field[i];
    }
    return 0;
}

static int get_event(struct pt_reader *r, struct pt_event *ev)
{
    uint64_t op, flags, gap, before, v;
    memset(ev, 0, sizeof(*ev));
    if (get_varint(r, &op) || op >= r->ncalls || get_varint(r, &flags))
        return -1;
    ev->op = (uint16_t)op;
    ev->flags = (uint16_t)(flags & PT_ENC_EV);
    if (get_varint(r, &gap) || get_varint(r, &ev->dur))
        return -1;
    ev->busy = ev->dur;
    if (flags & PT_ENC_BUSY && get_varint(r, &ev->busy))
        return -1;
    if (flags & PT_ENC_CPU && get_varint(r, &ev->cpu))
        return -1;
    if (flags & PT_ENC_HOLD && get_varint(r, &ev->hold))
        return -1;
    if (flags & PT_ENC_POLLS && get_varint(r, &ev->polls))
        return -1;
    if (flags & PT_ENC_WAITED && get_varint(r, &ev->waited))
        return -1;
    ev->begin = r->end + (uint64_t)pt_unzigzag(gap);
    before = ev->hold + ev->waited;
    if (!(flags & PT_ENC_CPU) && pt_unzigzag(gap) > 0 && (uint64_t)pt_unzigzag(gap) > before)
        ev->cpu = (uint64_t)pt_unzigzag(gap) - before;
    if (flags & PT_ENC_ERR) {
        if (get_varint(r, &v) || v == 0 || v > INT32_MAX)
            return -1;
        ev->err = (int32_t)v;
        ev->ret = -1;
    } else if (!(flags & (PT_ENC_ZERO | PT_ENC_FULL))) {
        if (get_varint(r, &v))
            return -1;
        ev->ret = pt_unzigzag(v);
    }
    if (get_fields(r, ev))
        return -1;
    if (flags & PT_ENC_FULL)
        ev->ret = ev->field[PT_F_LEN];
    r->end = ev->begin + ev->dur;
    return 0;
}

static int begin_events(struct pt_reader *r, struct pt_err *err)
{
    if (r->len < PT_EVENTS_HEAD)
        return damaged(r, err, "an events block is too short");
    r->nblocks++;
    r->end = pt_get64(r->block + 8);
    r->left = pt_get32(r->block + 16);
    r->at = r->block + PT_EVENTS_HEAD;
    r->stop = r->block + r->len;
    return 0;
}

static struct pt_name get_name(const unsigned char *p)
{
    return (struct pt_name){(int32_t)pt_get32(p), (int32_t)pt_get32(p + 4),
                            (int32_t)pt_get32(p + 8)};
}

static int get_node(struct pt_reader *r, struct pt_node *node, struct pt_err *err)
{
    if (r->len < 30 || r->block[r->len - 1])
        return damaged(r, err, "a node block is too short");
    node->name = get_name(r->block);
    node->pid = (int32_t)pt_get32(r->block + 12);
    node->tid = (int32_t)pt_get32(r->block + 16);
    node->start = pt_get64(r->block + 20);
    node->exe = (const char *)r->block + 28;
    node->cwd = node->exe + strlen(node->exe) + 1;
    if (node->cwd >= (const char *)r->block + r->len)
        return damaged(r, err, "a node block has no working directory");
    return 0;
}

static int get_hold(struct pt_reader *r, struct pt_hold *hold, struct pt_err *err)
{
    if (r->len < PT_HOLD_HEAD)
        return damaged(r, err, "a hold block is too short");
    hold->name = get_name(r->block);
    hold->io_event = pt_get64(r->block + 12);
    hold->ns = pt_get64(r->block + 20);
    hold->timed_out = pt_get32(r->block + 28) != 0;
    hold->npeers = pt_get32(r->block + 32);
    if (hold->npeers != (r->len - PT_HOLD_HEAD) / PT_HOLD_PEER ||
        (r->len - PT_HOLD_HEAD) % PT_HOLD_PEER)
        return damaged(r, err, "a hold block has the wrong length");
    struct pt_hold_peer *peers = realloc(r->peers, (hold->npeers + 1) * sizeof(*peers));
    if (!peers)
        return pt_err_errno(err, "cannot read run file '%s'", r->path);
    r->peers = peers;
    const unsigned char *p = r->block + PT_HOLD_HEAD;
    for (size_t i = 0; i < hold->npeers; i++, p += PT_HOLD_PEER) {
        if (pt_get32(p + 12) > PT_STATE_ASSUMED)
            return damaged(r, err, "a hold block has an unknown state");
        peers[i] = (struct pt_hold_peer){get_name(p), pt_get64(p + 16),
                                         (enum pt_hold_state)pt_get32(p + 12)};
    }
    hold->peers = peers;
    return 0;
}

/* 1: the block is an item, 0: it is not (more to read), -1: damaged. */
static int block_item(struct pt_reader *r, struct pt_item *item, struct pt_err *err)
{
    item->node = r->node;
    switch (r->type) {
    case PT_BLOCK_NODE:
        item->kind = PT_ITEM_NODE;
        return get_node(r, &item->info, err) ? -1 : 1;
    case PT_BLOCK_EVENTS:
        return begin_events(r, err);
    case PT_BLOCK_HOLD:
        item->kind = PT_ITEM_HOLD;
        return get_hold(r, &item->hold, err) ? -1 : 1;
    case PT_BLOCK_LOSS:
        if (r->len < 16)
            return damaged(r, err, "a loss block is too short");
        item->kind = PT_ITEM_LOSS;
        item->loss.after = pt_get64(r->block);
        item->loss.count = pt_get64(r->block + 8);
        return 1;
    case PT_BLOCK_END:
        item->kind = PT_ITEM_END;
        r->ended = 1;
        return add_meta(r, err) ? -1 : 1;
    default: /* of a later minor change of the format: not for us */
        return 0;
    }
}

int pt_reader_next(struct pt_reader *r, struct pt_item *item, struct pt_err *err)
{
    while (!r->left) {
        if (r->ended)
            return 0;
        int rc = read_block(r, err);
        if (rc <= 0)
            return rc;
        rc = block_item(r, item, err);
        if (rc)
            return rc;
    }
    item->kind = PT_ITEM_EVENT;
    item->node = r->node;
    if (get_event(r, &item->event))
        return damaged(r, err, "an event cannot be decoded");
    if (!--r->left && r->at != r->stop)
        return damaged(r, err, "an events block has bytes behind its events");
    return 1;
}

const struct pt_call_desc *pt_reader_call(const struct pt_reader *r, unsigned op)
{
    return op < r->ncalls ? &r->calls[op] : NULL;
}

unsigned pt_reader_ncalls(const struct pt_reader *r)
{
    return r->ncalls;
}

const char *pt_reader_meta(const struct pt_reader *r, const char *key)
{
    size_t n = strlen(key);
    for (const char *line = r->meta; line < r->meta + r->meta_len; line += strlen(line) + 1)
        if (!strncmp(line, key, n) && line[n] == '=')
            return line + n + 1;
    return NULL;
}

char *pt_name_format(char buf[PT_NAME_LEN], const struct pt_name *name)
{
    if (name->process || name->thread)
        snprintf(buf, PT_NAME_LEN, "%d.%d.%d", name->rank, name->process, name->thread);
    else
        snprintf(buf, PT_NAME_LEN, "%d", name->rank);
    return buf;
}
