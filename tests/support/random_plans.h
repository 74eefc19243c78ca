/* Legal plans drawn at random, for tests of properties that hold for every plan. */
#ifndef MS_TESTS_SUPPORT_RANDOM_PLANS_H
#define MS_TESTS_SUPPORT_RANDOM_PLANS_H

#include "base/rng.h"
#include "sim/step/workload.h"

/* Draws a plan of at most `most_gpus` GPUs and 8 micro-batches, with any schedule but
 * those from files; model, cluster and stack names are those of `base`. */
ms_plan ms_random_plan(ms_rng *rng, const ms_workload *workload, const ms_plan *base,
                       long most_gpus);

/* A model on a cluster under a stack, for which plans are drawn. */
typedef struct ms_plan_subject {
    const char *model, *cluster, *stack;
    const char *kind; /* dense, experts or hybrid */
    long gpus;        /* most GPUs of a plan */
} ms_plan_subject;

/* Dense, expert and hybrid models for which engines are compared. */
#define MS_NUM_PLAN_SUBJECTS 8
extern const ms_plan_subject ms_plan_subjects[MS_NUM_PLAN_SUBJECTS];

/* Opens the workload of a subject, and the plan that its random plans start from. */
ms_status ms_plan_subject_open(ms_ctx *cx, const ms_plan_subject *subject, ms_plan *base,
                               ms_workload **workload);

#endif
