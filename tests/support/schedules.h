/* Pipeline schedules for tests: made from a shape, printed as text, and run with equal
 * durations on every stage. */
#ifndef MS_TESTS_SUPPORT_SCHEDULES_H
#define MS_TESTS_SUPPORT_SCHEDULES_H

#include "sim/step/schedule_timeline.h"

/* Makes a schedule; an illegal shape fails the test, with the reason. */
const ms_schedule *made_schedule(ms_arena *arena, ms_schedule_shape shape);
/* A shape with the schedule family's least number of stages per rank. */
ms_schedule_shape plain_shape(ms_schedule_kind kind, int num_ranks, int num_microbatches);

/* Prints a rank's actions as stage, kind and micro-batch, e.g. "2F0 7I1 <0F3+7B1>". */
const char *rank_actions_text(ms_arena *arena, const ms_schedule *schedule, int rank);

/* Largest bubble of a rank: time in which it does not work between its first start and
 * last end. */
double largest_span_bubble(const ms_schedule *schedule, ms_schedule_times times);

/* Most chunks of a rank at a time between their forward and their backward for inputs (or
 * whole backward). */
int most_before_backward(const ms_schedule *schedule, int rank);

#endif
