/* One plan predicted in full: step time by replay and where it goes, memory per stage,
 * traffic per axis. */
#ifndef MS_SIM_STEP_PREDICTION_H
#define MS_SIM_STEP_PREDICTION_H

#include "sim/engine/graph.h"
#include "sim/step/traffic.h"

/* One pipeline rank of a prediction. */
typedef struct ms_stage_prediction {
    int rank; /* pipeline rank */
    long num_layers;
    double forward_s, backward_s; /* seconds of a micro-batch in all chunks of the rank */
    double busy_s;                /* seconds of all actions in the step */
    double peak_bytes;
    double memory[MS_NUM_MEMORY_CATEGORIES];
    int live_microbatches; /* chunks alive at the peak */
} ms_stage_prediction;

typedef struct ms_axis_prediction {
    ms_traffic_group group;
    const char *axis; /* name of the group (ms_traffic_group_name) */
    long size;
    long ranks_per_node;
    int level;        /* innermost network level that contains the group */
    const char *tier; /* name of that network level */
    double bytes;     /* bytes sent by one rank in a step */
    double nic_bytes; /* part of bytes that leaves the innermost domain over a NIC */
    double seconds;   /* seconds of communication, overlapped or not */
    double exposed_s; /* seconds of communication that compute waits for */
} ms_axis_prediction;

#define MS_MAX_AXIS_PREDICTIONS 9

/* Number of GPUs of the error class of all peaks: errors of a rank's memory do not depend on
 * the number of ranks. */
#define MS_PEAK_CLASS_GPUS 1

typedef struct ms_prediction {
    ms_engine engine; /* engine of step_s and its parts */
    double replay_step_s;
    double step_s;
    /* 90 % interval of measured step times; NaN: none (by events, on CPUs, with a
     * calibrated profile) */
    double step_low_s, step_high_s;
    ms_error_interval interval; /* source of the interval */
    const char *unit;           /* word for the cluster's devices; NULL: "GPU" */
    double tokens_per_s, tokens_per_s_per_gpu;
    double mfu_frac, hfu_frac;
    /* FLOP/s of a device's fastest GEMM in a calibration where it exceeds the listed peak,
     * which it replaces in MFU and HFU; NaN: it does not */
    double measured_peak_flop_per_s;
    /* parts of step_s, on ending_rank */
    double compute_s, exposed_comm_s, bubble_s, optimizer_s, host_s;
    bool fits;
    double capacity_bytes, peak_bytes; /* peak as the framework reports it */
    double outside_bytes;              /* bytes beyond the peak (ms_rank_outside_bytes) */
    double peak_low_bytes,
        peak_high_bytes;             /* 90 % interval of measured peaks; NaN: none */
    ms_error_interval peak_interval; /* source of the interval */
    double fits_probability; /* probability that the plan fits memory; NaN: unknown */
    int ending_rank;         /* pipeline rank that ends the step last */
    int worst_rank;          /* pipeline rank with the largest peak */
    double memory[MS_NUM_MEMORY_CATEGORIES]; /* parts of peak_bytes, on worst_rank */
    int num_stages;                          /* number of pipeline ranks */
    ms_stage_prediction *stages;
    int num_axes;
    ms_axis_prediction axes[MS_MAX_AXIS_PREDICTIONS];
    long num_stage_layers; /* virtual stages of the split used */
    const long *layers_per_stage;
    double bound_s;      /* lower bound of step_s by closed form */
    double pairs_hide_s; /* token exchanges of ending_rank hidden by overlapped pairs */
    long padded_vocab;   /* vocabulary rows with padding; 0: not padded */
    long kv_copies;      /* ranks with the same key-value head; 1: each has its own */
} ms_prediction;

/* Predicts a legal plan (ms_plan_check). Lives in cx->arena. MS_OK also if the plan does not
 * fit (`fits`). */
ms_status ms_predict(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                     ms_prediction *out);

/* Free bytes of a device whose rank has this peak; negative: bytes that are missing. */
double ms_prediction_free_bytes(const ms_prediction *prediction, double peak_bytes);

/* Predicts a prepared plan; returns the traffic of ending_rank. */
ms_traffic ms_predict_planned(ms_ctx *cx, const ms_planned *planned, ms_prediction *out);

/* Recomputes rates and traffic per axis after the event engine has replaced the step time
 * and its parts. */
void ms_prediction_retime(ms_ctx *cx, const ms_planned *planned, ms_prediction *out);

/* Sums a rank's traffic by axis, without that in optimizer_s; returns the number of axes. */
int ms_traffic_axes(const ms_planned *planned, const ms_traffic *traffic,
                    ms_axis_prediction out[MS_MAX_AXIS_PREDICTIONS]);

/* Writes meshsim.prediction/1. */
void ms_prediction_write_json(ms_jout *out, const ms_prediction *prediction);

#endif
