/* Prediction of one plan: step time by replay and its parts, memory of each pipeline
 * rank, communication of each mesh axis. */
#ifndef MS_SIM_STEP_PREDICTION_H
#define MS_SIM_STEP_PREDICTION_H

#include "sim/engine/graph.h"
#include "sim/step/host_use.h"
#include "sim/step/traffic.h"

/* Prediction for one pipeline rank. */
typedef struct ms_stage_prediction {
    int rank;
    const char *device;    /* kinds of its devices; NULL if the cluster's are all alike */
    double capacity_bytes; /* memory of a device of the rank */
    long num_layers;
    double forward_s, backward_s; /* seconds of a micro-batch in all chunks of the rank */
    double busy_s;                /* seconds of all forwards and backwards in the step */
    double peak_bytes;
    double memory[MS_NUM_MEMORY_CATEGORIES];
    double kind_bytes[MS_NUM_MEMORY_KINDS]; /* the peak by what a figure counts */
    double host_bytes;     /* most bytes in host memory (ms_rank_host_bytes) */
    int live_microbatches; /* micro-batches alive at the peak, over all chunks */
} ms_stage_prediction;

typedef struct ms_axis_prediction {
    ms_traffic_group group;
    const char *axis; /* name of the group (ms_traffic_group_name) */
    long size;
    long ranks_per_node;
    long nic_ranks;   /* ms_span_nic_ranks */
    int level;        /* innermost network level that contains the group */
    const char *tier; /* name of that network level */
    double bytes;     /* bytes sent by one rank in a step */
    double nic_bytes; /* part of `bytes` sent over a NIC */
    double seconds;   /* seconds of communication, overlapped or not */
    double exposed_s; /* seconds of communication that compute waits for */
} ms_axis_prediction;

#define MS_MAX_AXIS_PREDICTIONS 11

typedef struct ms_prediction {
    ms_engine engine; /* engine that computed step_s and its parts */
    double replay_step_s;
    double step_s;
    /* 90 % interval of measured step times; NaN: none (by the event engine, on CPUs, or
     * with a calibrated profile) */
    double step_low_s, step_high_s;
    /* 90 % interval as fractions of step_s, from published runs */
    ms_error_interval interval;
    const char *unit;                          /* word for a device; NULL: "GPU" */
    double tokens_per_s, tokens_per_s_per_gpu; /* all computed positions */
    double useful_tokens_per_s;                /* tokens that are no padding */
    bool has_lengths;                          /* sequences are packed or padded */
    /* shares of the devices' peak FLOP rate, [8.1] of docs/formulas: of the model's FLOP
     * with all attention pairs; with those that a causal mask leaves; of executed FLOP */
    double mfu_frac, mfu_causal_frac, hfu_frac;
    /* FLOP/s of a device's fastest GEMM in a calibration, if above the listed peak: used
     * for MFU and HFU; otherwise NaN */
    double measured_peak_flop_per_s;
    /* parts of step_s, on the pipeline rank ending_rank */
    double compute_s, exposed_comm_s, bubble_s, optimizer_s, host_s;
    ms_host_use host;      /* launches and waits of ending_rank */
    ms_memory_limit limit; /* the workload's, by which the plan fits or not */
    bool fits;
    double needed_bytes; /* ms_needed_bytes, to compare with limit.limit_bytes */
    double capacity_bytes, peak_bytes; /* peak as the framework reports it */
    double host_bytes;                 /* the largest of all ranks */
    double outside_bytes; /* device bytes outside peak_bytes: ms_rank_outside_bytes */
    double peak_low_bytes,
        peak_high_bytes; /* 90 % interval of measured peaks; NaN: none */
    /* 90 % interval as fractions of peak_bytes, from published runs */
    ms_error_interval peak_interval;
    /* probability that the plan fits memory beside the headroom of `limit`; NaN: unknown */
    double fits_probability;
    int ending_rank;                         /* pipeline rank that ends the step last */
    int worst_rank;                          /* pipeline rank with the largest peak */
    double memory[MS_NUM_MEMORY_CATEGORIES]; /* parts of peak_bytes, on worst_rank */
    int num_stages;                          /* number of pipeline ranks */
    ms_stage_prediction *stages;
    int num_axes;
    ms_axis_prediction axes[MS_MAX_AXIS_PREDICTIONS];
    long num_stage_layers; /* number of virtual stages */
    const long *layers_per_stage;
    double bound_s; /* lower bound of step_s in closed form */
    /* seconds of token exchanges in a step that overlapped pairs hide */
    double pairs_hide_s;
    long padded_vocab; /* vocabulary size after padding; 0: not padded */
    /* tp ranks that hold copies of the same key-value head; 1: no copies */
    long kv_copies;
} ms_prediction;

/* Predicts a legal plan (ms_plan_check). The result lives in cx->arena. MS_OK also if the
 * plan does not fit memory (out->fits false). */
ms_status ms_predict(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                     ms_prediction *out);

/* Positions that a step computes, padding included. */
double ms_prediction_tokens(const ms_plan *plan, const ms_prediction *prediction);

/* Free bytes of a device whose rank has this peak memory; negative: bytes missing. */
double ms_prediction_free_bytes(const ms_prediction *prediction, double peak_bytes);

/* Predicts a prepared plan; returns the communication of out->ending_rank. */
ms_traffic ms_predict_planned(ms_ctx *cx, const ms_planned *planned, ms_prediction *out);

/* Updates MFU, tokens/s and communication per axis after the event engine has replaced
 * the step time and its parts. */
void ms_prediction_retime(ms_ctx *cx, const ms_planned *planned, ms_prediction *out);

/* Sums `traffic` by communication group, without collectives whose time is part of
 * optimizer_s. Returns the number of groups in `out`. */
int ms_traffic_axes(const ms_planned *planned, const ms_traffic *traffic,
                    ms_axis_prediction out[MS_MAX_AXIS_PREDICTIONS]);

/* Writes a prediction as JSON, schema meshsim.prediction/1. */
void ms_prediction_write_json(ms_jout *out, const ms_prediction *prediction);

#endif
