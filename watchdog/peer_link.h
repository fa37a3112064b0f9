/*
 * One connection to another watchdog: a socket that never waits, what came and is not
 * yet a whole frame, and what has still to leave.
 */
#ifndef PT_PEER_LINK_H
#define PT_PEER_LINK_H

#include "watchdog/peer_wire.h"

/* What we wait for. */
enum wd_link_stage {
    WD_LINK_CONNECTING, /* client: TCP */
    WD_LINK_HELLO,
    WD_LINK_PROOF,
    WD_LINK_HELPER,  /* our own munged */
    WD_LINK_WELCOME, /* client */
    WD_LINK_READY,   /* hub */
    WD_LINK_UP,      /* nothing: it is one of us */
};

struct wd_link {
    struct wd_link *next;
    int fd; /* -1: closed, to be freed */
    uint32_t id;
    enum wd_link_stage stage;
    struct wd_wire wire;
    uint64_t since; /* when it began to wait, ms */
    uint64_t heard, spoke;
    unsigned char *in, *out;
    size_t in_have, in_size;
    size_t out_begin, out_end, out_size;
    int wants_out;       /* told to epoll */
    const char *failure; /* set by a send: to be dropped for this */
    void *question;      /* for the helper, who has too much to do; malloc */
};

/* Takes over fd; NULL if out of memory, then fd is still the caller's. */
struct wd_link *wd_link_create(int fd, uint32_t id);
void wd_link_destroy(struct wd_link *l);

/* Reads what there is, once.  1: something, 0: nothing now, -1: the end, with errno or 0. */
int wd_link_read(struct wd_link *l);

/* Bytes at the front of `in` have been used. */
void wd_link_used(struct wd_link *l, size_t n);

/* There will be a frame of that many bytes; -1 if out of memory. */
int wd_link_expect(struct wd_link *l, size_t n);

/* Both queue, and send what leaves at once.  -1: l->failure is set. */
int wd_link_send_hello(struct wd_link *l);
int wd_link_send(struct wd_link *l, uint16_t type, const void *payload, size_t len);

/* 0: all has left, 1: not yet, -1: l->failure is set. */
int wd_link_flush(struct wd_link *l);

#endif
