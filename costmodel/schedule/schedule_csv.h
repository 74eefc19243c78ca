/* Pipeline schedules in PyTorch's CSV format (torch/distributed/pipelining/schedules.py,
 * _load_csv with "compute_only"): one row per rank, one cell per action, no header. A
 * cell is a stage, F, I, W or B, and a micro-batch ("2F0", "1I3", "1W3", "0B7"), or a
 * pair of a forward and a whole backward ("(0F3;7B1)OVERLAP_F_B"). Blank cells are idle
 * time: read, never written. */
#ifndef MS_COSTMODEL_SCHEDULE_SCHEDULE_CSV_H
#define MS_COSTMODEL_SCHEDULE_SCHEDULE_CSV_H

#include "costmodel/schedule/schedule.h"

/* Reads a schedule file ("-": standard input) into a shape of MS_CUSTOM whose table lives
 * in cx->arena; ms_schedule_open then checks the order of actions. MS_EIO: the file
 * cannot be read. MS_EINPUT: a cell is no action, a stage is on two ranks or on none,
 * ranks have different numbers of stages, a stage does not run a micro-batch forward, or
 * there are more than 2^22 actions. */
ms_status ms_schedule_csv_load(ms_ctx *cx, const char *path, ms_schedule_shape *out);
/* Reads a schedule from text as ms_schedule_csv_load; `name` is the file in messages. */
ms_status ms_schedule_csv_read(ms_ctx *cx, const char *name, const char *text,
                               size_t length, ms_schedule_shape *out);
/* The row of a schedule file with a rank's actions, without line end, in the arena. */
char *ms_schedule_csv_row(ms_arena *arena, const ms_schedule *schedule, int rank);
/* Writes a schedule file, all ranks' rows; DualPipe's copies of stages become stages. */
void ms_schedule_csv_write(FILE *out, const ms_schedule *schedule);

#endif
