/*
 * The other hosts of the step, as this watchdog sees them: who is connected, who was and
 * is lost, and what is said of it in the end.
 */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/json.h"
#include "watchdog/peers.h"
#include "watchdog/watchdog.h"

struct wd_hosts {
    struct wd_peers *peers; /* NULL: not begun, or left */
    struct wd_peers_stats stats;
    unsigned char *met, *lost; /* of each host: has it ever been? */
    int nlost, was_complete;
    char loss[300];    /* the first */
    char problem[400]; /* there is no connection at all */
};

int wd_hosts_create(struct wd *wd, struct pt_err *err)
{
    size_t n = (size_t)wd->opt.nhosts;
    if (n < 2)
        return 0;
    struct wd_hosts *h = wd->hosts = calloc(1, sizeof(*h));
    if (h) {
        h->met = calloc(n, 1);
        h->lost = calloc(n, 1);
        snprintf(h->problem, sizeof(h->problem), "no secret has come from srun");
    }
    if (!h || !h->met || !h->lost)
        return pt_err_errno(err, "cannot keep %zu hosts", n);
    return 0;
}

void wd_hosts_destroy(struct wd *wd)
{
    struct wd_hosts *h = wd->hosts;
    if (!h)
        return;
    wd_peers_destroy(h->peers);
    free(h->met);
    free(h->lost);
    free(h);
    wd->hosts = NULL;
}

/* ---- what happens ------------------------------------------------------------------- */

static void on_up(void *arg, int host)
{
    struct wd *wd = arg;
    wd->hosts->met[host] = 1;
}

static void on_down(void *arg, int host, const char *reason)
{
    struct wd *wd = arg;
    struct wd_hosts *h = wd->hosts;
    wd_judge_host_gone(wd->judge, host, !reason);
    if (!reason)
        return;
    if (!h->nlost++)
        snprintf(h->loss, sizeof(h->loss), "host %d: %s", host, reason);
    h->lost[host] = 1;
    fprintf(stderr, "ptwatchd: lost host %d: %s\n", host, reason);
}

static void on_message(void *arg, int host, uint16_t type, const void *payload, size_t len)
{
    struct wd *wd = arg;
    wd_judge_hear(wd->judge, host, type, payload, len);
}

int wd_hosts_need_us(const struct wd *wd)
{
    struct wd_peers_stats stats;
    if (wd->opt.hostid || wd->spec.throttle == PT_THROTTLE_NONE || !wd->hosts || !wd->hosts->peers)
        return 0;
    wd_peers_stats(wd->hosts->peers, &stats);
    return stats.up > 0;
}

void wd_hosts_send(struct wd *wd, int host, uint16_t type, const void *payload, size_t len)
{
    if (wd->hosts && wd->hosts->peers)
        wd_peers_send(wd->hosts->peers, host, type, payload, len);
}

void wd_hosts_work(struct wd *wd)
{
    struct wd_hosts *h = wd->hosts;
    if (!h->peers)
        return;
    wd_peers_work(h->peers);
    if (!h->was_complete && wd_peers_complete(h->peers)) {
        h->was_complete = 1;
        wd_judge_open(wd->judge);
    }
}

int wd_hosts_complete(const struct wd *wd)
{
    return wd->hosts && wd->hosts->peers && wd_peers_complete(wd->hosts->peers);
}

/* ---- begin and end --------------------------------------------------------------------- */

/* Two hex digits a byte; what is behind them, or NULL. */
static const char *read_secret(const char *text, unsigned char secret[WD_WIRE_SECRET])
{
    for (int i = 0; i < WD_WIRE_SECRET; i++, text += 2) {
        unsigned byte;
        if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]) ||
            sscanf(text, "%2x", &byte) != 1)
            return NULL;
        secret[i] = (unsigned char)byte;
    }
    return text;
}

static uint32_t number(const char *text)
{
    return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

static void begin(struct wd *wd, const struct wd_peers_conf *conf)
{
    struct wd_hosts *h = wd->hosts;
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = h};
    struct pt_err err = {""};
    h->peers = wd_peers_create(conf, &err);
    if (h->peers && epoll_ctl(wd->epoll, EPOLL_CTL_ADD, wd_peers_fd(h->peers), &ev)) {
        pt_err_errno(&err, "cannot wait for other hosts");
        wd_peers_destroy(h->peers);
        h->peers = NULL;
    }
    snprintf(h->problem, sizeof(h->problem), "%s", err.text);
}

void wd_hosts_connect(struct wd *wd, const char *text)
{
    struct wd_peers_conf conf = {
        .hostid = wd->opt.hostid,
        .nhosts = wd->opt.nhosts,
        .ports = wd->opt.ports,
        .job = number(wd->opt.job),
        .step = number(wd->opt.step),
        .munge = wd->opt.munge,
        .munge_socket = wd->opt.munge_socket,
        .message = on_message,
        .up = on_up,
        .down = on_down,
        .arg = wd,
    };
    if (!wd->hosts || wd->hosts->peers)
        return;
    const char *address = read_secret(text, conf.secret);
    if (address && address[0] == ' ' && address[1]) {
        conf.address = address + 1;
        begin(wd, &conf);
    }
    explicit_bzero(&conf, sizeof(conf));
}

void wd_hosts_leave(struct wd *wd)
{
    struct wd_hosts *h = wd->hosts;
    if (!h || !h->peers)
        return;
    wd_hosts_work(wd); /* what has come meanwhile */
    wd_peers_stats(h->peers, &h->stats);
    if (h->stats.refused)
        fprintf(stderr, "ptwatchd: %lu connections refused, the first: %s\n", h->stats.refused,
                h->stats.refusal);
    wd_peers_destroy(h->peers);
    h->peers = NULL;
}

/* ---- for the record ---------------------------------------------------------------------- */

const char *wd_hosts_problem(const struct wd *wd, char *buf, size_t size)
{
    const struct wd_hosts *h = wd->hosts;
    if (!h)
        return NULL;
    if (*h->problem)
        snprintf(buf, size, "%s", h->problem);
    else if (h->nlost)
        snprintf(buf, size, "%s", h->loss);
    else if (!h->was_complete)
        snprintf(buf, size, "the step ended before all had come");
    else
        return NULL;
    return buf;
}

int wd_hosts_lost(const struct wd *wd)
{
    return wd->hosts && wd->hosts->nlost > 0;
}

static void put_list(FILE *f, const char *key, const unsigned char *is, int n)
{
    const char *comma = "";
    fprintf(f, "\"%s\": [", key);
    for (int i = 0; i < n; i++)
        if (is[i]) {
            fprintf(f, "%s%d", comma, i);
            comma = ", ";
        }
    fputs("], ", f);
}

void wd_hosts_put(const struct wd *wd, FILE *f)
{
    const struct wd_hosts *h = wd->hosts;
    char why[400];
    if (!h)
        return;
    fputs(", \"peers\": {", f);
    put_list(f, "connected", h->met, wd->opt.nhosts);
    put_list(f, "lost", h->lost, wd->opt.nhosts);
    fprintf(f, "\"all\": %s, \"munge\": %s, \"refused\": %lu, \"refusal\": ",
            h->was_complete ? "true" : "false", h->stats.munge ? "true" : "false",
            h->stats.refused);
    pt_json_string(f, h->stats.refused ? h->stats.refusal : NULL);
    fputs(", \"problem\": ", f);
    pt_json_string(f, wd_hosts_problem(wd, why, sizeof(why)));
    fputc('}', f);
}
