/* Shared by the families whose stages lie in a loop. */
#ifndef MS_COSTMODEL_SCHEDULE_LOOP_PRIV_H
#define MS_COSTMODEL_SCHEDULE_LOOP_PRIV_H

#include "costmodel/schedule_priv.h"

/* Interleaved orders of w(r) = w(0) - d r forwards before the first backward: whether two groups of micro-batches that follow each other wait
 * for each other. They do when both together have fewer than `least_sum` micro-batches (and the second more than one, with v = 2), where
 * least_sum is d (p - 1), one more when the forward and backward of a slot are one action. Found by running every shape with p <= 7, v <= 4,
 * m <= 18 and every group for d = 1 (interleaved zero-bubble), d = 2 (interleaved 1F1B) and d = 2 with pairs (combined). */
bool ms_loop_deadlocks(const ms_schedule_shape *shape, int least_sum);
/* What is wrong with the group of a looped schedule with chunks; NULL: nothing. */
const char *ms_loop_objection(const ms_schedule_shape *shape, int least_sum);

/* 1F1B with the backward in two: warm-up of depth (p - 1 - r) forwards, W depth r micro-batches behind I. */
void ms_fill_split_1f1b(const ms_schedule_shape *shape, int depth, ms_action_list *lists);
/* For families that allow every p and m. */
const char *ms_no_objection(const ms_schedule_shape *shape);

#endif
