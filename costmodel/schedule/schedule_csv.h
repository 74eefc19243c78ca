/* Schedules in PyTorch's CSV format (torch/distributed/pipelining/schedules.py, _load_csv
 * with "compute_only"): one row per rank, one cell per action, no header. A cell is a
 * stage, F, I, W or B, and a micro-batch ("2F0", "1I3", "1W3", "0B7"), or a pair of a
 * forward and a whole backward ("(0F3;7B1)OVERLAP_F_B"). Blank cells are idle time: read,
 * never written. */
#ifndef MS_COSTMODEL_SCHEDULE_SCHEDULE_CSV_H
#define MS_COSTMODEL_SCHEDULE_SCHEDULE_CSV_H

#include "costmodel/schedule/schedule.h"

/* Reads a file ("-" is standard input) into a shape of MS_CUSTOM whose table lives in
 * cx->arena. The order of actions is checked by ms_schedule_open, which finds their
 * lines and columns in the table. Errors: MS_EIO unreadable file; MS_EINPUT a cell
 * without action, a stage on two ranks or on none, ranks with different numbers of
 * stages, a micro-batch that a stage does not run forward, more than 2^22 actions. */
ms_status ms_schedule_csv_load(ms_ctx *cx, const char *path, ms_schedule_shape *out);
/* ms_schedule_csv_load from memory; `name` stands for the file in messages. */
ms_status ms_schedule_csv_read(ms_ctx *cx, const char *name, const char *text,
                               size_t length, ms_schedule_shape *out);
/* A rank's row of the CSV file, without the line end, in the arena. */
char *ms_schedule_csv_row(ms_arena *arena, const ms_schedule *schedule, int rank);
/* Writes every rank's row. DualPipe's copies of stages are distinct stages if read
 * back. */
void ms_schedule_csv_write(FILE *out, const ms_schedule *schedule);

#endif
