#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "watchdog/verdict.h"

static int make_room(struct wd_peer_list *list, size_t more)
{
    if (list->n + more <= list->room)
        return 0;
    size_t room = list->n + more + 64;
    struct pt_hold_peer *peers = realloc(list->peers, room * sizeof(*peers));
    if (!peers)
        return -1;
    list->peers = peers;
    list->room = room;
    return 0;
}

int wd_peer_list_append(struct wd_peer_list *list, const struct pt_hold_peer *peers, size_t n)
{
    if (make_room(list, n))
        return -1;
    if (n)
        memcpy(list->peers + list->n, peers, n * sizeof(*peers));
    list->n += n;
    return 0;
}

int wd_peer_list_add(struct wd_peer_list *list, const void *payload, size_t len)
{
    struct wd_say_state head;
    struct wd_say_peer peer;
    const char *at = (const char *)payload + sizeof(head);
    if (len < sizeof(head))
        return -1;
    memcpy(&head, payload, sizeof(head));
    if (head.count > WD_SAY_PEERS || len != sizeof(head) + head.count * sizeof(peer) ||
        make_room(list, head.count))
        return -1;
    for (uint32_t i = 0; i < head.count; i++, at += sizeof(peer)) {
        memcpy(&peer, at, sizeof(peer));
        if (peer.state > PT_STATE_ASSUMED)
            return -1;
        list->peers[list->n++] =
            (struct pt_hold_peer){peer.name, peer.io_done, (enum pt_hold_state)peer.state};
    }
    return 0;
}

void wd_peer_list_free(struct wd_peer_list *list)
{
    free(list->peers);
    *list = (struct wd_peer_list){0};
}

void wd_say_peers(const struct wd_say_state *head, uint16_t type, const struct pt_hold_peer *peers,
                  size_t n, wd_say_fn *say, void *arg)
{
    static char buf[sizeof(struct wd_say_state) + WD_SAY_PEERS * sizeof(struct wd_say_peer)];
    do {
        struct wd_say_state part = *head;
        part.count = (uint32_t)(n < WD_SAY_PEERS ? n : WD_SAY_PEERS);
        part.more = n > part.count;
        memcpy(buf, &part, sizeof(part));
        for (uint32_t i = 0; i < part.count; i++) {
            struct wd_say_peer peer = {peers[i].name, peers[i].state, peers[i].io_done};
            memcpy(buf + sizeof(part) + i * sizeof(peer), &peer, sizeof(peer));
        }
        peers += part.count;
        n -= part.count;
        say(arg, type, buf, sizeof(part) + part.count * sizeof(struct wd_say_peer));
    } while (n);
}
