/* The event engine (simulation with shared links and SMs) on small task graphs whose
 * times are known by hand. */
#include "sim/engine/event.h"

#include "tests/test.h"

#define MAX_TASKS 8

/* A task of a hand-made graph: its costs and the time at which it must end. Link 0 has a
 * bandwidth of 100 bytes/s, link 1 of 50 bytes/s; there is one pool of 132 SMs. */
typedef struct row {
    int stream;
    int after; /* index of the task that this task waits for; 0: none */
    double duration_s, latency_s;
    double bytes_per_s[2]; /* bandwidth that it wants on each link */
    int held_sms;
    double tiles, sm_frac;
    double end_s; /* expected end */
} row;

typedef struct sample {
    const char *what;
    row rows[MAX_TASKS];
} sample;

static const sample samples[] = {
    {"two transfers on one link",
     {{.stream = 0, .duration_s = 2, .bytes_per_s = {100, 0}, .end_s = 4},
      {.stream = 1, .duration_s = 2, .bytes_per_s = {100, 0}, .end_s = 4}}},
    {"one that joins late: 3 s are left of the first, the second takes 2 s for 1, 2 s are left",
     {{.stream = 0, .duration_s = 4, .bytes_per_s = {100, 0}, .end_s = 5},
      {.stream = 1, .duration_s = 1, .end_s = 1},
      {.stream = 1, .duration_s = 1, .bytes_per_s = {100, 0}, .end_s = 3}}},
    {"transfers that fit",
     {{.stream = 0, .duration_s = 2, .bytes_per_s = {30, 0}, .end_s = 2},
      {.stream = 1, .duration_s = 3, .bytes_per_s = {70, 0}, .end_s = 3}}},
    {"the small transfer keeps its rate, the large one has what is left",
     {{.stream = 0, .duration_s = 2, .bytes_per_s = {40, 0}, .end_s = 2},
      {.stream = 1, .duration_s = 3, .bytes_per_s = {100, 0}, .end_s = 3.8}}},
    {"latency passes without the link",
     {{.stream = 0, .duration_s = 3, .latency_s = 1, .bytes_per_s = {100, 0}, .end_s = 4},
      {.stream = 1, .duration_s = 2, .bytes_per_s = {100, 0}, .end_s = 3}}},
    {"nothing but latency",
     {{.stream = 0, .duration_s = 1, .latency_s = 1, .bytes_per_s = {100, 0}, .end_s = 1},
      {.stream = 1, .duration_s = 2, .bytes_per_s = {100, 0}, .end_s = 2}}},
    {"flows in lock-step: half the rate on one link is half on the other",
     {{.stream = 0, .duration_s = 2, .bytes_per_s = {100, 25}, .end_s = 4},
      {.stream = 1, .duration_s = 2, .bytes_per_s = {100, 0}, .end_s = 4},
      {.stream = 2, .duration_s = 4, .bytes_per_s = {0, 37.5}, .end_s = 4}}},
    {"a kernel and a collective on HBM: of 100, 40 and 60 of the 80 wanted",
     {{.stream = 0, .duration_s = 3, .bytes_per_s = {80, 0}, .end_s = 4},
      {.stream = 1, .duration_s = 4, .bytes_per_s = {40, 25}, .end_s = 4}}},
    {"256 tiles: 2 waves on 132 SMs, 3 on 122",
     {{.stream = 0, .duration_s = 2, .tiles = 256, .end_s = 2.5},
      {.stream = 1, .duration_s = 1.5, .held_sms = 10, .end_s = 1.5}}},
    {"132 tiles: 1 wave on 132 SMs, 2 on 108; latency holds SMs too",
     {{.stream = 0, .duration_s = 2, .tiles = 132, .end_s = 3},
      {.stream = 1,
       .duration_s = 2,
       .latency_s = 1,
       .bytes_per_s = {50, 0},
       .held_sms = 24,
       .end_s = 2}}},
    {"100 tiles leave SMs for communication",
     {{.stream = 0, .duration_s = 2, .tiles = 100, .end_s = 2},
      {.stream = 1, .duration_s = 2, .held_sms = 32, .end_s = 2}}},
    {"several kernels: half of the time stretches by 4 / 3",
     {{.stream = 0, .duration_s = 6, .sm_frac = 0.5, .end_s = 7},
      {.stream = 1, .duration_s = 9, .held_sms = 33, .end_s = 9}}},
    {"one SM is left to a product, however many are held",
     {{.stream = 0, .duration_s = 1, .tiles = 2, .end_s = 2},
      {.stream = 1, .duration_s = 9, .held_sms = 100, .end_s = 9},
      {.stream = 2, .duration_s = 9, .held_sms = 100, .end_s = 9}}},
    {"limited by both: the smaller rate, and the link has the rest",
     {{.stream = 0, .duration_s = 2, .bytes_per_s = {100, 0}, .tiles = 132, .end_s = 4},
      {.stream = 1, .duration_s = 9, .held_sms = 24, .end_s = 9},
      {.stream = 2, .duration_s = 4, .bytes_per_s = {50, 0}, .end_s = 4}}},
    {"what waits, waits for what was slowed",
     {{.stream = 0, .duration_s = 2, .bytes_per_s = {100, 0}, .end_s = 4},
      {.stream = 1, .duration_s = 2, .bytes_per_s = {100, 0}, .end_s = 4},
      {.stream = 2, .after = 1, .duration_s = 1, .bytes_per_s = {100, 0}, .end_s = 5}}},
};

static const ms_graph *make(ms_arena *arena, const sample *s)
{
    ms_graph_builder *b = ms_graph_open(arena);
    ms_graph_link(b, "HBM", 100);
    ms_graph_link(b, "NIC", 50);
    int pool = ms_graph_pool(b, 132);
    for (const row *r = s->rows; r < s->rows + MAX_TASKS && r->duration_s > 0.0; r++) {
        ms_task_cost cost = {.duration_s = r->duration_s,
                             .latency_s = r->latency_s,
                             .num_uses = 2,
                             .pool = pool,
                             .held_sms = r->held_sms,
                             .tiles = r->tiles,
                             .sm_frac = r->sm_frac};
        ms_link_use uses[] = {{0, r->bytes_per_s[0]}, {1, r->bytes_per_s[1]}};
        ms_graph_add(b, r->stream, ms_graph_cost(b, &cost, uses), (ms_task_tag){0});
        ms_graph_wait(b, r->after);
    }
    return ms_graph_close(b);
}

static ms_event_result run(ms_arena *arena, const ms_graph *graph, bool links, bool sms)
{
    ms_event_result result = {.wants_samples = true};
    result.start_s = MS_NEW_ARRAY(arena, 1 + graph->num_tasks, double);
    result.end_s = MS_NEW_ARRAY(arena, 1 + graph->num_tasks, double);
    ms_event_options options = {.share_links = links, .share_sms = sms};
    ms_event_run(graph, &options, arena, &result);
    return result;
}

static void tasks_end_when_worked_out_by_hand(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const ms_graph *graph = make(arena, &samples[i]);
        ms_event_result result = run(arena, graph, true, true);
        double last_s = 0.0;
        for (int j = 1; j <= graph->num_tasks; j++) {
            double want_s = samples[i].rows[j - 1].end_s;
            if (!(fabs(result.end_s[j] - want_s) <= 1e-9))
                fail_msg("%s: task %d: got %.17g, want %.17g", samples[i].what, j,
                         result.end_s[j], want_s);
            last_s = fmax(last_s, want_s);
        }
        ASSERT_NEAR(result.makespan_s, last_s, 1e-9);
        ASSERT_INT(result.num_events, 2 * graph->num_tasks);
    }
}

static const sample *find_sample(const char *start)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        if (strncmp(samples[i].what, start, strlen(start)) == 0)
            return &samples[i];
    fail_msg("no sample %s", start);
    return NULL;
}

static void options_choose_what_is_shared(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    const ms_graph *graph = make(arena, find_sample("limited by both"));
    ASSERT_NEAR(run(arena, graph, false, false).end_s[1], 2.0, 0.0);
    ASSERT_NEAR(run(arena, graph, false, true).end_s[1], 4.0, 1e-12);
    /* Links are shared here, SMs are not: each of the two tasks gets 50 of the link's 100
     * bytes/s, half of the rate that the first task wants. */
    ASSERT_NEAR(run(arena, graph, true, false).end_s[1], 4.0, 1e-12);
    ms_event_result alone = run(arena, graph, false, false);
    ASSERT_INT(alone.num_rate_changes, 0);
    ASSERT_INT(alone.num_samples, 0);
    ms_event_result bare = {.end_s = MS_NEW_ARRAY(arena, 1 + graph->num_tasks, double)};
    for (int i = 0; i < 2; i++) { /* no array of start times is given */
        ms_event_run(graph, &(ms_event_options){i == 1, i == 1}, arena, &bare);
        ASSERT_NEAR(bare.makespan_s, 9.0, 0.0);
        assert_null(bare.start_s);
    }
}

/* Samples of a link's use are written at changes only: here the link is full from the
 * first byte to the last, whichever task uses it. */
static void samples_tell_changes_only(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    ms_event_result r =
        run(arena, make(arena, find_sample("one that joins late")), true, true);
    ASSERT_INT(r.num_samples, 2);
    ASSERT_NEAR(r.samples[0].time_s, 0.0, 0.0);
    ASSERT_NEAR(r.samples[0].used_frac, 1.0, 1e-12);
    ASSERT_NEAR(r.samples[1].time_s, 5.0, 1e-12);
    ASSERT_NEAR(r.samples[1].used_frac, 0.0, 0.0);
    /* rates change when the late transfer starts, which slows the first transfer, and
     * when one of the two ends */
    ASSERT_INT(r.num_rate_changes, 3);
    r = run(arena, make(arena, find_sample("the small transfer")), true, true);
    ASSERT_INT(r.num_samples, 2);
    r = run(arena, make(arena, find_sample("transfers that fit")), true, true);
    ASSERT_INT(r.num_samples, 3);
    ASSERT_NEAR(r.samples[1].time_s, 2.0, 0.0);
    ASSERT_NEAR(r.samples[1].used_frac, 0.7, 1e-12);
}

/* A run is fast when thousands of tasks each wait for thousands of others: each list
 * of waits is gone through once. */
static void long_lists_are_walked_once(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    const int num_ranks = 4096, num_rounds = 4;
    ms_graph_builder *b = ms_graph_open(arena);
    int none = ms_graph_cost(b, &(ms_task_cost){.pool = -1}, NULL);
    for (int round = 0; round < num_rounds; round++) {
        for (int r = 0; r < num_ranks; r++) {
            ms_task_cost cost = {.duration_s = 1.0 + r, .pool = -1};
            ms_graph_add(b, r, ms_graph_cost(b, &cost, NULL), (ms_task_tag){0});
            ms_graph_wait(b, ms_graph_last(b, num_ranks));
        }
        int first = ms_graph_last(b, 0);
        ms_graph_add(b, num_ranks, none, (ms_task_tag){0});
        for (int r = num_ranks - 1; r >= 0; r--)
            ms_graph_wait(b, first + r);
    }
    const ms_graph *graph = ms_graph_close(b);
    ms_event_result result = run(arena, graph, false, false);
    ASSERT_NEAR(result.makespan_s, (double)num_ranks * num_rounds, 0.0);
    double *end_s = MS_NEW_ARRAY(arena, 1 + graph->num_tasks, double);
    ms_graph_replay(graph, NULL, end_s);
    assert_memory_equal(&end_s[1], &result.end_s[1],
                        (size_t)graph->num_tasks * sizeof *end_s);
}

/* Equal transfers that start one by one share a link: they end in their order, and the
 * link is never idle. */
static void hundreds_share_one_link(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    const int num = 300;
    ms_graph_builder *b = ms_graph_open(arena);
    int link = ms_graph_link(b, "link", 100);
    ms_link_use use = {link, 100};
    int transfer = ms_graph_cost(
        b, &(ms_task_cost){.duration_s = 1.0, .num_uses = 1, .pool = -1}, &use);
    for (int i = 0; i < num; i++) {
        ms_task_cost delay = {.duration_s = 0.5 * i, .pool = -1};
        ms_graph_add(b, i, ms_graph_cost(b, &delay, NULL), (ms_task_tag){0});
        ms_graph_add(b, i, transfer, (ms_task_tag){0});
    }
    ms_event_result r = run(arena, ms_graph_close(b), true, true);
    ASSERT_NEAR(r.makespan_s, (double)num, 1e-9);
    for (int i = 1; i < num; i++)
        assert_true(r.end_s[2 * i] < r.end_s[2 * i + 2]);
    ASSERT_INT(r.num_samples, 2);
    /* so many that outdated end events were dropped */
    assert_true(r.num_rate_changes > 20L * num);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_end_when_worked_out_by_hand),
        cmocka_unit_test(options_choose_what_is_shared),
        cmocka_unit_test(samples_tell_changes_only),
        cmocka_unit_test(long_lists_are_walked_once),
        cmocka_unit_test(hundreds_share_one_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
