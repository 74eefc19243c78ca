/* Trains small models by a plan on a backend, and compares the results of runs. */
#ifndef MS_TESTS_SUPPORT_RUN_PLAN_H
#define MS_TESTS_SUPPORT_RUN_PLAN_H

#include "base/rng.h"
#include "exec/runner/runner.h"
#include "sim/simulate/simulation.h"
#include "tests/support/faulty_backend.h"
#include "tests/support/small_models.h"

/* Makes a model with four layers, without dropout, which lives in the arena; the base plan is one rank
 * with 8 sequences of 16 tokens a step. */
const ms_model *ms_pubrun_model(ms_arena *arena, ms_make_model *make);
/* A model without dropout whose widths are multiples of 16 (hidden 64, MLP 96), as products
 * of 8-bit operands need them on GPUs. */
const ms_model *ms_run_wide_model(ms_arena *arena, ms_make_model *make, int num_layers);
ms_plan ms_run_base_plan(void);
/* Run options whose initial weights and norms are far from 0 and 1, so that every
 * gradient matters. */
ms_runner_options ms_run_options(const ms_model *model, const ms_plan *plan,
                                 ms_real_type type);

/* An open plan, for several runs and predictions. The plan must be legal and outlive
 * it. */
typedef struct ms_run_opened {
    ms_workload *workload;
    const ms_planned *planned;
    const ms_world *world;
} ms_run_opened;
ms_status ms_run_open(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                      const char *stack, ms_run_opened *out);
ms_status ms_run_opened_plan(ms_ctx *cx, const ms_run_opened *opened,
                             const ms_backend *backend, const ms_runner_options *options,
                             ms_outcome *out);
void ms_run_close(ms_run_opened *opened);

/* Opens a plan with the stack named `stack`, runs it on a backend and closes it. */
ms_status ms_run_plan(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                      const char *stack, const ms_backend *backend,
                      const ms_runner_options *options, ms_outcome *out);

/* Runs a plan on a backend of which one call fails (tests/support/faulty_backend.h). */
ms_status ms_run_plan_faulty(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                             ms_faulty *faulty, const ms_runner_options *options,
                             ms_outcome *out);

/* Largest |difference| of a tensor relative to its largest value (or to 1e-6 if that is
 * smaller), over all tensors; `worst` (may be NULL) gets that tensor's name. Infinity if
 * names or shapes differ, or a value is NaN. */
double ms_run_difference(const ms_safe_file *got, const ms_safe_file *want,
                         const char **worst);

/* |got - want| / |want| in the Euclidean norm over all tensors' elements. Random rounding
 * errors keep this norm near its expected value, unlike the largest error. Infinity if
 * names or shapes differ, or a value is NaN. */
double ms_run_relative_norm(const ms_safe_file *got, const ms_safe_file *want);

#endif
