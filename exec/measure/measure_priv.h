/* Declarations shared by the files of the calibration benchmark (exec/measure). */
#ifndef MS_EXEC_MEASURE_MEASURE_PRIV_H
#define MS_EXEC_MEASURE_MEASURE_PRIV_H

#include "base/rng.h"
#include "exec/measure/measure.h"

/* A kernel to measure: a node of a layer program, with shards `in`, `out`; or, if node is
 * NULL, the optimizer's update of, or a bandwidth test with, `count` elements. */
typedef struct ms_kernel_case {
    ms_sample sample; /* description of the case; seconds are filled in later */
    const ms_program *program;
    const ms_node *node;
    ms_local in[MS_MAX_OPERANDS], out[MS_MAX_OPERANDS];
    const ms_batch *batch;
    long count;
    long num_calls; /* kernel calls between two time stamps */
    double host_s;  /* seconds that the host needs to enqueue a call */
} ms_kernel_case;

typedef struct ms_kernel_cases {
    int num, capacity;
    ms_kernel_case *items;
} ms_kernel_cases;

ms_status ms_kernel_cases_make(ms_ctx *cx, const ms_measure *how, const ms_world *world,
                               ms_kernel_cases *out);

/* Measured times of cases over rounds; each round runs every case once. */
typedef struct ms_rounds {
    int num_cases, num_rounds, max_rounds;
    double *seconds; /* (max_rounds, num_cases): CPU seconds of the rank's thread */
    double *elapsed; /* (max_rounds, num_cases): wall-clock seconds */
    int *order;      /* (num_cases): order of the cases in the round */
    ms_rng rng;
} ms_rounds;
ms_rounds ms_rounds_make(ms_arena *arena, int num_cases, uint64_t seed);
/* Begins a round; returns the random order of its cases, or NULL after max_rounds. */
const int *ms_rounds_next(ms_rounds *rounds);
typedef struct ms_timed {
    double seconds, elapsed_s;
} ms_timed;
void ms_rounds_set(ms_rounds *rounds, int which, const ms_timed *timed);
/* results[0][case]: median CPU seconds over rounds; results[1][case]: wall-clock. */
void ms_rounds_results(ms_arena *arena, const ms_rounds *rounds, double *results);

/* Device memory that a rank has allocated for measurements. */
#define MS_MAX_HELD 32
typedef struct ms_held {
    int num;
    void *memory[MS_MAX_HELD];
    size_t bytes[MS_MAX_HELD];
} ms_held;

/* A rank that measures. */
typedef struct ms_measurer {
    ms_ctx *cx;
    const ms_measure *how;
    const ms_world *world;
    ms_device_rank *device;
    long rank;
    ms_held *held; /* memory to release at the end of the launch */
} ms_measurer;

ms_status ms_measurer_move(const ms_measurer *m, const ms_transfer *transfer);
/* Replaces each value by its maximum over all ranks. */
ms_status ms_measurer_most(const ms_measurer *m, double *values, long count);

/* Bytes of a tensor's shard, to allocate; not those that the memory ledger counts. */
size_t ms_local_bytes(const ms_local *local);
/* Allocates an array of standard normal numbers; *out is NULL for 0 bytes. */
ms_status ms_measurer_filled(const ms_measurer *m, ms_scalar scalar, size_t bytes,
                             char **out);
/* Allocates an array of zeros. */
ms_status ms_measurer_zeros(const ms_measurer *m, ms_scalar scalar, size_t bytes,
                            char **out);
/* Allocates an array of expert indices, balanced over experts. */
ms_status ms_measurer_choice(const ms_measurer *m, ms_scalar scalar, size_t bytes,
                             char **out);
/* Memory filled with standard normal numbers, or uniform ones from 0.05 to 1.05 if
 * `positive`, in which arrays are placed at random. */
typedef struct ms_region {
    char *at;
    size_t bytes;
} ms_region;
ms_status ms_measurer_region(const ms_measurer *m, ms_scalar scalar, size_t bytes,
                             bool positive, ms_region *out);
/* Seconds between two values of the backend's now_s. */
ms_status ms_measurer_elapsed(const ms_measurer *m, double from, double to,
                              double *seconds);

/* The time before the rounds, in which clocks settle. */
typedef struct ms_warm_up {
    double seconds; /* 0: none, as kernels run within the call */
    bool steady;    /* whether the largest GEMM's time was steady in the end */
} ms_warm_up;
ms_status ms_measure_kernels(const ms_measurer *m, const ms_kernel_cases *cases,
                             double *results, ms_warm_up *warm_up);

int ms_collective_cases(ms_arena *arena, const ms_measure *how, ms_sample **cases);
ms_status ms_measure_collectives(const ms_measurer *m, const ms_sample *cases, int num,
                                 double *results);

#endif
