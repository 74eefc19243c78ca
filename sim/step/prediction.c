#include "sim/step/prediction.h"

#include "base/number.h"
#include "sim/engine/graph.h"

#include <math.h>
#include <string.h>

/* ---- times ---- */

static void sum_rank(const ms_planned *p, int rank, ms_prediction *out)
{
    double m = (double)ms_schedule_stage_microbatches(&p->pipeline.shape);
    out->compute_s = 0.0;
    out->host_s = ms_planned_host_s(p, rank);
    for (int chunk = 0; chunk < p->pipeline.split->num_chunks; chunk++) {
        const ms_block_cost *sum =
            &ms_planned_stage(p, ms_split_stage(p->pipeline.split, rank, chunk))->sum;
        out->compute_s += m * (sum->forward_compute_s + sum->backward_compute_s);
    }
}

/* The kinds of devices of a rank's stages; NULL if the cluster's are all alike. */
static const char *device_of(ms_ctx *cx, const ms_planned *p, int rank)
{
    const ms_split *split = p->pipeline.split;
    return split->kinds == NULL
               ? NULL
               : ms_kinds_text(cx->arena, p->workload->cluster, split->kinds[rank]);
}

static void predict_stages(ms_ctx *cx, const ms_planned *p, const ms_stage_times *times,
                           const double *busy_s, ms_prediction *out)
{
    int ranks = p->pipeline.shape.num_ranks;
    out->num_stages = ranks;
    out->stages = MS_NEW_ARRAY(cx->arena, ranks, ms_stage_prediction);
    for (int rank = 0; rank < ranks; rank++) {
        ms_stage_prediction *stage = &out->stages[rank];
        stage->rank = rank;
        stage->device = device_of(cx, p, rank);
        stage->busy_s = busy_s[rank];
        for (int chunk = 0; chunk < p->schedule->num_chunks; chunk++) {
            int s = ms_schedule_stage(&p->pipeline.shape, rank, chunk);
            stage->num_layers +=
                p->pipeline.split->layers[ms_split_stage(p->pipeline.split, rank, chunk)];
            stage->forward_s += times[s].forward_s;
            stage->backward_s += times[s].backward_s;
        }
    }
}

static double listed_pairs_hide_s(const ms_schedule *schedule,
                                  const ms_stage_times *times, int rank)
{
    double hidden_s = 0.0;
    for (int i = schedule->first_action[rank]; i < schedule->first_action[rank + 1];
         i++) {
        const ms_action *a = &schedule->actions[i];
        const double *saved_s = times[a->stage].pair_saved_s;
        if (a->kind == MS_OVERLAP && saved_s != NULL)
            hidden_s += saved_s[ms_schedule_chunk(&schedule->shape, a->backward_stage)];
    }
    return hidden_s;
}

static double pairs_hide_s(const ms_schedule *schedule, const ms_stage_times *times,
                           int rank)
{
    double listed_s = listed_pairs_hide_s(schedule, times, rank);
    if (schedule->shorter == NULL)
        return listed_s;
    return ms_schedule_extend(schedule, listed_s,
                              listed_pairs_hide_s(schedule->shorter, times, rank));
}

static void predict_time(ms_ctx *cx, const ms_planned *p, ms_prediction *out)
{
    int ranks = p->pipeline.shape.num_ranks;
    bool global = p->workload->stack->optimizer_sync == MS_SYNC_GLOBAL;
    ms_replay_result result = {.busy_s = MS_NEW_ARRAY(cx->arena, ranks, double),
                               .idle_s = MS_NEW_ARRAY(cx->arena, ranks, double),
                               .end_s = MS_NEW_ARRAY(cx->arena, ranks, double),
                               .spans = !global};
    ms_stage_times *times =
        MS_NEW_ARRAY(cx->arena, p->schedule->num_stages, ms_stage_times);
    ms_step_durations(&p->pipeline, p->sharding, cx->arena, times);
    ms_replay(p->schedule, times, cx->arena, &result);
    ms_step_time time =
        ms_step_time_of(&p->pipeline, p->sharding, p->schedule, times, cx->arena);
    out->optimizer_s = time.optimizer_s;
    out->step_s = time.step_s;
    out->ending_rank = time.last_rank;
    out->pairs_hide_s = pairs_hide_s(p->schedule, times, time.last_rank);
    out->bound_s = ms_step_bound_s(&p->pipeline, p->sharding, cx->arena);
    sum_rank(p, time.last_rank, out);
    out->host = ms_host_use_of(p, time.last_rank);
    /* after its own actions and reductions the rank waits for all others, or for none */
    double rest_s = global ? result.makespan_s - result.end_s[time.last_rank] : 0.0;
    out->bubble_s = result.idle_s[time.last_rank] + rest_s;
    double known_s = out->compute_s + out->host_s + out->bubble_s + out->optimizer_s;
    out->exposed_comm_s = ms_max(out->step_s - known_s, 0.0);
    predict_stages(cx, p, times, result.busy_s, out);
}

/* FLOP of GEMMs, attention and scans that all devices execute in a step, recomputation
 * included. Programs of padded sequences have the positions of the slowest rank, and their
 * FLOP count in proportion to the mean of all ranks. */
static double executed_flop(const ms_planned *p)
{
    const ms_plan *plan = p->plan;
    const ms_split *split = p->pipeline.split;
    double flop = 0.0;
    for (int s = 0; s < split->num_stages; s++) {
        for (long i = 0; i < split->layers[s]; i++) {
            const ms_bill *bill = ms_planned_layer_bill(p, s, i);
            flop += bill->flop[MS_BILL_FORWARD] + bill->flop[MS_BILL_BACKWARD];
        }
    }
    const ms_bill *ends[2] = {&p->bills->embed, &p->bills->head}; /* FLOP on any kind */
    for (int i = 0; i < 2; i++)
        flop += ends[i]->flop[MS_BILL_FORWARD] + ends[i]->flop[MS_BILL_BACKWARD];
    double pipelines = (double)plan->gpus / (double)plan->size[MS_PP];
    if (p->bills->key.longest_of > 0)
        flop *= ms_workload_computed_tokens(p->workload, plan) /
                (double)(plan->global_batch * p->bills->key.computed_tokens);
    return flop * (double)ms_plan_microbatches(plan) * pipelines;
}

/* FLOP/s of a device: the listed peak, or a larger one of a calibration, which *measured
 * becomes; NaN if there is none. */
static double peak_flop_per_s(const ms_workload *workload, double *measured)
{
    double listed = workload->cluster->device.peak_flop_per_s[workload->compute];
    double peak = workload->pricer.peak_flop_per_s;
    *measured = peak > listed ? peak : (double)NAN;
    return peak;
}

/* FLOP/s of all devices of the plan, as listed. */
static double all_peaks_flop_per_s(const ms_planned *p, double *measured)
{
    const ms_workload *workload = p->workload;
    double first = peak_flop_per_s(workload, measured), sum = 0.0;
    if (workload->cluster->num_kinds == 0)
        return (double)p->plan->gpus * first;
    long counts[MS_MAX_DEVICE_KINDS];
    ms_count_kinds(workload->cluster, p->plan->device_order == MS_DEVICES_REVERSED,
                   p->plan->gpus, counts);
    for (int k = 0; k < workload->cluster->num_kinds; k++)
        sum += (double)counts[k] * workload->of_kinds[1U << k]->pricer.peak_flop_per_s;
    return sum;
}

static ms_error_interval interval_of(const ms_planned *p, const ms_error_spread *spread,
                                     long class_gpus)
{
    const ms_error_class class = {p->workload->stack->name, class_gpus, NULL};
    if (spread == NULL)
        return MS_NO_ERROR_INTERVAL;
    return ms_error_spread_interval(spread, &class);
}

static void predict_rates(const ms_planned *p, ms_prediction *out)
{
    const ms_plan *plan = p->plan;
    double tokens = ms_workload_computed_tokens(p->workload, plan);
    double useful_tokens = ms_workload_useful_tokens(p->workload, plan->global_batch);
    double peak = all_peaks_flop_per_s(p, &out->measured_peak_flop_per_s);
    ms_flop_per_token flop = ms_workload_flop_per_token(p->workload);
    out->unit = p->workload->cluster->device.unit;
    out->tokens_per_s = tokens / out->step_s;
    out->tokens_per_s_per_gpu = out->tokens_per_s / (double)plan->gpus;
    out->useful_tokens_per_s = useful_tokens / out->step_s;
    out->has_lengths = plan->packing != MS_NOT_PACKED;
    out->mfu_frac = out->useful_tokens_per_s * flop.full_flop / peak;
    out->mfu_causal_frac = out->useful_tokens_per_s * flop.causal_flop / peak;
    out->hfu_frac = (executed_flop(p) + tokens * flop.vector_flop) / out->step_s / peak;
}

double ms_prediction_tokens(const ms_plan *plan, const ms_prediction *prediction)
{
    return prediction->has_lengths
               ? prediction->tokens_per_s * prediction->step_s
               : (double)plan->global_batch * (double)plan->sequence_length;
}

/* ---- memory ---- */

double ms_prediction_free_bytes(const ms_prediction *prediction, double peak_bytes)
{
    return prediction->capacity_bytes - peak_bytes - prediction->outside_bytes;
}

static void predict_peak_interval(const ms_planned *p, const ms_workload *workload,
                                  ms_prediction *out)
{
    out->peak_interval = interval_of(p, workload->peak_spread, MS_PEAK_CLASS_GPUS);
    out->peak_low_bytes = out->peak_bytes * out->peak_interval.low_frac;
    out->peak_high_bytes = out->peak_bytes * out->peak_interval.high_frac;
    out->fits_probability =
        ms_fits_probability(workload->peak_spread, workload->stack->name, out->peak_bytes,
                            workload->memory.limit_bytes - out->outside_bytes);
}

/* The workload of the devices of a rank. */
static const ms_workload *workload_of(const ms_planned *p, int rank)
{
    return ms_planned_prices(p, ms_split_stage(p->pipeline.split, rank, 0)).workload;
}

/* Bytes of a rank's devices that its peak leaves, as ms_fits_limit counts them. */
static double room_bytes(const ms_planned *p, const ms_workload *own, double peak_bytes)
{
    double outside_bytes = ms_rank_outside_bytes(own, &p->pipeline.shards);
    return own->memory.limit_bytes -
           ms_needed_bytes(&own->memory, peak_bytes, outside_bytes);
}

static void predict_memory(ms_ctx *cx, const ms_planned *p, ms_prediction *out)
{
    double least_room_bytes = INFINITY;
    for (int rank = 0; rank < out->num_stages; rank++) {
        ms_stage_prediction *stage = &out->stages[rank];
        ms_rank_load load = ms_planned_load(cx, p, rank);
        const ms_workload *own = workload_of(p, rank);
        ms_rank_memory(own, &load, p->sharding, &p->pipeline.shards, stage->memory);
        for (int i = 0; i < MS_NUM_MEMORY_CATEGORIES; i++)
            stage->peak_bytes += stage->memory[i];
        for (int kind = 0; kind < MS_NUM_MEMORY_KINDS; kind++)
            stage->kind_bytes[kind] = ms_rank_memory_of_kind(
                own, &p->pipeline.shards, stage->memory, (ms_memory_kind)kind);
        stage->capacity_bytes = own->cluster->device.memory_bytes;
        stage->host_bytes =
            ms_rank_host_bytes(own, &load, p->sharding, &p->pipeline.shards);
        out->host_bytes = ms_max(out->host_bytes, stage->host_bytes);
        stage->live_microbatches = ms_schedule_in_flight(p->schedule, rank);
        double left_bytes = room_bytes(p, own, stage->peak_bytes);
        if (left_bytes < least_room_bytes) {
            least_room_bytes = left_bytes;
            out->peak_bytes = stage->peak_bytes;
            out->worst_rank = rank;
            memcpy(out->memory, stage->memory, sizeof out->memory);
        }
    }
    const ms_workload *worst = workload_of(p, out->worst_rank);
    out->capacity_bytes = worst->cluster->device.memory_bytes;
    out->outside_bytes = ms_rank_outside_bytes(worst, &p->pipeline.shards);
    out->limit = worst->memory;
    out->needed_bytes = ms_needed_bytes(&out->limit, out->peak_bytes, out->outside_bytes);
    out->fits = ms_fits_limit(&out->limit, out->needed_bytes);
    predict_peak_interval(p, worst, out);
}

/* ---- traffic per axis ---- */

/* Communication groups in the order in which a prediction lists them. */
static const ms_traffic_group listed[MS_MAX_AXIS_PREDICTIONS] = {
    MS_TRAFFIC_TP,
    MS_TRAFFIC_CP,
    MS_TRAFFIC_EP,
    MS_TRAFFIC_FSDP,
    MS_TRAFFIC_EXPERT_FSDP,
    MS_TRAFFIC_SECONDARY,
    MS_TRAFFIC_EXPERT_SECONDARY,
    MS_TRAFFIC_ALL,
    MS_TRAFFIC_EXPERT_ALL,
    MS_TRAFFIC_REPLICATE,
    MS_TRAFFIC_PP};

static int sum_axis(const ms_planned *p, const ms_traffic *traffic,
                    ms_traffic_group group, ms_axis_prediction *out)
{
    const ms_span *span = ms_traffic_span(p, traffic->rank, group);
    ms_axis_prediction axis = {.group = group,
                               .axis = ms_traffic_group_name(p->plan, group),
                               .size = span->size,
                               .ranks_per_node = span->per_domain[0],
                               .nic_ranks = ms_span_nic_ranks(span),
                               .level = span->tier,
                               .tier = ms_traffic_tier(p, traffic->rank, group)};
    for (int i = 0; i < traffic->num_entries; i++) {
        const ms_traffic_entry *entry = &traffic->entries[i];
        if (entry->group != group || entry->phase == MS_TRAFFIC_OPTIMIZER)
            continue;
        axis.bytes += entry->count * entry->wire_bytes;
        axis.nic_bytes += entry->count * entry->nic_bytes;
        axis.seconds += entry->count * entry->one_s;
        axis.exposed_s += entry->exposed_s;
    }
    bool sync = group >= MS_TRAFFIC_FSDP && group < MS_TRAFFIC_PP;
    *out = axis;
    return sync ? axis.bytes > 0.0 : axis.size > 1;
}

int ms_traffic_axes(const ms_planned *planned, const ms_traffic *traffic,
                    ms_axis_prediction out[MS_MAX_AXIS_PREDICTIONS])
{
    int num = 0;
    for (int i = 0; i < MS_MAX_AXIS_PREDICTIONS; i++)
        num += sum_axis(planned, traffic, listed[i], &out[num]);
    return num;
}

static ms_traffic predict_axes(ms_ctx *cx, const ms_planned *planned, ms_prediction *out)
{
    ms_traffic traffic = ms_traffic_make(cx, planned, out->ending_rank);
    ms_traffic_hide_pairs(&traffic, out->pairs_hide_s);
    ms_traffic_share_exposure(&traffic, out->exposed_comm_s);
    out->num_axes = ms_traffic_axes(planned, &traffic, out->axes);
    return traffic;
}

ms_traffic ms_predict_planned(ms_ctx *cx, const ms_planned *planned, ms_prediction *out)
{
    const ms_model *model = planned->workload->model;
    *out = (ms_prediction){.engine = MS_ENGINE_REPLAY};
    predict_time(cx, planned, out);
    out->replay_step_s = out->step_s;
    out->interval = interval_of(planned, planned->workload->spread, planned->plan->gpus);
    out->step_low_s = out->step_s * out->interval.low_frac;
    out->step_high_s = out->step_s * out->interval.high_frac;
    predict_rates(planned, out);
    predict_memory(cx, planned, out);
    ms_traffic traffic = predict_axes(cx, planned, out);
    long rows = ms_model_padded_vocab(model, planned->plan->size[MS_TP]);
    out->padded_vocab = rows != model->vocab ? rows : 0;
    bool copies = ms_plan_copies_kv_heads(planned->plan, model);
    out->kv_copies = copies ? planned->plan->size[MS_TP] / model->num_kv_heads : 1;
    const ms_split *split =
        planned->pipeline.split; /* copied below: the workload may own it */
    out->num_stage_layers = split->num_stages;
    out->layers_per_stage =
        memcpy(MS_NEW_ARRAY(cx->arena, split->num_stages, long), split->layers,
               (size_t)split->num_stages * sizeof *split->layers);
    return traffic;
}

void ms_prediction_retime(ms_ctx *cx, const ms_planned *planned, ms_prediction *out)
{
    predict_rates(planned, out);
    (void)predict_axes(cx, planned, out);
}

ms_status ms_predict(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                     ms_prediction *out)
{
    ms_planned planned;
    ms_planned_open(cx, workload, plan, &planned);
    (void)ms_predict_planned(cx, &planned, out);
    return MS_OK;
}
