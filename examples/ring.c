/* A ring of stream sockets; see ring.h. */
#define _GNU_SOURCE
#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { ADDRESS_LINE = 128 }; /* fixed size, so that the same bytes are written in each run */

/* How long a rank naps before it looks again whether its neighbour is there yet. */
static const double nap = 0.005;

static int new_socket(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        ex_fail("make", "a socket");
    return fd;
}

static void bind_and_listen(int fd, const void *addr, socklen_t len, const char *what)
{
    if (bind(fd, addr, len) < 0 || listen(fd, 4) < 0)
        ex_fail("listen at", what);
}

/* Listen on a port that the kernel chooses, and tell which. */
static int listen_tcp(uint32_t host, in_port_t *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(host)};
    socklen_t len = sizeof(a);
    int fd = new_socket(AF_INET);

    bind_and_listen(fd, &a, len, "a TCP port");
    if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
        ex_fail("listen at", "a TCP port");
    *port = ntohs(a.sin_port);
    return fd;
}

/* Connect, again and again while nobody listens there, until the time is over. */
static int connect_to(const struct group *g, const void *addr, socklen_t len, const char *what)
{
    double end = ex_now() + g->timeout;
    const struct sockaddr *a = addr;

    for (;;) {
        int fd = new_socket(a->sa_family);
        if (connect(fd, a, len) == 0)
            return fd;
        if (errno != ECONNREFUSED && errno != EINTR)
            ex_fail("connect to", what);
        close(fd);
        if (ex_now() > end)
            group_timed_out(g, what);
        ex_nap(nap);
    }
}

static void set_timeout(int fd, double seconds)
{
    struct timeval t = {(time_t)seconds, (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)};

    /* A zero would mean "for ever". */
    if (t.tv_sec == 0 && t.tv_usec == 0)
        t.tv_usec = 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

static int accept_from(const struct group *g, int listener, const char *what)
{
    int fd;

    set_timeout(listener, g->timeout);
    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) < 0) {
        if (errno == EAGAIN)
            group_timed_out(g, what);
        if (errno != EINTR)
            ex_fail("accept", what);
    }
    close(listener);
    return fd;
}

/* inherited[2 * i] is rank i's way to the next rank, or its listener; [2 * i + 1] see there. */
void ring_prepare(struct ring *r, const struct group *g, bool tcp, const char *dir)
{
    *r = (struct ring){.group = g, .tcp = tcp, .dir = dir, .next = -1, .prev = -1};
    if (g->slurm)
        return;
    r->inherited = calloc((size_t)g->size, 2 * sizeof(int));
    if (!r->inherited)
        ex_fail("allocate", "the list of sockets");
    for (int i = 0; i < g->size; i++) {
        if (tcp) {
            in_port_t port;
            r->inherited[2 * i] = listen_tcp(INADDR_LOOPBACK, &port);
            r->inherited[2 * i + 1] = port;
        } else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, &r->inherited[2 * i]) < 0) {
            ex_fail("make", "a socket pair");
        }
    }
}

/* Keep what is this rank's and close the rest, so that a peer's end is seen as end of file. */
static void connect_inherited(struct ring *r)
{
    const struct group *g = r->group;
    int next = (g->rank + 1) % g->size, prev = (g->rank + g->size - 1) % g->size;

    if (r->tcp) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        a.sin_port = htons((in_port_t)r->inherited[2 * next + 1]);
        r->next = connect_to(g, &a, sizeof(a), "the next rank");
        for (int i = 0; i < g->size; i++)
            if (i != g->rank)
                close(r->inherited[2 * i]);
        r->prev = accept_from(g, r->inherited[2 * g->rank], "the previous rank");
    } else {
        r->next = r->inherited[2 * g->rank];
        r->prev = r->inherited[2 * prev + 1];
        for (int i = 0; i < 2 * g->size; i++)
            if (r->inherited[i] != r->next && r->inherited[i] != r->prev)
                close(r->inherited[i]);
    }
    free(r->inherited);
    r->inherited = NULL;
}

/* An abstract name: it vanishes with its socket, so there is nothing to remove. */
static socklen_t unix_address(struct sockaddr_un *a, const struct group *g, int rank)
{
    int n;

    memset(a, 0, sizeof(*a));
    a->sun_family = AF_UNIX;
    n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "paratrace-%s-%s-%d", ex_name, g->tag,
                 rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static void connect_unix(struct ring *r)
{
    const struct group *g = r->group;
    struct sockaddr_un a;
    socklen_t len = unix_address(&a, g, g->rank);
    int listener = new_socket(AF_UNIX);

    bind_and_listen(listener, &a, len, "a Unix socket");
    len = unix_address(&a, g, (g->rank + 1) % g->size);
    r->next = connect_to(g, &a, len, "the next rank (are all ranks on one host?)");
    r->prev = accept_from(g, listener, "the previous rank");
}

/* Written under another name first: the neighbour must never read half a line. */
static void publish(const struct ring *r, in_port_t port)
{
    struct file f, final;
    char host[64] = "", line[ADDRESS_LINE] = "";

    gethostname(host, sizeof(host) - 1);
    snprintf(line, sizeof(line), "%s %u\n", host, (unsigned)port);
    file_name(&f, r->dir, "sockets.%s.%d.new", r->group->tag, r->group->rank);
    file_name(&final, r->dir, "sockets.%s.%d.addr", r->group->tag, r->group->rank);
    file_open(&f, O_WRONLY | O_CREAT | O_TRUNC);
    file_write(&f, line, sizeof(line));
    file_close(&f);
    if (rename(f.path, final.path) < 0)
        ex_fail("rename", f.path);
}

/* Wait for the next rank's file, read the address, and remove the file: nobody else needs it. */
static struct sockaddr_in look_up(const struct ring *r, int rank)
{
    const struct group *g = r->group;
    double end = ex_now() + g->timeout;
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    struct sockaddr_in a;
    struct file f;
    char line[ADDRESS_LINE + 1] = "", host[64], port[16];
    int rc;

    file_name(&f, r->dir, "sockets.%s.%d.addr", g->tag, rank);
    while (access(f.path, R_OK) < 0) {
        if (errno != ENOENT)
            ex_fail("read", f.path);
        if (ex_now() > end)
            group_timed_out(g, "the address of the next rank (is --dir shared?)");
        ex_nap(nap);
    }
    file_open(&f, O_RDONLY);
    file_read(&f, line, ADDRESS_LINE);
    file_close(&f);
    file_remove(&f);
    if (sscanf(line, "%63s %15s", host, port) != 2)
        ex_die("cannot read '%s': not an address", f.path);
    rc = getaddrinfo(host, port, &hints, &found);
    if (rc != 0)
        ex_die("cannot find host '%s': %s", host, gai_strerror(rc));
    memcpy(&a, found->ai_addr, sizeof(a));
    freeaddrinfo(found);
    return a;
}

static void connect_tcp(struct ring *r)
{
    in_port_t port;
    int listener = listen_tcp(INADDR_ANY, &port);
    struct sockaddr_in a;

    publish(r, port);
    a = look_up(r, (r->group->rank + 1) % r->group->size);
    r->next = connect_to(r->group, &a, sizeof(a), "the next rank");
    r->prev = accept_from(r->group, listener, "the previous rank");
}

void ring_connect(struct ring *r)
{
    int on = 1;

    if (!r->group->slurm)
        connect_inherited(r);
    else if (r->tcp)
        connect_tcp(r);
    else
        connect_unix(r);
    if (r->tcp)
        setsockopt(r->next, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    set_timeout(r->next, r->group->timeout);
    set_timeout(r->prev, r->group->timeout);
}

void ring_send(const struct ring *r, uint64_t token)
{
    /* MSG_NOSIGNAL: a peer that died is an error to be told, not a SIGPIPE. */
    if (send(r->next, &token, sizeof(token), MSG_NOSIGNAL) != sizeof(token))
        ex_fail("send to", "the next rank");
}

uint64_t ring_receive(const struct ring *r)
{
    uint64_t token;
    ssize_t n = recv(r->prev, &token, sizeof(token), MSG_WAITALL);

    if (n < 0 && errno == EAGAIN)
        group_timed_out(r->group, "the token");
    if (n < 0)
        ex_fail("receive from", "the previous rank");
    if (n != sizeof(token))
        ex_die("the previous rank ended too early");
    return token;
}

void ring_close(struct ring *r)
{
    close(r->next);
    close(r->prev);
}
