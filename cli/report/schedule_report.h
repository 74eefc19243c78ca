/* What `meshsim schedule` tells of a schedule and its timeline. */
#ifndef MS_CLI_REPORT_SCHEDULE_REPORT_H
#define MS_CLI_REPORT_SCHEDULE_REPORT_H

#include "base/json.h"
#include "sim/step/schedule_timeline.h"

#include <stdio.h>

typedef struct ms_schedule_report {
    const char *name; /* of the schedule, or its file */
    const ms_schedule *schedule;
    const ms_schedule_times *times;
    const ms_schedule_timeline *timeline;
    int width; /* columns of the terminal */
    bool colours;
} ms_schedule_report;

/* The shape, makespan and bubbles, the drawing, a row per rank and the lists of actions. */
void ms_schedule_report_print(FILE *out, ms_arena *arena,
                              const ms_schedule_report *report);
/* meshsim.schedule/1. */
void ms_schedule_report_write_json(ms_jout *json, ms_arena *arena,
                                   const ms_schedule_report *report);

#endif
