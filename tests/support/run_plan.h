/* Runs plans of the small models on a backend, for comparison with each other. */
#ifndef MS_TESTS_SUPPORT_RUN_PLAN_H
#define MS_TESTS_SUPPORT_RUN_PLAN_H

#include "base/rng.h"
#include "exec/runner/runner.h"
#include "sim/simulate/simulation.h"
#include "tests/support/faulty_backend.h"
#include "tests/support/small_models.h"

/* Four layers; everything on one rank, 8 sequences of 16 tokens a step. The model lives
 * in the arena. */
const ms_model *ms_pubrun_model(ms_arena *arena, ms_make_model *make);
ms_plan ms_run_base_plan(void);
/* Weights and norms that are far from 0 and 1, so that every gradient matters. */
ms_runner_options ms_run_options(const ms_model *model, const ms_plan *plan,
                                 ms_real_type type);

/* A plan that is open, for several runs and predictions of it. The plan must be legal and
 * outlive it. */
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

/* Opened, run and closed. A stack by name. */
ms_status ms_run_plan(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                      const char *stack, const ms_backend *backend,
                      const ms_runner_options *options, ms_outcome *out);

/* The same with one call that fails. */
ms_status ms_run_plan_faulty(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                             ms_faulty *faulty, const ms_runner_options *options,
                             ms_outcome *out);

/* Largest |difference| of a tensor over its largest value (or 1e-6 where all are
 * smaller), over all tensors; `worst` (may be NULL) is told. Infinity when names or
 * shapes differ, or a value is NaN. */
double ms_run_difference(const ms_safe_file *got, const ms_safe_file *want,
                         const char **worst);

/* |got - want| / |want| in Euclid's norm over the elements of all tensors. Roundings are
 * small and many and have either sign: their norm stays near what it is expected to be,
 * where the largest of a tensor is as large as its luck. Infinity as above. */
double ms_run_relative_norm(const ms_safe_file *got, const ms_safe_file *want);

#endif
