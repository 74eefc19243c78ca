/* One plan predicted in full: step time by replay and where it goes, memory per stage,
 * traffic per axis. */
#ifndef MS_SIM_STEP_PREDICTION_H
#define MS_SIM_STEP_PREDICTION_H

#include "sim/engine/graph.h"
#include "sim/step/traffic.h"

/* Who tells the time of a step. */
typedef struct ms_stage_prediction {
    int rank; /* pipeline rank */
    long num_layers;
    double forward_s, backward_s; /* of one micro-batch, all chunks of the rank */
    double busy_s;                /* of the whole step */
    double peak_bytes;
    double memory[MS_NUM_MEMORY_CATEGORIES];
    int live_microbatches; /* chunks alive at the peak */
} ms_stage_prediction;

typedef struct ms_axis_prediction {
    ms_traffic_group group;
    const char *axis; /* ms_traffic_group_name */
    long size;
    long ranks_per_node;
    int level;        /* the innermost that holds the group */
    const char *tier; /* its name */
    double bytes;     /* sent by one rank in a step */
    double nic_bytes; /* of these over a NIC; the others stay in the innermost domain */
    double seconds;   /* of communication, overlapped or not */
    double exposed_s; /* that compute waits for */
} ms_axis_prediction;

#define MS_MAX_AXIS_PREDICTIONS 9

/* By which intervals of peaks are classed, whatever the run: errors of a rank do not
 * depend on how many ranks there are. */
#define MS_PEAK_CLASS_GPUS 1

typedef struct ms_prediction {
    ms_engine engine; /* that gave step_s and its parts */
    double replay_step_s;
    double step_s;
    /* 90 % interval of what is measured; NaN: none (of events, on CPUs, by a
     * calibrated profile) */
    double step_low_s, step_high_s;
    ms_error_interval interval; /* what it is from */
    const char *unit;           /* of the cluster's device; NULL: "GPU" */
    double tokens_per_s, tokens_per_s_per_gpu;
    double mfu_frac, hfu_frac;
    /* of a device, by the fastest product of a calibration, where it is above the listed
     * peak: MFU is of it; NaN: of the listed peak */
    double measured_peak_flop_per_s;
    /* of the rank that ends the step last; they sum to step_s */
    double compute_s, exposed_comm_s, bubble_s, optimizer_s, host_s;
    bool fits;
    double capacity_bytes, peak_bytes; /* the peak as the framework reports it */
    /* of the device beside that, on every rank (ms_rank_outside_bytes); a plan fits when
     * the sum does */
    double outside_bytes;
    /* 90 % interval of the peak as it is measured; NaN: none, as of the step time */
    double peak_low_bytes, peak_high_bytes;
    ms_error_interval peak_interval; /* what it is from */
    /* that the measured peak leaves room for what is beside it; NaN: no interval */
    double fits_probability;
    int ending_rank; /* pipeline rank that ends the step last: times and axes are its */
    int worst_rank;
    double memory[MS_NUM_MEMORY_CATEGORIES]; /* of worst_rank; they sum to peak_bytes */
    int num_stages;                          /* pipeline ranks */
    ms_stage_prediction *stages;
    int num_axes;
    ms_axis_prediction axes[MS_MAX_AXIS_PREDICTIONS];
    long num_stage_layers; /* the split used, over virtual stages */
    const long *layers_per_stage;
    double bound_s;      /* the closed form */
    double pairs_hide_s; /* of the exposed exchanges of ending_rank, in a step */
    /* rows of the tables when they had to be padded; 0: as the model says */
    long padded_vocab;
    long kv_copies; /* ranks that hold the same key-value head; 1: each has its own */
} ms_prediction;

/* The plan must be legal (ms_plan_check). Lives in cx->arena. MS_OK also when it does not
 * fit: see fits. */
ms_status ms_predict(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                     ms_prediction *out);

/* What a rank with this peak leaves of its device; negative: what it is short of. */
double ms_prediction_free_bytes(const ms_prediction *prediction, double peak_bytes);

/* The same for a plan that is open, with the traffic that the axes sum up. */
ms_traffic ms_predict_planned(ms_ctx *cx, const ms_planned *planned, ms_prediction *out);

/* Recomputes rates and traffic per axis after the step time and its parts were replaced, as
 * by those of the event engine. */
void ms_prediction_retime(ms_ctx *cx, const ms_planned *planned, ms_prediction *out);

/* A rank's traffic summed by group, without what is in optimizer_s; returns how many
 * axes. */
int ms_traffic_axes(const ms_planned *planned, const ms_traffic *traffic,
                    ms_axis_prediction out[MS_MAX_AXIS_PREDICTIONS]);

/* meshsim.prediction/1. */
void ms_prediction_write_json(ms_jout *out, const ms_prediction *prediction);

#endif
