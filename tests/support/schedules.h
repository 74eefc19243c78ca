/* Schedules for tests: made from a shape, as text, and run with the same durations on
 * every stage. */
#ifndef MS_TESTS_SUPPORT_SCHEDULES_H
#define MS_TESTS_SUPPORT_SCHEDULES_H

#include "sim/step/schedule_timeline.h"

/* Fails the test with the objection when the shape is not allowed. */
const ms_schedule *made_schedule(ms_arena *arena, ms_schedule_shape shape);
/* One with the family's least number of stages a rank. */
ms_schedule_shape plain_shape(ms_schedule_kind kind, int num_ranks, int num_microbatches);

/* "2F0 7I1 <0F3+7B1>": actions of a rank, stage, kind and micro-batch. */
const char *rank_actions_text(ms_arena *arena, const ms_schedule *schedule, int rank);

/* The largest over ranks of the time between a rank's first start and last end in which
 * it does not work. */
double largest_span_bubble(const ms_schedule *schedule, ms_schedule_times times);

/* Chunks from forward to backward for inputs (whole backward) at the most. */
int most_before_backward(const ms_schedule *schedule, int rank);

#endif
