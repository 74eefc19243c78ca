/* Random plans of the small models, each run and compared with one rank. */
#ifndef MS_TESTS_RUN_CASES_H
#define MS_TESTS_RUN_CASES_H

#include "tests/support/run_plan.h"

/* How near a run must come to that of one rank. */
typedef struct ms_run_tolerance {
    ms_real_type type;
    long steps;
    double loss; /* of the last step, relative */
    double gradients,
        updated; /* of the first step, and the weights after the last: of each tensor's largest */
} ms_run_tolerance;

/* In fp32 later steps are not compared: AdamW amplifies rounding. */
extern const ms_run_tolerance ms_run_fp32, ms_run_fp64;

/* Runs `num` plans of up to 16 ranks on the loop backend; prints those that differ and returns how many. */
int ms_run_random_plans(const ms_run_tolerance *how, uint64_t seed, int num);

/* A random plan of the i-th case, of exactly `gpus` ranks if not 0. The model and the plan live in cx->arena. */
const ms_model *ms_run_case(ms_ctx *cx, ms_rng *rng, int i, long gpus, ms_plan *plan);
/* Whether a run of the plan on the backend comes near enough; prints what does not. */
bool ms_run_agrees(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                   const ms_backend *backend, const ms_run_tolerance *how);

#endif
