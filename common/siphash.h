/*
 * SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, "SipHash: a fast
 * short-input PRF"): a keyed hash, used for keys and to authenticate messages.
 */
#ifndef PT_SIPHASH_H
#define PT_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define PT_SIPHASH_KEY 16
#define PT_SIPHASH_LEN 16

/* The hash of one message that is handed over in pieces. */
struct pt_siphash {
    uint64_t v[4];
    uint64_t word; /* bytes that are not yet a whole word */
    uint64_t len;  /* of all pieces */
};

void pt_siphash_begin(struct pt_siphash *h, const unsigned char key[PT_SIPHASH_KEY]);
void pt_siphash_add(struct pt_siphash *h, const void *data, size_t len);
void pt_siphash_end(struct pt_siphash *h, unsigned char out[PT_SIPHASH_LEN]);

/* Are these bytes the same?  Takes as long whether they are or not. */
int pt_siphash_equal(const unsigned char a[PT_SIPHASH_LEN], const unsigned char b[PT_SIPHASH_LEN]);

#endif
