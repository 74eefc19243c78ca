/* Plot of measured against fitted times of kernels and collectives: of the measurements
 * that a calibrated profile keeps, or of tables of measured kernels or collectives. */
#ifndef MS_PLOTS_CALIBRATION_DATA_H
#define MS_PLOTS_CALIBRATION_DATA_H

#include "plots/script.h"
#include "sim/validate/collective_validation.h"
#include "sim/validate/kernel_validation.h"

#define MS_MAX_CALIBRATED_GROUPS 16 /* further kinds of points are "others" */

typedef struct ms_calibrated_point {
    double measured_s, fitted_s;
    int group;
} ms_calibrated_point;

typedef struct ms_calibrated_group {
    const char *name;
    int num_points;
} ms_calibrated_group;

typedef struct ms_calibration_plot {
    ms_arena *arena;  /* arena for captions */
    const char *name; /* name of the profile or table */
    int num_groups, num_points, capacity;
    ms_calibrated_group groups[MS_MAX_CALIBRATED_GROUPS];
    ms_calibrated_point *points;
} ms_calibration_plot;

/* Adds the points of a profile that has `measured` by its fitted formulas, without the
 * corrections by nearby measurements that predictions use. Errors: those of
 * ms_pricer_make. */
ms_status ms_calibration_plot_add_profile(ms_ctx *cx, const ms_cluster *cluster,
                                          const ms_profile *profile,
                                          const ms_stack *stack,
                                          ms_calibration_plot *plot);
/* Adds the rows of a table that are predicted, by shipped coefficients. */
void ms_calibration_plot_add_kernels(const ms_kernel_validation *kernels,
                                     ms_calibration_plot *plot);
void ms_calibration_plot_add_collectives(const ms_collective_validation *collectives,
                                         ms_calibration_plot *plot);

void ms_calibration_plot_write_data(FILE *out, const ms_calibration_plot *plot);
ms_status ms_calibration_plot_write_script(ms_ctx *cx, FILE *out,
                                           const ms_calibration_plot *plot,
                                           const char *name, ms_picture_format format);
void ms_calibration_plot_write_json(ms_jout *out, const ms_calibration_plot *plot);
void ms_calibration_plot_print(FILE *out, const ms_calibration_plot *plot);

#endif
