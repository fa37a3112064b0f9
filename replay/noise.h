/*
 * Data that neither compresses nor is zero.
 */
#ifndef PT_REPLAY_NOISE_H
#define PT_REPLAY_NOISE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Fills memory; the same seed gives the same data. */
static inline void noise_fill(void *memory, size_t size, uint64_t seed)
{
    uint64_t x = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    unsigned char *out = memory;

    while (size > 0) {
        size_t n = size < sizeof(x) ? size : sizeof(x);

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(out, &x, n);
        out += n;
        size -= n;
    }
}

#endif
