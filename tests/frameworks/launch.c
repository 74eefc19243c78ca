/* Plans as the arguments of a launch, and the verdict of a framework on them. */
#include "tests/frameworks/frameworks.h"

#include <stdlib.h>
#include <string.h>

const char *const ms_framework_stacks[] = {
    "megatron", "megatron@0.12", "nemo",       "torchtitan", "torchtitan@main",
    "nanotron", "deepspeed",     "accelerate", "maxtext",    NULL};

typedef struct framework {
    const char *name;
    int minor; /* version that is meant when none is named */
    const ms_framework_rule *tables[2];
} framework;

static const framework frameworks[] = {
    {"megatron", 20, {ms_megatron_rules}},
    {"nemo", 20, {ms_megatron_rules, ms_bridge_rules}},
    {"torchtitan", 2, {ms_torchtitan_rules}},
    {"nanotron", MS_MINOR_MAIN, {ms_nanotron_rules}},
    {"deepspeed", 19, {ms_deepspeed_rules}},
    {"accelerate", 15, {ms_accelerate_rules}},
    {"maxtext", MS_MINOR_MAIN, {ms_maxtext_rules}},
};

static const framework *framework_of(const char *stack)
{
    size_t length = strcspn(stack, "@");
    for (size_t i = 0; i < sizeof frameworks / sizeof *frameworks; i++)
        if (strlen(frameworks[i].name) == length &&
            strncmp(stack, frameworks[i].name, length) == 0)
            return &frameworks[i];
    return NULL;
}

/* 12 of "megatron@0.12". */
static int minor_of(const framework *f, const char *stack)
{
    const char *version = strchr(stack, '@');
    if (version == NULL)
        return f->minor;
    const char *dot = strchr(version, '.');
    return dot == NULL ? MS_MINOR_MAIN : (int)strtol(dot + 1, NULL, 10);
}

static ms_launch launch_of(const ms_plan *plan, const ms_model *model, int minor)
{
    const long *size = plan->size;
    long pp = size[MS_PP], cp = size[MS_CP], tp = size[MS_TP];
    long sharers = size[MS_DP_SHARD] * cp, microbatches = ms_plan_microbatches(plan);
    long rounds = microbatches / pp;
    bool moe = model->moe.num_experts > 0, full = plan->recompute == MS_RECOMPUTE_FULL;
    return (ms_launch){
        .plan = plan,
        .model = model,
        .minor = minor,
        .world = plan->gpus,
        .pp = pp,
        .cp = cp,
        .tp = tp,
        .dp = size[MS_DP_REPLICATE] * size[MS_DP_SHARD],
        .sharers = sharers,
        .moe = moe,
        .ep = plan->ep,
        .etp = moe ? plan->etp : tp,
        .microbatches = microbatches,
        .zero = sharers > 1 ? plan->zero : 0,
        .sequence_parallel = tp > 1 && plan->sequence_parallel,
        .async_tp = tp > 1 && plan->async_tp,
        .uses_cp = cp > 1,
        .cp_method = plan->cp_method,
        .head_tail =
            plan->cp_method != MS_CP_ULYSSES && plan->cp_balance == MS_CP_HEAD_TAIL,
        .recompute = plan->recompute,
        .partial_recompute = full && plan->recompute_layers > 0,
        .stages = pp * plan->virtual_stages,
        .stage_layers = plan->num_stage_layers > 0 ? plan->layers_per_stage : NULL,
        .default_group = microbatches / (rounds > 1 ? rounds : 1),
    };
}

int ms_list_broken_rules(const char *stack, const ms_plan *plan, const ms_model *model,
                         const char **broken, int most)
{
    const framework *f = framework_of(stack);
    ms_launch launch = launch_of(plan, model, minor_of(f, stack));
    int num = 0;
    for (int table = 0; table < 2; table++) {
        const ms_framework_rule *rule = f->tables[table];
        for (; rule != NULL && rule->says != NULL; rule++) {
            if (!rule->broken(&launch))
                continue;
            if (num < most)
                broken[num] = rule->says;
            num++;
        }
    }
    return num;
}

const char *ms_check_framework(const char *stack, const ms_plan *plan,
                               const ms_model *model)
{
    const char *first = NULL;
    ms_list_broken_rules(stack, plan, model, &first, 1);
    return first;
}

bool ms_rule_is_about(const char *says, const char *subject)
{
    const char *own = strchr(says, ' ') + 1;
    size_t length = strlen(subject);
    return strncmp(own, subject, length) == 0 && own[length] == ':';
}

/* ---- used by several frameworks ---- */

bool ms_launch_has_order(const ms_launch *launch,
                         const ms_plan_axis order[MS_NUM_PLAN_AXES])
{
    int next = 0; /* place in `order` after the last axis met */
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++) {
        int axis = launch->plan->order[i];
        if (launch->plan->size[axis] == 1)
            continue;
        while (next < MS_NUM_PLAN_AXES && (int)order[next] != axis)
            next++;
        if (next == MS_NUM_PLAN_AXES)
            return false;
    }
    return true;
}

bool ms_launch_has_default_order(const ms_launch *launch)
{
    static const ms_plan_axis order[] = {MS_PP, MS_DP_REPLICATE, MS_DP_SHARD, MS_CP,
                                         MS_TP};
    return ms_launch_has_order(launch, order);
}

bool ms_launch_computes_in(const ms_launch *launch, ms_dtype type)
{
    return launch->plan->compute == type;
}
