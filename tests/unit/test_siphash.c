/*
 * SipHash-2-4-128 against the published vectors, in one piece and in several.
 */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/siphash.h"
#include "tests/unit/run.h"

/* Key 00 01 .. 0f, message 00 01 .. (len - 1). */
static const struct {
    size_t len;
    const char *hash;
} vectors[] = {
    {0, "a3817f04ba25a8e66df67214c7550293"},  {1, "da87c1d86b99af44347659119b22fc45"},
    {7, "a1f1ebbed8dbc153c0b84aa61ff08239"},  {8, "3b62a9ba6258f5610f83e264f31497b4"},
    {15, "5493e99933b0a8117e08ec0f97cfc3d9"}, {63, "5150d1772f50834a503e069a973fbd7c"},
};

static unsigned char bytes[64];

static void set_up(void)
{
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)i;
}

/* The hash of the first `len` bytes, handed over in two pieces. */
static void hash(unsigned char out[PT_SIPHASH_LEN], size_t len, size_t cut)
{
    struct pt_siphash h;
    pt_siphash_begin(&h, bytes);
    pt_siphash_add(&h, bytes, cut);
    pt_siphash_add(&h, bytes + cut, len - cut);
    pt_siphash_end(&h, out);
}

START_TEST(published_vectors)
{
    unsigned char out[PT_SIPHASH_LEN];
    char text[2 * PT_SIPHASH_LEN + 1];
    for (size_t cut = 0; cut <= vectors[_i].len; cut++) {
        hash(out, vectors[_i].len, cut);
        for (int i = 0; i < PT_SIPHASH_LEN; i++)
            snprintf(text + 2 * i, 3, "%02x", out[i]);
        ck_assert_msg(!strcmp(text, vectors[_i].hash), "%zu bytes, cut at %zu: %s, not %s",
                      vectors[_i].len, cut, text, vectors[_i].hash);
    }
}
END_TEST

START_TEST(equal_looks_at_every_bit)
{
    unsigned char a[PT_SIPHASH_LEN], b[PT_SIPHASH_LEN];
    hash(a, 20, 0);
    memcpy(b, a, sizeof(b));
    ck_assert(pt_siphash_equal(a, b));
    for (int bit = 0; bit < 8 * PT_SIPHASH_LEN; bit++) {
        b[bit / 8] ^= (unsigned char)(1 << bit % 8);
        ck_assert_msg(!pt_siphash_equal(a, b), "bit %d is not looked at", bit);
        b[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("siphash");
    TCase *tcase = tcase_create("siphash");

    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_loop_test(tcase, published_vectors, 0, sizeof(vectors) / sizeof(vectors[0]));
    tcase_add_test(tcase, equal_looks_at_every_bit);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
