/* A Gantt chart for terminals, one line per lane. Each cell shows the kind with the
 * most of its time; wide bars show letter and number: "F0--F1--....B0------".
 * Independent of schedules and simulations. */
#ifndef MS_CLI_REPORT_GANTT_H
#define MS_CLI_REPORT_GANTT_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct ms_gantt_kind {
    char letter;        /* letter of the kind in a cell; '\0' ends the list */
    const char *name;   /* name of the kind in the legend: "forward" */
    const char *colour; /* ANSI sequence that starts the colour; NULL for none */
} ms_gantt_kind;

#define MS_MAX_GANTT_KINDS 16

typedef struct ms_gantt_bar {
    int lane;
    int kind; /* index of the bar's kind in `kinds` */
    double start, end;
    int number; /* micro-batch shown on the bar; -1 for none */
    /* adjacent bars of one kind and group are drawn as one; 0 for no group */
    int group;
} ms_gantt_bar;

typedef struct ms_gantt {
    const ms_gantt_kind *kinds; /* at most MS_MAX_GANTT_KINDS */
    int num_lanes;
    const char *const *lane_names; /* (num_lanes); repeated names are printed once */
    int num_bars;
    const ms_gantt_bar *bars; /* bars of all lanes in any order */
    /* window drawn, from 0 or later; bars may exceed it */
    double start, end;
    const char *unit; /* unit of the time axis: "ms" */
    int width;        /* columns of the terminal */
    bool colours;
} ms_gantt;

/* Draws the axis, the lanes and a legend of the letters used; idle time as dots. */
void ms_gantt_draw(FILE *out, ms_arena *arena, const ms_gantt *gantt);

/* ---- for drawings with other cells ---- */

/* Prints `num_columns` characters and a newline, runs of one style in its colour.
 * `colours`: [style] ANSI sequence, NULL for none; the array is NULL without colours. */
void ms_gantt_print_row(FILE *out, const char *text, const unsigned char *styles,
                        int num_columns, const char *const *colours);
/* Distance between ticks of an axis: the smallest of 1, 2 and 5 times powers of ten that
 * is at least `least`. */
double ms_gantt_tick(double least);

#endif
