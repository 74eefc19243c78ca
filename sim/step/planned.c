#include "sim/step/planned.h"

#include "sim/step/bill_key.h"
#include "sim/step/divide.h"
#include "sim/step/split.h"

/* Prices the plan on the devices of `workload`; returns the bills. */
static ms_bill_set *price(const ms_plan *plan, ms_workload *workload, ms_links *links,
                          ms_block_costs *blocks)
{
    ms_bill_key key = ms_plan_bill_key(workload, plan);
    unsigned modes = 1U << MS_RECOMPUTE_NONE | 1U << ms_plan_layer_mode(plan);
    ms_bill_set *bills = ms_workload_bills(workload, &key);
    ms_workload_add_modes(workload, bills, modes);
    *links = ms_links_make(workload, plan);
    ms_block_costs_price(workload, bills, links, plan, modes, blocks);
    return bills;
}

/* Prices the plan on the kinds of devices of each rank. */
static const ms_prices *price_kinds(ms_ctx *cx, const ms_planned *p,
                                    const unsigned char *kinds)
{
    ms_prices *prices = MS_NEW_ARRAY(cx->arena, MS_NUM_KIND_SETS, ms_prices);
    for (long i = 0; i < p->plan->size[MS_PP]; i++) {
        if (prices[kinds[i]].workload != NULL)
            continue;
        ms_workload *workload = ms_workload_of_kinds(p->workload, kinds[i]);
        ms_links *links = MS_NEW(cx->arena, ms_links);
        ms_block_costs *blocks = MS_NEW(cx->arena, ms_block_costs);
        const ms_bill_set *bills = price(p->plan, workload, links, blocks);
        prices[kinds[i]] = (ms_prices){workload, bills, links, blocks};
    }
    return prices;
}

static void open_bills(ms_planned *p, const unsigned char *kinds)
{
    int pp = (int)p->plan->size[MS_PP];
    if (kinds != NULL)
        price(p->plan, ms_workload_of_kinds(p->workload, ms_all_kinds(kinds, pp)),
              &p->links, &p->blocks);
    ms_bill_key key = ms_plan_bill_key(p->workload, p->plan);
    p->bills = kinds == NULL ? price(p->plan, p->workload, &p->links, &p->blocks)
                             : ms_workload_bills(p->workload, &key);
}

static const ms_split *split_of(ms_ctx *cx, const ms_planned *p,
                                const unsigned char *kinds)
{
    const ms_plan *plan = p->plan;
    ms_schedule_shape shape = ms_plan_shape(plan);
    if (plan->num_stage_layers == 0)
        return ms_workload_split(p->workload, p->bills, &shape, kinds);
    return ms_split_make(cx->arena, p->workload->model, plan->layers_per_stage, &shape,
                         kinds);
}

/* Memory inputs of the rank with most activations among `num_ranks` of a rank class. */
static ms_rank_load load_of(ms_ctx *cx, const ms_planned *p, int rank, int num_ranks)
{
    const ms_split *split = p->pipeline.split;
    const ms_rank_class *run = split->runs;
    while (rank >= run->first_rank + run->num_ranks)
        run++;
    ms_rank_live live = ms_rank_live_make(cx->arena, run, p->schedule, rank, num_ranks);
    ms_rank_sides sides = ms_split_sides(split, rank);
    return ms_pipeline_load(&p->pipeline, &sides, &live);
}

ms_rank_load ms_planned_load(ms_ctx *cx, const ms_planned *p, int rank)
{
    return load_of(cx, p, rank, 1);
}

static void make_run_loads(ms_ctx *cx, ms_planned *p)
{
    const ms_split *split = p->pipeline.split;
    ms_rank_load *loads = MS_NEW_ARRAY(cx->arena, split->num_runs, ms_rank_load);
    for (int i = 0; i < split->num_runs; i++)
        loads[i] = load_of(cx, p, split->runs[i].first_rank, split->runs[i].num_ranks);
    p->pipeline.loads = loads;
}

static const ms_schedule *condensed(ms_ctx *cx, const ms_planned *p)
{
    return ms_schedule_condense(cx->arena, &p->pipeline.shape, MS_LONG_SCHEDULE);
}

/* Everything but the schedule, and what follows from its order of actions. */
static void open_stages(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                        ms_planned *p)
{
    *p = (ms_planned){.plan = plan, .workload = workload};
    const unsigned char *kinds = ms_plan_kinds(cx->arena, plan, workload);
    open_bills(p, kinds);
    p->sharding = ms_plan_sharding(plan);
    const ms_split *split = split_of(cx, p, kinds);
    ms_schedule_shape shape = ms_workload_shape(workload, p->bills, plan);
    p->pipeline = (ms_pipeline){
        .workload = p->workload,
        .links = &p->links,
        .of_kinds = kinds == NULL ? NULL : price_kinds(cx, p, kinds),
        .shape = shape,
        .split = split,
        .shards = ms_shard_sizes_of(&p->links, shape.num_microbatches),
        .world_sync_s = ms_step_sync_s(p->workload, &p->links, &p->blocks, split),
        .blocks = &p->blocks,
        .mode = ms_plan_layer_mode(plan),
        .recompute_layers = plan->recompute_layers};
    ms_pipeline_set_sends(&p->pipeline, p->blocks.send_s);
    if (plan->num_stage_layers == 0 && ms_divides_layers(workload, &shape, kinds))
        p->pipeline.split =
            ms_divide_layers(&p->pipeline, p->sharding, condensed(cx, p), cx->arena);
    p->stages = ms_pipeline_stages(cx->arena, &p->pipeline);
    p->pipeline.stages = p->stages;
}

static void open_schedule(ms_ctx *cx, ms_planned *p, const ms_schedule *schedule)
{
    p->schedule = p->pipeline.lists = schedule;
    make_run_loads(cx, p);
}

void ms_planned_open(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                     ms_planned *p)
{
    open_stages(cx, workload, plan, p);
    open_schedule(cx, p, condensed(cx, p));
}

ms_status ms_planned_open_listed(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                                 ms_planned *p)
{
    open_stages(cx, workload, plan, p);
    if (!ms_schedule_is_listed(&p->pipeline.shape)) {
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "%d micro-batches on %d pipeline ranks are too many to run one by "
                       "one: %s",
                       p->pipeline.shape.num_microbatches, p->pipeline.shape.num_ranks,
                       ms_too_many_actions);
    }
    open_schedule(cx, p, ms_schedule_make(cx->arena, &p->pipeline.shape));
    return MS_OK;
}

double ms_planned_bound_s(ms_ctx *cx, ms_workload *workload, const ms_plan *plan)
{
    ms_planned p;
    open_stages(cx, workload, plan, &p);
    const ms_split *split = p.pipeline.split;
    ms_rank_load *loads = MS_NEW_ARRAY(cx->arena, split->num_runs, ms_rank_load);
    for (int i = 0; i < split->num_runs; i++)
        ms_rank_load_states(p.stages, &split->runs[i], 0.0, &loads[i]);
    p.pipeline.loads = loads;
    return ms_step_bound_s(&p.pipeline, p.sharding, cx->arena);
}

const ms_stage *ms_planned_stage(const ms_planned *p, int stage)
{
    return &p->stages[p->pipeline.split->class_of_stage[stage]];
}

ms_prices ms_planned_prices(const ms_planned *p, int stage)
{
    if (p->pipeline.of_kinds == NULL)
        return (ms_prices){p->workload, p->bills, &p->links, &p->blocks};
    return ms_pipeline_prices(&p->pipeline, stage);
}

const ms_links *ms_planned_links(const ms_planned *p, int rank)
{
    return ms_planned_prices(p, ms_split_stage(p->pipeline.split, rank, 0)).links;
}

ms_layer_mode ms_planned_mode(const ms_planned *p, long layer_in_stage)
{
    const ms_plan *plan = p->plan;
    bool rest = plan->recompute == MS_RECOMPUTE_FULL && plan->recompute_layers > 0 &&
                layer_in_stage >= plan->recompute_layers;
    return rest ? MS_RECOMPUTE_NONE : ms_plan_layer_mode(plan);
}

static int kind_of(const ms_planned *p, int stage, long layer)
{
    return p->workload->model
        ->kind_of_layer[p->pipeline.split->first_layer[stage] + layer];
}

const ms_bill *ms_planned_layer_bill(const ms_planned *p, int stage, long layer)
{
    const ms_bill_set *bills = ms_planned_prices(p, stage).bills;
    return bills->layer[kind_of(p, stage, layer)][ms_planned_mode(p, layer)];
}

/* ---- blocks of a rank ---- */

static void add_layer(ms_held_block *held, int *num, int kind, ms_layer_mode mode,
                      const ms_bill *bill)
{
    for (int i = 0; i < *num; i++) {
        if (held[i].bill == bill) {
            held[i].count += 1.0;
            return;
        }
    }
    held[(*num)++] = (ms_held_block){MS_BLOCK_LAYER,     kind,         mode, 1.0, bill,
                                     bill->dense_params, bill->frozen, NULL};
}

int ms_planned_held(const ms_planned *p, int rank, ms_held_block out[MS_MAX_HELD_BLOCKS])
{
    const ms_split *split = p->pipeline.split;
    ms_prices own = ms_planned_prices(p, ms_split_stage(split, rank, 0));
    const ms_bill *embed = &own.bills->embed, *head = &own.bills->head;
    int num = 0, last = split->num_stages - 1;
    if (ms_split_holds(split, rank, 0))
        out[num++] = (ms_held_block){
            MS_BLOCK_EMBED, 0,   MS_RECOMPUTE_NONE, 1.0, embed, embed->dense_params,
            embed->frozen,  NULL};
    for (int chunk = 0; chunk < split->num_chunks; chunk++) {
        int s = ms_split_stage(split, rank, chunk);
        for (long i = 0; i < split->layers[s]; i++)
            add_layer(out, &num, kind_of(p, s, i), ms_planned_mode(p, i),
                      ms_planned_layer_bill(p, s, i));
    }
    bool has_head = ms_split_holds(split, rank, last);
    for (int i = 0; i < num; i++)
        out[i].workload = own.workload;
    if (!has_head)
        return num;
    double params = head->dense_params;
    ms_frozen_bytes frozen = head->frozen;
    if (ms_split_holds(split, rank, 0)) {
        params -= ms_shared_head_params(p->workload, head);
        frozen.dense -= p->workload->model->tied_embeddings ? head->frozen_head_bytes : 0;
    }
    out[num++] = (ms_held_block){MS_BLOCK_HEAD, 0,      MS_RECOMPUTE_NONE, 1.0, head,
                                 params,        frozen, own.workload};
    return num;
}

const ms_program *ms_planned_program(ms_arena *arena, const ms_planned *p,
                                     const ms_held_block *held)
{
    ms_program_key which = {.block = (unsigned char)held->block,
                            .kind = (unsigned char)held->kind,
                            .recompute = (unsigned char)held->mode};
    return ms_workload_program(held->workload, arena, &p->bills->key, which,
                               ms_plan_data_parallel(p->plan));
}

/* ---- waits for the host ---- */

double ms_planned_split_frac(const ms_planned *p, int rank)
{
    const ms_schedule *schedule = p->schedule;
    double num_split = 0.0, num_whole = 0.0;
    for (int i = schedule->first_action[rank]; i < schedule->first_action[rank + 1];
         i++) {
        num_split += schedule->actions[i].kind == MS_BACKWARD_INPUT;
        num_whole += schedule->actions[i].kind == MS_BACKWARD ||
                     schedule->actions[i].kind == MS_OVERLAP;
    }
    return num_split > 0.0 ? num_split / (num_split + num_whole) : 0.0;
}

double ms_planned_host_s(const ms_planned *p, int rank)
{
    double m = (double)ms_schedule_stage_microbatches(&p->pipeline.shape), host_s = 0.0;
    double halves = ms_planned_split_frac(p, rank);
    for (int chunk = 0; chunk < p->pipeline.split->num_chunks; chunk++) {
        const ms_block_cost *sum =
            &ms_planned_stage(p, ms_split_stage(p->pipeline.split, rank, chunk))->sum;
        host_s += m * (sum->forward_host_s + (1.0 - halves) * sum->backward_host_s +
                       halves * (sum->input_host_s + sum->weight_host_s));
    }
    return host_s;
}
