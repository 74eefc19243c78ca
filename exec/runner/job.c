#include "exec/runner/job.h"

/* ---- stages ---- */

long ms_job_layer(const ms_job_stage *stage, int block)
{
    if (stage->blocks[block]->program->key.block != MS_BLOCK_LAYER)
        return -1;
    return stage->first_layer + block - (stage->has_embedding ? 1 : 0);
}

/* Execution plan of a block; blocks with equal programs share one plan. */
static const ms_block_plan *plan_of(ms_arena *arena, const ms_block_ops *ops,
                                    const ms_backend_job *backend, ms_block_plan **known,
                                    int *num_known)
{
    for (int i = 0; i < *num_known; i++)
        if (known[i]->ops == ops)
            return known[i];
    known[*num_known] = ms_block_plan_make(arena, ops, backend->backend, backend->type);
    return known[(*num_known)++];
}

#define MAX_PART_PLANS (3 + MS_MAX_LAYER_KINDS * MS_NUM_LAYER_MODES)

static const ms_job_stage *make_stages(ms_arena *arena, const ms_planned *planned,
                                       const ms_backend_job *backend)
{
    const ms_split *split = planned->pipeline.split;
    ms_stage_blocks *blocks = ms_stage_blocks_make(arena, planned);
    ms_job_stage *stages = MS_NEW_ARRAY(arena, split->num_stages, ms_job_stage);
    ms_block_plan *known[MAX_PART_PLANS];
    int num_known = 0;
    for (int s = 0; s < split->num_stages; s++) {
        const ms_block_plan **list =
            MS_NEW_ARRAY(arena, blocks[s].num, const ms_block_plan *);
        for (int i = 0; i < blocks[s].num; i++)
            list[i] = plan_of(arena, blocks[s].blocks[i], backend, known, &num_known);
        stages[s] = (ms_job_stage){.num_blocks = blocks[s].num,
                                   .blocks = list,
                                   .first_layer = split->first_layer[s],
                                   .has_embedding = s == 0};
    }
    return stages;
}

/* ---- slots of the schedule ---- */

static void index_slots(ms_arena *arena, const ms_schedule *schedule, ms_job *job)
{
    int num = schedule->first_action[schedule->shape.num_ranks];
    const ms_slot_cost **cost = MS_NEW_ARRAY(arena, num, const ms_slot_cost *);
    bool *last = MS_NEW_ARRAY(arena, num, bool);
    for (int slot = schedule->num_slots; slot > 0; slot--) {
        int action = schedule->slot_action[slot];
        cost[action] = &schedule->slot_costs[schedule->slots[slot].cost];
        last[action] = last[action] || cost[action]->last_backward;
    }
    job->cost_of_action = cost;
    job->is_last_backward = last;
}

/* Sequence position of each stored token; NULL if stored in order. If the plan balances
 * causal attention over cp, rank c of cp stores chunks c and 2 cp - 1 - c of 2 cp. */
static const long *make_positions(ms_arena *arena, const ms_plan *plan)
{
    long cp = plan->size[MS_CP], sequence = plan->sequence_length;
    if (cp == 1 || !ms_plan_balances_sequence(plan))
        return NULL;
    long *positions = MS_NEW_ARRAY(arena, sequence, long), chunk = sequence / (2 * cp);
    for (long stored = 0; stored < sequence; stored++) {
        long half = stored / chunk, rank = half / 2;
        long from = half % 2 == 0 ? rank : 2 * cp - 1 - rank;
        positions[stored] = from * chunk + stored % chunk;
    }
    return positions;
}

/* Makes the limit of what experts keep of the tokens of each rank of the plan, or of another
 * plan's ranks in a run on one rank, which stores them in order. NULL: there is none. */
static const ms_capacity *make_capacity(ms_arena *arena, const ms_plan *plan,
                                        const ms_plan *grouped_as)
{
    if (plan->expert_capacity <= 0.0)
        return NULL;
    const ms_plan *by = grouped_as != NULL ? grouped_as : plan;
    const long *positions = grouped_as != NULL ? make_positions(arena, by) : NULL;
    long num = plan->sequence_length;
    int *group = MS_NEW_ARRAY(arena, num, int);
    ms_capacity *capacity = MS_NEW(arena, ms_capacity);
    *capacity = (ms_capacity){.factor = plan->expert_capacity,
                              .pads = plan->pad_experts,
                              .group = group,
                              .num_groups = (int)(by->size[MS_CP] * by->size[MS_TP])};
    for (long stored = 0; stored < num; stored++)
        group[positions != NULL ? positions[stored] : stored] =
            (int)(stored * capacity->num_groups / num);
    return capacity;
}

static bool gathers_once(ms_sharding sharding)
{
    return sharding == MS_ZERO_1 || sharding == MS_ZERO_2 ||
           sharding == MS_ZERO_3_NO_RESHARD;
}

static ms_job_tags tags_of(const ms_planned *planned, const ms_job_stage *stages)
{
    const ms_schedule_shape *shape = &planned->schedule->shape;
    int num_stages = ms_schedule_model_stages(shape);
    ms_job_tags tags = {.blocks = 1};
    for (int s = 0; s < num_stages; s++)
        tags.blocks =
            stages[s].num_blocks > tags.blocks ? stages[s].num_blocks : tags.blocks;
    tags.first_copy =
        2L * planned->schedule->num_stages * ms_plan_microbatches(planned->plan);
    tags.tied = tags.first_copy + (long)num_stages * tags.blocks;
    return tags;
}

ms_status ms_job_check_tags(ms_ctx *cx, const ms_job *job)
{
    if (job->tags.tied < MS_MAX_TAG)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "a step of this plan has %ld kinds of messages between stages, must be at "
            "most %d",
            job->tags.tied + 1, MS_MAX_TAG);
    ms_hint(cx, "fewer micro-batches: a larger --microbatch or a smaller global batch");
    return MS_EINPUT;
}

static double records_per_microbatch(const ms_job *job)
{
    double records = 0.0;
    for (int s = 0; s < job->planned->pipeline.split->num_stages; s++)
        for (int i = 0; i < job->stages[s].num_blocks; i++)
            for (int pass = 0; pass < MS_NUM_BILL_PASSES; pass++)
                records += job->stages[s].blocks[i]->num_entries[pass];
    return records;
}

ms_status ms_job_check_records(ms_ctx *cx, const ms_job *job)
{
    const ms_plan *plan = job->planned->plan;
    double pipelines =
        job->options->replays ? 1.0 : (double)plan->gpus / (double)plan->size[MS_PP];
    double records =
        records_per_microbatch(job) * (double)ms_plan_microbatches(plan) * pipelines;
    if (records <= (double)MS_MAX_RECORDS ||
        job->options->first_recorded_step >= job->options->num_steps)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "a step would leave about %.0f million time records, must be at most %ld "
            "million",
            records / 1e6, MS_MAX_RECORDS / 1000000);
    return ms_hint(cx, "fewer micro-batches, layers or ranks");
}

ms_job ms_job_make(ms_arena *arena, const ms_backend_job *backend,
                   const ms_planned *planned, const ms_runner_options *options)
{
    ms_job job = {.planned = planned,
                  .options = options,
                  .backend = backend,
                  .stages = make_stages(arena, planned, backend),
                  .positions = make_positions(arena, planned->plan),
                  .capacity = make_capacity(arena, planned->plan, options->grouped_as),
                  .overlaps =
                      ms_overlaps_sync(planned->workload->stack, planned->sharding),
                  .gathers_once = gathers_once(planned->sharding)};
    job.tags = tags_of(planned, job.stages);
    index_slots(arena, planned->schedule, &job);
    return job;
}
