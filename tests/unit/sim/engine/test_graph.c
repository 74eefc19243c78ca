/* Task graphs: which tasks, costs and dependencies the builder records, and the
 * longest path, computed by hand. */
#include "sim/engine/graph.h"

#include "tests/support/graphs.h"
#include "tests/test.h"

static const ms_task_tag no_tag = {.actor = -1, .stage = -1, .microbatch = -1};

static int plain_cost(ms_graph_builder *b, double duration_s)
{
    return ms_graph_cost(b, &(ms_task_cost){.duration_s = duration_s, .pool = -1}, NULL);
}

static int add(ms_graph_builder *b, int stream, double duration_s)
{
    return ms_graph_add(b, stream, plain_cost(b, duration_s), no_tag);
}

static void an_empty_graph_takes_no_time(void **state)
{
    (void)state;
    const ms_graph *graph = ms_graph_close(ms_graph_open(test_cx()->arena));
    double start_s[1], end_s[1];
    ASSERT_INT(graph->num_tasks, 0);
    assert_true(ms_graph_is_ordered(graph));
    ASSERT_NEAR(ms_graph_replay(graph, start_s, end_s), 0.0, 0.0);
}

static void tasks_wait_for_their_stream_and_for_others(void **state)
{
    (void)state;
    ms_graph_builder *b = ms_graph_open(test_cx()->arena);
    int a = add(b, 0, 1.0), c = add(b, 0, 2.0);
    int d = add(b, 7, 2.5);
    int e = add(b, 7, 0.25);
    ms_graph_wait(b, a);
    ms_graph_wait(b, c);
    int gather = add(b, -1, 0.0);
    ms_graph_wait(b, a);
    ms_graph_wait(b, 0);
    ms_graph_wait(b, e);
    ms_graph_wait(b, d);
    ASSERT_INT(ms_graph_last(b, 7), e);
    ASSERT_INT(ms_graph_last(b, 3), 0);
    ASSERT_INT(ms_graph_last(b, 1000), 0);
    const ms_graph *graph = ms_graph_close(b);
    assert_true(ms_graph_is_ordered(graph));
    ASSERT_INT(graph->num_tasks, 5);
    ASSERT_INT(ms_graph_task(graph, c).before, a);
    ASSERT_INT(ms_graph_task(graph, d).before, 0);
    ASSERT_INT(ms_graph_task(graph, e).before, d);
    ASSERT_INT(ms_graph_task(graph, e).cross, a);
    ASSERT_INT(ms_graph_task(graph, e).num_more, 1);
    ASSERT_INT(ms_graph_task(graph, gather).num_more, 2);
    double start_s[6], end_s[6];
    ASSERT_NEAR(ms_graph_replay(graph, start_s, end_s), 3.25, 0.0);
    ASSERT_NEAR(start_s[c], 1.0, 0.0);
    ASSERT_NEAR(start_s[e], 3.0, 0.0);
    ASSERT_NEAR(start_s[gather], 3.25, 0.0);
    ASSERT_NEAR(ms_graph_replay(graph, NULL, end_s), 3.25, 0.0);
}

static void equal_costs_and_labels_are_one(void **state)
{
    (void)state;
    ms_graph_builder *b = ms_graph_open(test_cx()->arena);
    int nic = ms_graph_link(b, "nic", 50e9), spine = ms_graph_link(b, "spine", 400e9);
    ms_task_cost cost = {.duration_s = 1.0, .pool = -1, .num_uses = 2};
    const ms_link_use uses[] = {{nic, 25e9}, {spine, 25e9}},
                      others[] = {{nic, 25e9}, {spine, 5e9}};
    const ms_link_use with_none[] = {{nic, 25e9}, {nic, 0.0}, {spine, 25e9}};
    int first = ms_graph_cost(b, &cost, uses);
    cost.first_use = 77; /* a field that the builder does not read */
    ASSERT_INT(ms_graph_cost(b, &cost, uses), first);
    assert_true(ms_graph_cost(b, &cost, others) != first);
    cost.num_uses = 3;
    ASSERT_INT(ms_graph_cost(b, &cost, with_none), first);
    cost.latency_s = 0.5;
    assert_true(ms_graph_cost(b, &cost, with_none) != first);
    char text[16];
    for (int i = 0; i < 300; i++) { /* so many labels that tables grow */
        snprintf(text, sizeof text, "label %d", i % 150);
        ASSERT_INT(ms_graph_label(b, text), i % 150);
        ASSERT_INT(plain_cost(b, 2.0 + i % 150), 3 + i % 150);
    }
    const ms_graph *graph = ms_graph_close(b);
    ASSERT_INT(graph->num_costs, 153);
    ASSERT_INT(graph->num_labels, 150);
    ASSERT_INT(graph->num_uses, 6);
    ASSERT_TEXT(graph->labels[149], "label 149");
    ASSERT_TEXT(graph->link_names[spine], "spine");
    ASSERT_NEAR(graph->link_bytes_per_s[nic], 50e9, 0.0);
    ASSERT_NEAR(graph->uses[graph->costs[first].first_use + 1].bytes_per_s, 25e9, 0.0);
}

/* Tasks and tags of a graph large enough for many parts come out in the order in which
 * they were added. */
static void large_graphs_keep_their_order(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    ms_graph_builder *b = ms_graph_open(arena);
    const int num = 300000, num_streams = 61;
    int one = plain_cost(b, 1.0);
    for (int i = 1; i <= num; i++) {
        ms_task_tag tag = {.microbatch = i};
        ASSERT_INT(ms_graph_add(b, i % num_streams, one, tag), i);
    }
    const ms_graph *graph = ms_graph_close(b);
    assert_true(ms_graph_is_ordered(graph));
    for (int i = 1; i <= num; i++)
        if (ms_graph_microbatch(graph, i) != i ||
            ms_graph_task(graph, i).before != (i > num_streams ? i - num_streams : 0))
            fail_msg("task %d", i);
    double *end_s = MS_NEW_ARRAY(arena, num + 1, double);
    ASSERT_NEAR(ms_graph_replay(graph, NULL, end_s),
                (double)((num + num_streams - 1) / num_streams), 0.0);
}

static void disorder_is_seen(void **state)
{
    (void)state;
    ms_stored_task tasks[3] = {{0, 0, 0, 0}, {0, 0, 0, 0}, {1, 0, 1, 0}};
    const ms_task_tag tags[3] = {0};
    const int ports[] = {0, 2, -1}, part_at[] = {0};
    const ms_graph_part parts[] = {{.tasks = tasks, .tags = tags, .ports = ports},
                                   {.first = 3}};
    const int lists[] = {0, 1, 1};
    const ms_task_cost cost = {.duration_s = 1.0, .pool = -1};
    ms_graph graph = {.num_tasks = 2,
                      .num_parts = 1,
                      .parts = parts,
                      .part_at = part_at,
                      .num_lists = 3,
                      .lists = lists,
                      .num_costs = 1,
                      .costs = &cost};
    const ms_stored_task good = tasks[2];
    const ms_stored_task bad[] = {{2, 0, 0, 0},  {0, 3, 0, 0}, {-1, 0, 0, 0},
                                  {0, 0, 2, 0},  {0, 0, 3, 0}, {0, 0, 0, 1},
                                  {0, 0, 0, -1}, {0, -1, 0, 0}};
    assert_true(ms_graph_is_ordered(&graph));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tasks[2] = bad[i];
        assert_false(ms_graph_is_ordered(&graph));
    }
    tasks[2] = good;
    const ms_task_cost bad_cost = {.num_uses = 1, .pool = -1}, bad_pool = {.pool = 0};
    graph.costs = &bad_cost;
    assert_false(ms_graph_is_ordered(&graph));
    graph.costs = &bad_pool;
    assert_false(ms_graph_is_ordered(&graph));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_graph_takes_no_time),
        cmocka_unit_test(tasks_wait_for_their_stream_and_for_others),
        cmocka_unit_test(equal_costs_and_labels_are_one),
        cmocka_unit_test(large_graphs_keep_their_order),
        cmocka_unit_test(disorder_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
