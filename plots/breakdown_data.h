/* Plot of where the step of one or several plans goes: compute, exposed communication by
 * axis, bubble, optimizer, waiting for the host; the parts sum to the step time. */
#ifndef MS_PLOTS_BREAKDOWN_DATA_H
#define MS_PLOTS_BREAKDOWN_DATA_H

#include "plots/priced_plan.h"
#include "plots/script.h"

typedef enum ms_step_part {
    MS_PART_COMPUTE,
    MS_PART_TP, /* exposed communication of an axis: MS_PART_TP to MS_PART_OTHER */
    MS_PART_CP,
    MS_PART_EP,
    MS_PART_DATA,    /* parameters and gradients over the data-parallel ranks */
    MS_PART_EXPERTS, /* parameters and gradients of experts, likewise */
    MS_PART_REPLICATE,
    MS_PART_OTHER, /* exposed communication of no axis above */
    MS_PART_BUBBLE,
    MS_PART_OPTIMIZER,
    MS_PART_HOST,
    MS_NUM_STEP_PARTS
} ms_step_part;
/* keys of ms_step_part in JSON: "compute_s", "exposed_tp_s", ..., NULL-ended */
extern const char *const ms_step_part_keys[];

/* Seconds of the parts of a predicted step. */
void ms_step_parts(const ms_prediction *prediction, double out[MS_NUM_STEP_PARTS]);

typedef struct ms_breakdown {
    ms_arena *arena; /* arena for captions */
    int num_plans;   /* number of plans, 1 to MS_MAX_PLOT_PLANS */
    const ms_priced_plan *plans;
} ms_breakdown;

void ms_breakdown_write_data(FILE *out, const ms_breakdown *plot);
ms_status ms_breakdown_write_script(ms_ctx *cx, FILE *out, const ms_breakdown *plot,
                                    const char *name, ms_picture_format format);
void ms_breakdown_write_json(ms_jout *out, const ms_breakdown *plot);
void ms_breakdown_print(FILE *out, const ms_breakdown *plot);

#endif
