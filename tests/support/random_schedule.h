/* Pipeline schedules drawn at random, as schedule files: irregular, but executable. */
#ifndef MS_TESTS_SUPPORT_RANDOM_SCHEDULE_H
#define MS_TESTS_SUPPORT_RANDOM_SCHEDULE_H

#include "base/rng.h"
#include "costmodel/schedule/schedule.h"

/* Draws a schedule file (costmodel/schedule/schedule_csv.h): each rank has `chunks`
 * random stages; actions come in a random order that their inputs allow; backwards are
 * whole, split, or paired with a forward. Lives in the arena. */
const char *ms_random_schedule(ms_arena *arena, ms_rng *rng, int num_ranks, int chunks,
                               int num_microbatches);

#endif
