/* The simulation node by node (a task per operation): what a rank computes,
 * communicates and sends is what the priced layer programs and the list of its traffic
 * say, for random plans of every schedule. */
#include "sim/simulate/block_ops.h"
#include "sim/simulate/simulation.h"

#include "tests/support/random_plans.h"
#include "tests/test.h"

#define NUM_PLANS 150

typedef struct sums {
    double count, bytes, seconds;
} sums;

typedef struct tally {
    /* collectives inside layer programs, by group of ranks and kind of collective */
    sums by_kind[MS_NUM_TRAFFIC_GROUPS][MS_NUM_COLLECTIVES];
    double stream_s[MS_NUM_STREAMS];
    long num_sends;
} tally;

static void add(sums *s, double count, double size_bytes, double one_s)
{
    s->count += count;
    s->bytes += count * size_bytes;
    s->seconds += count * one_s;
}

/* The simulated stream that carries a traffic entry; -1: none does, since the traffic
 * comes after the last backward. */
static int stream_of(const ms_traffic_entry *e)
{
    switch (e->phase) {
    case MS_TRAFFIC_STAGE:
        return MS_STREAM_SEND;
    case MS_TRAFFIC_PARAMS:
        return MS_STREAM_GATHER;
    case MS_TRAFFIC_GRADS:
        return e->group == MS_TRAFFIC_TP ? MS_STREAM_TP : MS_STREAM_REDUCE;
    case MS_TRAFFIC_FORWARD:
    case MS_TRAFFIC_BACKWARD:
        return e->group == MS_TRAFFIC_TP   ? MS_STREAM_TP
               : e->group == MS_TRAFFIC_CP ? MS_STREAM_CP
                                           : MS_STREAM_EP;
    case MS_TRAFFIC_OPTIMIZER:
    case MS_NUM_TRAFFIC_PHASES:
        break;
    }
    return -1;
}

static tally tally_traffic(ms_ctx *cx, const ms_planned *p, int rank)
{
    ms_traffic traffic = ms_traffic_make(cx, p, rank);
    tally t = {0};
    for (int i = 0; i < traffic.num_entries; i++) {
        const ms_traffic_entry *e = &traffic.entries[i];
        int stream = stream_of(e);
        if (stream >= 0)
            t.stream_s[stream] += e->count * e->one_s;
        if (e->cause == MS_CAUSE_NODES)
            add(&t.by_kind[e->group][e->collective], e->count, e->size_bytes, e->one_s);
        if (stream == MS_STREAM_SEND)
            t.num_sends += lround(e->count);
    }
    return t;
}

/* Adds the collectives of a stage's blocks, times the micro-batches that the schedule
 * runs. */
static void tally_parts(tally *t, const ms_stage_blocks *parts, double microbatches)
{
    for (int i = 0; i < parts->num; i++) {
        for (int pass = 0; pass < MS_NUM_BILL_PASSES; pass++) {
            for (int k = 0; k < parts->blocks[i]->num_ops[pass]; k++) {
                const ms_block_op *op = &parts->blocks[i]->ops[pass][k];
                if (op->moves)
                    add(&t->by_kind[op->group][op->collective], microbatches * op->count,
                        op->size_bytes, 0.0);
            }
        }
    }
}

static tally tally_nodes(const ms_planned *p, const ms_simulation *sim, int actor,
                         const ms_stage_blocks *parts)
{
    const ms_schedule_shape *shape = &p->schedule->shape;
    tally t = {0};
    for (int chunk = 0; chunk < p->schedule->num_chunks; chunk++) {
        int stage = ms_schedule_stage(shape, sim->actors[actor].pipeline_rank, chunk);
        tally_parts(&t, &parts[ms_schedule_model_stage(shape, stage)],
                    ms_schedule_stage_microbatches(shape));
    }
    for (int i = 1; i <= sim->graph->num_tasks; i++) {
        const ms_task_tag *tag = ms_graph_tag(sim->graph, i);
        /* tasks of no stage follow the last stage: gradient norm, tied embedding
         * matrix */
        bool after_all = tag->stage < 0;
        if (tag->actor != actor || after_all ||
            (tag->kind != MS_TASK_COLLECTIVE && tag->kind != MS_TASK_SEND))
            continue;
        t.stream_s[tag->stream] += sim->end_s[i] - sim->start_s[i];
        t.num_sends += tag->kind == MS_TASK_SEND;
    }
    return t;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-8 * fmax(fabs(a), fabs(b));
}

static void compare(ms_ctx *cx, const ms_plan *plan, int rank, const tally *nodes,
                    const tally *traffic)
{
    const char *text = ms_plan_text(cx->arena, plan);
    for (int g = 0; g < MS_NUM_TRAFFIC_GROUPS; g++) {
        for (int c = 0; c < MS_NUM_COLLECTIVES; c++) {
            const sums *a = &nodes->by_kind[g][c], *b = &traffic->by_kind[g][c];
            if (!near(a->count, b->count) || !near(a->bytes, b->bytes))
                fail_msg("%s, pp %d, %s of %s: %g of %g bytes by nodes, %g of %g", text,
                         rank, ms_collective_names[c],
                         ms_traffic_group_name(plan, (ms_traffic_group)g), a->count,
                         a->bytes, b->count, b->bytes);
        }
    }
    for (int s = MS_STREAM_TP; s <= MS_STREAM_SEND; s++)
        if (!near(nodes->stream_s[s], traffic->stream_s[s]))
            fail_msg("%s, pp %d: %s takes %.17g s by nodes, %.17g s", text, rank,
                     ms_stream_names[s], nodes->stream_s[s], traffic->stream_s[s]);
    ASSERT_INT(nodes->num_sends, traffic->num_sends);
}

/* Actions count what passes wait for the host with nothing beside them. Tasks of nodes
 * wait no longer, as the host launches while transfers slow kernels; as long, where no
 * parameters or gradients move. Pairs wait otherwise. Where the host's time is short it is
 * the difference of two long times: its rounding error is relative to compute_s. */
static void check_host(const ms_plan *plan, const ms_actor *nodes,
                       const ms_actor *actions)
{
    ms_schedule_traits traits = ms_schedule_traits_of(plan->schedule);
    double rounding_s = 1e-12 * nodes->compute_s + 1e-8 * nodes->host_s;
    bool alone = ms_plan_data_parallel(plan) * plan->size[MS_CP] * plan->size[MS_TP] == 1;
    if (traits.overlaps)
        return;
    assert_true(nodes->host_s <= actions->host_s + rounding_s);
    assert_true(!alone || nodes->host_s >= actions->host_s - rounding_s);
}

static void check_plan(ms_ctx *cx, const ms_plan *plan, const ms_planned *planned)
{
    ms_simulation nodes, actions;
    ms_simulate_options options = {.detail = MS_DETAIL_NODE};
    ASSERT_OK(ms_simulate(cx, planned, &options, &nodes), cx);
    options.detail = MS_DETAIL_ACTION;
    ASSERT_OK(ms_simulate(cx, planned, &options, &actions), cx);
    ms_stage_blocks *parts = ms_stage_blocks_make(cx->arena, planned);
    for (int a = 0; a < nodes.num_actors; a++) {
        int rank = nodes.actors[a].pipeline_rank;
        tally have = tally_nodes(planned, &nodes, a, parts),
              want = tally_traffic(cx, planned, rank);
        compare(cx, plan, rank, &have, &want);
        assert_true(near(nodes.actors[a].compute_s, actions.actors[a].compute_s));
        check_host(plan, &nodes.actors[a], &actions.actors[a]);
    }
}

static void check_model(const char *model, uint64_t seed)
{
    ms_ctx *cx = test_cx();
    ms_plan base = ms_plan_default(32);
    base.model = model;
    base.cluster = "hgx-h100";
    base.sequence_length = 4096;
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, &base, &workload), cx);
    ms_rng rng = ms_rng_seed(seed);
    for (int trial = 0; trial < NUM_PLANS; trial++) {
        ms_arena_mark mark = ms_arena_save(cx->arena);
        ms_plan plan = ms_random_plan(&rng, workload, &base, 32);
        ms_planned planned;
        ms_planned_open(cx, workload, &plan, &planned);
        check_plan(cx, &plan, &planned);
        ms_arena_rewind(cx->arena, mark);
    }
    ms_workload_close(workload);
}

static void dense_plans_move_what_their_traffic_lists(void **state)
{
    (void)state;
    check_model("llama-3.2-1b", 61);
}

static void expert_plans_move_what_their_traffic_lists(void **state)
{
    (void)state;
    check_model("qwen3-30b-a3b", 62);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_plans_move_what_their_traffic_lists),
        cmocka_unit_test(expert_plans_move_what_their_traffic_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
