/* Measured times of kernels and collectives, which correct a profile's cost laws. */
#ifndef MS_COSTMODEL_PROFILE_SWEEP_H
#define MS_COSTMODEL_PROFILE_SWEEP_H

#include "base/json.h"
#include "topo/cluster.h"

/* Machine and software of a measurement, as text; NULL if not known. */
typedef struct ms_machine {
    const char *cpu, *cores, *caches, *memory, *kernel, *compiler, *blas;
    /* only for ranks on GPUs */
    const char *gpu, *gpu_memory, *gpu_clocks, *gpu_driver, *gpu_libraries;
    const char *conditions; /* operands, order and warm-up of the measured kernels */
} ms_machine;
/* JSON fields of a machine: "cpu", "cores", ... */
extern const ms_field ms_machine_fields[];

void ms_machine_write(ms_jout *out, const ms_machine *machine);

/* A table of measurements, row after row; the last number of a row is seconds. */
typedef struct ms_sweep_rows {
    int num;
    const double *values;
} ms_sweep_rows;

enum {
    MS_GEMM_COLUMNS = 5, /* a row of `products`: batch, m, n, k, seconds */
    /* attention row: FLOP, key tokens, head dim, score elements, traffic bytes,
     * seconds */
    MS_ATTENTION_COLUMNS = 6,
    MS_CURVE_COLUMNS = 2 /* a row of a curve: bytes, seconds */
};

/* Measured seconds of a collective on `ranks` ranks by size; larger is never faster. */
typedef struct ms_sweep_curve {
    int collective; /* ms_collective */
    long ranks;
    ms_sweep_rows rows;
} ms_sweep_curve;

typedef struct ms_sweep {
    ms_machine machine;
    int dtype;  /* ms_dtype of measured GEMMs and attention */
    long ranks; /* number of ranks that ran at the same time */
    ms_sweep_rows products;
    ms_sweep_rows attention[2]; /* tables for [0] forward, [1] backward */
    int num_curves;
    ms_sweep_curve *curves;
} ms_sweep;

/* Reads a profile's tables of measured times. Within a curve of a collective, seconds
 * below those of a smaller size are raised to them. MS_EINPUT: a row of wrong length, a
 * value that is not positive, sizes of a curve that do not grow, fewer than two rows. */
ms_status ms_sweep_read(ms_ctx *cx, ms_jval object, ms_sweep *out);
void ms_sweep_write(ms_jout *out, const ms_sweep *measured);

/* FLOP/s of the fastest measured GEMM or attention. */
double ms_sweep_fastest_flop_per_s(const ms_sweep *measured);

/* Measured curve of a collective on a number of ranks; NULL if there is none. */
const ms_sweep_curve *ms_sweep_find(const ms_sweep *measured, int collective, long ranks);
/* Seconds of a collective of `bytes`, interpolated in logarithms between measured sizes.
 * Returns false outside the measured sizes. */
bool ms_sweep_curve_s(const ms_sweep_curve *curve, double bytes, double *seconds);

/* Ratios of measured to fitted time, each at a shape given by three sizes. */
typedef struct ms_residuals {
    int num;
    double (*log_size)[3];
    double *log_ratio;
} ms_residuals;
ms_residuals *ms_residuals_make(ms_arena *arena, int capacity);
void ms_residuals_add(ms_residuals *to, const double size[3], double ratio);
/* Ratio of measured to fitted time at a shape: exp of the weighted mean of the logs of
 * known ratios. A known ratio d octaves away has weight 1/d^4 (inverse distance
 * weighting, Shepard 1968), and a ratio of 1 has the weight of three octaves. So a
 * measured shape has its own ratio, and shapes far from all measured ones have 1. */
double ms_residuals_ratio(const ms_residuals *residuals, const double size[3]);

#endif
