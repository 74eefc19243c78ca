/* Plans opened for a request: checked against model, cluster and rules, fitted, judged. */
#ifndef MS_SIM_REQUEST_OPENED_PLAN_H
#define MS_SIM_REQUEST_OPENED_PLAN_H

#include "sim/request/plan_options.h"
#include "sim/search/shortfall.h"
#include "sim/step/framework_rules.h"

/* Opens model, cluster, stack and profile of a plan; MS_EINPUT when the plan is not legal
 * for them. On success the caller closes the workload. */
ms_status ms_plan_open_workload(ms_ctx *cx, const ms_plan *plan, ms_workload **out);
/* MS_EINPUT with the first rule if the stack's framework refuses the plan; with
 * `ignore_rules` lists all broken rules instead, in the arena. */
ms_status ms_plan_obey_rules(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                             bool ignore_rules, ms_broken_rules *broken);
/* If recomputation is automatic and its budget is not given: sets the budget to the
 * largest with which the plan fits into memory (ms_recompute_fit), and notes it. */
ms_status ms_plan_fit_recompute(ms_ctx *cx, ms_workload *workload, ms_plan *plan);
/* ms_plan_open_workload, a note on the first broken rule, then ms_plan_fit_recompute. */
ms_status ms_plan_open_fitted(ms_ctx *cx, ms_plan *plan, ms_workload **out);

/* MS_OK when the predicted plan fits into memory; otherwise records the error, fills
 * `out` with what is missing and what would fit, and returns MS_ENOFIT. */
ms_status ms_plan_check_fits(ms_ctx *cx, ms_workload *workload,
                             const ms_prediction *prediction, const ms_plan *plan,
                             ms_shortfall *out);

/* Notes the choices that a legal plan states and that do not do what they say
 * (sim/step/idle_choices.h). */
void ms_note_idle_choices(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                          bool of_job);

/* Notes keys of the model's Hugging Face config that were not read and may change it. */
void ms_note_unread_keys(ms_ctx *cx, const ms_model *model);

/* Notes how a job of num_gpus GPUs fills the cluster's domains, unless all are full. */
void ms_note_allocation(ms_ctx *cx, const ms_cluster *cluster, long num_gpus);

#endif
