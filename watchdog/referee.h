/*
 * The referee: one for the step, on its first host.  One hold at a time; who asks
 * meanwhile goes on unheld.
 */
#ifndef PT_REFEREE_H
#define PT_REFEREE_H

#include "watchdog/verdict.h"

struct wd_referee;

struct wd_referee_conf {
    int nhosts;
    uint64_t hold_max; /* ns */
    /* Says something to the judge of that host. */
    void (*say)(void *arg, int host, uint16_t type, const void *payload, size_t len);
    void *arg;
};

struct wd_referee *wd_referee_create(const struct wd_referee_conf *conf);
void wd_referee_destroy(struct wd_referee *r);

/* A judge has said something. */
void wd_referee_hear(struct wd_referee *r, int host, uint16_t type, const void *payload,
                     size_t len);

/* Every host has come: holds can begin. */
void wd_referee_open(struct wd_referee *r);
/* A host has ended in good order: nobody is there any more. */
void wd_referee_left(struct wd_referee *r, int host);
/* Nobody can be judged from now on: a host was lost, or never came. */
void wd_referee_close(struct wd_referee *r);

/* Looks at the time; 1: somebody is held. */
int wd_referee_tick(struct wd_referee *r, uint64_t now);

#endif
