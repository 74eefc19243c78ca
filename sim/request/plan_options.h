/* The flags of a plan, and the plan made of them. A flag overrides the plan file; choices
 * in neither take the documented default, and each default is printed under -v. Rules
 * between a plan and its model are those of ms_plan_check. */
#ifndef MS_SIM_REQUEST_PLAN_OPTIONS_H
#define MS_SIM_REQUEST_PLAN_OPTIONS_H

#include "base/options.h"
#include "costmodel/plan/plan_field.h"

/* Value of a flag; the kind of the choice determines the member. All members but texts
 * begin with `given`. */
typedef union ms_plan_option {
    ms_opt_integer whole;
    ms_opt_quantity number;
    ms_opt_switch on;
    ms_opt_choice word;
    const char *text; /* text, or list of items separated by commas */
} ms_plan_option;

typedef struct ms_plan_options {
    const char *plan_file; /* path of the plan, or of a framework's file; "-": stdin */
    const char *plan_text; /* a plan as JSON, in place of the file; NULL: none */
    bool ignore_rules;     /* take plans that break rules of their stack */
    ms_plan_option of[MS_NUM_CHOICES];
} ms_plan_options;

bool ms_plan_is_given(const ms_plan_options *opts, ms_choice choice);
/* Value of a given flag (number, switch or index of a word); `otherwise` if not given. */
long ms_plan_given_or(const ms_plan_options *opts, ms_choice choice, long otherwise);
/* Sets a whole number or a word as its flag would. */
void ms_plan_give(ms_plan_options *opts, ms_choice choice, long value);

const ms_option *ms_plan_option_table(void);
/* --ignore-rules alone, which fills a bool. */
extern const ms_option ms_ignore_rules_table[];

/* Sets the plan file from an argument of the command line (NULL: none); MS_EINPUT when
 * --plan is given too. */
ms_status ms_plan_options_word(ms_ctx *cx, ms_plan_options *opts, const char *word);

/* Makes the complete plan. Axes that are not given are 1. With --gpus and no
 * data-parallel flag, dp_shard is the GPUs divided by the other axes; otherwise the
 * product of the axes must equal the GPUs. Without --gpus the number of GPUs is that
 * product. Errors: MS_EINPUT with the numbers and a fix. */
ms_status ms_plan_from_options(ms_ctx *cx, const ms_plan_options *opts, ms_plan *out);

/* Makes a complete plan whose model may be missing (out->model NULL), for its mesh. */
ms_status ms_plan_mesh_from_options(ms_ctx *cx, const ms_plan_options *opts,
                                    ms_plan *out);

/* Makes the plan that a search starts from: GPUs (required), model, cluster, stack,
 * sequence length, global batch and precision with defaults as in ms_plan_from_options;
 * the rest as given, or as in ms_plan_default. The product of the axes is not checked. */
ms_status ms_plan_base_from_options(ms_ctx *cx, const ms_plan_options *opts,
                                    ms_plan *out);

#endif
