/* Legal plans in which every choice is drawn, those too that a search leaves at their
 * defaults. */
#ifndef MS_TESTS_SUPPORT_WIDE_PLANS_H
#define MS_TESTS_SUPPORT_WIDE_PLANS_H

#include "tests/support/random_plans.h"

/* Draws what ms_random_plan leaves at its default, where the plan stays legal: order of
 * axes, groups of micro-batches, memory of zb-auto, layers of each stage, balance of cp,
 * loss over a sharded vocabulary, layers of full and budget of automatic recomputation;
 * of some, a schedule from a file (tests/support/random_schedule.h). What the plan points
 * to lives in cx->arena. */
void ms_widen_plan(ms_ctx *cx, ms_rng *rng, const ms_model *model, ms_plan *plan);

/* What a plan may have, for tests that count what was drawn. */
typedef struct ms_plan_feature {
    const char *name;
    bool (*has)(const ms_model *model, const ms_plan *plan);
} ms_plan_feature;
extern const ms_plan_feature ms_plan_features[]; /* the last has no name */

#endif
