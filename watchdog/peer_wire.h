/*
 * What two watchdogs of a step say to each other, byte by byte.  No input or output
 * here: peers.c moves the bytes.
 *
 * Each side begins with a hello: version, who it is, a random nonce.  From the step's
 * secret and both hellos follow two keys, one a direction; from then on there are only
 * frames, each with its number and a code that depends on the key, so a byte that is
 * foreign, changed, repeated, left out, out of turn or sent back is refused:
 *
 *   client                hub
 *   hello           ->
 *                   <-    hello, PROOF
 *   PROOF           ->    with the client's munge credential
 *                   <-    WELCOME, with the hub's
 *   READY           ->
 *   frames         <->    frames
 *
 * The hub proves itself first: a client that has met another step's hub goes away
 * without having told anything.  All numbers are little-endian.
 */
#ifndef PT_PEER_WIRE_H
#define PT_PEER_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "common/hosts.h"
#include "common/siphash.h"

#define WD_WIRE_VERSION 2
#define WD_WIRE_SECRET  PT_SIPHASH_KEY
#define WD_WIRE_NONCE   16
#define WD_WIRE_HELLO   32 /* "ptpeer", u16 version, u32 role, u32 host, nonce */
#define WD_WIRE_HEAD    16 /* u32 length of the payload, u16 type, u16 0, u64 number */
#define WD_WIRE_CODE    PT_SIPHASH_LEN
#define WD_WIRE_MAX     65536 /* bytes of payload */
#define WD_WIRE_EARLY   512   /* the same, of a peer that has proved nothing yet */
#define WD_WIRE_PORTS   16

/* Types of frames that are not the caller's. */
enum {
    WD_WIRE_OURS = 0xff00, /* and above */
    WD_WIRE_PROOF = WD_WIRE_OURS,
    WD_WIRE_WELCOME,
    WD_WIRE_READY,
    WD_WIRE_ALIVE,    /* nothing to say */
    WD_WIRE_BYE,      /* ends in good order */
    WD_WIRE_COMPLETE, /* hub: all hosts are there */
    WD_WIRE_LOST,     /* hub: u32 host, reason */
};

enum wd_wire_role { WD_WIRE_CLIENT, WD_WIRE_HUB };

/* The step, as both sides know it. */
struct wd_wire_step {
    unsigned char secret[WD_WIRE_SECRET];
    uint32_t job, step, nhosts;
};

/* One side of a connection. */
struct wd_wire {
    struct wd_wire_step step;
    enum wd_wire_role role; /* ours */
    uint32_t host;          /* the client's */
    unsigned char hello[2][WD_WIRE_HELLO];
    unsigned char send_key[PT_SIPHASH_KEY], receive_key[PT_SIPHASH_KEY];
    uint64_t sent, received; /* frames */
    size_t max;              /* payload that is accepted now */
};

struct wd_wire_frame {
    uint16_t type;
    size_t len;
    const unsigned char *payload; /* in the bytes that were handed in */
};

/* Begins, and makes our own hello; `host` matters for a client only. */
void wd_wire_begin(struct wd_wire *w, const struct wd_wire_step *step, enum wd_wire_role role,
                   uint32_t host, const unsigned char nonce[WD_WIRE_NONCE]);

/* Our hello, to be sent. */
const unsigned char *wd_wire_hello(const struct wd_wire *w);

/* Takes the other side's; NULL, or why it is refused. */
const char *wd_wire_take_hello(struct wd_wire *w, const unsigned char hello[WD_WIRE_HELLO]);

/* Writes a frame of WD_WIRE_HEAD + len + WD_WIRE_CODE bytes; its length. */
size_t wd_wire_put(struct wd_wire *w, unsigned char *out, uint16_t type, const void *payload,
                   size_t len);

/*
 * Takes a frame from the front of `have` bytes.  Returns its length; 0 if more bytes are
 * needed, then *needed says how many there have to be; -1 if it is refused, then *why
 * says why, and the connection is to be closed.
 */
long wd_wire_take(struct wd_wire *w, const unsigned char *bytes, size_t have,
                  struct wd_wire_frame *frame, size_t *needed, const char **why);

/* What the credential of that side has to contain, after both hellos. */
void wd_wire_token(const struct wd_wire *w, enum wd_wire_role whose,
                   unsigned char token[PT_SIPHASH_LEN]);

/* The i-th port that this step's hub may listen at, i < WD_WIRE_PORTS. */
uint16_t wd_wire_port(struct pt_ports ports, uint32_t job, uint32_t step, unsigned i);

#endif
