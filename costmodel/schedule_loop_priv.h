/* Shared by the families whose stages lie in a loop. */
#ifndef MS_COSTMODEL_SCHEDULE_LOOP_PRIV_H
#define MS_COSTMODEL_SCHEDULE_LOOP_PRIV_H

#include "costmodel/schedule_priv.h"

/* What is wrong with the group of micro-batches of a looped schedule with chunks; NULL: nothing. */
const char *ms_loop_objection(const ms_schedule_shape *shape);

/* 1F1B with the backward in two: warm-up of depth (p - 1 - r) forwards, W depth r micro-batches behind I. */
void ms_fill_split_1f1b(const ms_schedule_shape *shape, int depth, ms_action_list *lists);
/* For families that allow every p and m. */
const char *ms_no_objection(const ms_schedule_shape *shape);

#endif
