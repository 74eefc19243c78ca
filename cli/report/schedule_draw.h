/* A schedule drawn in text: ranks down, time to the right. */
#ifndef MS_CLI_REPORT_SCHEDULE_DRAW_H
#define MS_CLI_REPORT_SCHEDULE_DRAW_H

#include "sim/step/schedule_timeline.h"

#include <stdio.h>

typedef struct ms_schedule_drawing {
    const ms_schedule *schedule;
    const ms_schedule_timeline *timeline;
    int width;    /* columns of the terminal */
    int max_rows; /* of more ranks every second, third, ... is drawn */
    bool colours;
} ms_schedule_drawing;

/* An axis of time, a row per rank and a legend. Actions tell their micro-batch when there
 * is room; else a column is what runs at its middle. */
void ms_schedule_draw(FILE *out, ms_arena *arena, const ms_schedule_drawing *drawing);

#endif
