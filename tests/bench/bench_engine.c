/* Benchmark of the simulation engines on task graphs of a pipeline whose layers
 * compute while the next ones gather their weights. Times are medians of five runs on
 * one core; instructions are counted by valgrind where it is installed. With the
 * arguments "WHAT N" the program only does WHAT N times: that is what valgrind runs. */
#include "sim/engine/event.h"

#include "tests/bench/bench.h"

#define NUM_REPEATS 5
#define NUM_LAYERS  16

typedef struct shape {
    const char *what;
    int num_ranks, num_microbatches;
} shape;

static const shape shapes[] = {
    {"8 ranks, 32 micro-batches", 8, 32},
    {"64 ranks, 256 micro-batches", 64, 256},
};
#define NUM_SHAPES (int)(sizeof shapes / sizeof *shapes)

/* Streams (queues of tasks) of one rank. */
enum {
    COMPUTE,
    GATHER,
    SEND,
    NUM_RANK_STREAMS
};
typedef struct rank_costs {
    int product, gather, send;
} rank_costs;

static rank_costs make_costs(ms_graph_builder *b, int rank)
{
    /* matrix products and gathers of a rank contend for its HBM a little; gathers also
     * hold SMs */
    int hbm = ms_graph_link(b, "hbm", 3e12), nic = ms_graph_link(b, "nic", 5e10);
    int pool = ms_graph_pool(b, 132);
    const ms_link_use product[] = {{hbm, 2.6e12}}, gather[] = {{hbm, 5e11}, {nic, 4e10}},
                      send[] = {{nic, 4e10}};
    double slow = 1.0 + 0.001 * rank;
    return (rank_costs){
        ms_graph_cost(
            b,
            &(ms_task_cost){
                .duration_s = 1e-3 * slow, .num_uses = 1, .pool = pool, .tiles = 500},
            product),
        ms_graph_cost(b,
                      &(ms_task_cost){.duration_s = 6e-4,
                                      .latency_s = 1e-5,
                                      .num_uses = 2,
                                      .pool = pool,
                                      .held_sms = 20},
                      gather),
        ms_graph_cost(
            b,
            &(ms_task_cost){
                .duration_s = 2e-4, .latency_s = 1e-5, .num_uses = 1, .pool = pool},
            send)};
}

static int add(ms_graph_builder *b, int rank, int stream, int cost)
{
    ms_task_tag tag = {.actor = rank, .stage = (short)rank, .label = stream};
    return ms_graph_add(b, NUM_RANK_STREAMS * rank + stream, cost, tag);
}

/* A task graph of a pipeline: every micro-batch passes through all ranks in turn. On each
 * rank, the product of a layer waits for the gather of the layer's weights, and the first
 * layer's product also for the micro-batch sent by the rank before. */
static const ms_graph *make_graph(ms_arena *arena, const shape *s)
{
    ms_graph_builder *b = ms_graph_open(arena);
    rank_costs *costs = MS_NEW_ARRAY(arena, s->num_ranks, rank_costs);
    for (int r = 0; r < s->num_ranks; r++)
        costs[r] = make_costs(b, r);
    for (int m = 0; m < s->num_microbatches; m++)
        for (int r = 0, sent = 0; r < s->num_ranks; r++) {
            for (int l = 0; l < NUM_LAYERS; l++) {
                int gather = add(b, r, GATHER, costs[r].gather);
                add(b, r, COMPUTE, costs[r].product);
                ms_graph_wait(b, gather);
                ms_graph_wait(b, l == 0 ? sent : 0);
            }
            int last = ms_graph_last(b, NUM_RANK_STREAMS * r + COMPUTE);
            sent = add(b, r, SEND, costs[r].send);
            ms_graph_wait(b, last);
        }
    return ms_graph_close(b);
}

typedef struct bench {
    const shape *shape;
    ms_arena *arena;
    const ms_graph *graph;
    double *start_s, *end_s;
    double makespan_s;
    long num_events, num_rate_changes;
} bench;

static bench open_bench(const shape *s)
{
    bench b = {.shape = s, .arena = ms_arena_open()};
    b.graph = make_graph(b.arena, s);
    b.start_s = MS_NEW_ARRAY(b.arena, 1 + b.graph->num_tasks, double);
    b.end_s = MS_NEW_ARRAY(b.arena, 1 + b.graph->num_tasks, double);
    return b;
}

static void build(bench *b)
{
    ms_arena *arena = ms_arena_open();
    b->makespan_s = make_graph(arena, b->shape)->num_tasks;
    ms_arena_close(arena);
}

static void replay(bench *b)
{
    b->makespan_s = ms_graph_replay(b->graph, b->start_s, b->end_s);
}

static void run_events(bench *b, bool shared)
{
    ms_event_options options = {shared, shared};
    ms_event_result result = {.start_s = b->start_s, .end_s = b->end_s};
    ms_event_run(b->graph, &options, b->arena, &result);
    b->makespan_s = result.makespan_s;
    b->num_events = result.num_events;
    b->num_rate_changes = result.num_rate_changes;
}

static void events(bench *b)
{
    run_events(b, false);
}

static void shared_events(bench *b)
{
    run_events(b, true);
}

typedef struct job {
    const char *what;
    void (*run)(bench *b);
    /* how many of `unit` one task of the graph is: 1 task, or 2 events */
    double per_task;
    const char *unit;
} job;

static const job jobs[] = {
    {"build", build, 1.0, "a task"},
    {"graph_replay", replay, 1.0, "a task"},
    {"events", events, 2.0, "an event"},
    {"shared_events", shared_events, 2.0, "an event"},
};
#define NUM_JOBS (int)(sizeof jobs / sizeof *jobs)

static void report(const shape *s)
{
    bench b = open_bench(s);
    double num_tasks = b.graph->num_tasks;
    printf("%s: %d tasks\n", s->what, b.graph->num_tasks);
    for (int i = 0; i < NUM_JOBS; i++) {
        double each_s[NUM_REPEATS];
        long count = (long)(1e6 / num_tasks) + 1;
        for (int j = 0; j < NUM_REPEATS; j++) {
            double start_s = now_s();
            for (long k = 0; k < count; k++)
                jobs[i].run(&b);
            each_s[j] = (now_s() - start_s) / (double)count;
        }
        double task_s = median(each_s, NUM_REPEATS) / num_tasks;
        printf("  %-28s %6.1f ns %s, %.1f million tasks a second\n", jobs[i].what,
               1e9 * task_s / jobs[i].per_task, jobs[i].unit, 1e-6 / task_s);
    }
    printf("  with sharing %ld events, %ld changes of rate\n", b.num_events,
           b.num_rate_changes);
    ms_arena_close(b.arena);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; argc == 3 && i < NUM_JOBS; i++) {
        if (strcmp(argv[1], jobs[i].what) != 0)
            continue;
        bench b = open_bench(&shapes[0]);
        for (long k = strtol(argv[2], NULL, 10); k > 0; k--)
            jobs[i].run(&b);
        ms_arena_close(b.arena);
        return b.makespan_s > 0.0 ? 0 : 1;
    }
    for (int i = 0; i < NUM_SHAPES; i++)
        report(&shapes[i]);
    bench b = open_bench(&shapes[0]);
    double num_tasks = b.graph->num_tasks;
    ms_arena_close(b.arena);
    printf("%s\n", shapes[0].what);
    for (int i = 0; i < NUM_JOBS; i++)
        print_instructions(argv[0], jobs[i].what, jobs[i].per_task * num_tasks,
                           jobs[i].unit);
    return 0;
}
