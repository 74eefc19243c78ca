/* Advice on a plan: every single change that the stack can run, with its effect on step
 * time and memory; the best pair of changes; and the measurement that could most easily
 * turn the choice. */
#ifndef MS_SIM_EXPLAIN_ADVISE_H
#define MS_SIM_EXPLAIN_ADVISE_H

#include "sim/explain/explain.h"

/* The prediction of a changed plan. */
typedef struct ms_advised {
    const char *change; /* "dp_shard 16 -> 32, tp 8 -> 4"; "": the plan itself */
    ms_plan plan;       /* layers_per_stage is set */
    double step_s, peak_bytes;
    double fits_probability; /* ms_prediction has the same; NaN: unknown */
    bool fits;               /* fits by the memory rule of the advice */
    bool peak_fits;          /* the predicted peak fits, with whatever probability */
} ms_advised;

/* A measurement: the peak memory of a plan that may turn out to fit, or a coefficient whose
 * true value may make a slower plan the faster one. */
typedef struct ms_advice_measure {
    const ms_explain_figure *figure; /* NULL: the peak memory of `rival` */
    const ms_advised *best, *rival;  /* a plan to choose, and the one to replace it */
    /* value of the coefficient, nearest to its own, with which `rival` is as fast; NaN
     * without one */
    double flip_value;
    double low, high; /* 90 % interval of the coefficient; NaN: not stated */
} ms_advice_measure;

typedef struct ms_advice {
    ms_memory_limit limit; /* the rule by which plans fit */
    ms_advised given;
    int num, num_fitting;
    /* (num): the first num_fitting fit, the others do not; each part fastest first */
    const ms_advised *changes;
    /* the fastest plan with two changes that fits; if faster than all that fit with one */
    bool has_pair;
    ms_advised pair;
    bool has_measure;
    ms_advice_measure measure;
} ms_advice;

/* Predicts all single changes of a legal plan, and all pairs of them, by replay. The
 * workload's own memory rule is unchanged afterwards. The result lives in cx->arena.
 * Errors: those of ms_predict and ms_explain. */
ms_status ms_advise(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                    const ms_memory_rule *rule, ms_advice *out);

/* Writes the member "advice" of an open object meshsim.prediction/1 or explain/1. */
void ms_advice_write_field(ms_jout *out, const ms_advice *advice);

#endif
