/* The flags that describe a plan, and the plan that they give together with the
 * defaults. A flag overrides the plan file; what neither says takes the documented
 * default, and each default is printed under -v. Rules between a plan and its model
 * are those of ms_plan_check. */
#ifndef MS_CLI_PLAN_OPTIONS_H
#define MS_CLI_PLAN_OPTIONS_H

#include "cli/options.h"
#include "costmodel/plan.h"

typedef struct ms_plan_options {
    const char *plan_file; /* "-": standard input */
    const char *model, *cluster, *stack, *profile;
    const char *order;            /* axes outer to inner, separated by commas */
    const char *layers_per_stage; /* numbers separated by commas */
    ms_opt_integer gpus;
    ms_opt_integer size[MS_NUM_PLAN_AXES];
    ms_opt_integer ep, etp;
    ms_opt_integer sequence_length, global_batch, microbatch;
    ms_opt_choice schedule;
    ms_opt_integer virtual_stages, microbatch_group;
    ms_opt_quantity memory_limit;
    ms_opt_integer zero;
    ms_opt_switch reshard_after_forward, sequence_parallel, async_tp, loss_parallel;
    ms_opt_choice cp_method, cp_balance;
    ms_opt_choice recompute;
    ms_opt_integer recompute_layers;
    ms_opt_quantity recompute_budget;
    ms_opt_choice precision;
} ms_plan_options;

/* Fills a ms_plan_options. */
extern const ms_option ms_plan_option_table[];

/* Takes a word of the command line (NULL: none) as the plan file; MS_EINPUT when
 * --plan is there too. */
ms_status ms_plan_options_word(ms_ctx *cx, ms_plan_options *opts, const char *word);

/* MS_EINPUT when `output` (NULL: standard output) is one of the files that the plan is
 * read from. */
ms_status ms_plan_options_check_output(ms_ctx *cx, const ms_plan_options *opts,
                                       const ms_plan *plan, const char *output);

/* The complete plan. Axes that are not given are 1. With a number of GPUs and no
 * data-parallel flag, dp_shard takes the rest; otherwise the product of the axes must
 * equal the number of GPUs; without one, the GPUs are the product. Errors: MS_EINPUT
 * with the numbers and a fix. */
ms_status ms_plan_from_options(ms_ctx *cx, const ms_plan_options *opts, ms_plan *out);

/* The same where only the mesh is asked for: a model is not needed, and out->model may be
 * NULL. */
ms_status ms_plan_mesh_from_options(ms_ctx *cx, const ms_plan_options *opts,
                                    ms_plan *out);

/* What a search starts from: GPUs (needed), model, cluster, stack, sequence length,
 * global batch and precision with their defaults; everything else as given, or as
 * ms_plan_default has it. The product of the axes is not checked. */
ms_status ms_plan_base_from_options(ms_ctx *cx, const ms_plan_options *opts,
                                    ms_plan *out);

#endif
