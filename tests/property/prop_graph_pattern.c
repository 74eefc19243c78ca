/* Random sequences of blocks of tasks: a graph that stores equal blocks once has the tasks
 * of a graph to which all were added one by one. */
#include "base/rng.h"
#include "sim/engine/graph.h"

#include "tests/support/graphs.h"
#include "tests/test.h"

#include <string.h>

#define NUM_ENTRIES 5
#define NUM_STREAMS 3
#define NUM_KINDS   4
#define NUM_BLOCKS  60

/* A graph that is being built, and the tasks for which its next block may wait. */
typedef struct growing {
    ms_graph_builder *builder;
    bool repeats;
    int costs[3];
    int entries[NUM_ENTRIES];
} growing;

static int between(ms_rng *rng, int low, int high)
{
    return low + (int)ms_rng_below(rng, (uint64_t)(high - low + 1));
}

static int add(growing *g, ms_rng *rng, int stream, int microbatch)
{
    ms_task_tag tag = {.actor = between(rng, 0, 3),
                       .microbatch = between(rng, 0, 3) == 0 ? -1 : microbatch};
    return ms_graph_add(g->builder, stream, g->costs[between(rng, 0, 2)], tag);
}

/* Adds the tasks of a block, which depend on its kind and on the state alone. */
static void add_tasks(growing *g, int kind, int microbatch)
{
    ms_rng rng = ms_rng_seed((uint64_t)kind);
    int num = between(&rng, 1, 12), own[12];
    for (int i = 0; i < num; i++) {
        own[i] = add(g, &rng, between(&rng, -1, NUM_STREAMS - 1), microbatch);
        for (int j = between(&rng, 0, 5); j > 0; j--) {
            bool inside = i > 0 && between(&rng, 0, 1);
            ms_graph_wait(g->builder,
                          inside ? own[between(&rng, 0, i - 1)]
                                 : g->entries[between(&rng, 0, NUM_ENTRIES - 1)]);
        }
    }
    for (int i = between(&rng, 0, NUM_ENTRIES); i > 0; i--) {
        int *entry = &g->entries[between(&rng, 0, NUM_ENTRIES - 1)];
        int how = between(&rng, 0, 5);
        *entry = how == 0   ? 0
                 : how == 1 ? g->entries[between(&rng, 0, NUM_ENTRIES - 1)]
                            : own[between(&rng, 0, num - 1)];
    }
}

/* Returns whether the block is a repetition. */
static bool add_block(growing *g, int kind, int microbatch)
{
    static const int streams[NUM_STREAMS] = {2, 0, 1};
    ms_graph_state state = {NUM_ENTRIES, g->entries, NUM_STREAMS, streams};
    if (g->repeats && ms_graph_repeat(g->builder, &kind, sizeof kind, microbatch, &state))
        return true;
    add_tasks(g, kind, microbatch);
    if (g->repeats)
        ms_graph_end_pattern(g->builder, &state);
    return false;
}

static const ms_graph *make(uint64_t seed, ms_arena *arena, bool repeats,
                            int *num_repetitions)
{
    ms_rng rng = ms_rng_seed(seed);
    growing g = {.builder = ms_graph_open(arena), .repeats = repeats};
    for (int i = 0; i < 3; i++)
        g.costs[i] = ms_graph_cost(
            g.builder, &(ms_task_cost){.duration_s = 1.0 + i, .pool = -1}, NULL);
    for (int i = 0; i < NUM_BLOCKS; i++) {
        if (between(&rng, 0, 3) == 0)
            g.entries[between(&rng, 0, NUM_ENTRIES - 1)] =
                add(&g, &rng, between(&rng, -1, NUM_STREAMS - 1), i);
        *num_repetitions += add_block(&g, between(&rng, 0, NUM_KINDS - 1), i);
    }
    return ms_graph_close(g.builder);
}

static void check_task(const ms_graph *got, const ms_graph *want, int task, uint64_t seed)
{
    ms_task a = ms_graph_task(got, task), b = ms_graph_task(want, task);
    bool equal = a.before == b.before && a.cross == b.cross && a.cost == b.cost &&
                 a.num_more == b.num_more &&
                 ms_graph_tag(got, task)->actor == ms_graph_tag(want, task)->actor &&
                 ms_graph_microbatch(got, task) == ms_graph_microbatch(want, task);
    for (int i = 0; equal && i < a.num_more; i++)
        equal = ms_task_more(&a, i) == ms_task_more(&b, i);
    if (!equal)
        fail_msg("seed %llu: task %d", (unsigned long long)seed, task);
}

static void repeated_blocks_have_the_tasks_of_the_first(void **state)
{
    (void)state;
    int num_repetitions = 0, none = 0;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        ms_arena *arena = ms_arena_open();
        const ms_graph *got = make(seed, arena, true, &num_repetitions);
        const ms_graph *want = make(seed, arena, false, &none);
        ASSERT_INT(got->num_tasks, want->num_tasks);
        assert_true(ms_graph_is_ordered(got));
        for (int task = 1; task <= got->num_tasks; task++)
            check_task(got, want, task, seed);
        double *end_s = MS_NEW_ARRAY(arena, 1 + got->num_tasks, double);
        double got_s = ms_graph_replay(got, NULL, end_s);
        ASSERT_NEAR(got_s, ms_graph_replay(want, NULL, end_s), 0.0);
        ms_arena_close(arena);
    }
    ASSERT_INT(none, 0);
    assert_true(num_repetitions > 15000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repeated_blocks_have_the_tasks_of_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
