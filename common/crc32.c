/*
 * CRC-32, eight bytes at a time: every event passes through here on its way to the file.
 */
#include "config.h"

#include <stdatomic.h>

#include "common/trace_codec.h"

static uint32_t tables[8][256];
static _Atomic int ready;

/* Two threads may both do this; they write the same values. */
static void fill_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        tables[0][i] = crc;
    }
    for (int t = 1; t < 8; t++)
        for (int i = 0; i < 256; i++)
            tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xff];
    atomic_store_explicit(&ready, 1, memory_order_release);
}

uint32_t pt_crc32(const unsigned char *p, size_t n)
{
    uint32_t crc = ~0u;
    if (!atomic_load_explicit(&ready, memory_order_acquire))
        fill_tables();
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t low = crc ^ pt_get32(p), high = pt_get32(p + 4);
        crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
              tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
              tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
    }
    for (; n; n--)
        crc = crc >> 8 ^ tables[0][(crc ^ *p++) & 0xff];
    return ~crc;
}
