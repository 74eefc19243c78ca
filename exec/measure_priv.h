/* What the files of the measurement share. */
#ifndef MS_EXEC_MEASURE_PRIV_H
#define MS_EXEC_MEASURE_PRIV_H

#include "base/rng.h"
#include "exec/measure.h"

/* A node of a program with the parts that a rank holds, or (node NULL) the optimizer's
 * pass over `count` parameters, or a sum of as long arrays. */
typedef struct ms_kernel_case {
    ms_sample sample; /* without seconds */
    const ms_program *program;
    const ms_node *node;
    ms_local in[MS_MAX_OPERANDS], out[MS_MAX_OPERANDS];
    const ms_batch *batch;
    long count;
    long num_calls; /* between two stamps */
    double host_s;  /* that a call takes of the host */
} ms_kernel_case;

typedef struct ms_kernel_cases {
    int num, capacity;
    ms_kernel_case *items;
} ms_kernel_cases;

ms_status ms_kernel_cases_make(ms_ctx *cx, const ms_measure *how, const ms_world *world,
                               ms_kernel_cases *out);

/* Seconds of cases over rounds, and what is made of them. */
typedef struct ms_rounds {
    int num_cases, num_rounds, max_rounds;
    double *seconds; /* (max_rounds, num_cases): at work */
    double *elapsed; /* likewise, waiting for a core included */
    int *order;      /* (num_cases) of the round */
    ms_rng rng;
} ms_rounds;
ms_rounds ms_rounds_make(ms_arena *arena, int num_cases, uint64_t seed);
/* The next round's order; NULL when there is no room for another. */
const int *ms_rounds_next(ms_rounds *rounds);
typedef struct ms_timed {
    double seconds, elapsed_s;
} ms_timed;
void ms_rounds_set(ms_rounds *rounds, int which, const ms_timed *timed);
/* (2, num_cases): medians: at work, then elapsed. */
void ms_rounds_results(ms_arena *arena, const ms_rounds *rounds, double *results);

/* Memory of the backend that a rank has. */
#define MS_MAX_HELD 32
typedef struct ms_held {
    int num;
    void *memory[MS_MAX_HELD];
    size_t bytes[MS_MAX_HELD];
} ms_held;

/* A rank at its work. */
typedef struct ms_measurer {
    ms_ctx *cx;
    const ms_measure *how;
    const ms_world *world;
    ms_device_rank *device;
    long rank;
    ms_held *held; /* released when it is done */
} ms_measurer;

/* Starts a transfer and waits for it. */
ms_status ms_measurer_move(const ms_measurer *m, const ms_transfer *transfer);
/* The largest of each value over the ranks, on all. */
ms_status ms_measurer_most(const ms_measurer *m, double *values, long count);

/* Bytes of memory, not of the ledger. */
size_t ms_local_bytes(const ms_local *local);
/* Random numbers of a type; NULL for no bytes. */
ms_status ms_measurer_filled(const ms_measurer *m, ms_scalar scalar, size_t bytes,
                             char **out);
/* Experts of tokens. */
ms_status ms_measurer_choice(const ms_measurer *m, ms_scalar scalar, size_t bytes,
                             char **out);
/* ... for arrays that lie anywhere in it. */
typedef struct ms_region {
    char *at;
    size_t bytes;
} ms_region;
ms_status ms_measurer_region(const ms_measurer *m, ms_scalar scalar, size_t bytes,
                             ms_region *out);
/* Seconds between two points of the rank's order. */
ms_status ms_measurer_elapsed(const ms_measurer *m, double from, double to,
                              double *seconds);

ms_status ms_measure_kernels(const ms_measurer *m, const ms_kernel_cases *cases,
                             double *results);

int ms_collective_cases(ms_arena *arena, const ms_measure *how, ms_sample **cases);
ms_status ms_measure_collectives(const ms_measurer *m, const ms_sample *cases, int num,
                                 double *results);

#endif
