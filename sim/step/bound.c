/* Lower bounds of a training step's time in closed form: a rank cannot start before the
 * first micro-batch has reached it, and after its last action the last gradient still
 * travels back to the first stage (docs/formulas 6.3). */
#include "sim/step/bound.h"

#include "base/number.h"
#include "sim/step/step.h"

typedef ms_order_times bound;

/* ---- schedules whose ranks end with the last backward of their first chunk ---- */

bool ms_order_ends_with_first_chunk(ms_schedule_kind kind)
{
    ms_schedule_traits traits = ms_schedule_traits_of(kind);
    return traits.placement == MS_PLACE_LOOP && !traits.splits_backward &&
           kind != MS_CUSTOM;
}

/* Least seconds of all actions of a rank, as if each forward overlapped a backward. */
static double busy_s(const bound *b, const ms_rank_class *run)
{
    double more = b->microbatches - 1.0, busy = 0.0;
    for (int i = 0; i < run->num_distinct; i++) {
        const ms_stage_times *t = &b->times[run->distinct[i]];
        busy += run->multiplicity[i] *
                (t->first_forward_s + more * (t->forward_s + t->backward_s) +
                 t->last_backward_s - b->microbatches * t->hidden_s);
    }
    return busy;
}

static double pass_stage_s(const bound *b, const ms_stage_times *t)
{
    return t->first_forward_s + b->send_s;
}

/* Seconds in which the last micro-batch's gradient travels back from the last rank of
 * rank class `last` through all stages before it. */
static double gradient_return_s(const bound *b, int last)
{
    double seconds = 0.0;
    for (int i = 0; i <= last; i++) {
        const ms_rank_class *run = &b->split->runs[i];
        int ranks = run->num_ranks - (i == last);
        seconds += ranks * (b->times[run->classes[0]].last_backward_s + b->send_s);
    }
    return seconds;
}

/* Least seconds from a stage's last backward to the end of its rank's reductions. */
static double whole_rest_s(const ms_stage_times *t)
{
    return ms_reduce_rest_s(t, MS_SLOT_BACKWARD) + t->after_rank_s;
}

static double whole_bound_s(const bound *b)
{
    const ms_split *split = b->split;
    double head_rest_s = whole_rest_s(&b->times[split->runs[0].classes[0]]);
    double class_arrival_s = 0.0, longest_s = 0.0;
    for (int i = 0; i < split->num_runs; i++) {
        const ms_rank_class *run = &split->runs[i];
        const ms_stage_times *first = &b->times[run->classes[0]];
        /* the last rank of a rank class waits longest for the first micro-batch, and has
         * the longest way back to rank 0 */
        double arrival_s =
            class_arrival_s + (run->num_ranks - 1) * pass_stage_s(b, first);
        double own_s = busy_s(b, run) + whole_rest_s(first);
        double start_s = ms_max(arrival_s, first->release_s);
        double round_s = start_s + busy_s(b, run) + gradient_return_s(b, i) + head_rest_s;
        longest_s =
            ms_max(longest_s, b->spans ? own_s : ms_max(start_s + own_s, round_s));
        class_arrival_s += run->num_ranks * pass_stage_s(b, first);
    }
    return longest_s;
}

/* ---- any order ---- */

static bool is_whole(const bound *b)
{
    return b->kind != MS_CUSTOM && !ms_schedule_traits_of(b->kind).splits_backward;
}

/* Least seconds of a backward until its input gradient can be sent. */
static double input_s(const bound *b, const ms_stage_times *t)
{
    return is_whole(b) ? t->backward_s : ms_min(t->input_s, t->backward_s);
}

static double backward_s(const bound *b, const ms_stage_times *t)
{
    return is_whole(b) ? t->backward_s : ms_min(t->input_s + t->weight_s, t->backward_s);
}

/* Most seconds that overlap with other work can save in a stage while the first
 * micro-batch or the last gradient passes it: 0 unless micro-batches enter the pipeline
 * at both ends, or in an unknown order. */
static double overlap_saved_s(const bound *b, const ms_stage_times *t)
{
    bool may_pair =
        b->kind == MS_CUSTOM || ms_schedule_placement(b->kind) == MS_PLACE_BOTH_WAYS;
    return may_pair ? t->hidden_s : 0.0;
}

/* Least seconds of a stage's last backward, whichever of a rank's stages ends last. */
static double last_backward_s(const bound *b, const ms_stage_times *t)
{
    if (is_whole(b))
        return ms_min(t->backward_s, t->last_backward_s);
    return ms_min(backward_s(b, t),
                  ms_min(t->input_s + t->last_weight_s, t->last_backward_s));
}

static double reduce_rest_s(const ms_stage_times *t)
{
    double least_s = ms_min(ms_reduce_rest_s(t, MS_SLOT_BACKWARD),
                            ms_reduce_rest_s(t, MS_SLOT_WEIGHT));
    return ms_max(0.0, least_s) + t->after_rank_s;
}

/* Least seconds of any of a stage's backwards until its input gradient can be sent. The
 * last backward may be shorter than others: its reductions may come after it (ZeRO-3). */
static double least_input_s(const bound *b, const ms_stage_times *t)
{
    return ms_min(input_s(b, t), t->last_backward_s);
}

/* Least seconds of a rank: sums (all_s, inputs_s) and minima over its model chunks. */
typedef struct chunks {
    double all_s;    /* seconds of all actions of the chunks */
    double inputs_s; /* seconds of actions before the rank sends its last gradient */
    double release_s, reduce_rest_s; /* minima of ms_stage_times values over the chunks */
} chunks;

static chunks sum_chunks(const bound *b, const ms_rank_class *run)
{
    double m = b->microbatches;
    chunks c = {.release_s = b->times[run->classes[0]].release_s,
                .reduce_rest_s = reduce_rest_s(&b->times[run->classes[0]])};
    for (int i = 0; i < run->num_distinct; i++) {
        const ms_stage_times *t = &b->times[run->distinct[i]];
        double forward_s = t->first_forward_s + (m - 1.0) * t->forward_s;
        double all_backward_s = (m - 1.0) * backward_s(b, t) + last_backward_s(b, t);
        c.all_s += run->multiplicity[i] * (forward_s + all_backward_s - m * t->hidden_s);
        double all_input_s = (m - 1.0) * input_s(b, t) + least_input_s(b, t);
        c.inputs_s += run->multiplicity[i] * (forward_s + all_input_s - m * t->hidden_s);
        c.release_s = ms_min(c.release_s, t->release_s);
        c.reduce_rest_s = ms_min(c.reduce_rest_s, reduce_rest_s(t));
    }
    return c;
}

/* Seconds between the first stage of the model and each stage. */
typedef struct travel_times {
    double *arrival_s; /* (num_stages): until the first micro-batch arrives at a stage */
    /* (num_stages): from the end of a stage's last backward until the last gradient has
     * reached the first stage, and that stage has finished the work left then */
    double *return_s;
} travel_times;

static travel_times find_travel_times(const bound *b, ms_arena *scratch)
{
    const ms_split *split = b->split;
    travel_times w = {MS_NEW_ARRAY(scratch, split->num_stages, double),
                      MS_NEW_ARRAY(scratch, split->num_stages, double)};
    const ms_stage_times *head = &b->times[split->class_of_stage[0]];
    w.return_s[0] = ms_max(last_backward_s(b, head) - least_input_s(b, head), 0.0) +
                    reduce_rest_s(head);
    for (int s = 1; s < split->num_stages; s++) {
        const ms_stage_times *t = &b->times[split->class_of_stage[s - 1]];
        w.arrival_s[s] = w.arrival_s[s - 1] + t->first_forward_s - overlap_saved_s(b, t);
        w.return_s[s] = w.return_s[s - 1] + least_input_s(b, t) - overlap_saved_s(b, t);
        bool sent =
            ms_schedule_rank(&split->shape, s - 1) != ms_schedule_rank(&split->shape, s);
        w.arrival_s[s] += sent ? b->send_s : 0.0;
        w.return_s[s] += sent ? b->send_s : 0.0;
    }
    return w;
}

/* The stage, of those on a rank, that a micro-batch reaches first. */
static int nearest_stage(const ms_split *split, int rank)
{
    int nearest = ms_split_stage(split, rank, 0);
    for (int chunk = 1; chunk < split->num_chunks; chunk++) {
        int stage = ms_split_stage(split, rank, chunk);
        nearest = stage < nearest ? stage : nearest;
    }
    return nearest;
}

static const ms_stage_times *times_of(const bound *b, int rank, int chunk)
{
    return &b->times[b->split->class_of_stage[ms_split_stage(b->split, rank, chunk)]];
}

/* Seconds in which the first micro-batch goes to the end of the model and back to the
 * start of the backward of `stage`. */
static double round_trip_s(const bound *b, const travel_times *w, int stage)
{
    const ms_split *split = b->split;
    int last = split->num_stages - 1;
    const ms_stage_times *end = &b->times[split->class_of_stage[last]];
    const ms_stage_times *own = &b->times[split->class_of_stage[stage]];
    double arrival_s =
        w->arrival_s[last] + end->first_forward_s - overlap_saved_s(b, end);
    if (stage == last)
        return arrival_s;
    /* return_s[last] - return_s[stage]: a gradient's way, stages last - 1 to `stage` */
    return arrival_s + w->return_s[last] - w->return_s[stage] + least_input_s(b, end) -
           overlap_saved_s(b, end) - (least_input_s(b, own) - overlap_saved_s(b, own));
}

/* Lower bound of the step: seconds until a rank's first backward, for which a micro-batch
 * went to the end of the model and back, plus all later actions of the rank. */
static double after_first_backward_s(const bound *b, const travel_times *w, int rank,
                                     const chunks *c)
{
    const ms_schedule *lists = b->lists;
    int stage =
        ms_schedule_model_stage(&b->split->shape, lists->edges.first_backward[rank]);
    double seconds = round_trip_s(b, w, stage) + c->all_s + c->reduce_rest_s;
    for (int chunk = 0; chunk < b->split->num_chunks; chunk++) {
        int warmup = lists->edges.warmup[(long)rank * lists->num_chunks + chunk];
        const ms_stage_times *t = times_of(b, rank, chunk);
        if (warmup > 0)
            seconds -= t->first_forward_s + (warmup - 1) * t->forward_s;
    }
    return seconds;
}

/* Lower bound of the step, from the rank's start: its actions until it sends its last
 * gradient, and that one's way to the first stage. Only weight gradients come later. */
static double until_last_gradient_s(const bound *b, const travel_times *w, int rank,
                                    const chunks *c)
{
    const ms_schedule *lists = b->lists;
    int stage =
        ms_schedule_model_stage(&b->split->shape, lists->edges.last_gradient[rank]);
    double seconds = c->all_s + w->return_s[stage];
    for (int chunk = 0; chunk < b->split->num_chunks; chunk++) {
        int cooldown = lists->edges.cooldown[(long)rank * lists->num_chunks + chunk];
        const ms_stage_times *t = times_of(b, rank, chunk);
        seconds -= cooldown * ms_max(t->weight_s, t->last_weight_s);
    }
    return seconds;
}

static double rank_bound_s(const bound *b, const travel_times *w, int rank,
                           const chunks *c)
{
    int stage = nearest_stage(b->split, rank);
    double start_s = ms_max(w->arrival_s[stage], c->release_s);
    double longest_s =
        start_s + ms_max(c->all_s + c->reduce_rest_s, c->inputs_s + w->return_s[stage]);
    if (b->lists == NULL)
        return longest_s;
    longest_s = ms_max(longest_s, after_first_backward_s(b, w, rank, c));
    return ms_max(longest_s, start_s + until_last_gradient_s(b, w, rank, c));
}

static double any_bound_s(const bound *b, ms_arena *scratch)
{
    const ms_split *split = b->split;
    travel_times w = find_travel_times(b, scratch);
    double longest_s = 0.0;
    for (int i = 0; i < split->num_runs; i++) {
        const ms_rank_class *run = &split->runs[i];
        chunks c = sum_chunks(b, run);
        if (b->spans) {
            longest_s = ms_max(longest_s, c.all_s + c.reduce_rest_s);
            continue;
        }
        for (int rank = run->first_rank; rank < run->first_rank + run->num_ranks; rank++)
            longest_s = ms_max(longest_s, rank_bound_s(b, &w, rank, &c));
    }
    return longest_s;
}

double ms_order_bound_s(const ms_order_times *order, ms_arena *scratch)
{
    ms_arena_mark mark = ms_arena_save(scratch);
    bool ends = ms_order_ends_with_first_chunk(order->kind);
    double bound_s = ends ? whole_bound_s(order) : 0.0;
    if (!ends || order->lists != NULL)
        bound_s = ms_max(bound_s, any_bound_s(order, scratch));
    ms_arena_rewind(scratch, mark);
    return bound_s * (1.0 - 1e-12);
}

/* Sets hidden_s of each class to its forward's token exchange seconds plus the most token
 * exchange seconds of any class's backward. */
static void limit_hidden(const ms_pipeline *pipeline, ms_stage_times *times)
{
    double most_back_s = 0.0;
    for (int i = 0; i < pipeline->split->num_classes; i++)
        most_back_s = ms_max(most_back_s, pipeline->stages[i].sum.exchange_backward_s);
    for (int i = 0; i < pipeline->split->num_classes; i++)
        times[i].hidden_s = pipeline->stages[i].sum.exchange_forward_s + most_back_s;
}

/* Sets hidden_s of each class to the most seconds that a pair of its forward with a
 * backward of any class saves. */
static void find_hidden(const ms_pipeline *pipeline, ms_stage_times *times)
{
    const ms_split *split = pipeline->split;
    for (int i = 0; i < split->num_classes; i++) {
        for (int j = 0; j < split->num_classes; j++) {
            double saved_s = ms_pipeline_pair_saved_s(pipeline, split->stage_of_class[i],
                                                      split->stage_of_class[j]);
            times[i].hidden_s = ms_max(times[i].hidden_s, saved_s);
        }
    }
}

static double bound_of(const ms_pipeline *pipeline, ms_sharding sharding, bool tight,
                       ms_arena *scratch)
{
    const ms_split *split = pipeline->split;
    ms_arena_mark mark = ms_arena_save(scratch);
    ms_stage_times *times = MS_NEW_ARRAY(scratch, split->num_classes, ms_stage_times);
    for (int i = 0; i < split->num_classes; i++)
        times[i] = ms_step_class_durations(pipeline, sharding, i);
    bool pairs = ms_pipeline_overlaps_pairs(pipeline, sharding);
    if (pairs && tight)
        find_hidden(pipeline, times);
    else if (pairs)
        limit_hidden(pipeline, times);
    bool lists = tight || !ms_order_ends_with_first_chunk(pipeline->shape.kind);
    ms_order_times order = {
        .split = split,
        .kind = pipeline->shape.kind,
        .times = times,
        .microbatches = ms_schedule_stage_microbatches(&pipeline->shape),
        .send_s = pipeline->send_s,
        .lists = lists ? pipeline->lists : NULL,
        .spans = pipeline->workload->stack->optimizer_sync != MS_SYNC_GLOBAL};
    double bound_s = ms_order_bound_s(&order, scratch);
    int rank_unused;
    double optimizer_s =
        order.spans ? 0.0 : ms_optimizer_s(pipeline, sharding, &rank_unused);
    ms_arena_rewind(scratch, mark);
    return bound_s + optimizer_s * (1.0 - 1e-12);
}

double ms_step_bound_s(const ms_pipeline *pipeline, ms_sharding sharding,
                       ms_arena *scratch)
{
    return bound_of(pipeline, sharding, false, scratch);
}

double ms_step_tight_bound_s(const ms_pipeline *pipeline, ms_sharding sharding,
                             ms_arena *scratch)
{
    return bound_of(pipeline, sharding, true, scratch);
}

double ms_step_floor_s(const ms_workload *workload, long gpus)
{
    ms_flop_per_token flop = ms_workload_flop_per_token(workload);
    double tokens = ms_workload_useful_tokens(workload, workload->global_batch);
    double most_flop_per_s = workload->pricer.peak_flop_per_s;
    for (int k = 0; k < workload->cluster->num_kinds; k++)
        most_flop_per_s =
            ms_max(most_flop_per_s, workload->of_kinds[1U << k]->pricer.peak_flop_per_s);
    double peak_flop_per_s = (double)gpus * most_flop_per_s;
    return tokens * (flop.causal_flop - flop.vector_flop) / peak_flop_per_s *
           (1.0 - 1e-12);
}
