/*
 * A thread for what may take its time: looking up a name, and asking munged.  The
 * watchdog's loop never waits for either.  Questions and answers are packets over a
 * socket; the thread shares no memory with us, so it may outlive a connection that is
 * given up, stuck in a resolver.
 */
#ifndef PT_PEER_HELPER_H
#define PT_PEER_HELPER_H

#include <stdint.h>
#include <sys/socket.h>

#include "common/siphash.h"
#include "watchdog/peers.h"

#define WD_HELPER_CRED      WD_WIRE_EARLY
#define WD_HELPER_ADDRESSES 8

enum wd_helper_what {
    WD_HELPER_RESOLVE = 1, /* name -> addresses */
    WD_HELPER_VOUCH = 2,   /* own_token -> own_cred; "": no munge here */
    WD_HELPER_CHECK = 4,   /* other_token, other_cred -> ok */
};

struct wd_helper_question {
    int what;    /* one or more of the above; VOUCH comes before CHECK */
    uint32_t id; /* the asker's, comes back */
    char name[256];
    unsigned char own_token[PT_SIPHASH_LEN], other_token[PT_SIPHASH_LEN];
    char other_cred[WD_HELPER_CRED + 1];
};

struct wd_helper_answer {
    int what;
    uint32_t id;
    int ok;
    int munge; /* a credential was checked and is good */
    char why[120];
    char own_cred[WD_HELPER_CRED + 1];
    int naddresses;
    struct sockaddr_storage addresses[WD_HELPER_ADDRESSES];
};

/* Starts the thread; the socket that leads to it, or -1.  Closing it ends the thread. */
int wd_helper_start(enum pt_munge munge, const char *munge_socket, struct pt_err *err);

/* Never waits.  0, or -1: too much is asked already. */
int wd_helper_ask(int fd, const struct wd_helper_question *q);

/* 1 if there was an answer, else 0. */
int wd_helper_hear(int fd, struct wd_helper_answer *a);

#endif
