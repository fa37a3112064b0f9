/*
 * The watchdogs of a step among themselves: they find each other, messages arrive whole
 * and in order, and whoever goes is missed.
 */
#include "config.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/unit/peers_kit.h"
#include "tests/unit/run.h"

static struct side hub, clients[2];

/* Message number n of a stream: some are empty, some of the largest size. */
static size_t size_of(int n)
{
    return n % 50 == 7 ? WD_WIRE_MAX : (size_t)n * 37 % 1500;
}

static void send_number(struct side *from, int to, int n)
{
    static unsigned char bytes[WD_WIRE_MAX];
    memset(bytes, n, size_of(n));
    ck_assert_int_eq(wd_peers_send(from->p, to, (uint16_t)n, bytes, size_of(n)), 0);
}

struct wanted {
    struct side *side;
    int host, messages;
};

static int has_come(void *arg)
{
    const struct wanted *w = arg;
    return w->side->messages[w->host] >= w->messages;
}

static int is_down(void *arg)
{
    const struct wanted *w = arg;
    return w->side->downs[w->host] > 0;
}

static int is_complete(void *arg)
{
    return wd_peers_complete(arg);
}

static int wait_down(struct side *s, int host, int ms)
{
    return kit_until(ms, is_down, &(struct wanted){s, host, 0});
}

START_TEST(messages_arrive_in_order)
{
    kit_connect(&hub, clients, 2);
    for (int n = 0; n < 200; n++) {
        send_number(&hub, 1, n);
        send_number(&hub, 2, n);
        send_number(&clients[0], 0, n);
        send_number(&clients[1], 0, n);
        if (n % 10 == 9)
            kit_work(5);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert(kit_until(4000, has_come, &(struct wanted){&clients[i], 0, 200}));
        ck_assert(kit_until(4000, has_come, &(struct wanted){&hub, i + 1, 200}));
        ck_assert_int_eq(clients[i].disordered, 0);
        ck_assert_uint_eq(clients[i].len[0], size_of(199));
    }
    ck_assert_int_eq(hub.disordered, 0);
    ck_assert_uint_eq(kit_refused(&hub), 0);
}
END_TEST

START_TEST(what_cannot_be_sent_is_refused)
{
    static char large[WD_WIRE_MAX + 1];
    kit_start(&hub, 0, &kit_conf);
    ck_assert_int_eq(wd_peers_send(hub.p, 1, 0, "x", 1), -1); /* not there yet */
    kit_stop(&hub);
    kit_connect(&hub, clients, 2);
    ck_assert_int_eq(wd_peers_send(hub.p, 1, 0, large, sizeof(large)), -1);
    ck_assert_int_eq(wd_peers_send(hub.p, KIT_HOSTS, 0, "x", 1), -1);
    ck_assert_int_eq(wd_peers_send(hub.p, 0, 0, "x", 1), -1);
    ck_assert_int_eq(wd_peers_send(hub.p, -1, 0, "x", 1), -1);
    ck_assert_int_eq(wd_peers_send(hub.p, 1, WD_WIRE_BYE, NULL, 0), -1);
    ck_assert_int_eq(wd_peers_send(clients[0].p, 2, 0, "x", 1), -1); /* only to the hub */
}
END_TEST

START_TEST(not_complete_while_one_is_missing)
{
    kit_start(&hub, 0, &kit_conf);
    kit_start(&clients[0], 1, &kit_conf);
    kit_work(1000);
    ck_assert_int_eq(hub.ups[1], 1);
    ck_assert_int_eq(clients[0].ups[0], 1);
    ck_assert(!wd_peers_complete(hub.p));
    ck_assert(!wd_peers_complete(clients[0].p));
}
END_TEST

START_TEST(a_client_ends_in_good_order)
{
    kit_connect(&hub, clients, 2);
    send_number(&clients[0], 0, 0);
    kit_stop(&clients[0]);
    ck_assert(wait_down(&hub, 1, 3000));
    ck_assert_str_eq(hub.reason[1], "");
    ck_assert_int_eq(hub.messages[1], 1); /* what it said last has come */
    kit_work(100);
    ck_assert(wd_peers_complete(hub.p));
    ck_assert(wd_peers_complete(clients[1].p));
    ck_assert_int_eq(clients[1].downs[1], 0);
    ck_assert_int_eq(wd_peers_send(hub.p, 1, 0, "x", 1), -1);
}
END_TEST

START_TEST(the_hub_ends_in_good_order)
{
    kit_connect(&hub, clients, 2);
    send_number(&clients[0], 0, 0); /* is not read any more */
    kit_stop(&hub);
    ck_assert(wait_down(&clients[0], 0, 3000));
    ck_assert(wait_down(&clients[1], 0, 3000));
    ck_assert_str_eq(clients[0].reason[0], "");
    ck_assert(!wd_peers_complete(clients[0].p));
}
END_TEST

/* Host 1 is another process; the hub and host 2 are told what became of it. */
static void lose_host_1(int sig, const char *reason)
{
    int pid = kit_fork(1), status;
    kit_start(&hub, 0, &kit_conf);
    kit_start(&clients[1], 2, &kit_conf);
    ck_assert(kit_until(8000, is_complete, clients[1].p));
    kill(pid, sig);
    ck_assert(wait_down(&hub, 1, 8000));
    ck_assert(wait_down(&clients[1], 1, 1000));
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    ck_assert_str_eq(hub.reason[1], reason);
    ck_assert_str_eq(clients[1].reason[1], reason);
    ck_assert(!wd_peers_complete(hub.p));
    ck_assert(!wd_peers_complete(clients[1].p));
    ck_assert_int_eq(hub.downs[2] + clients[1].downs[0], 0); /* the others stay */
    send_number(&hub, 2, 0);
    ck_assert(kit_until(2000, has_come, &(struct wanted){&clients[1], 0, 1}));
}

START_TEST(a_killed_host_is_lost)
{
    lose_host_1(SIGKILL, "connection closed");
}
END_TEST

/* As one whose cable is cut: nothing comes, not even the end. */
START_TEST(a_silent_host_is_lost)
{
    lose_host_1(SIGSTOP, "silent for 5 s");
}
END_TEST

START_TEST(a_quiet_connection_stays)
{
    kit_connect(&hub, clients, 2);
    kit_work(7000);
    ck_assert_int_eq(hub.downs[1] + hub.downs[2] + clients[0].downs[0] + clients[1].downs[0], 0);
}
END_TEST

START_TEST(a_hub_that_never_comes_is_given_up)
{
    kit_start(&clients[0], 1, &kit_conf);
    ck_assert(wait_down(&clients[0], 0, 13000));
    ck_assert_str_eq(clients[0].reason[0], "not reached within 10 s: Connection refused");
    ck_assert_int_eq(clients[0].downs[0], 1);
}
END_TEST

START_TEST(a_name_that_does_not_exist)
{
    struct wd_peers_conf conf = kit_conf;
    conf.address = "no-such-host.invalid";
    kit_start(&clients[0], 1, &conf);
    ck_assert(wait_down(&clients[0], 0, 20000));
    ck_assert_msg(strstr(clients[0].reason[0], "cannot find host 'no-such-host.invalid'") != NULL,
                  "%s", clients[0].reason[0]);
}
END_TEST

/* More than may wait at the door without proof, but they are expected. */
START_TEST(many_hosts_at_once)
{
    static struct side many[KIT_MAX - 1];
    kit_conf.nhosts = KIT_MAX;
    kit_connect(&hub, many, KIT_MAX - 1);
    ck_assert_uint_eq(kit_refused(&hub), 0);
    send_number(&hub, KIT_MAX - 1, 0);
    ck_assert(kit_until(2000, has_come, &(struct wanted){&many[KIT_MAX - 2], 0, 1}));
}
END_TEST

/* Two steps of the same ports: each listens at its own, and clients find theirs. */
START_TEST(steps_with_the_same_ports_stay_apart)
{
    static struct side hub2, client2;
    struct wd_peers_conf other;
    uint16_t port = kit_conf.ports.begin;
    kit_conf.ports =
        (struct pt_ports){port > 65000 ? port - 10 : port, port > 65000 ? port : port + 10};
    kit_conf.nhosts = 2;
    other = kit_conf;
    other.secret[0] ^= 1;
    kit_start(&hub, 0, &kit_conf);
    kit_start(&hub2, 0, &other);
    kit_start(&client2, 1, &other);
    kit_start(&clients[0], 1, &kit_conf);
    ck_assert(kit_until(8000, is_complete, client2.p));
    ck_assert(kit_until(8000, is_complete, clients[0].p));
    send_number(&client2, 0, 0);
    ck_assert(kit_until(2000, has_come, &(struct wanted){&hub2, 1, 1}));
    ck_assert_int_eq(hub.messages[1], 0);
}
END_TEST

START_TEST(ports_are_all_different)
{
    struct pt_ports ports = {63001, 64999};
    for (uint32_t step = 0; step < 500; step++)
        for (unsigned i = 0; i < WD_WIRE_PORTS; i++) {
            uint16_t port = wd_wire_port(ports, 99, step, i);
            ck_assert(port >= ports.begin && port <= ports.end);
            for (unsigned j = 0; j < i; j++)
                ck_assert_uint_ne(port, wd_wire_port(ports, 99, step, j));
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("peers");
    TCase *tcase = tcase_create("peers");

    tcase_add_checked_fixture(tcase, kit_begin, NULL);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, messages_arrive_in_order);
    tcase_add_test(tcase, what_cannot_be_sent_is_refused);
    tcase_add_test(tcase, not_complete_while_one_is_missing);
    tcase_add_test(tcase, a_client_ends_in_good_order);
    tcase_add_test(tcase, the_hub_ends_in_good_order);
    tcase_add_test(tcase, a_killed_host_is_lost);
    tcase_add_test(tcase, a_silent_host_is_lost);
    tcase_add_test(tcase, a_quiet_connection_stays);
    tcase_add_test(tcase, a_hub_that_never_comes_is_given_up);
    tcase_add_test(tcase, a_name_that_does_not_exist);
    tcase_add_test(tcase, many_hosts_at_once);
    tcase_add_test(tcase, steps_with_the_same_ports_stay_apart);
    tcase_add_test(tcase, ports_are_all_different);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
