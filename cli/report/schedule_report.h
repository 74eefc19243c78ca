/* Text and JSON of `meshsim schedule`: a schedule and its timeline. */
#ifndef MS_CLI_REPORT_SCHEDULE_REPORT_H
#define MS_CLI_REPORT_SCHEDULE_REPORT_H

#include "base/json.h"
#include "sim/step/schedule_timeline.h"

#include <stdio.h>

typedef struct ms_schedule_report {
    const char *name; /* name of the schedule, or of its file */
    const ms_schedule *schedule;
    const ms_schedule_times *times;
    const ms_schedule_timeline *timeline;
    int width; /* columns of the terminal */
    bool colours;
} ms_schedule_report;

/* Prints shape, makespan, bubbles, the drawing, a row per rank, lists of actions. */
void ms_schedule_report_print(FILE *out, ms_arena *arena,
                              const ms_schedule_report *report);
/* Draws a time axis, a row per rank (of many, every n-th) and a legend. Actions show
 * their micro-batch if there is room; else a column shows the action at its middle. */
void ms_schedule_draw(FILE *out, ms_arena *arena, const ms_schedule_report *report);
/* Returns the n with which every n-th of `num_ranks` ranks is drawn and listed. */
int ms_schedule_rank_step(int num_ranks);
void ms_schedule_report_write_json(ms_jout *json, ms_arena *arena,
                                   const ms_schedule_report *report);

#endif
