/* Text and JSON of `meshsim run`: measured and predicted numbers of one run. */
#ifndef MS_CLI_REPORT_RUN_REPORT_H
#define MS_CLI_REPORT_RUN_REPORT_H

#include "cli/options/run_memory.h"
#include "exec/cuda/cuda_backend.h"
#include "exec/runner/measured.h"
#include "exec/runner/run_check.h"
#include "sim/step/prediction.h"

typedef struct ms_run_report {
    const ms_plan *plan;
    const ms_prediction *prediction;
    const ms_world *world;
    const char *backend, *dtype;
    bool on_gpu; /* backend is cuda; `transport` and `shares_gpus` are set */
    ms_cuda_transport transport;
    ms_run_attention attention; /* --attention; set if on_gpu */
    bool shares_gpus;           /* several ranks use one GPU, over NCCL */
    const ms_cuda_used *device; /* GPU of rank 0; NULL if none */
    bool has_values;            /* losses are numbers (the backend null has none) */
    bool interrupted;
    long num_steps, warm_up;   /* numbers of steps requested, in all and for warm-up */
    const ms_outcome *outcome; /* outcome of all ranks */
    ms_measured measured;
    ms_measured_times
        times; /* times of the pipeline rank that is predicted to end last */
    const ms_run_check *check; /* comparison with one rank; NULL if not requested */
    /* memory that is short, so that no step was run; NULL: memory sufficed */
    const ms_run_memory *shortfall;
} ms_run_report;

void ms_run_print(FILE *out, ms_arena *arena, const ms_run_report *report);
void ms_run_write_json(ms_jout *out, const ms_run_report *report);

/* Prints a table of the longest kinds of nodes; `whose` names the ranks. */
void ms_run_print_kinds(FILE *out, ms_arena *arena, const ms_node_kinds *kinds,
                        const char *whose);

/* Why measured times do not tell speed: "correctness only" (messages go through host
 * memory), "functional only" (ranks share a GPU over NCCL); NULL if they do. */
const char *ms_run_restriction(const ms_run_report *report);
/* Notes that a chosen library did not run all of a rank's attention, and why. */
void ms_note_attention(const ms_ctx *cx, const ms_cuda_attention_use *use);
/* Owner of the kernels that ran a rank's attention: "own", "cudnn", or "cudnn and own". */
const char *ms_attention_used(const ms_cuda_attention_use *use);
/* Prediction of the pipeline rank that a rank belongs to. */
const ms_stage_prediction *ms_run_predicted_stage(const ms_run_report *report, long rank);

#endif
