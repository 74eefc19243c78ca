/* The answer of `meshsim simulate`, and its JSON. */
#ifndef MS_SIM_REQUEST_SIMULATE_REPORT_H
#define MS_SIM_REQUEST_SIMULATE_REPORT_H

#include "sim/search/shortfall.h"
#include "sim/simulate/simulation.h"
#include "sim/step/framework_rules.h"

typedef enum ms_simulate_gantt {
    MS_SIMULATE_GANTT_COMPUTE, /* one line per rank shown */
    MS_SIMULATE_GANTT_STREAMS, /* one line per rank and stream */
    MS_SIMULATE_GANTT_NONE
} ms_simulate_gantt;

typedef struct ms_simulate_report {
    const ms_plan *plan;
    const ms_prediction *prediction; /* prediction by replay: memory and rates */
    const ms_simulation *simulation;
    /* simulation without slowdowns and jitter; NULL if there are none */
    const ms_simulation *undisturbed;
    /* simulation of a later step; NULL unless `simulation` is of the first step */
    const ms_simulation *steady;
    bool lists_rules; /* --ignore-rules: list the broken rules */
    ms_broken_rules broken;
    bool own_sync;                 /* the user gave --optimizer-sync */
    const ms_shortfall *shortfall; /* missing memory; NULL if the plan fits */
    int num_actors;                /* actors shown in tables, diagram and trace */
    const int *actors;
    ms_simulate_gantt gantt;
    double from_s, to_s; /* window of the diagram; both 0 for the whole step */
    int width;           /* columns of the diagram */
    bool colours;
} ms_simulate_report;

/* Writes JSON of schema meshsim.simulation/1 with every simulated rank, shown or not. */
void ms_simulate_write_json(ms_jout *out, ms_arena *arena,
                            const ms_simulate_report *report);

#endif
