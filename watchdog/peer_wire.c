#include "config.h"

#include <string.h>

#include "common/trace_codec.h"
#include "watchdog/peer_wire.h"

#define MAGIC     "ptpeer"
#define MAGIC_LEN 6

static void put16(unsigned char *p, uint16_t v)
{
    p[0] = (unsigned char)v;
    p[1] = (unsigned char)(v >> 8);
}

static uint16_t get16(const unsigned char *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

/* ---- keys ------------------------------------------------------------------------ */

enum purpose { KEY_FROM_CLIENT, KEY_FROM_HUB, TOKEN_OF_CLIENT, TOKEN_OF_HUB };

/* Whatever distinguishes this connection from any other is in it. */
static void derive(const struct wd_wire *w, enum purpose purpose, unsigned char *out)
{
    unsigned char about[16];
    struct pt_siphash h;
    pt_put32(about, purpose);
    pt_put32(about + 4, w->step.job);
    pt_put32(about + 8, w->step.step);
    pt_put32(about + 12, w->step.nhosts);
    pt_siphash_begin(&h, w->step.secret);
    pt_siphash_add(&h, about, sizeof(about));
    pt_siphash_add(&h, w->hello[WD_WIRE_CLIENT], WD_WIRE_HELLO);
    pt_siphash_add(&h, w->hello[WD_WIRE_HUB], WD_WIRE_HELLO);
    pt_siphash_end(&h, out);
}

void wd_wire_token(const struct wd_wire *w, enum wd_wire_role whose,
                   unsigned char token[PT_SIPHASH_LEN])
{
    derive(w, whose == WD_WIRE_HUB ? TOKEN_OF_HUB : TOKEN_OF_CLIENT, token);
}

/* ---- hello ------------------------------------------------------------------------ */

void wd_wire_begin(struct wd_wire *w, const struct wd_wire_step *step, enum wd_wire_role role,
                   uint32_t host, const unsigned char nonce[WD_WIRE_NONCE])
{
    *w = (struct wd_wire){.step = *step, .role = role, .host = host, .max = WD_WIRE_EARLY};
    unsigned char *hello = w->hello[role];
    memcpy(hello, MAGIC, MAGIC_LEN);
    put16(hello + 6, WD_WIRE_VERSION);
    pt_put32(hello + 8, role);
    pt_put32(hello + 12, role == WD_WIRE_HUB ? 0 : host);
    memcpy(hello + 16, nonce, WD_WIRE_NONCE);
}

const unsigned char *wd_wire_hello(const struct wd_wire *w)
{
    return w->hello[w->role];
}

const char *wd_wire_take_hello(struct wd_wire *w, const unsigned char hello[WD_WIRE_HELLO])
{
    enum wd_wire_role other = w->role == WD_WIRE_HUB ? WD_WIRE_CLIENT : WD_WIRE_HUB;
    uint32_t host = pt_get32(hello + 12);
    if (memcmp(hello, MAGIC, MAGIC_LEN))
        return "not a watchdog";
    if (get16(hello + 6) != WD_WIRE_VERSION)
        return "another version";
    if (pt_get32(hello + 8) != other)
        return "not in its place";
    if (other == WD_WIRE_HUB ? host != 0 : host == 0 || host >= w->step.nhosts)
        return "no such host";
    if (other == WD_WIRE_CLIENT)
        w->host = host;
    memcpy(w->hello[other], hello, WD_WIRE_HELLO);
    derive(w, KEY_FROM_CLIENT, w->role == WD_WIRE_CLIENT ? w->send_key : w->receive_key);
    derive(w, KEY_FROM_HUB, w->role == WD_WIRE_HUB ? w->send_key : w->receive_key);
    return NULL;
}

/* ---- frames ------------------------------------------------------------------------ */

static void make_code(const unsigned char *key, const unsigned char *frame, size_t len,
                      unsigned char code[WD_WIRE_CODE])
{
    struct pt_siphash h;
    pt_siphash_begin(&h, key);
    pt_siphash_add(&h, frame, len);
    pt_siphash_end(&h, code);
}

size_t wd_wire_put(struct wd_wire *w, unsigned char *out, uint16_t type, const void *payload,
                   size_t len)
{
    pt_put32(out, (uint32_t)len);
    put16(out + 4, type);
    put16(out + 6, 0);
    pt_put64(out + 8, w->sent++);
    if (len)
        memcpy(out + WD_WIRE_HEAD, payload, len);
    make_code(w->send_key, out, WD_WIRE_HEAD + len, out + WD_WIRE_HEAD + len);
    return WD_WIRE_HEAD + len + WD_WIRE_CODE;
}

static long refuse(const char **why, const char *reason)
{
    *why = reason;
    return -1;
}

long wd_wire_take(struct wd_wire *w, const unsigned char *bytes, size_t have,
                  struct wd_wire_frame *frame, size_t *needed, const char **why)
{
    unsigned char code[WD_WIRE_CODE];
    *needed = WD_WIRE_HEAD;
    if (have < WD_WIRE_HEAD)
        return 0;
    size_t len = pt_get32(bytes);
    if (len > w->max)
        return refuse(why, "a message that is too long");
    *needed = WD_WIRE_HEAD + len + WD_WIRE_CODE;
    if (have < *needed)
        return 0;
    make_code(w->receive_key, bytes, WD_WIRE_HEAD + len, code);
    if (!pt_siphash_equal(code, bytes + WD_WIRE_HEAD + len))
        return refuse(why, "not of this step");
    if (get16(bytes + 6) != 0 || pt_get64(bytes + 8) != w->received)
        return refuse(why, "a message out of turn");
    w->received++;
    *frame = (struct wd_wire_frame){get16(bytes + 4), len, bytes + WD_WIRE_HEAD};
    return (long)*needed;
}

/* ---- ports -------------------------------------------------------------------------- */

uint16_t wd_wire_port(struct pt_ports ports, uint32_t job, uint32_t step, unsigned i)
{
    static const unsigned char no_key[PT_SIPHASH_KEY];
    unsigned char about[8], hash[PT_SIPHASH_LEN];
    uint32_t n = ports.end - ports.begin + 1u, stride_max = n / WD_WIRE_PORTS;
    struct pt_siphash h;
    pt_put32(about, job);
    pt_put32(about + 4, step);
    pt_siphash_begin(&h, no_key);
    pt_siphash_add(&h, about, sizeof(about));
    pt_siphash_end(&h, hash);
    /* All different where the range allows: WD_WIRE_PORTS strides do not pass its length. */
    uint32_t stride = stride_max ? 1 + pt_get32(hash) % stride_max : 1;
    return (uint16_t)(ports.begin + (pt_get32(hash + 4) % n + i * stride) % n);
}
