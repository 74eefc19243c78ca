/* Random plans of the small models, each run and compared with one rank. */
#ifndef MS_TESTS_SUPPORT_RUN_CASES_H
#define MS_TESTS_SUPPORT_RUN_CASES_H

#include "tests/support/run_plan.h"

/* How near a run of five steps must come to that of one rank. */
typedef struct ms_run_tolerance {
    ms_real_type type;
    long most_layers;              /* of the models: rounding grows with depth */
    double first_loss, later_loss; /* relative */
    /* of the first step, and the weights after the last: of each tensor's largest;
     * gradients in bf16: by ms_run_relative_norm */
    double gradients, updated;
} ms_run_tolerance;

/* In fp32 weights after later steps are not compared: AdamW amplifies rounding. */
extern const ms_run_tolerance ms_run_fp32, ms_run_fp64;

typedef struct ms_run_case {
    /* of four to eight layers, perhaps of two kinds, perhaps with a tied head */
    const ms_model *model;
    ms_plan plan;
    const char *stack;
} ms_run_case;

/* The case `number` of a seed with models as deep as `how` has them, of exactly `gpus`
 * ranks if not 0, else of at most 16, with at most 16 sequences a step. It depends on
 * nothing else, and lives in cx->arena. */
ms_run_case ms_run_case_draw(ms_ctx *cx, const ms_run_tolerance *how, uint64_t seed,
                             long number, long gpus);
/* Whether a run of the case on the backend comes near enough to that of one rank of the
 * loop backend (of bf16 in fp32, with the same rounded weights); prints what does not. */
bool ms_run_agrees(ms_ctx *cx, const ms_run_case *c, const ms_backend *backend,
                   const ms_run_tolerance *how);

/* Runs the cases from `first` on, `num` of them, on the loop backend; prints those that
 * differ and returns how many. */
int ms_run_random_plans(const ms_run_tolerance *how, uint64_t seed, long first, long num);

#endif
