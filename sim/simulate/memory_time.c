#include "sim/simulate/memory_time.h"

#include "base/number.h"

typedef struct track {
    const ms_planned *planned;
    const ms_workload *workload; /* the one of the rank's devices */
    /* parameters and buffers of the rank; each sample sets activations and logits */
    ms_rank_load load;
    const ms_rank_class *run;
    int *class_of_chunk; /* (num_chunks): stage class, as index of run->distinct */
    int *counts;         /* micro-batches alive, as a row of ms_rank_live.counts */
    double moment_bytes; /* bytes of optimizer moments that do not exist yet */
    ms_memory_sample *samples;
    ms_memory_track out;
} track;

static track open_track(ms_ctx *cx, const ms_planned *p, int rank)
{
    const ms_split *split = p->pipeline.split;
    const ms_rank_class *run = split->runs;
    while (rank >= run->first_rank + run->num_ranks)
        run++;
    track t = {.planned = p,
               .workload = ms_planned_prices(p, ms_split_stage(split, rank, 0)).workload,
               .load = ms_planned_load(cx, p, rank),
               .run = run,
               .counts = MS_NEW_ARRAY(cx->arena, 2 * run->num_distinct, int),
               .class_of_chunk = MS_NEW_ARRAY(cx->arena, split->num_chunks, int)};
    for (int chunk = 0; chunk < split->num_chunks; chunk++)
        while (run->distinct[t.class_of_chunk[chunk]] != run->classes[chunk])
            t.class_of_chunk[chunk]++;
    return t;
}

static ms_live_bytes saved_bytes(const track *t)
{
    return ms_saved_bytes_of(t->planned->stages, t->run, t->counts);
}

static void add_sample(track *t, double time_s, ms_live_bytes live, int task)
{
    ms_memory_sample *sample = &t->samples[t->out.num_samples];
    /* an action without kernels has an earlier task's time, perhaps before sample[-1] */
    sample->time_s = t->out.num_samples > 0 ? ms_max(time_s, sample[-1].time_s) : time_s;
    t->load.activation_bytes = live.activation_bytes;
    t->load.logits_bytes = live.logits_bytes;
    t->load.head_grad_bytes = live.head_grad_bytes;
    ms_rank_memory(t->workload, &t->load, t->planned->sharding,
                   &t->planned->pipeline.shards, sample->bytes);
    sample->bytes[MS_MEMORY_OPTIMIZER] -= t->moment_bytes;
    sample->bytes[MS_MEMORY_FRAGMENTATION] -=
        t->moment_bytes * t->planned->workload->stack->fragmentation_frac.value;
    double bytes = 0.0;
    for (int i = 0; i < MS_NUM_MEMORY_CATEGORIES; i++)
        bytes += sample->bytes[i];
    if (bytes > t->out.peak_bytes) {
        t->out.peak_bytes = bytes;
        t->out.peak_sample = t->out.num_samples;
        t->out.peak_task = task;
    }
    t->out.num_samples++;
}

static int class_of(const track *t, int stage)
{
    return t->class_of_chunk[ms_schedule_chunk(&t->planned->pipeline.shape, stage)];
}

/* Adds the memory samples of a schedule action. The activations of the forward in an
 * overlapped forward-backward pair count from the start of the pair. */
static void add_action(track *t, const ms_action *a, const ms_action_span *span,
                       const double *start_s, const double *end_s)
{
    int kind = a->kind == MS_OVERLAP ? MS_BACKWARD : a->kind;
    int *whole = t->counts, *delayed = t->counts + t->run->num_distinct;
    if (a->kind == MS_FORWARD || a->kind == MS_OVERLAP)
        whole[class_of(t, a->stage)]++;
    if (a->kind == MS_FORWARD) {
        add_sample(t, start_s[span->first], saved_bytes(t), span->first);
        return;
    }
    int at_work = class_of(t, a->kind == MS_OVERLAP ? a->backward_stage : a->stage);
    ms_live_bytes live =
        ms_live_bytes_of(t->planned->stages, t->run, t->counts, at_work, kind);
    add_sample(t, start_s[span->first], live, span->first);
    if (kind == MS_BACKWARD_WEIGHT)
        delayed[at_work]--;
    else
        whole[at_work]--;
    if (kind == MS_BACKWARD_INPUT)
        delayed[at_work]++;
    add_sample(t, end_s[span->last], saved_bytes(t), span->last);
}

static double moment_bytes(const track *t)
{
    return ms_rank_state_bytes(&t->load, t->planned->sharding,
                               &t->planned->pipeline.shards,
                               t->planned->workload->stack->moment_bytes.value);
}

ms_memory_track ms_memory_over_time(ms_ctx *cx, const ms_simulation *sim,
                                    int pipeline_rank, const ms_action_span *spans,
                                    int optimizer)
{
    const ms_planned *planned = sim->planned;
    const ms_schedule *schedule = planned->schedule;
    int first = schedule->first_action[pipeline_rank],
        last = schedule->first_action[pipeline_rank + 1];
    track t = open_track(cx, planned, pipeline_rank);
    t.samples = MS_NEW_ARRAY(cx->arena, 2 + 2 * (long)(last - first), ms_memory_sample);
    t.moment_bytes = sim->options.first_step ? moment_bytes(&t) : 0.0;
    t.out.samples = t.samples;
    t.out.peak_bytes = -1.0;
    add_sample(&t, 0.0, saved_bytes(&t), 0);
    for (int i = first; i < last; i++)
        add_action(&t, &schedule->actions[i], &spans[i - first], sim->start_s,
                   sim->end_s);
    if (t.moment_bytes > 0.0) {
        t.moment_bytes = 0.0;
        add_sample(&t, sim->start_s[optimizer], saved_bytes(&t), optimizer);
    }
    return t.out;
}
