/* Folder tests/frameworks: which plans training frameworks accept, decided as the
 * frameworks decide it: a plan becomes their arguments, and their own checks follow. The
 * sources of the checks are named in check_*.c; nothing here reads configs/stacks, so
 * that a test can compare the program's rules with these. */
#ifndef MS_TESTS_FRAMEWORKS_FRAMEWORKS_H
#define MS_TESTS_FRAMEWORKS_FRAMEWORKS_H

#include "base/rng.h"
#include "costmodel/plan/plan.h"

/* The arguments that a plan becomes. Choices without effect are blank: a plan on one
 * tensor-parallel rank has no sequence parallelism, for example. */
typedef struct ms_launch {
    const ms_plan *plan;
    const ms_model *model;
    /* minor version: 12 for Megatron Core 0.12, 2 for torchtitan 0.2; MS_MINOR_MAIN: the
     * development branch */
    int minor;
    long world, pp, cp, tp;
    long dp;      /* data-parallel ranks, context parallelism not counted */
    long sharers; /* ranks that ZeRO shards over: dp_shard * cp */
    bool moe;     /* the model has experts */
    long ep, etp; /* etp of a model without experts: tp */
    long microbatches;
    long zero;              /* ZeRO stage; 0 with one sharer */
    bool sequence_parallel; /* false with tp 1 */
    bool async_tp;          /* false with tp 1 */
    bool uses_cp;           /* cp > 1 */
    ms_cp_method cp_method; /* read if uses_cp */
    bool head_tail;         /* read if uses_cp: two chunks of a sequence per rank */
    ms_recompute recompute;
    bool partial_recompute;   /* full recomputation of some layers of a chunk only */
    long stages;              /* pp * v */
    const long *stage_layers; /* (stages); NULL: the framework's own split */
    long default_group;       /* micro-batches per group when none is given */
} ms_launch;

#define MS_MINOR_MAIN 1000

/* One check: `says` begins with its id and subject, "M8 interleaving: ...". */
typedef struct ms_framework_rule {
    const char *says;
    bool (*broken)(const ms_launch *launch);
} ms_framework_rule;

extern const ms_framework_rule ms_megatron_rules[]; /* tables end with says NULL */
extern const ms_framework_rule ms_bridge_rules[];   /* besides those of Megatron Core */
extern const ms_framework_rule ms_torchtitan_rules[];
extern const ms_framework_rule ms_nanotron_rules[];
extern const ms_framework_rule ms_deepspeed_rules[];
extern const ms_framework_rule ms_accelerate_rules[];
extern const ms_framework_rule ms_maxtext_rules[];

/* ---- verdicts ---- */

/* Stacks that have a checker, ended by NULL: "megatron", "megatron@0.12", ... */
extern const char *const ms_framework_stacks[];
/* NULL if the framework accepts the plan, else the first broken rule. `stack` is a name
 * with or without a version: megatron, nemo, torchtitan, nanotron, deepspeed,
 * accelerate or maxtext. The plan must be legal by ms_plan_refusal. Plans without layers_per_stage have the framework's
 * own split; to judge the program's, set layers_per_stage to it (ms_workload_split). */
const char *ms_check_framework(const char *stack, const ms_plan *plan,
                               const ms_model *model);
/* Number of broken rules, of which the first `most` are listed. */
int ms_list_broken_rules(const char *stack, const ms_plan *plan, const ms_model *model,
                         const char **broken, int most);
/* Whether a broken rule is about the subject: "interleaving", "kv_heads", ... */
bool ms_rule_is_about(const char *says, const char *subject);

/* ---- used by several frameworks ---- */

/* Whether the mesh axes larger than 1 stand in the order given, outermost first. */
bool ms_launch_has_order(const ms_launch *launch,
                         const ms_plan_axis order[MS_NUM_PLAN_AXES]);
/* Whether the axes stand as pp, dp_replicate, dp_shard, cp, tp, outermost first. */
bool ms_launch_has_default_order(const ms_launch *launch);
bool ms_launch_computes_in(const ms_launch *launch, ms_dtype type);

/* ---- random plans ---- */

/* Draws a plan that is legal by ms_plan_refusal and that the framework of `stack` accepts
 * (`accepted`), or that it accepts but for one or two choices. Lists live in the arena.
 * The plan names `model` and the stack without its version. */
ms_plan ms_random_framework_plan(ms_rng *rng, ms_arena *arena, const char *stack,
                                 const ms_model *model, bool accepted);

#endif
