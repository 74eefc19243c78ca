/* The flags of `meshsim run` besides those of a plan. */
#ifndef MS_CLI_OPTIONS_RUN_OPTIONS_H
#define MS_CLI_OPTIONS_RUN_OPTIONS_H

#include "base/options.h"
#include "exec/runner/runner.h"
#include "sim/request/plan_options.h"

typedef struct ms_run_flags {
    ms_opt_choice backend;                     /* ms_backend_choice */
    ms_opt_choice transport, dtype, attention; /* attention: ms_run_attention */
    ms_opt_integer steps, warm_up, seed;
    const char *tokens, *load_weights;
    const char *replay; /* "stages", "rank=R"; NULL: all ranks run */
    const char *save_weights, *save_final_weights, *save_grads, *save_batch, *trace;
    const char *gemm_algorithms; /* file; NULL: the library's own choices */
    ms_opt_quantity learning_rate, beta1, beta2, epsilon, weight_decay, clip, deviation;
    ms_opt_quantity timeout_s;
    bool balanced_routing, check, force, no_hold;
} ms_run_flags;

extern const ms_option ms_run_option_table[];

/* Sets defaults of flags that are not given, and notes them on stderr under -v.
 * MS_EINPUT: flags that contradict each other. */
ms_status ms_run_flags_fill_defaults(ms_ctx *cx, ms_run_flags *flags);

/* Makes the plan of a run: by default on this machine with the stack of the runner. The
 * plan computes in --dtype, and its states are in --dtype. */
ms_status ms_run_flags_plan(ms_ctx *cx, const ms_run_flags *flags,
                            ms_plan_options *options, ms_plan *out);

/* Makes the options of the runner from flags with defaults filled in, and reads tokens
 * and weights from their files. */
ms_status ms_run_flags_options(ms_ctx *cx, const ms_run_flags *flags, const ms_plan *plan,
                               const ms_model *model, ms_runner_options *out);

/* The plan of the same training on one rank: nothing sharded, recomputed or split, and
 * frozen weights in the compute type. */
ms_plan ms_run_reference_plan(const ms_plan *plan);

#endif
