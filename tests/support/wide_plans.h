/* Legal plans in which every choice is drawn at random, also those that a search leaves
 * at their defaults. */
#ifndef MS_TESTS_SUPPORT_WIDE_PLANS_H
#define MS_TESTS_SUPPORT_WIDE_PLANS_H

#include "tests/support/random_plans.h"

/* Draws, where the plan stays legal, all that ms_random_plan leaves at its default: axis
 * order, groups of micro-batches, memory limit of zb-auto, layers of each stage, cp
 * balance, loss over a sharded vocabulary, layers of full recomputation, budget of
 * automatic recomputation; for some plans a schedule from a file
 * (tests/support/random_schedule.h). Allocates in cx->arena. */
void ms_widen_plan(ms_ctx *cx, ms_rng *rng, const ms_model *model, ms_plan *plan);

/* A property that a plan may have, for tests that count what was drawn. */
typedef struct ms_plan_feature {
    const char *name;
    bool (*has)(const ms_model *model, const ms_plan *plan);
} ms_plan_feature;
extern const ms_plan_feature ms_plan_features[]; /* ends with an entry without a name */

#endif
