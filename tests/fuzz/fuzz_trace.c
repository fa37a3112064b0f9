/*
 * Feeds the reader of run files with anything (libFuzzer; bench/fuzz builds and runs it).
 *
 * Damage that a checksum reveals never reaches the decoder, so the mutator knows the
 * blocks: it mostly changes one of them and then mends lengths and checksums.
 */
#include "config.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/trace.h"
#include "common/trace_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* ---- reading ------------------------------------------------------------------------ */

static volatile uint64_t sink; /* what makes the compiler and the sanitizers look at it all */

__attribute__((no_sanitize("coverage"))) static void use(const void *p, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ((const unsigned char *)p)[i];
    sink += sum;
}

static void use_string(const char *s)
{
    if (s)
        use(s, strlen(s));
}

static void use_event(const struct pt_reader *r, const struct pt_event *ev)
{
    const struct pt_call_desc *call = pt_reader_call(r, ev->op);
    if (!call)
        abort();
    sink += (uint64_t)pt_event_class(call, ev);
    use_string(call->name);
    for (int i = 0; i < call->nfields; i++)
        if (call->fields[i] >= 0 && !call->string[i])
            use(&ev->field[call->fields[i]], sizeof(ev->field[0]));
    use(ev, offsetof(struct pt_event, field));
    for (int i = 0; i < PT_NSTRINGS; i++)
        use_string(ev->str[i]);
}

static void use_name(const struct pt_name *name)
{
    char buf[PT_NAME_LEN];
    use_string(pt_name_format(buf, name));
}

static void use_item(const struct pt_reader *r, const struct pt_item *item)
{
    switch (item->kind) {
    case PT_ITEM_NODE:
        use_name(&item->info.name);
        use_string(item->info.exe);
        use_string(item->info.cwd);
        break;
    case PT_ITEM_EVENT:
        use_event(r, &item->event);
        break;
    case PT_ITEM_HOLD:
        use_name(&item->hold.name);
        for (size_t i = 0; i < item->hold.npeers; i++)
            use_name(&item->hold.peers[i].name);
        break;
    case PT_ITEM_LOSS:
        sink += item->loss.after + item->loss.count;
        break;
    case PT_ITEM_END:
        use_string(pt_reader_meta(r, "lost"));
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char path[64];
    struct pt_err err;
    struct pt_item item;

    if (fd < 0) {
        fd = memfd_create("input", MFD_CLOEXEC);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size) {
        perror("fuzz_trace: cannot write the input");
        exit(1);
    }
    struct pt_reader *r = pt_reader_open(path, &err);
    if (!r) {
        use_string(err.text);
        return 0;
    }
    use_string(pt_reader_meta(r, "host"));
    int rc;
    while ((rc = pt_reader_next(r, &item, &err)) > 0)
        use_item(r, &item);
    if (rc < 0)
        use_string(err.text);
    pt_reader_close(r);
    return 0;
}

/* ---- mutating ----------------------------------------------------------------------- */

#define MAX_BLOCKS 64

struct layout {
    size_t n;
    size_t at[MAX_BLOCKS + 1]; /* where each block begins; at[n]: behind the last */
};

static size_t block_len(const struct layout *l, size_t i)
{
    return l->at[i + 1] - l->at[i];
}

static void find_blocks(struct layout *l, const uint8_t *data, size_t size)
{
    l->n = 0;
    l->at[0] = PT_RUN_HEAD_LEN;
    while (l->n < MAX_BLOCKS && size - l->at[l->n] >= PT_BLOCK_HEAD) {
        size_t len = pt_get32(data + l->at[l->n] + 4);
        if (len > size - l->at[l->n] - PT_BLOCK_HEAD)
            break;
        l->at[l->n + 1] = l->at[l->n] + PT_BLOCK_HEAD + len;
        l->n++;
    }
}

/* Puts the head and every checksum right. */
static void mend(uint8_t *data, size_t size)
{
    struct layout l;
    if (size < PT_RUN_HEAD_LEN)
        return;
    memcpy(data, PT_RUN_MAGIC, PT_RUN_MAGIC_LEN);
    pt_put32(data + PT_RUN_MAGIC_LEN, PT_RUN_VERSION);
    find_blocks(&l, data, size);
    for (size_t i = 0; i < l.n; i++)
        pt_put32(data + l.at[i] + 8,
                 pt_crc32(data + l.at[i] + PT_BLOCK_HEAD, block_len(&l, i) - PT_BLOCK_HEAD));
}

/* Replaces `old` bytes at `at` by room for `new` ones; returns the new size. */
static size_t resize(uint8_t *data, size_t size, size_t at, size_t old, size_t new)
{
    memmove(data + at + new, data + at + old, size - at - old);
    return size - old + new;
}

static size_t mutate_payload(uint8_t *data, size_t size, size_t max_size, const struct layout *l,
                             size_t i)
{
    size_t at = l->at[i] + PT_BLOCK_HEAD, len = block_len(l, i) - PT_BLOCK_HEAD;
    size_t room = len + (max_size - size);
    if (!room)
        return size;
    uint8_t *payload = malloc(room);
    memcpy(payload, data + at, len);
    size_t n = LLVMFuzzerMutate(payload, len, room);
    size = resize(data, size, at, len, n);
    memcpy(data + at, payload, n);
    pt_put32(data + l->at[i] + 4, (uint32_t)n);
    free(payload);
    return size;
}

/* Puts a copy of block `from` in front of block `to`. */
static size_t copy_block(uint8_t *data, size_t size, size_t max_size, const struct layout *l,
                         size_t from, size_t to)
{
    size_t len = block_len(l, from);
    if (len > max_size - size)
        return size;
    uint8_t *block = malloc(len);
    memcpy(block, data + l->at[from], len);
    size = resize(data, size, l->at[to], 0, len);
    memcpy(data + l->at[to], block, len);
    free(block);
    return size;
}

static size_t mutate_blocks(uint8_t *data, size_t size, size_t max_size, unsigned dice)
{
    struct layout l;
    find_blocks(&l, data, size);
    if (!l.n)
        return LLVMFuzzerMutate(data, size, max_size);
    size_t i = dice / 16 % l.n, j = dice / 16 / MAX_BLOCKS % l.n;
    switch (dice % 16) {
    case 0:
        return copy_block(data, size, max_size, &l, i, j);
    case 1:
        return resize(data, size, l.at[i], block_len(&l, i), 0);
    case 2:
        LLVMFuzzerMutate(data + l.at[i], PT_BLOCK_HEAD, PT_BLOCK_HEAD);
        return size;
    case 3:
        pt_put32(data + l.at[i], PT_BLOCK_META + dice / 16 / MAX_BLOCKS % (PT_BLOCK_END + 1));
        return size;
    default:
        return mutate_payload(data, size, max_size, &l, i);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    unsigned dice = seed / 16;
    if (size < PT_RUN_HEAD_LEN || size > max_size)
        return LLVMFuzzerMutate(data, size < max_size ? size : max_size, max_size);
    switch (seed % 16) {
    case 0: /* left as it is: what a checksum reveals */
        return LLVMFuzzerMutate(data, size, max_size);
    case 1:
    case 2:
        size = LLVMFuzzerMutate(data, size, max_size);
        break;
    default:
        size = mutate_blocks(data, size, max_size, dice);
    }
    mend(data, size);
    return size;
}
