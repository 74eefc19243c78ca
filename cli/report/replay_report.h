/* Text and JSON of `meshsim run --replay`: ranks that executed alone, and the step of the
 * whole job that their measured actions make. */
#ifndef MS_CLI_REPORT_REPLAY_REPORT_H
#define MS_CLI_REPORT_REPLAY_REPORT_H

#include "cli/report/run_report.h"
#include "exec/runner/kernel_slowdown.h"
#include "exec/runner/recompose.h"

/* A rank that executed alone. */
typedef struct ms_replayed {
    long rank;
    int pipeline_rank;
    int num_alike; /* pipeline ranks that take its durations, itself included */
    ms_outcome outcome;
    ms_measured measured;
    ms_kernel_slowdowns slowdowns; /* kernels beside transfers against those alone */
    bool on_gpu;                   /* `device` is set */
    ms_cuda_used device;
} ms_replayed;

typedef struct ms_replay_report {
    const ms_plan *plan;
    const ms_prediction *prediction;
    const ms_planned *planned;
    const char *backend, *dtype;
    bool interrupted;
    long interrupted_rank; /* the rank that executed then and has no result; -1: none */
    long num_steps, warm_up;
    int num_replayed;
    ms_replayed *replayed; /* (num_replayed) */
    const ms_recomposition *recomposition;
} ms_replay_report;

void ms_replay_print(FILE *out, ms_arena *arena, const ms_replay_report *report);
/* Writes JSON of schema meshsim.rank_replay/1. */
void ms_replay_write_json(ms_jout *out, const ms_replay_report *report);

/* A mean duration, measured or predicted, over the stages of a rank that have such actions
 * of their own, not in pairs alone; NaN: none has. */
double ms_replayed_action_s(const ms_replay_report *report, const ms_replayed *replayed,
                            ms_action_time which, bool measured);

#endif
