/*
 * What the reader and the writer of run files must agree on, byte by byte.
 */
#ifndef PT_TRACE_CODEC_H
#define PT_TRACE_CODEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PT_RUN_MAGIC     "PTRUN\r\n\032"
#define PT_RUN_MAGIC_LEN 8
#define PT_RUN_HEAD_LEN  16
#define PT_BLOCK_HEAD    16
#define PT_BLOCK_MAX     (4u << 20)
#define PT_EVENTS_HEAD   20 /* u64 number of the first event, u64 base time, u32 count */
#define PT_HOLD_HEAD     36 /* 3 i32 name, u64 event, u64 ns, u32 timed out, u32 peers */
#define PT_HOLD_PEER     24 /* 3 i32 name, u32 state, u64 I/O events done */

enum pt_block {
    PT_BLOCK_META = 1,
    PT_BLOCK_CALLS,
    PT_BLOCK_NODE,
    PT_BLOCK_EVENTS,
    PT_BLOCK_HOLD,
    PT_BLOCK_LOSS,
    PT_BLOCK_END,
};

/* An event's flags; those of PT_ENC_EV are PT_EV_INNER, PT_EV_SYNC and PT_EV_IDLE. */
enum {
    PT_ENC_EV = 3 | 1 << 9,
    PT_ENC_ERR = 1 << 2,     /* errno follows, the result is -1 */
    PT_ENC_CPU = 1 << 3,     /* CPU time follows, otherwise it is the gap */
    PT_ENC_HOLD = 1 << 4,    /* hold time follows */
    PT_ENC_FULL = 1 << 5,    /* the result is LEN */
    PT_ENC_ZERO = 1 << 6,    /* the result is 0 */
    PT_ENC_POLLS = 1 << 8,   /* a number of unsuccessful polls follows */
    PT_ENC_WAITED = 1 << 10, /* how long polls took follows */
    PT_ENC_BUSY = 1 << 7,    /* CPU time of the call follows, otherwise it is the duration */
};

static inline void pt_put32(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> 8 * i);
}

static inline void pt_put64(unsigned char *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (unsigned char)(v >> 8 * i);
}

static inline uint32_t pt_get32(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t pt_get64(const unsigned char *p)
{
    return pt_get32(p) | (uint64_t)pt_get32(p + 4) << 32;
}

static inline uint64_t pt_zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static inline int64_t pt_unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1 ^ -(v & 1));
}

/* Writes at most 10 bytes, returns how many. */
static inline unsigned pt_put_varint(unsigned char *p, uint64_t v)
{
    unsigned n = 0;
    while (v >= 0x80) {
        p[n++] = (unsigned char)(v | 0x80);
        v >>= 7;
    }
    p[n++] = (unsigned char)v;
    return n;
}

/* Advances *p; returns 0 and leaves *v alone if the number runs past `end`. */
static inline int pt_get_varint(const unsigned char **p, const unsigned char *end, uint64_t *v)
{
    uint64_t r = 0;
    const unsigned char *q = *p;
    for (unsigned shift = 0; shift < 64 && q < end; shift += 7) {
        r |= (uint64_t)(*q & 0x7f) << shift;
        if (!(*q++ & 0x80)) {
            *p = q;
            *v = r;
            return 1;
        }
    }
    return 0;
}

/* CRC-32 (IEEE). */
uint32_t pt_crc32(const unsigned char *p, size_t n);

#endif
