/* Explanation of a plan: collects its blocks with their layer programs, and for each
 * collective the nodes of the program that cause it. */
#include "sim/explain/explain.h"

#include "costmodel/cost/cast.h"
#include "costmodel/program/ring.h"
#include "sim/explain/explain_priv.h"
#include "sim/explain/explain_reason.h"

#include <math.h>
#include <string.h>

/* ---- blocks ---- */

static bool same_block(const ms_held_block *a, const ms_held_block *b)
{
    return a->block == b->block && a->bill == b->bill;
}

/* Name of a layer in a hybrid model, whose layers are each a sequence mixer or an MLP. */
static const char *single_name(const ms_layer_kind *kind)
{
    if (kind->mixer == MS_MIXER_MAMBA)
        return "layer.mamba";
    if (kind->mixer == MS_MIXER_ATTENTION)
        return "layer.attention";
    return kind->moe ? "layer.experts" : "layer.mlp";
}

/* Name of a layer: "layer", followed by what differs between the model's layers: dense or
 * experts, window, recomputation. */
static const char *layer_name(ms_arena *arena, const ms_explanation *e,
                              const ms_held_block *held)
{
    const ms_model *model = e->planned->workload->model;
    const ms_plan *plan = e->planned->plan;
    const ms_layer_kind *kind = &model->kinds[held->kind];
    const char *name = "layer";
    bool mixed = false, windows = false;
    for (int i = 1; i < model->num_kinds; i++) {
        mixed = mixed || model->kinds[i].moe != model->kinds[0].moe;
        windows =
            windows || model->kinds[i].window_tokens != model->kinds[0].window_tokens;
    }
    if (ms_model_is_hybrid(model))
        name = single_name(kind);
    else if (mixed)
        name = ms_arena_printf(arena, "%s.%s", name, kind->moe ? "experts" : "dense");
    if (windows)
        name = ms_arena_printf(arena, "%s.%s", name,
                               kind->window_tokens > 0 ? "window" : "global");
    if (plan->recompute == MS_RECOMPUTE_FULL && plan->recompute_layers > 0)
        name = ms_arena_printf(arena, "%s.%s", name,
                               held->mode == MS_RECOMPUTE_FULL ? "recomputed" : "kept");
    return name;
}

static const char *block_name(ms_arena *arena, const ms_explanation *e,
                              const ms_held_block *held)
{
    if (held->block == MS_BLOCK_LAYER)
        return layer_name(arena, e, held);
    return held->block == MS_BLOCK_EMBED ? "embedding" : "head";
}

static void add_block(ms_ctx *cx, ms_explanation *e, const ms_held_block *held, int rank)
{
    for (int i = 0; i < e->num_blocks; i++) {
        if (same_block(&e->blocks[i].held, held)) {
            e->blocks[i].num_layers += (long)held->count;
            return;
        }
    }
    e->blocks[e->num_blocks++] =
        (ms_explain_block){.name = block_name(cx->arena, e, held),
                           .held = *held,
                           .program = ms_planned_program(cx->arena, e->planned, held),
                           .num_layers = (long)held->count,
                           .first_rank = rank};
}

static void list_blocks(ms_ctx *cx, ms_explanation *e)
{
    const ms_split *split = e->planned->pipeline.split;
    ms_held_block held[MS_MAX_HELD_BLOCKS];
    for (int rank = 0; rank < split->num_ranks; rank++) {
        int num_held = ms_planned_held(e->planned, rank, held);
        for (int i = 0; i < num_held; i++)
            if (held[i].block != MS_BLOCK_HEAD)
                add_block(cx, e, &held[i], rank);
    }
    int rank = ms_schedule_rank(&split->shape, split->num_stages - 1);
    int num_held = ms_planned_held(e->planned, rank, held);
    add_block(cx, e, &held[num_held - 1], rank);
}

const ms_explain_block *ms_explain_main_block(const ms_explanation *e)
{
    const ms_explain_block *main_block = &e->blocks[0];
    for (int i = 0; i < e->num_blocks; i++) {
        if (e->blocks[i].held.block == MS_BLOCK_LAYER &&
            (main_block->held.block != MS_BLOCK_LAYER ||
             e->blocks[i].num_layers > main_block->num_layers))
            main_block = &e->blocks[i];
    }
    return main_block;
}

/* ---- causes ---- */

static bool is_behind(const ms_program *program, const ms_node *node,
                      const ms_pricer *pricer, const ms_traffic_entry *entry)
{
    ms_node_comm comm;
    if ((node->op != MS_OP_REDISTRIBUTE && node->op != MS_OP_EXCHANGE) ||
        !ms_node_sends(program, node, pricer, &comm))
        return false;
    return (int)ms_node_bill_axis(&comm) == (int)entry->group &&
           comm.collective == entry->collective && comm.size_bytes == entry->size_bytes;
}

/* Whether the node is the ring attention that causes the sends of the traffic entry. */
static bool is_ring_behind(const ms_program *program, const ms_node *node,
                           const ms_traffic_entry *entry)
{
    ms_ring_transfer transfers[MS_MAX_RING_TRANSFERS];
    if (entry->group != MS_TRAFFIC_CP || entry->collective != MS_SEND ||
        !ms_node_is_ring(program, node))
        return false;
    int num = ms_ring_transfers(program, node, transfers);
    for (int i = 0; i < num; i++)
        if (transfers[i].size_bytes == entry->size_bytes)
            return true;
    return false;
}

/* Whether the entry is a ring's last hop, of gradients, which no attention overlaps. */
static bool is_last_hop(const ms_traffic_entry *entry)
{
    int pass = entry->phase == MS_TRAFFIC_FORWARD ? MS_BILL_FORWARD : MS_BILL_BACKWARD;
    const ms_bill_comm *comm = &entry->block.bill->comms[pass][entry->comm];
    return comm->ring && comm->window_s <= 0.0;
}

static ms_explain_cause node_cause(ms_arena *arena, const ms_program *program,
                                   const ms_node *node)
{
    const char *pass = node->pass == MS_PASS_FORWARD     ? "forward"
                       : node->pass == MS_PASS_RECOMPUTE ? "recompute"
                                                         : "backward";
    return (ms_explain_cause){pass, node->name, ms_node_change_text(arena, program, node),
                              ms_node_reason_text(arena, program, node)};
}

static void add_node_causes(ms_ctx *cx, const ms_program *program,
                            const ms_pricer *pricer, ms_explain_collective *to)
{
    ms_explain_cause *causes =
        MS_NEW_ARRAY(cx->arena, program->num_nodes, ms_explain_cause);
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        bool in_phase =
            (node->pass == MS_PASS_FORWARD) == (to->entry->phase == MS_TRAFFIC_FORWARD);
        if (in_phase && node->pass != MS_PASS_OPTIMIZER &&
            (is_behind(program, node, pricer, to->entry) ||
             is_ring_behind(program, node, to->entry)))
            causes[to->num_causes++] = node_cause(cx->arena, program, node);
    }
    if (is_last_hop(to->entry))
        for (int i = 0; i < to->num_causes; i++)
            causes[i].why = "the last hop brings gradients home, beside no attention";
    to->causes = causes;
}

/* Causes of collectives outside of layer programs. In `change`, %s stands for the name of
 * the communication group. */
static const ms_explain_cause state_causes[] = {
    [MS_CAUSE_GATHER_FORWARD] = {"forward", "parameters", "S -> R @%s",
                                 "each rank updated its shard only, forward needs them "
                                 "all"},
    [MS_CAUSE_GATHER_BACKWARD] = {"backward", "parameters", "S -> R @%s",
                                  "freed after forward, backward needs them whole again"},
    [MS_CAUSE_REDUCE_SCATTER] = {"backward", "gradients", "P -> S @%s",
                                 "each rank has those of its own tokens, and updates its "
                                 "shard only"},
    [MS_CAUSE_ALL_REDUCE] = {"backward", "gradients", "P -> R @%s",
                             "each rank has those of its own tokens, and updates all "
                             "parameters"},
    [MS_CAUSE_REPLICATE] = {"backward", "gradient shards", "P -> R @%s",
                            "every replica of the shards has other tokens"},
    [MS_CAUSE_TP_PARTIAL] = {"backward", "whole gradients", "P -> R @%s",
                             "weights that tp does not split saw a rank's part of the "
                             "tokens or heads only"},
    [MS_CAUSE_SEND_FORWARD] = {"forward", "activations", "stage s -> s + 1",
                               "the next layers are on the next stage"},
    [MS_CAUSE_SEND_BACKWARD] = {"backward", "gradients", "stage s -> s - 1",
                                "the layers before are on the stage before"},
    [MS_CAUSE_NORM] = {"optimizer", "gradient norm", "P -> R @world",
                       "clipping needs the norm of all gradients"},
    [MS_CAUSE_TIED] = {"optimizer", "tied matrix", "P -> R @pp ends",
                       "embedding and head share a matrix but not a stage"},
    [MS_CAUSE_REPLICA] = {"backward", "gradient shards", "P -> R @pp copies",
                          "a stage is there twice, each copy saw half of the "
                          "micro-batches"},
};

/* The cause of a collective outside of layer programs. Gathers of parameters before
 * forward: a rank updated only a shard (`zero` 1, 2), or keeps only a shard (3). */
static ms_explain_cause state_cause(ms_arena *arena, ms_traffic_cause kind, long zero,
                                    const char *group)
{
    ms_explain_cause cause = state_causes[kind];
    size_t length = strcspn(cause.change, "%");
    if (cause.change[length] != '\0')
        cause.change = ms_arena_printf(arena, "%.*s%s", (int)length, cause.change, group);
    if (kind == MS_CAUSE_GATHER_FORWARD && zero == 3)
        cause.why = "each rank keeps a shard, forward needs them whole";
    return cause;
}

static void add_causes(ms_ctx *cx, const ms_explanation *e, ms_explain_collective *to)
{
    if (to->entry->cause == MS_CAUSE_NODES) {
        for (int i = 0; i < e->num_blocks; i++)
            if (same_block(&e->blocks[i].held, &to->entry->block))
                add_node_causes(cx, e->blocks[i].program,
                                &e->blocks[i].held.workload->pricer, to);
        return;
    }
    ms_explain_cause *cause = MS_NEW(cx->arena, ms_explain_cause);
    *cause = state_cause(cx->arena, to->entry->cause, e->plan->zero, to->axis);
    to->causes = cause;
    to->num_causes = 1;
}

/* ---- collectives ---- */

static void add_collective(ms_ctx *cx, ms_explanation *e, const ms_traffic *traffic,
                           const ms_traffic_entry *entry,
                           ms_explain_collective *collectives)
{
    const ms_planned *p = e->planned;
    const ms_span *span = ms_traffic_span(p, traffic->rank, entry->group);
    ms_explain_collective *to = &collectives[e->num_collectives++];
    *to = (ms_explain_collective){
        .entry = entry,
        .rank = traffic->rank,
        .block = entry->has_block ? block_name(cx->arena, e, &entry->block) : NULL,
        .axis = ms_traffic_group_name(p->plan, entry->group),
        .span = span,
        .tier = ms_traffic_tier(p, traffic->rank, entry->group)};
    add_causes(cx, e, to);
}

static bool holds(const ms_traffic *traffic, const ms_held_block *block)
{
    for (int i = 0; i < traffic->num_entries; i++)
        if (traffic->entries[i].has_block &&
            same_block(&traffic->entries[i].block, block))
            return true;
    return false;
}

/* Lists all collectives of the explained rank. For each block that this rank lacks, adds
 * the block's collectives as the first rank with the block runs them. */
static void list_collectives(ms_ctx *cx, ms_explanation *e)
{
    ms_traffic others[MS_MAX_EXPLAIN_BLOCKS];
    int most = e->traffic.num_entries;
    for (int i = 0; i < e->num_blocks; i++) {
        others[i] = (ms_traffic){.num_entries = 0};
        if (e->blocks[i].first_rank != e->rank && !holds(&e->traffic, &e->blocks[i].held))
            others[i] = ms_traffic_make(cx, e->planned, e->blocks[i].first_rank);
        ms_traffic_hide_exposure(&others[i]);
        most += others[i].num_entries;
    }
    ms_explain_collective *list = MS_NEW_ARRAY(cx->arena, most, ms_explain_collective);
    for (int i = 0; i < e->traffic.num_entries; i++)
        add_collective(cx, e, &e->traffic, &e->traffic.entries[i], list);
    for (int i = 0; i < e->num_blocks; i++) {
        for (int k = 0; k < others[i].num_entries; k++)
            if (others[i].entries[k].has_block &&
                same_block(&others[i].entries[k].block, &e->blocks[i].held))
                add_collective(cx, e, &others[i], &others[i].entries[k], list);
    }
    e->collectives = list;
}

/* ---- all of it ---- */

static void choose_rank(ms_ctx *cx, const ms_explain_options *options, ms_explanation *e)
{
    e->rank = options->rank >= 0 ? options->rank : e->prediction.ending_rank;
    if (e->rank != e->prediction.ending_rank) {
        e->traffic = ms_traffic_make(cx, e->planned, e->rank);
        ms_traffic_hide_exposure(&e->traffic);
    }
    e->num_axes = ms_traffic_axes(e->planned, &e->traffic, e->axes);
}

ms_status ms_explain(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                     const ms_explain_options *options, ms_explanation *out)
{
    memset(out, 0, sizeof *out);
    out->planned = MS_NEW(cx->arena, ms_planned);
    ms_planned_open(cx, workload, plan, out->planned);
    out->traffic = ms_predict_planned(cx, out->planned, &out->prediction);
    ms_plan *used = MS_NEW(cx->arena, ms_plan);
    *used = *plan;
    used->num_stage_layers = out->prediction.num_stage_layers;
    used->layers_per_stage = out->prediction.layers_per_stage;
    out->plan = used;
    choose_rank(cx, options, out);
    list_blocks(cx, out);
    list_collectives(cx, out);
    if (options->figures)
        MS_TRY(ms_explain_list_figures(cx, out));
    if (options->answers)
        ms_explain_answer_all(cx, out);
    return MS_OK;
}
