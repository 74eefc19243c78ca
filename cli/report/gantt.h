/* Who does what when, for terminals: a line per lane. Each cell shows what takes most of
 * its time; a bar that is wide enough shows its letter and number:
 * "F0--F1--....B0------"; where few are, only letters are shown. Knows nothing of
 * schedules or simulations. */
#ifndef MS_CLI_REPORT_GANTT_H
#define MS_CLI_REPORT_GANTT_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct ms_gantt_kind {
    char letter;        /* '\0' ends the list */
    const char *name;   /* for the legend: "forward" */
    const char *colour; /* ANSI sequence that begins it; NULL: none */
} ms_gantt_kind;

#define MS_MAX_GANTT_KINDS 16

typedef struct ms_gantt_bar {
    int lane;
    int kind; /* index into kinds */
    double start, end;
    int number; /* of the micro-batch; -1: none */
    /* bars of one kind and group that stand side by side are drawn as one; 0: none */
    int group;
} ms_gantt_bar;

typedef struct ms_gantt {
    const ms_gantt_kind *kinds; /* at most MS_MAX_GANTT_KINDS */
    int num_lanes;
    const char *const *lane_names; /* (num_lanes); equal neighbours are written once */
    int num_bars;
    const ms_gantt_bar *bars; /* in any order */
    /* the window that is drawn; from 0 or later; bars may reach beyond it */
    double start, end;
    const char *unit; /* of the times on the axis: "ms" */
    int width;        /* columns of the terminal */
    bool colours;
} ms_gantt;

/* The axis, the lanes, and a legend of the letters used. Idle time is drawn as dots. */
void ms_gantt_draw(FILE *out, ms_arena *arena, const ms_gantt *gantt);

/* ---- for drawings with other cells ---- */

/* Prints `num_columns` characters and ends the line; neighbours of one style in the
 * colour of that style. `colours` are ANSI sequences by style, NULL for none; NULL: no
 * colours at all. */
void ms_gantt_print_row(FILE *out, const char *text, const unsigned char *styles,
                        int num_columns, const char *const *colours);
/* The distance of ticks of an axis: the smallest of 1, 2, 5 times a power of ten that is
 * at least `least`. */
double ms_gantt_tick(double least);

#endif
