/* The flags that describe a plan, and the plan that they give together with the
 * defaults. A flag overrides the plan file; what neither says takes the documented
 * default, and each default is printed under -v. Rules between a plan and its model
 * are those of ms_plan_check. */
#ifndef MS_CLI_OPTIONS_PLAN_OPTIONS_H
#define MS_CLI_OPTIONS_PLAN_OPTIONS_H

#include "cli/options/options.h"
#include "costmodel/plan/plan_field.h"

/* What a flag was given; the kind of the choice says which member holds. All but texts
 * begin with `given`. */
typedef union ms_plan_option {
    ms_opt_integer whole;
    ms_opt_quantity number;
    ms_opt_switch on;
    ms_opt_choice word;
    const char *text; /* lists too: items separated by commas */
} ms_plan_option;

typedef struct ms_plan_options {
    const char *plan_file; /* "-": standard input */
    ms_plan_option of[MS_NUM_CHOICES];
} ms_plan_options;

bool ms_plan_is_given(const ms_plan_options *opts, ms_choice choice);
/* Of whole numbers, switches and words: what was given, or `otherwise`. */
long ms_plan_given_or(const ms_plan_options *opts, ms_choice choice, long otherwise);
/* As if the flag of a whole number or a word had been given. */
void ms_plan_give(ms_plan_options *opts, ms_choice choice, long value);

/* The flags of a plan; they fill a ms_plan_options. */
const ms_option *ms_plan_option_table(void);

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
