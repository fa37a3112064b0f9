#include "config.h"

#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_MUNGE
#include <munge.h>
#endif

#include "watchdog/peer_helper.h"

struct helper {
    int fd;
    enum pt_munge munge;
    char munge_socket[108]; /* "": munge's own */
    int works;              /* munge did, last time */
};

static void look_up(const struct wd_helper_question *q, struct wd_helper_answer *a)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int rc = getaddrinfo(q->name, NULL, &hints, &list);
    if (rc) {
        snprintf(a->why, sizeof(a->why), "cannot find host '%.60s': %s", q->name, gai_strerror(rc));
        return;
    }
    for (const struct addrinfo *ai = list; ai && a->naddresses < WD_HELPER_ADDRESSES;
         ai = ai->ai_next)
        if (ai->ai_addrlen <= sizeof(a->addresses[0]))
            memcpy(&a->addresses[a->naddresses++], ai->ai_addr, ai->ai_addrlen);
    freeaddrinfo(list);
    a->ok = 1;
}

/* ---- munge -------------------------------------------------------------------------- */

#ifdef HAVE_MUNGE
static munge_ctx_t make_context(const struct helper *h)
{
    munge_ctx_t ctx = munge_ctx_create();
    if (ctx && *h->munge_socket)
        munge_ctx_set(ctx, MUNGE_OPT_SOCKET, h->munge_socket);
    return ctx;
}

/* Only a process of our own user can open it. */
static const char *encode(const struct helper *h, const unsigned char *token, char *cred,
                          size_t size)
{
    munge_ctx_t ctx = make_context(h);
    char *text = NULL;
    if (!ctx)
        return "out of memory";
    munge_err_t rc = munge_ctx_set(ctx, MUNGE_OPT_UID_RESTRICTION, geteuid());
    if (rc == EMUNGE_SUCCESS)
        rc = munge_encode(&text, ctx, token, PT_SIPHASH_LEN);
    const char *why = rc == EMUNGE_SUCCESS ? NULL : munge_strerror(rc);
    if (!why && strlen(text) >= size)
        why = "the credential is too long";
    if (!why)
        strcpy(cred, text);
    free(text);
    munge_ctx_destroy(ctx);
    return why;
}

static const char *check(const struct helper *h, const unsigned char *token, const char *cred)
{
    munge_ctx_t ctx = make_context(h);
    void *payload = NULL;
    int len = 0;
    uid_t uid = (uid_t)-1;
    gid_t gid;
    if (!ctx)
        return "out of memory";
    munge_err_t rc = munge_decode(cred, ctx, &payload, &len, &uid, &gid);
    const char *why = NULL;
    if (rc != EMUNGE_SUCCESS)
        why = munge_strerror(rc);
    else if (uid != geteuid())
        why = "another user's";
    else if (len != PT_SIPHASH_LEN || !pt_siphash_equal(payload, token))
        why = "made for another connection";
    free(payload);
    munge_ctx_destroy(ctx);
    return why;
}
#else
static const char *encode(const struct helper *h, const unsigned char *token, char *cred,
                          size_t size)
{
    return "built without munge";
}

static const char *check(const struct helper *h, const unsigned char *token, const char *cred)
{
    return "built without munge";
}
#endif

static void vouch(struct helper *h, const struct wd_helper_question *q, struct wd_helper_answer *a)
{
    const char *why = encode(h, q->own_token, a->own_cred, sizeof(a->own_cred));
    h->works = !why;
    a->ok = !why || h->munge != PT_MUNGE_YES;
    if (!a->ok)
        snprintf(a->why, sizeof(a->why), "munge: %s", why);
}

/* With `auto`, a side that can make credentials wants one from the other. */
static void check_other(const struct helper *h, const struct wd_helper_question *q,
                        struct wd_helper_answer *a)
{
    const char *why = NULL;
    if (h->munge == PT_MUNGE_AUTO && !h->works) {
        a->ok = 1;
        return;
    }
    why = *q->other_cred ? check(h, q->other_token, q->other_cred) : "no credential came";
    a->ok = a->munge = !why;
    if (why)
        snprintf(a->why, sizeof(a->why), "munge: %s", why);
}

/* ---- the thread ----------------------------------------------------------------------- */

static void answer(struct helper *h, const struct wd_helper_question *q, struct wd_helper_answer *a)
{
    *a = (struct wd_helper_answer){.what = q->what, .id = q->id};
    if (q->what & WD_HELPER_RESOLVE) {
        look_up(q, a);
        return;
    }
    a->ok = 1;
    if (h->munge == PT_MUNGE_NO)
        return;
    if (q->what & WD_HELPER_VOUCH)
        vouch(h, q, a);
    if (a->ok && q->what & WD_HELPER_CHECK)
        check_other(h, q, a);
}

static void *serve(void *arg)
{
    struct helper *h = arg;
    struct wd_helper_question q;
    struct wd_helper_answer a;
    while (recv(h->fd, &q, sizeof(q), 0) == (ssize_t)sizeof(q)) {
        answer(h, &q, &a);
        if (send(h->fd, &a, sizeof(a), MSG_NOSIGNAL) < 0)
            break;
    }
    close(h->fd);
    free(h);
    return NULL;
}

/* Signals are for the loop. */
static int start_thread(struct helper *h)
{
    sigset_t all, old;
    pthread_attr_t attr;
    pthread_t thread;
    if (pthread_attr_init(&attr))
        return -1;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    rc = rc ? rc : pthread_create(&thread, &attr, serve, h);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return rc ? -1 : 0;
}

int wd_helper_start(enum pt_munge munge, const char *munge_socket, struct pt_err *err)
{
    int fds[2];
    struct helper *h = calloc(1, sizeof(*h));
    if (!h || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds)) {
        free(h);
        return pt_err_errno(err, "cannot start a helper");
    }
    h->fd = fds[1];
    h->munge = munge;
    snprintf(h->munge_socket, sizeof(h->munge_socket), "%s", munge_socket ? munge_socket : "");
    if (start_thread(h)) {
        close(fds[0]);
        close(fds[1]);
        free(h);
        return pt_err_set(err, "cannot start a helper thread");
    }
    return fds[0];
}

int wd_helper_ask(int fd, const struct wd_helper_question *q)
{
    return send(fd, q, sizeof(*q), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(*q) ? 0 : -1;
}

int wd_helper_hear(int fd, struct wd_helper_answer *a)
{
    return recv(fd, a, sizeof(*a), MSG_DONTWAIT) == (ssize_t)sizeof(*a);
}
