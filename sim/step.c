#include "sim/step.h"

#include "base/number.h"

/* ---- bounds and exact times ---- */

double ms_step_sync_s(const ms_workload *workload, const ms_links *links,
                      const ms_parts *parts)
{
    double norm_s = ms_collective_s(&links->world, MS_NORM_BYTES);
    if (!workload->model->tied_embeddings || links->pipeline_span.size == 1)
        return norm_s;
    return norm_s + ms_collective_s(&links->send, workload->stack->grad_comm_bytes.value *
                                                      parts->head_params);
}

double ms_optimizer_s(const ms_pipeline *pipeline, ms_sharding sharding,
                      int *slowest_rank)
{
    double most = -1.0;
    for (int i = 0; i < pipeline->split->num_runs; i++) {
        double params =
            ms_rank_params(&pipeline->loads[i], &pipeline->shards, sharding >= MS_ZERO_1);
        if (params > most) {
            most = params;
            *slowest_rank = pipeline->split->runs[i].first_rank;
        }
    }
    return pipeline->world_sync_s +
           ms_stream_s(&pipeline->workload->pricer,
                       most * pipeline->workload->stack->optimizer_bytes.value);
}

static double busy_s(const ms_pipeline *pipeline, const ms_stage_times *times,
                     const ms_run *run)
{
    double more = (double)(pipeline->shape.num_microbatches - 1), busy = 0.0;
    for (int i = 0; i < run->num_distinct; i++) {
        const ms_stage_times *t = &times[run->distinct[i]];
        busy += run->multiplicity[i] *
                (t->first_forward_s + more * (t->forward_s + t->backward_s) +
                 t->last_backward_s);
    }
    return busy;
}

/* Way of the first micro-batch through one stage. */
static double through_s(const ms_pipeline *pipeline, const ms_stage_times *t)
{
    return t->first_forward_s + pipeline->send_s;
}

/* Way of the last micro-batch's gradient from the last rank of run `last` through the stages before it. */
static double ways_back_s(const ms_pipeline *pipeline, const ms_stage_times *times,
                          int last)
{
    double seconds = 0.0;
    for (int i = 0; i <= last; i++) {
        const ms_run *run = &pipeline->split->runs[i];
        int ranks = run->num_ranks - (i == last);
        seconds += ranks * (times[run->classes[0]].last_backward_s + pipeline->send_s);
    }
    return seconds;
}

/* What reductions need after a stage's last backward. */
static double rest_s(const ms_stage_times *t)
{
    return ms_max(t->reduce_s - t->last_backward_s, t->reduce_tail_s);
}

double ms_step_bound_s(const ms_pipeline *pipeline, ms_sharding sharding,
                       ms_arena *scratch)
{
    const ms_split *split = pipeline->split;
    ms_arena_mark mark = ms_arena_save(scratch);
    ms_stage_times *times = MS_NEW_ARRAY(scratch, split->num_classes, ms_stage_times);
    for (int i = 0; i < split->num_classes; i++)
        times[i] = ms_stage_durations(pipeline->workload, &pipeline->stages[i], sharding,
                                      pipeline->send_s);
    const ms_stage_times *head = &times[split->runs[0].classes[0]];
    double around_s = 0.0, longest_s = 0.0;
    for (int i = 0; i < split->num_runs; i++) {
        const ms_run *run = &split->runs[i];
        const ms_stage_times *first = &times[run->classes[0]];
        /* the last rank of a run of equal ones waits longest, and has the longest way back to rank 0 */
        double there_s = around_s + (run->num_ranks - 1) * through_s(pipeline, first);
        double start_s = ms_max(there_s, first->release_s);
        double back_s =
            ms_max(rest_s(first), ways_back_s(pipeline, times, i) + rest_s(head));
        longest_s = ms_max(longest_s, start_s + busy_s(pipeline, times, run) + back_s);
        around_s += run->num_ranks * through_s(pipeline, first);
    }
    int rank_unused;
    ms_arena_rewind(scratch, mark);
    return (longest_s + ms_optimizer_s(pipeline, sharding, &rank_unused)) * (1.0 - 1e-12);
}

/* A later chunk's parameters are gathered after those of the chunks before it. */
static double gathered_before_s(const ms_pipeline *pipeline, int stage)
{
    double seconds = 0.0;
    for (int s = stage - pipeline->shape.num_ranks; s >= 0;
         s -= pipeline->shape.num_ranks)
        seconds += pipeline->stages[pipeline->split->class_of_stage[s]].sum.gather_s;
    return seconds;
}

void ms_step_durations(const ms_pipeline *pipeline, ms_sharding sharding,
                       ms_stage_times *times)
{
    for (int s = 0; s < pipeline->split->num_stages; s++) {
        const ms_stage *stage = &pipeline->stages[pipeline->split->class_of_stage[s]];
        times[s] =
            ms_stage_durations(pipeline->workload, stage, sharding, pipeline->send_s);
        if (times[s].release_s > 0.0)
            times[s].release_s += gathered_before_s(pipeline, s);
    }
}

double ms_step_exact_s(const ms_pipeline *pipeline, ms_sharding sharding,
                       const ms_schedule *schedule, ms_arena *scratch)
{
    int rank_unused;
    ms_arena_mark mark = ms_arena_save(scratch);
    ms_stage_times *times =
        MS_NEW_ARRAY(scratch, pipeline->split->num_stages, ms_stage_times);
    ms_step_durations(pipeline, sharding, times);
    ms_replay_result result = {0};
    ms_replay(schedule, times, scratch, &result);
    ms_arena_rewind(scratch, mark);
    return result.makespan_s + ms_optimizer_s(pipeline, sharding, &rank_unused);
}

double ms_step_peak_bytes(const ms_pipeline *pipeline, ms_sharding sharding,
                          int *worst_rank)
{
    double peak = -1.0;
    for (int i = 0; i < pipeline->split->num_runs; i++) {
        double parts[MS_NUM_MEMORY_PARTS], total = 0.0;
        ms_rank_memory(pipeline->workload, &pipeline->loads[i], sharding,
                       &pipeline->shards, parts);
        for (int j = 0; j < MS_NUM_MEMORY_PARTS; j++)
            total += parts[j];
        if (total > peak) {
            peak = total;
            *worst_rank = pipeline->split->runs[i].first_rank;
        }
    }
    return peak;
}

/* ---- caches ---- */

#define NUM_BUCKETS 256

typedef struct entry {
    ms_schedule_shape shape;
    const ms_schedule *schedule;
    struct entry *next;
} entry;

struct ms_schedule_cache {
    ms_arena *arena;
    entry *buckets[NUM_BUCKETS];
};

ms_schedule_cache *ms_schedule_cache_open(void)
{
    ms_arena *arena = ms_arena_open();
    ms_schedule_cache *cache = MS_NEW(arena, ms_schedule_cache);
    cache->arena = arena;
    return cache;
}

void ms_schedule_cache_close(ms_schedule_cache *cache)
{
    ms_arena_close(cache->arena);
}

static unsigned hash_shape(const ms_schedule_shape *shape)
{
    unsigned hash = (unsigned)shape->kind;
    hash = hash * 31U + (unsigned)shape->num_ranks;
    hash = hash * 31U + (unsigned)shape->num_microbatches;
    hash = hash * 31U + (unsigned)shape->virtual_stages;
    hash = hash * 31U + (unsigned)shape->group;
    return (hash * 2654435761U >> 16) % NUM_BUCKETS;
}

static bool same_shape(const ms_schedule_shape *a, const ms_schedule_shape *b)
{
    return a->kind == b->kind && a->num_ranks == b->num_ranks &&
           a->num_microbatches == b->num_microbatches &&
           a->virtual_stages == b->virtual_stages && a->group == b->group;
}

const ms_schedule *ms_schedule_cached(ms_schedule_cache *cache,
                                      const ms_schedule_shape *shape)
{
    unsigned bucket = hash_shape(shape);
    for (entry *e = cache->buckets[bucket]; e != NULL; e = e->next)
        if (same_shape(&e->shape, shape))
            return e->schedule;
    entry *e = MS_NEW(cache->arena, entry);
    e->shape = *shape;
    e->schedule = ms_schedule_make(cache->arena, shape);
    e->next = cache->buckets[bucket];
    cache->buckets[bucket] = e;
    return e->schedule;
}

/* With groups of p micro-batches the lists repeat after the warm-up of at most (v + 1) p forwards, that is after two groups;
 * the live vectors of four groups are those of any more. GPipe keeps all, and is short. */
const ms_schedule *ms_live_cached(ms_schedule_cache *cache,
                                  const ms_schedule_shape *shape)
{
    ms_schedule_shape brief = *shape;
    int p = shape->num_ranks, m = shape->num_microbatches;
    if (shape->kind == MS_1F1B && m > 2 * p)
        brief.num_microbatches = 2 * p;
    if (shape->kind == MS_INTERLEAVED && m > 4 * p && ms_schedule_group(shape) == p &&
        m % p == 0)
        brief.num_microbatches = 4 * p;
    return ms_schedule_cached(cache, &brief);
}
