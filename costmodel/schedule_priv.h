/* Shared by the two files of the schedule module. */
#ifndef MS_COSTMODEL_SCHEDULE_PRIV_H
#define MS_COSTMODEL_SCHEDULE_PRIV_H

#include "costmodel/schedule.h"

/* Fills first_live and live from the action lists. */
void ms_schedule_find_live(ms_arena *arena, ms_schedule *schedule);

#endif
