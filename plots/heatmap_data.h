/* Plot of two choices of a plan: each cell is the fastest plan with both of them fixed. */
#ifndef MS_PLOTS_HEATMAP_DATA_H
#define MS_PLOTS_HEATMAP_DATA_H

#include "plots/script.h"
#include "sim/planning/best_plan.h"

/* Figure of its plan that a cell shows. */
typedef enum ms_heatmap_value {
    MS_HEATMAP_TIME,
    MS_HEATMAP_MFU,
    MS_HEATMAP_MEMORY, /* device memory that the plan needs to fit */
    MS_HEATMAP_TOKENS, /* tokens per second */
    MS_NUM_HEATMAP_VALUES
} ms_heatmap_value;
/* names of ms_heatmap_value: "time", "mfu", "memory", "tokens", NULL-ended */
extern const char *const ms_heatmap_value_names[];

typedef struct ms_heatmap_axis {
    const char *name; /* "tp" */
    int num;
    const char *const *values; /* (num) */
} ms_heatmap_axis;

typedef struct ms_heatmap {
    ms_arena *arena; /* arena for captions */
    const char *job; /* the job that cells share: "8b on 64 × H100 · tp<=8" */
    ms_heatmap_value value;
    ms_heatmap_axis x, y;
    const ms_best_plan *cells; /* (y.num * x.num), a row for each value of y */
} ms_heatmap;

/* Index of the cell with the best value; -1: no cell has a plan. */
int ms_heatmap_best(const ms_heatmap *plot);

void ms_heatmap_write_data(FILE *out, const ms_heatmap *plot);
ms_status ms_heatmap_write_script(ms_ctx *cx, FILE *out, const ms_heatmap *plot,
                                  const char *name, ms_picture_format format);
void ms_heatmap_write_json(ms_jout *out, const ms_heatmap *plot);
void ms_heatmap_print(FILE *out, const ms_heatmap *plot);

#endif
