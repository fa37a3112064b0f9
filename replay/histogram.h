/*
 * Durations in buckets whose width grows with their value: 32 to each power of two,
 * so a percentile is right to about 1.5 %.  Histograms add up bucket by bucket.
 */
#ifndef PT_REPLAY_HISTOGRAM_H
#define PT_REPLAY_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum {
    HISTOGRAM_SUB_BITS = 5,
    HISTOGRAM_MAX_BITS = 47, /* longer than a day, in ns: all in the last bucket */
    HISTOGRAM_BUCKETS = (HISTOGRAM_MAX_BITS - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS,
};

static inline size_t histogram_bucket(uint64_t ns)
{
    unsigned shift = 0;

    if (ns >> HISTOGRAM_MAX_BITS)
        return HISTOGRAM_BUCKETS - 1;
    if (ns >> HISTOGRAM_SUB_BITS)
        shift = 63u - (unsigned)__builtin_clzll(ns) - HISTOGRAM_SUB_BITS;
    return ((size_t)shift << HISTOGRAM_SUB_BITS) + (size_t)(ns >> shift);
}

/* The middle of a bucket. */
static inline double histogram_value(size_t bucket)
{
    size_t sub = (size_t)1 << HISTOGRAM_SUB_BITS;
    size_t shift = bucket < 2 * sub ? 0 : (bucket >> HISTOGRAM_SUB_BITS) - 1;
    uint64_t low = (uint64_t)(bucket - (shift << HISTOGRAM_SUB_BITS)) << shift;

    return (double)low + (double)(((uint64_t)1 << shift) - 1) / 2;
}

static inline uint64_t histogram_count(const uint64_t *h)
{
    uint64_t n = 0;

    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        n += h[i];
    return n;
}

/* The duration that a share `q` of all does not exceed; 0 if there is none. */
static inline double histogram_quantile(const uint64_t *h, double q)
{
    double want = q * (double)histogram_count(h);
    uint64_t seen = 0;

    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h[i];
        if (h[i] > 0 && (double)seen >= want)
            return histogram_value(i);
    }
    return 0;
}

#endif
