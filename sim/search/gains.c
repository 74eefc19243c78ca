#include "sim/search/gains.h"

#include "costmodel/plan/plan_field.h"
#include "sim/step/framework_rules.h"
#include "sim/step/prediction_text.h"

#include <string.h>

#define LEAST_FREED_GIB 0.5
#define MOST_LOST_FRAC  0.05

const ms_allowance ms_allowances[MS_NUM_ALLOWANCES] = {
    {"fp8", MS_CHOOSE_COMPUTE, MS_FP8},
    {"bf16-states", MS_CHOOSE_OPTIMIZER_DTYPE, MS_STORE_BF16},
    {"adam8bit", MS_CHOOSE_OPTIMIZER, MS_OPTIMIZER_ADAM_8BIT},
    {"offload", MS_CHOOSE_OFFLOAD_OPTIMIZER, MS_HOST_STATES},
    {"offload", MS_CHOOSE_OFFLOAD_OPTIMIZER, MS_HOST_UPDATE},
    {"offload", MS_CHOOSE_OFFLOAD_ACTIVATIONS, 1.0},
    {"quantized", MS_CHOOSE_GATHER_BITS, MS_QUANTISED_8},
};

static void allow(ms_plan *plan, const ms_allowance *allowance)
{
    if (allowance->choice == MS_CHOOSE_OFFLOAD_ACTIVATIONS)
        plan->offload_activations_frac = allowance->value;
    else
        ms_plan_set(plan, allowance->choice, (long)allowance->value);
}

char *ms_allowance_flag(ms_arena *arena, const ms_allowance *allowance)
{
    ms_plan plan = ms_plan_default(1);
    allow(&plan, allowance);
    return ms_arena_printf(arena, "%s=%s", ms_plan_fields[allowance->choice].flag,
                           ms_plan_value_text(arena, &plan, allowance->choice));
}

/* A plan with a choice on top; false if the device or the framework lacks it, or if the
 * plan has it. */
static bool predict(ms_ctx *cx, const ms_workload *like, const ms_stack *stack,
                    const ms_plan *plan, const ms_allowance *allowance,
                    ms_prediction *out)
{
    ms_plan with = *plan;
    ms_workload_inputs inputs = {like->model, like->cluster, like->profile, stack,
                                 like->group_profiles};
    ms_workload *workload;
    allow(&with, allowance);
    if (ms_plan_same(&with, plan, allowance->choice) ||
        ms_workload_make_like(cx, like, &inputs, &with, &workload) != MS_OK)
        return false;
    ms_workload_set_memory_rule(workload, &like->memory.rule);
    bool accepted = ms_workload_broken_rule(workload, &with) == NULL &&
                    ms_predict(cx, workload, &with, out) == MS_OK;
    ms_workload_close(workload);
    return accepted;
}

bool ms_gain_is_time(const ms_gain *gain)
{
    return gain->gain_frac >= MS_LEAST_GAIN_FRAC;
}

/* Whether a gain is one, and more than `other` of the same name, if there is one. */
static bool is_more(const ms_gain *gain, const ms_gain *other)
{
    bool faster = ms_gain_is_time(gain);
    if (!faster && (ms_gib(gain->freed_bytes) < LEAST_FREED_GIB ||
                    gain->gain_frac < -MOST_LOST_FRAC))
        return false;
    if (other == NULL)
        return true;
    if (faster || ms_gain_is_time(other))
        return gain->gain_frac > other->gain_frac;
    return gain->freed_bytes > other->freed_bytes;
}

int ms_find_gains(const ms_workload *workload, const ms_plan *plan, double step_s,
                  double peak_bytes, ms_gain out[MS_NUM_ALLOWANCES])
{
    ms_ctx quiet = {.arena = ms_arena_open(), .verbosity = -1};
    const ms_stack *stack; /* workload->stack has the choices of its plans */
    int num = 0;
    bool has_stack = ms_stack_load(&quiet, plan->stack, &stack) == MS_OK;
    for (int i = 0; i < MS_NUM_ALLOWANCES && has_stack; i++) {
        ms_arena_mark mark = ms_arena_save(quiet.arena);
        ms_ctx one = {.arena = quiet.arena, .verbosity = -1};
        ms_prediction p;
        if (predict(&one, workload, stack, plan, &ms_allowances[i], &p)) {
            ms_gain gain = {&ms_allowances[i],         p.step_s,
                            1.0 - p.step_s / step_s,   p.peak_bytes,
                            peak_bytes - p.peak_bytes, p.fits};
            const char *name = gain.allowance->name;
            bool again = num > 0 && strcmp(out[num - 1].allowance->name, name) == 0;
            if (is_more(&gain, again ? &out[num - 1] : NULL))
                out[again ? num - 1 : num++] = gain;
        }
        ms_arena_rewind(quiet.arena, mark);
    }
    ms_arena_close(quiet.arena);
    return num;
}
