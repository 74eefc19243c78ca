/* What `meshsim simulate` says: text, diagram and JSON of one simulation. */
#ifndef MS_CLI_REPORT_SIMULATE_REPORT_H
#define MS_CLI_REPORT_SIMULATE_REPORT_H

#include "sim/search/shortfall.h"
#include "sim/simulate/simulation.h"

typedef enum ms_simulate_gantt {
    MS_SIMULATE_GANTT_COMPUTE, /* a line per rank shown */
    MS_SIMULATE_GANTT_STREAMS, /* a line per rank and stream */
    MS_SIMULATE_GANTT_NONE
} ms_simulate_gantt;

typedef struct ms_simulate_report {
    const ms_plan *plan;
    const ms_prediction *prediction; /* memory, rates: of the replay of actions */
    const ms_simulation *simulation;
    /* simulation of the plan without slowdowns and jitter; NULL: the options have none */
    const ms_simulation *undisturbed;
    const ms_simulation *steady; /* of a first step: a later one; else NULL */
    bool own_sync;               /* optimizer_sync is asked for, not the stack's habit */
    const ms_shortfall *shortfall; /* NULL: the plan fits */
    int num_actors;                /* shown in tables, diagram and trace */
    const int *actors;
    ms_simulate_gantt gantt;
    double from_s, to_s; /* of the diagram; both 0: the step */
    int width;           /* columns of the diagram */
    bool colours;
} ms_simulate_report;

void ms_simulate_print(FILE *out, ms_arena *arena, const ms_simulate_report *report);
/* Time of the diagram is in milliseconds. */
void ms_simulate_draw(FILE *out, ms_arena *arena, const ms_simulate_report *report);
/* meshsim.simulation/1; every simulated rank, shown or not. */
void ms_simulate_write_json(ms_jout *out, ms_arena *arena,
                            const ms_simulate_report *report);

#endif
