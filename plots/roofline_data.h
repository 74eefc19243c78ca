/* Plot of the kernels of a plan's most frequent layer over arithmetic intensity, below the
 * device's peak and memory bandwidth. */
#ifndef MS_PLOTS_ROOFLINE_DATA_H
#define MS_PLOTS_ROOFLINE_DATA_H

#include "plots/script.h"
#include "sim/explain/explain.h"

typedef enum ms_kernel_group {
    MS_KERNELS_GEMM,
    MS_KERNELS_ATTENTION,
    MS_KERNELS_SCAN,
    MS_KERNELS_POINTWISE, /* norms, activations, sums, routing */
    MS_NUM_KERNEL_GROUPS
} ms_kernel_group;
/* "GEMM", "attention", ..., NULL-ended */
extern const char *const ms_kernel_group_names[];

/* All kernels of one name in one direction of a layer, for one micro-batch on one GPU. */
typedef struct ms_roofline_kernel {
    const char *name;
    bool backward; /* backward and recomputation */
    ms_kernel_group group;
    /* executed; a pointwise kernel counts one FLOP an element that it writes */
    double flop;
    double bytes; /* HBM bytes: operands read and results written once */
    double seconds;
} ms_roofline_kernel;

typedef struct ms_roofline {
    ms_arena *arena; /* arena for captions */
    const ms_plan *plan;
    const ms_workload *workload;
    const char *block;                       /* name of the layer */
    double peak_flop_per_s, hbm_bytes_per_s; /* listed */
    double total_s;                          /* sum over all kernels of the layer */
    int num_kernels;
    const ms_roofline_kernel
        *kernels; /* longest first; those without time are left out */
} ms_roofline;

/* Lists the kernels of an explained plan; *out is in cx->arena, beside what `explanation`
 * points to. MS_EINPUT for a plan whose layers run no kernel. */
ms_status ms_roofline_make(ms_ctx *cx, const ms_explanation *explanation,
                           ms_roofline *out);

void ms_roofline_write_data(FILE *out, const ms_roofline *plot);
ms_status ms_roofline_write_script(ms_ctx *cx, FILE *out, const ms_roofline *plot,
                                   const char *name, ms_picture_format format);
void ms_roofline_write_json(ms_jout *out, const ms_roofline *plot);
void ms_roofline_print(FILE *out, const ms_roofline *plot);

#endif
