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
     * the last; bf16 gradients are measured by ms_run_relative_norm, and in multiples of
     * what rounding the initial weights alone changes */
    double gradients, updated;
} ms_run_tolerance;

/* Weights after the last step are not compared in fp32, where AdamW amplifies rounding
 * errors. */
/* fp8: losses as run --check allows; gradients have no bound (docs/formulas 12.10). */
extern const ms_run_tolerance ms_run_fp32, ms_run_fp64, ms_run_bf16, ms_run_fp8;

typedef struct ms_run_case {
    /* four to eight layers, perhaps of two kinds, perhaps with a tied head */
    const ms_model *model;
    ms_plan plan;
    const char *stack;
    const ms_plan *grouped_as; /* ms_runner_options.grouped_as of a case on one rank */
    long shares[2]; /* ms_runner_options.orthogonal_shares of a case on one rank */
    /* experts get tokens in turn: in bf16 and fp8, whose rounding would change a router's choice
     * between nearly equal logits. The turn depends on the ranks, so that such a case is
     * compared with its own plan in fp32 */
    bool balanced;
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
/* Gives a case one of the recipes in 8 bits. */
void ms_run_case_choose_recipe(ms_run_case *c, long number);
/* Gathers a case's parameters in 8 or 4 bits; false if it does not shard and reshard them. */
bool ms_run_case_quantize_gathers(ms_run_case *c, long number);
/* Whether the first step of a case that quantizes gathers, from weights that its codes
 * represent exactly, is within `how` of one rank's; prints differences beyond. */
bool ms_run_agrees_on_codes(ms_ctx *cx, const ms_run_case *c,
                            const ms_run_tolerance *how);
/* Pads experts to room for a whole number of rows of each rank's tokens, as many as more or
 * fewer copies than the mean; false if there are none. */
bool ms_run_case_fill_experts(ms_run_case *c, long number);
/* Lets a case's tokens reach experts by an all-gather; false if ep is 1. */
bool ms_run_case_gather_tokens(ms_run_case *c, long number);
/* Reduces a case's gradients in 8 or 4 bits; false if it does not reduce them to shards in
 * each micro-batch, or over replicas too. */
bool ms_run_case_quantize_reductions(ms_run_case *c, long number);
/* Whether in the first step of a case that reduces gradients in 8 bits the loss is that of
 * one rank, gradients are off by what rounding of their blocks explains, and with 4 bits by
 * as much more as codes are coarser; prints what is not. */
bool ms_run_agrees_within_codes(ms_ctx *cx, const ms_run_case *c);
/* Makes a case recompute a set of its model's modules, set by `number`, and in every
 * second case overlap shared experts, if there are any and their tokens are exchanged. */
void ms_run_case_choose_modules(ms_run_case *c, long number);
/* Limits what experts keep of a case's tokens, to less or more than the mean, in every
 * second case padded; false if it has none. */
bool ms_run_case_limit_experts(ms_run_case *c, long number);
/* Makes a case keep tensors in host memory, chosen by `number`: a share of activations,
 * layer inputs, optimizer states or these with their update; at least one of them. */
void ms_run_case_offload(ms_run_case *c, long number);
/* The types that a plan may state for a run. */
#define MS_NUM_RUN_TYPES 5
extern const ms_choice ms_run_types[MS_NUM_RUN_TYPES];
/* Puts the default in place of moments in a type that no run of the optimizer has. */
void ms_run_case_settle_moments(ms_run_case *c);
/* Gives a case random ones that runs in `type` have, each stated or not. */
void ms_run_case_choose_types(ms_run_case *c, ms_real_type type, ms_rng *rng);
/* Whether a run of the case on the backend is within `how` of a run on one rank of the
 * loop backend (for bf16, and for plans with narrow types: an fp32 run, both with rounded
 * initial weights; beside a base in NF4: a run on its restored weights in the run's type);
 * prints differences beyond. */
bool ms_run_agrees(ms_ctx *cx, const ms_run_case *c, const ms_backend *backend,
                   const ms_run_tolerance *how);

/* Runs cases first, ..., first + num - 1 on the loop backend; prints those that differ
 * and returns their number. */
int ms_run_random_plans(const ms_run_tolerance *how, uint64_t seed, long first, long num);

#endif
