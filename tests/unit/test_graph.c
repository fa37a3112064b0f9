/*
 * The graph of dependencies against a brute-force idea of it.
 */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5store/graph.h"
#include "tests/unit/run.h"

#define NODES  5
#define EVENTS 6
#define ALL    (NODES * EVENTS)

typedef unsigned char matrix[ALL][ALL];

static struct pt_store_edge edge(uint32_t a, uint64_t i, uint32_t b, uint64_t j)
{
    return (struct pt_store_edge){a, b, i, j, PT_BY_HOLD};
}

static size_t number(uint32_t node, uint64_t event)
{
    return node * EVENTS + event;
}

/* reach[x][y]: x is done before y starts. */
static void close_transitively(matrix reach)
{
    for (size_t n = 0; n < NODES; n++)
        for (size_t e = 0; e + 1 < EVENTS; e++)
            reach[number(n, e)][number(n, e + 1)] = 1;
    for (size_t k = 0; k < ALL; k++)
        for (size_t i = 0; i < ALL; i++)
            for (size_t j = 0; j < ALL; j++)
                reach[i][j] |= reach[i][k] && reach[k][j];
}

static void add_edges(matrix reach, const struct pt_store_edge *edges, size_t n, size_t without)
{
    for (size_t i = 0; i < n; i++)
        if (i != without)
            reach[number(edges[i].src_node, edges[i].src_event)]
                 [number(edges[i].dst_node, edges[i].dst_event)] = 1;
}

static void add_barriers(matrix reach, const struct graph_barriers *b)
{
    for (size_t i = 0; i < b->nbarriers; i++)
        for (size_t k = 0; k < b->barriers[i].nmembers; k++)
            for (size_t l = 0; l < b->barriers[i].nmembers; l++) {
                const struct pt_store_member *m = b->barriers[i].members;
                if (k != l)
                    reach[number(m[k].node, m[k].event - 1)][number(m[l].node, m[l].event)] = 1;
            }
}

static int has_cycle(matrix reach)
{
    for (size_t i = 0; i < ALL; i++)
        if (reach[i][i])
            return 1;
    return 0;
}

START_TEST(unite_keeps_latest_source)
{
    struct pt_store_edge edges[] = {edge(0, 1, 1, 4), edge(0, 3, 1, 4), edge(0, 2, 1, 4),
                                    edge(2, 1, 1, 4), edge(0, 3, 1, 5)};
    edges[0].by = PT_BY_MPI;
    ck_assert_uint_eq(graph_unite_edges(edges, 5), 3);
    ck_assert_uint_eq(edges[0].src_event, 3);
    ck_assert_uint_eq(edges[0].by, PT_BY_MPI | PT_BY_HOLD);
    ck_assert_uint_eq(edges[1].src_node, 2);
    ck_assert_uint_eq(edges[2].dst_event, 5);
}
END_TEST

START_TEST(cycle_is_named)
{
    struct pt_store_edge edges[] = {edge(1, 4, 0, 1), edge(0, 3, 1, 2)};
    struct pt_err err;

    ck_assert_uint_eq(graph_unite_edges(edges, 2), 2);
    ck_assert_int_eq(graph_check_acyclic(2, edges, 2, &err), -1);
    ck_assert_msg(strstr(err.text, "1:2 waits for 0:3") && strstr(err.text, "0:1 waits for 1:4"),
                  "%s", err.text);
    edges[0].src_event = 1; /* now before 1:2 */
    ck_assert_int_eq(graph_check_acyclic(2, edges, 2, &err), 0);
}
END_TEST

START_TEST(empty_graph)
{
    struct graph_barriers b;
    size_t n = 0;

    ck_assert_int_eq(graph_check_acyclic(3, NULL, 0, NULL), 0);
    ck_assert_int_eq(graph_reduce(3, NULL, &n, NULL), 0);
    ck_assert_int_eq(graph_find_barriers(NULL, &n, 2, &b, NULL), 0);
    ck_assert_uint_eq(b.nbarriers, 0);
    graph_free_barriers(&b);
}
END_TEST

START_TEST(chain_implies_shortcut)
{
    struct pt_store_edge edges[] = {edge(0, 0, 1, 1), edge(1, 1, 2, 1), edge(0, 0, 2, 1),
                                    edge(0, 0, 2, 3), edge(0, 1, 2, 4)};
    size_t n = graph_unite_edges(edges, 5);

    ck_assert_int_eq(graph_reduce(3, edges, &n, NULL), 0);
    ck_assert_uint_eq(n, 3);
    ck_assert_uint_eq(edges[0].dst_node, 1);
    ck_assert_uint_eq(edges[1].src_node, 1);
    ck_assert_uint_eq(edges[2].dst_event, 4);
}
END_TEST

/* Random graphs: same order as before, and no edge could be left out. */
START_TEST(reduction_is_exact)
{
    srand(_i + 1);
    struct pt_store_edge edges[40], before[40];
    struct graph_barriers barriers;
    static matrix all, some;
    struct pt_err err;
    size_t n = 1 + rand() % 40;

    for (size_t i = 0; i < n; i++) {
        uint32_t a = rand() % NODES;
        edges[i] =
            edge(a, rand() % EVENTS, (a + 1 + rand() % (NODES - 1)) % NODES, rand() % EVENTS);
        if (_i % 4 && edges[i].src_event >= edges[i].dst_event) /* mostly without cycles */
            edges[i].src_event = edges[i].dst_event ? edges[i].dst_event - 1 : 0;
    }
    n = graph_unite_edges(edges, n);
    memcpy(before, edges, sizeof(edges));
    memset(all, 0, sizeof(all));
    add_edges(all, edges, n, SIZE_MAX);
    close_transitively(all);
    ck_assert_int_eq(graph_check_acyclic(NODES, edges, n, &err), has_cycle(all) ? -1 : 0);
    if (has_cycle(all)) {
        ck_assert_int_eq(graph_reduce(NODES, edges, &n, &err), -1);
        return;
    }
    ck_assert_int_eq(graph_reduce(NODES, edges, &n, &err), 0);
    memset(some, 0, sizeof(some));
    add_edges(some, edges, n, SIZE_MAX);
    close_transitively(some);
    ck_assert_mem_eq(all, some, sizeof(all));
    for (size_t i = 0; i < n; i++) {
        memset(some, 0, sizeof(some));
        add_edges(some, edges, n, i);
        close_transitively(some);
        ck_assert_int_ne(memcmp(all, some, sizeof(all)), 0);
    }
    ck_assert_int_eq(graph_find_barriers(edges, &n, 2, &barriers, &err), 0);
    memset(some, 0, sizeof(some));
    add_edges(some, edges, n, SIZE_MAX);
    add_barriers(some, &barriers);
    close_transitively(some);
    ck_assert_mem_eq(all, some, sizeof(all));
    graph_free_barriers(&barriers);
}
END_TEST

static size_t add_barrier(struct pt_store_edge *edges, size_t n, const uint64_t *event,
                          uint32_t first, uint32_t last)
{
    for (uint32_t a = first; a <= last; a++)
        for (uint32_t b = first; b <= last; b++)
            if (a != b)
                edges[n++] = edge(a, event[a] - 1, b, event[b]);
    return n;
}

START_TEST(barriers_are_found)
{
    struct pt_store_edge edges[100];
    const uint64_t first[] = {2, 2, 3, 1}, second[] = {4, 5, 5, 4};
    struct graph_barriers b;
    size_t n = add_barrier(edges, 0, first, 0, 3);

    n = add_barrier(edges, n, second, 0, 3);
    edges[n++] = edge(0, 0, 3, 5); /* implied */
    n = graph_unite_edges(edges, n);
    ck_assert_int_eq(graph_reduce(4, edges, &n, NULL), 0);
    ck_assert_uint_eq(n, 24);
    edges[n++] = edge(1, 3, 0, 3); /* another one, not in a barrier */
    ck_assert_int_eq(graph_find_barriers(edges, &n, 2, &b, NULL), 0);
    ck_assert_uint_eq(n, 1);
    ck_assert_uint_eq(b.nbarriers, 2);
    ck_assert_uint_eq(b.barriers[0].nmembers, 4);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(b.barriers[0].members[i].node, i);
        ck_assert_uint_eq(b.barriers[0].members[i].event, first[i]);
        ck_assert_uint_eq(b.barriers[1].members[i].event, second[i]);
    }
    graph_free_barriers(&b);
}
END_TEST

START_TEST(groups_and_sizes)
{
    struct pt_store_edge edges[100];
    const uint64_t event[] = {2, 2, 3, 1, 4};
    struct graph_barriers b;
    size_t n = add_barrier(edges, 0, event, 0, 1), before;

    n = add_barrier(edges, n, event, 2, 4);
    before = n;
    ck_assert_int_eq(graph_find_barriers(edges, &n, 3, &b, NULL), 0);
    ck_assert_uint_eq(b.nbarriers, 1); /* two are no barrier if three are asked for */
    ck_assert_uint_eq(b.barriers[0].nmembers, 3);
    ck_assert_uint_eq(n, before - 6);
    graph_free_barriers(&b);
    ck_assert_int_eq(graph_find_barriers(edges, &n, 2, &b, NULL), 0);
    ck_assert_uint_eq(b.nbarriers, 1);
    ck_assert_uint_eq(n, 0);
    graph_free_barriers(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph");
    TCase *tc = tcase_create("graph");

    tcase_add_test(tc, unite_keeps_latest_source);
    tcase_add_test(tc, cycle_is_named);
    tcase_add_test(tc, empty_graph);
    tcase_add_test(tc, chain_implies_shortcut);
    tcase_add_loop_test(tc, reduction_is_exact, 0, 300);
    tcase_add_test(tc, barriers_are_found);
    tcase_add_test(tc, groups_and_sizes);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
