#include "sim/search/found_layers.h"

#include "sim/step/framework_rules.h"
#include "sim/step/planned.h"
#include "sim/step/split.h"

#include <math.h>
#include <string.h>

bool ms_space_divides_layers(const ms_workload *workload, const ms_space *space)
{
    return space->high[MS_CHOOSE_PP] != 1 && ms_layers_follow_devices(workload);
}

/* Share of a step by which evaluations of one plan differ at most. */
#define ROUNDING_FRAC 1e-9

/* Whether a plan alone is divided by the same memory rule. */
static bool is_default(const ms_memory_rule *rule)
{
    return (rule->min_probability == MS_DEFAULT_MIN_FIT ||
            rule->min_probability == 0.0) &&
           rule->headroom_frac == 0.0 && rule->headroom_bytes == 0.0;
}

static const long *keep_layers(ms_arena *arena, const long *layers, int num)
{
    size_t bytes = (size_t)num * sizeof *layers;
    return memcpy(MS_NEW_ARRAY(arena, num, long), layers, bytes);
}

static void state_layers(ms_arena *arena, const ms_split *split, ms_plan *plan)
{
    plan->num_stage_layers = split->num_stages;
    plan->layers_per_stage = keep_layers(arena, split->layers, split->num_stages);
}

/* A plan with its layers divided; `planned` lives in cx->arena. */
static ms_found evaluate(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                         ms_planned *planned)
{
    int worst_rank;
    ms_planned_open(cx, workload, plan, planned);
    const ms_pipeline *pipeline = &planned->pipeline;
    return (ms_found){
        *plan, ms_step_exact_s(pipeline, planned->sharding, planned->schedule, cx->arena),
        ms_step_peak_bytes(pipeline, planned->sharding, &worst_rank)};
}

static void divide(ms_ctx *cx, ms_workload *workload, ms_arena *arena, ms_found *found)
{
    ms_planned p;
    ms_found divided = evaluate(cx, workload, &found->plan, &p);
    const unsigned char *kinds = p.pipeline.split->kinds;
    if (!ms_divides_layers(workload, &p.pipeline.shape, kinds))
        return;
    if (divided.step_s > found->step_s * (1.0 + ROUNDING_FRAC)) {
        state_layers(arena,
                     ms_workload_split(workload, p.bills, &p.pipeline.shape, kinds),
                     &found->plan);
        return;
    }
    *found = divided;
    if (!is_default(&workload->memory.rule))
        state_layers(arena, p.pipeline.split, &found->plan);
}

void ms_found_divide(ms_workload *workload, ms_arena *arena, ms_found *found, int num)
{
    for (int i = 0; i < num; i++) {
        ms_ctx cx = {.arena = ms_arena_open()};
        if (found[i].plan.num_stage_layers == 0)
            divide(&cx, workload, arena, &found[i]);
        ms_arena_close(cx.arena);
    }
}

bool ms_found_make_fit(ms_workload *workload, ms_arena *arena, const ms_plan *plan,
                       ms_found *out)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_planned p;
    *out = evaluate(&cx, workload, plan, &p);
    double needed_bytes =
        ms_needed_bytes(&workload->memory, out->peak_bytes,
                        ms_rank_outside_bytes(workload, &p.pipeline.shards));
    bool fits = ms_fits_limit(&workload->memory, needed_bytes) &&
                ms_workload_broken_rule(workload, plan) == NULL;
    if (fits && !is_default(&workload->memory.rule))
        state_layers(arena, p.pipeline.split, &out->plan);
    ms_arena_close(cx.arena);
    return fits;
}
