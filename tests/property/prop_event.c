/* The event engine on random task graphs: without shared links it equals the longest
 * path bit for bit; with shared links it is never faster, moves all bytes, keeps links
 * within their capacity, and is deterministic. */
#include "base/rng.h"
#include "sim/engine/event.h"

#include "tests/support/graphs.h"
#include "tests/support/naive_engine.h"
#include "tests/test.h"

#define MAX_TASKS   120
#define MAX_LINKS   6
#define MAX_POOLS   3
#define MAX_STREAMS 12

typedef struct random_graph {
    ms_graph_builder *builder;
    int num_links, num_pools;
    double capacity[MAX_LINKS];
    int costs[10], num_costs;
} random_graph;

static int between(ms_rng *rng, int low, int high)
{
    return low + (int)ms_rng_below(rng, (uint64_t)(high - low + 1));
}

/* A random duration in seconds, often a whole number, so that events coincide. */
static double random_time(ms_rng *rng)
{
    int kind = between(rng, 0, 9);
    return kind == 0 ? 0.0 : kind < 5 ? between(rng, 1, 4) : 4.0 * ms_rng_uniform(rng);
}

static int random_cost(ms_rng *rng, random_graph *g)
{
    ms_task_cost cost = {.duration_s = random_time(rng), .pool = -1};
    ms_link_use uses[4];
    if (g->num_links > 0 && between(rng, 0, 2) > 0) {
        cost.num_uses = between(rng, 1, 4);
        for (int i = 0; i < cost.num_uses; i++) {
            int link = between(rng, 0, g->num_links - 1);
            double frac = between(rng, 0, 1) ? 0.5 : 0.05 + 0.9 * ms_rng_uniform(rng);
            uses[i] = (ms_link_use){link, frac * g->capacity[link]};
        }
        if (between(rng, 0, 1))
            cost.latency_s = cost.duration_s * 0.25 * between(rng, 0, 4);
    }
    if (g->num_pools > 0 && between(rng, 0, 2) > 0) {
        cost.pool = between(rng, 0, g->num_pools - 1);
        int kind = between(rng, 0, 3);
        cost.held_sms = kind == 0 ? between(rng, 1, 40) : 0;
        cost.tiles = kind == 1 || kind == 3 ? between(rng, 1, 500) : 0;
        cost.sm_frac = kind >= 2 ? ms_rng_uniform(rng) : 0.0;
    }
    return ms_graph_cost(g->builder, &cost, uses);
}

static const ms_graph *make_graph(ms_rng *rng, ms_arena *arena)
{
    random_graph g = {.builder = ms_graph_open(arena)};
    g.num_links = between(rng, 0, MAX_LINKS);
    g.num_pools = between(rng, 0, MAX_POOLS);
    for (int i = 0; i < g.num_links; i++) {
        g.capacity[i] = 1e9 * (1.0 + 9.0 * ms_rng_uniform(rng));
        ms_graph_link(g.builder, "link", g.capacity[i]);
    }
    for (int i = 0; i < g.num_pools; i++)
        ms_graph_pool(g.builder, between(rng, 1, 2) * 66);
    g.num_costs = between(rng, 1, 10);
    for (int i = 0; i < g.num_costs; i++)
        g.costs[i] = random_cost(rng, &g);
    int num_streams = between(rng, 1, MAX_STREAMS),
        num_tasks = between(rng, 0, MAX_TASKS);
    for (int i = 1; i <= num_tasks; i++) {
        ms_graph_add(g.builder, between(rng, -1, num_streams - 1),
                     g.costs[between(rng, 0, g.num_costs - 1)], (ms_task_tag){0});
        int waits = between(rng, 0, 3) == 0 ? between(rng, 0, 6) : between(rng, 0, 1);
        for (int j = 0; j < waits && i > 1; j++)
            ms_graph_wait(g.builder, between(rng, 0, i - 1));
    }
    const ms_graph *graph = ms_graph_close(g.builder);
    assert_true(ms_graph_is_ordered(graph));
    return graph;
}

typedef struct outcome {
    double start_s[1 + MAX_TASKS], end_s[1 + MAX_TASKS], makespan_s;
} outcome;

static ms_event_result run(const ms_graph *graph, bool share_links, bool share_sms,
                           ms_arena *arena, outcome *into)
{
    ms_event_options options = {share_links, share_sms};
    memset(into, 0, sizeof *into);
    ms_event_result result = {
        .start_s = into->start_s, .end_s = into->end_s, .wants_samples = true};
    ms_event_run(graph, &options, arena, &result);
    into->makespan_s = result.makespan_s;
    return result;
}

static void replay(const ms_graph *graph, outcome *into)
{
    memset(into, 0, sizeof *into);
    into->makespan_s = ms_graph_replay(graph, into->start_s, into->end_s);
}

static void without_sharing_it_equals_replay_bit_for_bit(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6000; seed++) {
        ms_rng rng = ms_rng_seed(seed);
        ms_arena *arena = ms_arena_open();
        const ms_graph *graph = make_graph(&rng, arena);
        outcome want, got;
        replay(graph, &want);
        ms_event_result result = run(graph, false, false, arena, &got);
        if (memcmp(&got, &want, sizeof got) != 0)
            fail_msg("seed %llu", (unsigned long long)seed);
        ASSERT_INT(result.num_events, 2 * graph->num_tasks);
        ms_arena_close(arena);
    }
}

/* Links with more bandwidth than all tasks together can use do not change any time, to
 * the last bit. */
static void sharing_what_suffices_changes_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        ms_rng rng = ms_rng_seed(seed);
        ms_arena *arena = ms_arena_open();
        ms_graph wide = *make_graph(&rng, arena);
        double *capacity = MS_NEW_ARRAY(arena, wide.num_links, double);
        for (int i = 0; i < wide.num_links; i++)
            capacity[i] = 4.0 * MAX_TASKS * wide.link_bytes_per_s[i];
        wide.link_bytes_per_s = capacity;
        outcome want, got;
        replay(&wide, &want);
        ms_event_result result = run(&wide, true, false, arena, &got);
        if (memcmp(&got, &want, sizeof got) != 0)
            fail_msg("seed %llu", (unsigned long long)seed);
        ASSERT_INT(result.num_rate_changes, 0);
        ms_arena_close(arena);
    }
}

static void check_not_faster(const ms_graph *graph, const outcome *got, uint64_t seed)
{
    outcome alone;
    replay(graph, &alone);
    for (int i = 1; i <= graph->num_tasks; i++) {
        double slack_s = 1e-12 * (1.0 + got->end_s[i]);
        double duration_s = ms_graph_cost_of(graph, i)->duration_s;
        if (got->start_s[i] < alone.start_s[i] - slack_s ||
            got->end_s[i] < alone.end_s[i] - slack_s ||
            got->end_s[i] - got->start_s[i] < duration_s - slack_s)
            fail_msg("seed %llu: task %d", (unsigned long long)seed, i);
    }
}

/* Samples of link use are in order of time, never above the capacity, written only at
 * changes, and add up to all bytes of the tasks and to the links' totals. */
static void check_samples(const ms_graph *graph, const ms_event_result *r, uint64_t seed)
{
    double used[MAX_LINKS] = {0}, since_s[MAX_LINKS] = {0}, passed[MAX_LINKS] = {0};
    double want[MAX_LINKS] = {0}, most[MAX_LINKS] = {0};
    for (long i = 0; i < r->num_samples; i++) {
        const ms_link_sample *x = &r->samples[i];
        if (x->used_frac > 1.0 + 1e-9 || x->used_frac < 0.0 ||
            fabs(x->used_frac - used[x->link]) <= 0.0 ||
            (i > 0 && x->time_s < r->samples[i - 1].time_s) ||
            (x->time_s > 0.0 && x->time_s <= since_s[x->link]))
            fail_msg("seed %llu: sample %ld", (unsigned long long)seed, i);
        most[x->link] = x->used_frac > most[x->link] ? x->used_frac : most[x->link];
        passed[x->link] += (x->time_s - since_s[x->link]) * used[x->link];
        used[x->link] = x->used_frac;
        since_s[x->link] = x->time_s;
    }
    for (int i = 1; i <= graph->num_tasks; i++) {
        const ms_task_cost *c = ms_graph_cost_of(graph, i);
        for (int j = c->first_use; j < c->first_use + c->num_uses; j++)
            want[graph->uses[j].link] += graph->uses[j].bytes_per_s *
                                         (c->duration_s - c->latency_s) /
                                         graph->link_bytes_per_s[graph->uses[j].link];
    }
    for (int i = 0; i < graph->num_links; i++)
        if (used[i] > 0.0 || fabs(passed[i] - want[i]) > 1e-9 * (1.0 + want[i]))
            fail_msg("seed %llu: link %d: passed %.17g, want %.17g",
                     (unsigned long long)seed, i, passed[i], want[i]);
    assert_non_null(r->links);
    for (int i = 0; i < graph->num_links; i++)
        if (fabs(r->links[i].busy_s - passed[i]) > 1e-12 * (1.0 + passed[i]) ||
            fabs(r->links[i].most_frac - most[i]) > 0.0)
            fail_msg("seed %llu: link %d: totals differ from samples",
                     (unsigned long long)seed, i);
}

static void sharing_slows_moves_all_bytes_and_repeats(void **state)
{
    (void)state;
    long num_changes = 0;
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        ms_rng rng = ms_rng_seed(seed);
        ms_arena *arena = ms_arena_open();
        const ms_graph *graph = make_graph(&rng, arena);
        outcome got, again;
        bool sms = seed % 2 == 0;
        ms_event_result result = run(graph, true, sms, arena, &got);
        ms_event_result repeated = run(graph, true, sms, arena, &again);
        assert_memory_equal(&got, &again, sizeof got);
        ASSERT_INT(result.num_samples, repeated.num_samples);
        assert_memory_equal(result.samples, repeated.samples,
                            (size_t)result.num_samples * sizeof *result.samples);
        check_not_faster(graph, &got, seed);
        if (graph->num_uses > 0)
            check_samples(graph, &result, seed);
        num_changes += result.num_rate_changes;
        ms_arena_close(arena);
    }
    assert_true(num_changes > 10000);
}

static void it_equals_the_simplest_engine(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        ms_rng rng = ms_rng_seed(seed);
        ms_arena *arena = ms_arena_open();
        const ms_graph *graph = make_graph(&rng, arena);
        ms_event_options options = {seed % 4 != 1, seed % 4 != 2};
        outcome got;
        double *want_s = MS_NEW_ARRAY(arena, 1 + graph->num_tasks, double);
        run(graph, options.share_links, options.share_sms, arena, &got);
        ms_naive_event_run(graph, &options, arena, want_s);
        for (int i = 1; i <= graph->num_tasks; i++)
            if (!(fabs(got.end_s[i] - want_s[i]) <= 1e-9 * (1.0 + want_s[i])))
                fail_msg("seed %llu: task %d: got %.17g, want %.17g",
                         (unsigned long long)seed, i, got.end_s[i], want_s[i]);
        ms_arena_close(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_sharing_it_equals_replay_bit_for_bit),
        cmocka_unit_test(sharing_what_suffices_changes_nothing),
        cmocka_unit_test(sharing_slows_moves_all_bytes_and_repeats),
        cmocka_unit_test(it_equals_the_simplest_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
