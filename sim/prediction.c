#include "sim/prediction.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

/* ---- the pipeline of one plan ---- */

typedef struct planned {
    const ms_plan *plan;
    ms_workload *workload;
    ms_bill_set *bills;
    ms_links links;
    ms_parts parts;
    ms_pipeline pipeline;
    ms_sharding sharding;
    const ms_schedule *schedule;
    ms_stage *stages; /* by class */
} planned;

static unsigned modes_of(const ms_plan *plan)
{
    return 1U << MS_RECOMPUTE_NONE | 1U << plan->recompute;
}

static void open_bills(planned *p)
{
    const ms_plan *plan = p->plan;
    ms_bill_key key = {.tp = (short)plan->size[MS_TP],
                       .cp = (short)plan->size[MS_CP],
                       .ep = (short)plan->ep,
                       .etp = (short)plan->etp,
                       .microbatch = (int)plan->microbatch,
                       .sequence_parallel = plan->sequence_parallel,
                       .loss_parallel = plan->loss_parallel,
                       .cp_method = (unsigned char)ms_plan_cp_method(plan),
                       .cp_unbalanced = ms_plan_has_unequal_ranks(plan)};
    p->bills = ms_workload_bills(p->workload, &key);
    ms_workload_add_modes(p->workload, p->bills, modes_of(plan));
    p->links = ms_links_make(plan, p->workload->cluster, p->workload->profile);
    ms_parts_price(p->workload, p->bills, &p->links, plan->async_tp, modes_of(plan),
                   &p->parts);
}

static const ms_split *split_of(ms_ctx *cx, const planned *p)
{
    const ms_plan *plan = p->plan;
    int ranks = (int)plan->size[MS_PP], virtual_stages = (int)plan->virtual_stages;
    if (plan->num_stage_layers == 0)
        return ms_workload_split(p->workload, p->bills, ranks, virtual_stages);
    return ms_split_make(cx->arena, p->workload->model, plan->layers_per_stage, ranks,
                         virtual_stages);
}

static void make_stages(ms_ctx *cx, planned *p)
{
    const ms_split *split = p->pipeline.split;
    p->stages = MS_NEW_ARRAY(cx->arena, split->num_classes, ms_stage);
    for (int i = 0; i < split->num_classes; i++) {
        int s = split->stage_of_class[i];
        ms_stage_layout layout = {
            split->first_layer[s],      split->layers[s],   s == 0,
            s == split->num_stages - 1, p->plan->recompute, p->plan->recompute_layers};
        ms_stage_make(p->workload, &p->parts, &layout, &p->stages[i]);
    }
    p->pipeline.stages = p->stages;
}

static const ms_run *run_of(const ms_split *split, int rank)
{
    const ms_run *run = split->runs;
    while (rank >= run->first_rank + run->num_ranks)
        run++;
    return run;
}

static ms_rank_load load_of(ms_ctx *cx, const planned *p, int rank)
{
    const ms_split *split = p->pipeline.split;
    ms_rank_live live =
        ms_rank_live_make(cx->arena, run_of(split, rank), p->schedule, rank);
    ms_rank_load load;
    ms_rank_load_make(p->workload, p->stages, &live, p->parts.send_bytes,
                      ms_num_neighbours(split, rank), &load);
    return load;
}

static void make_run_loads(ms_ctx *cx, planned *p)
{
    const ms_split *split = p->pipeline.split;
    ms_rank_load *loads = MS_NEW_ARRAY(cx->arena, split->num_runs, ms_rank_load);
    for (int i = 0; i < split->num_runs; i++)
        loads[i] = load_of(cx, p, split->runs[i].first_rank);
    p->pipeline.loads = loads;
}

static void open_planned(ms_ctx *cx, planned *p)
{
    const ms_plan *plan = p->plan;
    open_bills(p);
    ms_schedule_shape shape = {.kind = plan->schedule,
                               .num_ranks = (int)plan->size[MS_PP],
                               .num_microbatches = (int)ms_plan_microbatches(plan),
                               .virtual_stages = (int)plan->virtual_stages,
                               .group = (int)plan->microbatch_group};
    p->sharding = ms_plan_sharding(plan);
    p->schedule = ms_schedule_make(cx->arena, &shape);
    p->pipeline =
        (ms_pipeline){.workload = p->workload,
                      .links = &p->links,
                      .shape = shape,
                      .split = split_of(cx, p),
                      .shards = ms_shard_sizes_of(&p->links),
                      .send_s = plan->size[MS_PP] > 1 ? p->parts.send_s : 0.0,
                      .world_sync_s = ms_step_sync_s(p->workload, &p->links, &p->parts)};
    make_stages(cx, p);
    make_run_loads(cx, p);
}

/* ---- times ---- */

static const ms_stage *stage_at(const planned *p, int stage)
{
    return &p->stages[p->pipeline.split->class_of_stage[stage]];
}

static void sum_rank(const planned *p, int rank, ms_prediction *out)
{
    double m = (double)p->pipeline.shape.num_microbatches;
    out->compute_s = out->host_s = 0.0;
    for (int s = rank; s < p->pipeline.split->num_stages;
         s += p->pipeline.shape.num_ranks) {
        const ms_part *sum = &stage_at(p, s)->sum;
        out->compute_s += m * (sum->forward_compute_s + sum->backward_compute_s);
        out->host_s += m * (sum->forward_host_s + sum->backward_host_s);
    }
}

/* The schedule alone: no waiting for parameters before it, no reductions after it. */
static double unsynced_makespan_s(ms_ctx *cx, const planned *p,
                                  const ms_stage_times *times)
{
    int num_stages = p->pipeline.split->num_stages;
    ms_stage_times *plain = MS_NEW_ARRAY(cx->arena, num_stages, ms_stage_times);
    for (int s = 0; s < num_stages; s++) {
        plain[s] = times[s];
        plain[s].release_s = plain[s].reduce_s = plain[s].reduce_tail_s = 0.0;
    }
    ms_replay_result result = {0};
    ms_replay(p->schedule, plain, cx->arena, &result);
    return result.makespan_s;
}

static void predict_stages(ms_ctx *cx, const planned *p, const ms_stage_times *times,
                           const double *busy_s, ms_prediction *out)
{
    int ranks = p->pipeline.shape.num_ranks;
    out->num_stages = ranks;
    out->stages = MS_NEW_ARRAY(cx->arena, ranks, ms_stage_prediction);
    for (int rank = 0; rank < ranks; rank++) {
        ms_stage_prediction *stage = &out->stages[rank];
        stage->rank = rank;
        stage->busy_s = busy_s[rank];
        for (int s = rank; s < p->pipeline.split->num_stages; s += ranks) {
            stage->num_layers += p->pipeline.split->layers[s];
            stage->forward_s += times[s].forward_s;
            stage->backward_s += times[s].backward_s;
        }
    }
}

/* All ranks wait for each other before the optimizer (the gradient norm), so the rank with the longest optimizer ends last. */
static void predict_time(ms_ctx *cx, const planned *p, ms_prediction *out)
{
    int ranks = p->pipeline.shape.num_ranks, last = 0;
    ms_replay_result result = {.busy_s = MS_NEW_ARRAY(cx->arena, ranks, double)};
    ms_stage_times *times =
        MS_NEW_ARRAY(cx->arena, p->pipeline.split->num_stages, ms_stage_times);
    ms_step_durations(&p->pipeline, p->sharding, times);
    ms_replay(p->schedule, times, cx->arena, &result);
    out->optimizer_s = ms_optimizer_s(&p->pipeline, p->sharding, &last);
    out->step_s = result.makespan_s + out->optimizer_s;
    out->bound_s = ms_step_bound_s(&p->pipeline, p->sharding, cx->arena);
    double plain_s = unsynced_makespan_s(cx, p, times);
    sum_rank(p, last, out);
    out->ending_rank = last;
    out->bubble_s = ms_max(plain_s - result.busy_s[last], 0.0);
    double known_s = out->compute_s + out->host_s + out->bubble_s + out->optimizer_s;
    out->exposed_comm_s = ms_max(out->step_s - known_s, 0.0);
    predict_stages(cx, p, times, result.busy_s, out);
}

/* A stage that recomputes some of its layers recomputes the first ones. */
static const ms_bill *layer_bill(const planned *p, int stage, long layer)
{
    const ms_plan *plan = p->plan;
    int kind =
        p->workload->model->kind_of_layer[p->pipeline.split->first_layer[stage] + layer];
    bool rest = plan->recompute == MS_RECOMPUTE_FULL && plan->recompute_layers > 0 &&
                layer >= plan->recompute_layers;
    return p->bills->layer[kind][rest ? MS_RECOMPUTE_NONE : plan->recompute];
}

/* FLOP that all devices execute in a step, recomputation included. */
static double executed_flop(const planned *p)
{
    const ms_plan *plan = p->plan;
    const ms_split *split = p->pipeline.split;
    double flop = 0.0;
    for (int s = 0; s < split->num_stages; s++) {
        for (long i = 0; i < split->layers[s]; i++) {
            const ms_bill *bill = layer_bill(p, s, i);
            flop += bill->flop[MS_BILL_FORWARD] + bill->flop[MS_BILL_BACKWARD];
        }
    }
    const ms_bill *ends[2] = {&p->bills->embed, &p->bills->head};
    for (int i = 0; i < 2; i++)
        flop += ends[i]->flop[MS_BILL_FORWARD] + ends[i]->flop[MS_BILL_BACKWARD];
    double pipelines = (double)plan->gpus / (double)plan->size[MS_PP];
    return flop * (double)ms_plan_microbatches(plan) * pipelines;
}

static void predict_rates(const planned *p, ms_prediction *out)
{
    const ms_plan *plan = p->plan;
    double tokens = (double)plan->global_batch * (double)plan->sequence_length;
    double peak =
        p->workload->cluster->device.peak_flop_per_s[plan->compute] * (double)plan->gpus;
    ms_flop_per_token flop =
        ms_model_flop_per_token(p->workload->model, (double)plan->sequence_length);
    out->tokens_per_s = tokens / out->step_s;
    out->tokens_per_s_per_gpu = out->tokens_per_s / (double)plan->gpus;
    out->mfu_frac = out->tokens_per_s * flop.full_flop / peak;
    out->hfu_frac = executed_flop(p) / out->step_s / peak;
}

/* ---- memory ---- */

static int live_at_peak(const ms_schedule *schedule, int rank)
{
    int most = 0, width = schedule->shape.virtual_stages;
    for (int i = schedule->first_live[rank]; i < schedule->first_live[rank + 1]; i++) {
        int sum = 0;
        for (int chunk = 0; chunk < width; chunk++)
            sum += schedule->live[(long)i * width + chunk];
        most = sum > most ? sum : most;
    }
    return most;
}

static void predict_memory(ms_ctx *cx, const planned *p, ms_prediction *out)
{
    out->capacity_bytes = p->workload->cluster->device.memory_bytes;
    out->peak_bytes = -1.0;
    for (int rank = 0; rank < out->num_stages; rank++) {
        ms_stage_prediction *stage = &out->stages[rank];
        ms_rank_load load = load_of(cx, p, rank);
        ms_rank_memory(p->workload, &load, p->sharding, &p->pipeline.shards,
                       stage->memory);
        for (int i = 0; i < MS_NUM_MEMORY_PARTS; i++)
            stage->peak_bytes += stage->memory[i];
        stage->live_microbatches = live_at_peak(p->schedule, rank);
        if (stage->peak_bytes > out->peak_bytes) {
            out->peak_bytes = stage->peak_bytes;
            out->worst_rank = rank;
            memcpy(out->memory, stage->memory, sizeof out->memory);
        }
    }
    out->fits = out->peak_bytes <= out->capacity_bytes;
}

/* ---- traffic per axis ---- */

static ms_axis_prediction *add_axis(const planned *p, ms_prediction *out,
                                    const char *name, const ms_span *span)
{
    ms_axis_prediction *axis = &out->axes[out->num_axes++];
    *axis = (ms_axis_prediction){.axis = name,
                                 .size = span->size,
                                 .ranks_per_node = span->per_domain[0],
                                 .tier = p->workload->cluster->levels[span->tier].name};
    return axis;
}

static void add_bill_traffic(const planned *p, const ms_bill *bill, int axis,
                             double times, ms_axis_prediction *out)
{
    const ms_span *span = &p->links.span[axis];
    for (int pass = 0; pass < MS_NUM_BILL_PASSES; pass++) {
        for (int i = 0; i < bill->num_comms[pass]; i++) {
            const ms_bill_comm *comm = &bill->comms[pass][i];
            if (comm->axis != axis)
                continue;
            ms_collective collective = (ms_collective)comm->collective;
            double count = times * comm->count;
            out->bytes += count * ms_collective_wire_bytes(collective, span->size,
                                                           comm->size_bytes);
            out->seconds += count * ms_collective_s(&p->links.law[axis][collective],
                                                    comm->size_bytes);
            out->exposed_s += times * ms_comm_exposed_s(p->workload, comm, &p->links,
                                                        p->plan->async_tp);
        }
    }
}

static void predict_inner_axis(const planned *p, int rank, int axis, const char *name,
                               ms_prediction *out)
{
    const ms_split *split = p->pipeline.split;
    double m = (double)p->pipeline.shape.num_microbatches;
    if (p->links.span[axis].size <= 1)
        return;
    ms_axis_prediction *to = add_axis(p, out, name, &p->links.span[axis]);
    for (int s = rank; s < split->num_stages; s += split->num_ranks) {
        for (long i = 0; i < split->layers[s]; i++)
            add_bill_traffic(p, layer_bill(p, s, i), axis, m, to);
        if (s == 0)
            add_bill_traffic(p, &p->bills->embed, axis, m, to);
        if (s == split->num_stages - 1)
            add_bill_traffic(p, &p->bills->head, axis, m, to);
    }
}

/* How often a step gathers parameters and reduces gradients. */
static void sync_counts(const planned *p, double *gathers, double *reductions)
{
    double m = (double)p->pipeline.shape.num_microbatches;
    *gathers = p->sharding == MS_ZERO_0 ? 0.0 : p->sharding == MS_ZERO_3 ? 2.0 * m : 1.0;
    *reductions = ms_shards_grads(p->sharding) ? m : 1.0;
}

static double rank_params(const planned *p, int rank, bool expert)
{
    double params = 0.0;
    for (int s = rank; s < p->pipeline.split->num_stages;
         s += p->pipeline.split->num_ranks)
        params +=
            expert ? stage_at(p, s)->sum.expert_params : stage_at(p, s)->sum.dense_params;
    return params;
}

static void predict_sync(const planned *p, int rank, ms_prediction *out)
{
    const ms_stack *stack = p->workload->stack;
    double gathers, reductions, gather_s = 0.0, reduce_s = 0.0, all_reduce_s = 0.0,
                                replicate_s = 0.0;
    sync_counts(p, &gathers, &reductions);
    for (int s = rank; s < p->pipeline.split->num_stages;
         s += p->pipeline.split->num_ranks) {
        const ms_part *sum = &stage_at(p, s)->sum;
        gather_s += sum->gather_s;
        reduce_s += sum->reduce_s;
        all_reduce_s += sum->all_reduce_s;
        replicate_s += sum->replicate_s;
    }
    double grad_bytes = stack->grad_comm_bytes.value,
           param_bytes = stack->param_comm_bytes.value;
    const ms_span *shards = &p->links.sync_span[MS_SYNC_FSDP],
                  *replicas = &p->links.sync_span[MS_SYNC_REPLICATE];
    double params = rank_params(p, rank, false) + rank_params(p, rank, true);
    bool sharded = p->sharding != MS_ZERO_0;
    if (shards->size > 1) {
        ms_axis_prediction *axis =
            add_axis(p, out, p->plan->size[MS_CP] > 1 ? "fsdp" : "dp_shard", shards);
        double once = ms_collective_wire_bytes(MS_REDUCE_SCATTER, shards->size, params);
        axis->bytes = once * (gathers * param_bytes +
                              reductions * grad_bytes * (sharded ? 1.0 : 2.0));
        axis->seconds =
            sharded ? gathers * gather_s + reductions * reduce_s : all_reduce_s;
        axis->exposed_s =
            NAN; /* of both data-parallel axes together: set by the caller */
    }
    if (replicas->size > 1) {
        ms_axis_prediction *axis = add_axis(p, out, "dp_replicate", replicas);
        /* without shards one all-reduce runs over both axes: its time stands with dp_shard */
        bool apart = sharded || shards->size == 1;
        double size = params / (double)shards->size;
        axis->bytes =
            ms_collective_wire_bytes(MS_ALL_REDUCE, replicas->size, grad_bytes * size);
        axis->seconds = sharded ? replicate_s : apart ? all_reduce_s : 0.0;
        axis->exposed_s = NAN;
    }
}

/* Whatever of the exposed communication is not of the inner axes is of data-parallel traffic: shared over its axes by their seconds;
 * without such axes it is the gradients that are partial over tp. */
static void share_sync_exposure(ms_prediction *out)
{
    double rest_s = out->exposed_comm_s, seconds = 0.0;
    for (int i = 0; i < out->num_axes; i++) {
        bool sync = isnan(out->axes[i].exposed_s);
        rest_s -= sync ? 0.0 : out->axes[i].exposed_s;
        seconds += sync ? out->axes[i].seconds : 0.0;
    }
    rest_s = ms_max(rest_s, 0.0);
    for (int i = 0; i < out->num_axes; i++)
        if (isnan(out->axes[i].exposed_s))
            out->axes[i].exposed_s =
                seconds > 0.0 ? rest_s * out->axes[i].seconds / seconds : 0.0;
    if (seconds <= 0.0 && out->num_axes > 0)
        out->axes[0].exposed_s += rest_s;
}

static void predict_pipeline_axis(const planned *p, int rank, ms_prediction *out)
{
    if (p->pipeline.shape.num_ranks == 1)
        return;
    ms_axis_prediction *axis = add_axis(p, out, "pp", &p->links.pipeline_span);
    double sends = 0.0, m = (double)p->pipeline.shape.num_microbatches;
    for (int s = rank; s < p->pipeline.split->num_stages;
         s += p->pipeline.split->num_ranks)
        sends += (s < p->pipeline.split->num_stages - 1 ? m : 0.0) + (s > 0 ? m : 0.0);
    axis->bytes = sends * p->parts.send_bytes;
    axis->seconds = sends * p->parts.send_s;
    axis->exposed_s = 0.0; /* waiting for it shows as bubble */
}

static void predict_axes(const planned *p, ms_prediction *out)
{
    int rank = out->ending_rank;
    predict_inner_axis(p, rank, MS_BILL_TP, "tp", out);
    predict_inner_axis(p, rank, MS_BILL_CP, "cp", out);
    predict_inner_axis(p, rank, MS_BILL_EP, "ep", out);
    predict_sync(p, rank, out);
    share_sync_exposure(out);
    predict_pipeline_axis(p, rank, out);
}

ms_status ms_predict(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                     ms_prediction *out)
{
    planned p = {.plan = plan, .workload = workload};
    *out = (ms_prediction){0};
    open_planned(cx, &p);
    predict_time(cx, &p, out);
    predict_rates(&p, out);
    predict_memory(cx, &p, out);
    predict_axes(&p, out);
    long rows = ms_model_padded_vocab(workload->model, plan->size[MS_TP]);
    out->padded_vocab = rows != workload->model->vocab ? rows : 0;
    int num_stages = p.pipeline.split->num_stages;
    long *layers =
        MS_NEW_ARRAY(cx->arena, num_stages, long); /* the split may be the workload's */
    memcpy(layers, p.pipeline.split->layers, (size_t)num_stages * sizeof *layers);
    out->num_stage_layers = num_stages;
    out->layers_per_stage = layers;
    return MS_OK;
}
