/* Schedules drawn at random, as text of a file: nothing about them is regular, but that
 * they can be executed. */
#ifndef MS_TESTS_SUPPORT_RANDOM_SCHEDULE_H
#define MS_TESTS_SUPPORT_RANDOM_SCHEDULE_H

#include "base/rng.h"
#include "costmodel/schedule/schedule.h"

/* Every stage on a random rank, `chunks` of them each; every action at a random place
 * among those that its inputs allow; backwards whole, split or beside a forward. Rows as
 * costmodel/schedule/schedule_csv.h has them, in the arena. */
const char *ms_random_schedule(ms_arena *arena, ms_rng *rng, int num_ranks, int chunks,
                               int num_microbatches);

#endif
