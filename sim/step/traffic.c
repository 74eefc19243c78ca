/* Lists a rank's collectives: those inside blocks, sends between stages, transfers of
 * parameters and gradients, and those before the optimizer. */
#include "sim/step/traffic.h"

#include "base/number.h"
#include "sim/step/host_time.h"
#include "sim/step/sync_units.h"

#include <math.h>
#include <string.h>

const char *const ms_traffic_phase_names[] = {"forward", "backward",  "stages", "params",
                                              "grads",   "optimizer", NULL};

/* ---- groups ---- */

/* Links of a group: between stages and of all ranks, or inside the stages of a rank. */
static const ms_links *links_of(const ms_planned *planned, int rank,
                                ms_traffic_group group)
{
    return group >= MS_TRAFFIC_PP ? &planned->links : ms_planned_links(planned, rank);
}

const ms_span *ms_traffic_span(const ms_planned *planned, int rank,
                               ms_traffic_group group)
{
    const ms_links *links = links_of(planned, rank, group);
    if (group < MS_TRAFFIC_FSDP)
        return &links->span[group];
    if (group == MS_TRAFFIC_PP)
        return &links->pipeline_span;
    if (group >= MS_TRAFFIC_WORLD)
        return &links->world_span;
    return &links->sync_span[group - MS_TRAFFIC_FSDP];
}

const char *ms_traffic_tier(const ms_planned *planned, int rank, ms_traffic_group group)
{
    const ms_split *split = planned->pipeline.split;
    ms_kind_set kinds = group >= MS_TRAFFIC_PP
                            ? ms_all_kinds(split->kinds, split->num_ranks)
                            : ms_split_kinds(split, ms_split_stage(split, rank, 0));
    const ms_span *span = ms_traffic_span(planned, rank, group);
    return ms_workload_of_kinds(planned->workload, kinds)
        ->cluster->levels[span->tier]
        .name;
}

const char *ms_traffic_group_name(const ms_plan *plan, ms_traffic_group group)
{
    static const char *const names[MS_NUM_TRAFFIC_GROUPS] = {
        [MS_TRAFFIC_TP] = "tp",
        [MS_TRAFFIC_CP] = "cp",
        [MS_TRAFFIC_EP] = "ep",
        [MS_TRAFFIC_EXPERT_FSDP] = "efsdp",
        [MS_TRAFFIC_REPLICATE] = "dp_replicate",
        [MS_TRAFFIC_EXPERT_ALL] = "edp",
        [MS_TRAFFIC_SECONDARY] = "hpz",
        [MS_TRAFFIC_EXPERT_SECONDARY] = "ehpz",
        [MS_TRAFFIC_PP] = "pp",
        [MS_TRAFFIC_WORLD] = "world"};
    bool cp = plan->size[MS_CP] > 1;
    bool replicas = group == MS_TRAFFIC_ALL && plan->size[MS_DP_REPLICATE] > 1;
    if (group != MS_TRAFFIC_FSDP && group != MS_TRAFFIC_ALL)
        return names[group];
    if (replicas && (plan->size[MS_DP_SHARD] > 1 || cp))
        return cp ? "dp_cp" : "dp";
    return replicas ? "dp_replicate" : cp ? "fsdp" : "dp_shard";
}

const ms_collective_law *ms_traffic_law(const ms_links *links, ms_traffic_group group,
                                        ms_collective collective)
{
    if (group < MS_TRAFFIC_FSDP)
        return &links->law[group][collective];
    if (group == MS_TRAFFIC_PP)
        return &links->send;
    if (group >= MS_TRAFFIC_WORLD)
        return &links->world;
    int sync = (int)group - (int)MS_TRAFFIC_FSDP;
    if (collective == MS_ALL_GATHER)
        return &links->gather[sync];
    return collective == MS_REDUCE_SCATTER ? &links->reduce[sync]
                                           : &links->all_reduce[sync];
}

/* ---- entries ---- */

typedef struct list {
    const ms_planned *planned;
    ms_traffic *traffic;
    double num_microbatches;
    bool expert; /* the states are those of experts */
} list;

/* Adds an entry, whose group, collective, size and count are set, with bytes and seconds,
 * unless nothing is sent. Collectives before the optimizer are exposed. */
static void append(list *l, ms_traffic_entry entry)
{
    const ms_planned *p = l->planned;
    const ms_links *links = links_of(p, l->traffic->rank, entry.group);
    const ms_span *span = ms_traffic_span(p, l->traffic->rank, entry.group);
    if (span->size <= 1 || entry.size_bytes <= 0.0 || entry.count <= 0.0)
        return;
    const ms_collective_law *law = ms_traffic_law(links, entry.group, entry.collective);
    bool chain = entry.group == MS_TRAFFIC_PP &&
                 p->pipeline.split->num_stages <= p->pipeline.split->num_ranks;
    entry.algorithm = ms_collective_algorithm(law, entry.size_bytes);
    entry.one_s = ms_collective_s(law, entry.size_bytes);
    if (entry.collective == MS_SEND && entry.group == MS_TRAFFIC_PP)
        entry.one_s += ms_stall_s(p->workload->stack, links);
    entry.wire_bytes =
        ms_collective_wire_bytes(entry.collective, span->size, entry.size_bytes);
    /* the last rank sends to the first: sends in a ring */
    bool closes = entry.collective == MS_SEND && !chain;
    double nic_frac =
        ms_algorithm_nic_frac(closes ? MS_ALGORITHM_RING : entry.algorithm, span);
    entry.nic_bytes = law->wire_frac * nic_frac * entry.wire_bytes;
    entry.wire_bytes -= (1.0 - law->wire_frac) * nic_frac * entry.wire_bytes;
    entry.num_chunks = entry.num_chunks > 1 ? entry.num_chunks : 1;
    if (entry.phase == MS_TRAFFIC_OPTIMIZER)
        entry.exposed_s = entry.one_s;
    l->traffic->entries[l->traffic->num_entries++] = entry;
}

/* Whether two collectives of a program differ at most in the compute that they overlap;
 * sends of a ring, which differ in nothing else, are told apart by it. */
static bool same_transfer(const ms_bill_comm *a, const ms_bill_comm *b)
{
    return a->axis == b->axis && a->collective == b->collective && !a->ring && !b->ring &&
           a->size_bytes == b->size_bytes && (a->beside_s > 0.0) == (b->beside_s > 0.0);
}

/* Adds `more`, collectives of a program, to an entry of equal transfers; false: there is
 * none from entry `first` on. */
static bool add_to_entry(list *l, int first, const ms_bill *bill, int pass,
                         const ms_traffic_entry *more)
{
    for (int i = first; i < l->traffic->num_entries; i++) {
        ms_traffic_entry *entry = &l->traffic->entries[i];
        if (!same_transfer(&bill->comms[pass][entry->comm],
                           &bill->comms[pass][more->comm]))
            continue;
        entry->per_block += more->per_block;
        entry->count += more->count;
        entry->exposed_s += more->exposed_s;
        return true;
    }
    return false;
}

static void add_program(list *l, const ms_held_block *block, int pass)
{
    const ms_planned *p = l->planned;
    const ms_links *links = ms_planned_links(p, l->traffic->rank);
    int first = l->traffic->num_entries;
    for (int i = 0; i < block->bill->num_comms[pass]; i++) {
        const ms_bill_comm *comm = &block->bill->comms[pass][i];
        bool async = ms_comm_is_async(comm, links, p->plan->async_tp);
        ms_traffic_entry entry = {
            .phase = pass == MS_BILL_FORWARD ? MS_TRAFFIC_FORWARD : MS_TRAFFIC_BACKWARD,
            .group = (ms_traffic_group)comm->axis,
            .collective = (ms_collective)comm->collective,
            .cause = MS_CAUSE_NODES,
            .has_block = true,
            .block = *block,
            .comm = i,
            .size_bytes = comm->size_bytes,
            .num_chunks = async ? (int)links->span[comm->axis].size : 1,
            .per_block = comm->count,
            .count = l->num_microbatches * block->count * comm->count,
            .exposed_s =
                l->num_microbatches * block->count *
                ms_comm_exposed_s(block->workload, comm, links, p->plan->async_tp),
        };
        if (!add_to_entry(l, first, block->bill, pass, &entry))
            append(l, entry);
    }
}

ms_traffic_group ms_traffic_state_group(const ms_plan *plan, bool expert, bool sharded)
{
    bool apart = expert && plan->ep * plan->etp * plan->size[MS_TP] > 1;
    if (sharded)
        return apart ? MS_TRAFFIC_EXPERT_FSDP : MS_TRAFFIC_FSDP;
    return apart ? MS_TRAFFIC_EXPERT_ALL : MS_TRAFFIC_ALL;
}

ms_traffic_group ms_traffic_regather_group(const ms_planned *planned, bool expert)
{
    if (planned->links.has_secondary)
        return expert ? MS_TRAFFIC_EXPERT_SECONDARY : MS_TRAFFIC_SECONDARY;
    return ms_traffic_state_group(planned->plan, expert, true);
}

/* Adds a collective outside of layer programs, which runs per_step times a step: for each
 * of the equal blocks `block`, or for the rank if `block` is NULL. */
static void add(list *l, const ms_held_block *block, ms_traffic_cause cause,
                ms_traffic_group group, double size_bytes, double per_step)
{
    static const struct {
        ms_traffic_phase phase;
        ms_collective collective;
    } kinds[] = {[MS_CAUSE_GATHER_FORWARD] = {MS_TRAFFIC_PARAMS, MS_ALL_GATHER},
                 [MS_CAUSE_GATHER_BACKWARD] = {MS_TRAFFIC_PARAMS, MS_ALL_GATHER},
                 [MS_CAUSE_REDUCE_SCATTER] = {MS_TRAFFIC_GRADS, MS_REDUCE_SCATTER},
                 [MS_CAUSE_ALL_REDUCE] = {MS_TRAFFIC_GRADS, MS_ALL_REDUCE},
                 [MS_CAUSE_REPLICATE] = {MS_TRAFFIC_GRADS, MS_ALL_REDUCE},
                 [MS_CAUSE_TP_PARTIAL] = {MS_TRAFFIC_GRADS, MS_ALL_REDUCE},
                 [MS_CAUSE_SEND_FORWARD] = {MS_TRAFFIC_STAGE, MS_SEND},
                 [MS_CAUSE_SEND_BACKWARD] = {MS_TRAFFIC_STAGE, MS_SEND},
                 [MS_CAUSE_NORM] = {MS_TRAFFIC_OPTIMIZER, MS_ALL_REDUCE},
                 [MS_CAUSE_TIED] = {MS_TRAFFIC_OPTIMIZER, MS_SEND},
                 [MS_CAUSE_REPLICA] = {MS_TRAFFIC_GRADS, MS_SEND}};
    ms_traffic_entry entry = {.phase = kinds[cause].phase,
                              .group = group,
                              .collective = kinds[cause].collective,
                              .cause = cause,
                              .has_block = block != NULL,
                              .size_bytes = size_bytes,
                              .per_block = 1.0,
                              .count = per_step};
    if (block != NULL) {
        entry.block = *block;
        entry.count = per_step * block->count;
    }
    append(l, entry);
}

/* Adds the collectives that move `bytes` of a block's states, per_step times a step. */
static void add_split(list *l, const ms_held_block *block, ms_traffic_cause cause,
                      ms_traffic_group group, double bytes, double per_step)
{
    const ms_planned *p = l->planned;
    double layers = block->block == MS_BLOCK_LAYER
                        ? p->blocks.layer[block->kind][block->mode].unit_layers
                        : 1.0;
    ms_sync_split split =
        ms_sync_split_of(p->workload->stack, block->bill, l->expert, layers, bytes);
    add(l, block, cause, group, split.size_bytes, split.per_block * per_step);
}

/* Adds gathers and reductions of a block's dense or expert states (docs/formulas 5.2). */
static void add_states(list *l, const ms_held_block *block, bool expert)
{
    const ms_planned *p = l->planned;
    const ms_stack *stack = p->workload->stack;
    double params[2]; /* numbers of parameters gathered [0] and reduced [1] */
    for (int reduces = 0; reduces < 2; reduces++) {
        params[reduces] =
            expert ? block->bill->expert_params
                   : ms_moved_dense_params(p->workload, p->sharding, block->bill,
                                           block->dense_params, reduces == 1);
    }
    bool sharded = p->sharding != MS_ZERO_0, always = p->sharding == MS_ZERO_3;
    double gather_bytes = stack->param_comm_bytes.value * params[0];
    if (p->sharding >= MS_ZERO_3)
        gather_bytes += expert ? block->frozen.expert : block->frozen.dense;
    double m = l->num_microbatches;
    l->expert = expert;
    ms_traffic_group group = ms_traffic_state_group(p->plan, expert, sharded);
    if (sharded)
        add_split(l, block, MS_CAUSE_GATHER_FORWARD, group, gather_bytes,
                  always ? m : 1.0);
    if (always)
        add_split(l, block, MS_CAUSE_GATHER_BACKWARD,
                  ms_traffic_regather_group(p, expert), gather_bytes, m);
    add_split(l, block, sharded ? MS_CAUSE_REDUCE_SCATTER : MS_CAUSE_ALL_REDUCE, group,
              stack->grad_comm_bytes.value * params[1],
              ms_shards_grads(p->sharding) ? m : 1.0);
}

/* Adds the reductions of a block that run once per step: of gradient shards over
 * dp_replicate, and of gradients that are partial sums over tp. */
static void add_rest(list *l, const ms_held_block *block)
{
    const ms_planned *p = l->planned;
    double grad_bytes = p->workload->stack->grad_comm_bytes.value;
    double shard =
        block->dense_params / (double)p->links.sync_span[MS_SYNC_FSDP].size +
        block->bill->expert_params / (double)p->links.sync_span[MS_SYNC_EXPERT_FSDP].size;
    l->expert = false;
    if (p->sharding != MS_ZERO_0)
        add_split(l, block, MS_CAUSE_REPLICATE, MS_TRAFFIC_REPLICATE, grad_bytes * shard,
                  1.0);
    add(l, block, MS_CAUSE_TP_PARTIAL, MS_TRAFFIC_TP,
        grad_bytes * block->bill->tp_partial_params, 1.0);
}

/* Whether two placed stages are neighbours in the model, on different ranks. */
static bool sends_to(const ms_split *split, int stage, int other)
{
    const ms_schedule_shape *shape = &split->shape;
    if (other < 0 || other >= ms_schedule_stages(shape))
        return false;
    int apart =
        ms_schedule_model_stage(shape, other) - ms_schedule_model_stage(shape, stage);
    return apart == other - stage &&
           ms_schedule_rank(shape, stage) != ms_schedule_rank(shape, other);
}

/* Adds the activations sent to next stages, and the gradients sent to previous ones. */
static void add_sends(list *l)
{
    const ms_planned *p = l->planned;
    const ms_split *split = p->pipeline.split;
    double count[2] = {0.0, 0.0};
    for (int chunk = 0; chunk < split->num_chunks; chunk++) {
        int s = ms_schedule_stage(&split->shape, l->traffic->rank, chunk);
        count[0] += sends_to(split, s, s + 1);
        count[1] += sends_to(split, s, s - 1);
    }
    for (int back = 0; back < 2; back++)
        add(l, NULL, back ? MS_CAUSE_SEND_BACKWARD : MS_CAUSE_SEND_FORWARD, MS_TRAFFIC_PP,
            p->blocks.wire_bytes, l->num_microbatches * count[back]);
}

/* For DualPipe: adds the gradient exchange of the rank's stages with their copies. */
static void add_replicas(list *l)
{
    const ms_planned *p = l->planned;
    const ms_split *split = p->pipeline.split;
    if (ms_schedule_placement(split->shape.kind) != MS_PLACE_BOTH_WAYS)
        return;
    for (int chunk = 0; chunk < split->num_chunks; chunk++) {
        int s = ms_split_stage(split, l->traffic->rank, chunk);
        add(l, NULL, MS_CAUSE_REPLICA, MS_TRAFFIC_PP,
            ms_replica_bytes(&p->pipeline, ms_planned_stage(p, s), p->sharding), 1.0);
    }
}

/* Adds collectives before the optimizer: gradient norm, and gradient of a tied matrix. */
static void add_world(list *l)
{
    const ms_planned *p = l->planned;
    const ms_split *split = p->pipeline.split;
    int rank = l->traffic->rank;
    bool holds_end = ms_split_holds(split, rank, 0) ||
                     ms_split_holds(split, rank, split->num_stages - 1);
    add(l, NULL, MS_CAUSE_NORM, MS_TRAFFIC_WORLD, MS_NORM_BYTES, 1.0);
    if (p->workload->model->tied_embeddings && holds_end && !ms_split_ends_meet(split))
        add(l, NULL, MS_CAUSE_TIED, MS_TRAFFIC_PP,
            p->workload->stack->grad_comm_bytes.value * p->blocks.head_params, 1.0);
}

/* Most entries of a block outside its layer program, and of a rank outside its blocks. */
#define MAX_STATE_ENTRIES 8
#define MAX_RANK_ENTRIES  6

static int most_entries(const ms_held_block *held, int num_held)
{
    int most = MAX_RANK_ENTRIES;
    for (int i = 0; i < num_held; i++)
        most += MAX_STATE_ENTRIES + held[i].bill->num_comms[MS_BILL_FORWARD] +
                held[i].bill->num_comms[MS_BILL_BACKWARD];
    return most;
}

ms_traffic ms_traffic_make(ms_ctx *cx, const ms_planned *planned, int rank)
{
    ms_held_block held[MS_MAX_HELD_BLOCKS];
    int num_held = ms_planned_held(planned, rank, held);
    ms_traffic traffic = {.rank = rank,
                          .entries = MS_NEW_ARRAY(cx->arena, most_entries(held, num_held),
                                                  ms_traffic_entry)};
    list l = {.planned = planned,
              .traffic = &traffic,
              .num_microbatches =
                  (double)ms_schedule_stage_microbatches(&planned->pipeline.shape)};
    for (int pass = 0; pass < MS_NUM_BILL_PASSES; pass++)
        for (int i = 0; i < num_held; i++)
            add_program(&l, &held[i], pass);
    add_sends(&l);
    for (int i = 0; i < num_held; i++) {
        add_states(&l, &held[i], false);
        add_states(&l, &held[i], true);
        add_rest(&l, &held[i]);
    }
    add_replicas(&l);
    add_world(&l);
    return traffic;
}

/* ---- exposure ---- */

static bool is_sync(const ms_traffic_entry *entry)
{
    return entry->phase == MS_TRAFFIC_PARAMS || entry->phase == MS_TRAFFIC_GRADS;
}

void ms_traffic_hide_pairs(ms_traffic *traffic, double hidden_s)
{
    double exposed_s = 0.0;
    for (int i = 0; i < traffic->num_entries; i++)
        if (traffic->entries[i].group == MS_TRAFFIC_EP)
            exposed_s += traffic->entries[i].exposed_s;
    if (hidden_s <= 0.0 || exposed_s <= 0.0)
        return;
    double left_frac = ms_max(1.0 - hidden_s / exposed_s, 0.0);
    for (int i = 0; i < traffic->num_entries; i++)
        if (traffic->entries[i].group == MS_TRAFFIC_EP)
            traffic->entries[i].exposed_s *= left_frac;
}

void ms_traffic_share_exposure(ms_traffic *traffic, double exposed_comm_s)
{
    double rest_s = exposed_comm_s, seconds = 0.0;
    for (int i = 0; i < traffic->num_entries; i++) {
        const ms_traffic_entry *entry = &traffic->entries[i];
        if (is_sync(entry))
            seconds += entry->count * entry->one_s;
        else if (entry->phase != MS_TRAFFIC_OPTIMIZER)
            rest_s -= entry->exposed_s;
    }
    rest_s = ms_max(rest_s, 0.0);
    for (int i = 0; i < traffic->num_entries; i++) {
        ms_traffic_entry *entry = &traffic->entries[i];
        if (is_sync(entry))
            entry->exposed_s =
                seconds > 0.0 ? rest_s * entry->count * entry->one_s / seconds : 0.0;
    }
}

void ms_traffic_hide_exposure(ms_traffic *traffic)
{
    for (int i = 0; i < traffic->num_entries; i++)
        if (is_sync(&traffic->entries[i]))
            traffic->entries[i].exposed_s = NAN;
}
