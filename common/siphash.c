#include "config.h"

#include "common/siphash.h"
#include "common/trace_codec.h"

static uint64_t rotate(uint64_t v, int by)
{
    return v << by | v >> (64 - by);
}

static void rounds(uint64_t v[4], int n)
{
    while (n--) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

static void compress(struct pt_siphash *h, uint64_t word)
{
    h->v[3] ^= word;
    rounds(h->v, 2);
    h->v[0] ^= word;
}

void pt_siphash_begin(struct pt_siphash *h, const unsigned char key[PT_SIPHASH_KEY])
{
    uint64_t k0 = pt_get64(key), k1 = pt_get64(key + 8);
    /* "somepseudorandomlygeneratedbytes"; 0xee marks the long output */
    *h = (struct pt_siphash){.v = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du ^ 0xee,
                                   k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u}};
}

void pt_siphash_add(struct pt_siphash *h, const void *data, size_t len)
{
    const unsigned char *p = data;
    for (; len && h->len % 8; len--, p++) {
        h->word |= (uint64_t)*p << h->len++ % 8 * 8;
        if (h->len % 8 == 0) {
            compress(h, h->word);
            h->word = 0;
        }
    }
    for (; len >= 8; len -= 8, p += 8, h->len += 8)
        compress(h, pt_get64(p));
    for (; len; len--, p++)
        h->word |= (uint64_t)*p << h->len++ % 8 * 8;
}

void pt_siphash_end(struct pt_siphash *h, unsigned char out[PT_SIPHASH_LEN])
{
    compress(h, h->word | h->len << 56);
    h->v[2] ^= 0xee;
    rounds(h->v, 4);
    pt_put64(out, h->v[0] ^ h->v[1] ^ h->v[2] ^ h->v[3]);
    h->v[1] ^= 0xdd;
    rounds(h->v, 4);
    pt_put64(out + 8, h->v[0] ^ h->v[1] ^ h->v[2] ^ h->v[3]);
}

int pt_siphash_equal(const unsigned char a[PT_SIPHASH_LEN], const unsigned char b[PT_SIPHASH_LEN])
{
    volatile unsigned char differ = 0; /* volatile: no early end of the loop */
    for (int i = 0; i < PT_SIPHASH_LEN; i++)
        differ |= a[i] ^ b[i];
    return !differ;
}
