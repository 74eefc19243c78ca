/* Choices that a plan states though model, cluster or data leave them without effect, or
 * with less than they say. What other choices leave without effect says ms_plan_fields
 * (`needs`). */
#ifndef MS_SIM_STEP_IDLE_CHOICES_H
#define MS_SIM_STEP_IDLE_CHOICES_H

#include "costmodel/plan/plan_field.h"
#include "sim/step/workload.h"

/* A sentence on a choice of a legal plan: "--device-order reversed has no effect: ..."; NULL:
 * the choice is not stated, or does what it says. With `of_job` only what holds for all plans
 * of a search from this one. Lives in the arena. */
const char *ms_idle_choice_text(ms_arena *arena, ms_workload *workload,
                                const ms_plan *plan, ms_choice choice, bool of_job);

#endif
