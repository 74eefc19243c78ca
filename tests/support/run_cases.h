/* Random plans of the small models (tests/support/small_models.h), each trained and
 * compared with training on one rank. */
#ifndef MS_TESTS_SUPPORT_RUN_CASES_H
#define MS_TESTS_SUPPORT_RUN_CASES_H

#include "tests/support/run_plan.h"

/* Greatest differences of a run of five steps from that of one rank. */
typedef struct ms_run_tolerance {
    ms_real_type type;
    /* greatest number of model layers: rounding errors grow with depth */
    long most_layers;
    /* relative loss differences: first step, later steps */
    double first_loss, later_loss;
    /* relative to each tensor's largest value: gradients of the first step, weights after
     * the last; bf16 gradients are measured by ms_run_relative_norm */
    double gradients, updated;
} ms_run_tolerance;

/* Weights after the last step are not compared in fp32, where AdamW amplifies rounding
 * errors. */
extern const ms_run_tolerance ms_run_fp32, ms_run_fp64;

typedef struct ms_run_case {
    /* four to eight layers, perhaps of two kinds, perhaps with a tied head */
    const ms_model *model;
    ms_plan plan;
    const char *stack;
    long shares[2]; /* ms_runner_options.orthogonal_shares of a case on one rank */
} ms_run_case;

/* Draws case `number` of a seed: a model of at most how->most_layers layers, exactly
 * `gpus` ranks (0: at most 16), at most 16 sequences a step. The same arguments give the
 * same case. Lives in cx->arena. */
ms_run_case ms_run_case_draw(ms_ctx *cx, const ms_run_tolerance *how, uint64_t seed,
                             long number, long gpus);
/* Gives a case adapters: of attention, of all layers, or of some. */
void ms_run_case_adapt(ms_run_case *c, long number);
/* Gives a case adapters of all layers on a base in NF4. */
void ms_run_case_quantize_base(ms_run_case *c, long number);
/* Gathers a case's parameters in 8 or 4 bits; false if it does not shard and reshard them. */
bool ms_run_case_quantize_gathers(ms_run_case *c, long number);
/* Whether the first step of a case that quantizes gathers, from weights that its codes
 * represent exactly, is within `how` of one rank's; prints differences beyond. */
bool ms_run_agrees_on_codes(ms_ctx *cx, const ms_run_case *c,
                            const ms_run_tolerance *how);
/* Makes a case recompute a set of its model's modules, set by `number`, and in every
 * second case overlap shared experts, if there are any and their tokens are exchanged. */
void ms_run_case_choose_modules(ms_run_case *c, long number);
/* Whether a run of the case on the backend is within `how` of a run on one rank of the
 * loop backend (for bf16: an fp32 run with rounded initial weights; beside a base in NF4:
 * a run on its restored weights in the run's type); prints differences beyond. */
bool ms_run_agrees(ms_ctx *cx, const ms_run_case *c, const ms_backend *backend,
                   const ms_run_tolerance *how);

/* Runs cases first, ..., first + num - 1 on the loop backend; prints those that differ
 * and returns their number. */
int ms_run_random_plans(const ms_run_tolerance *how, uint64_t seed, long first, long num);

#endif
