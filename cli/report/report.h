/* Folder cli/report: results as text for people, in tables and drawings, and JSON that no
 * library writes. Here: functions that print results of sim. */
#ifndef MS_CLI_REPORT_REPORT_H
#define MS_CLI_REPORT_REPORT_H

#include "base/table.h"
#include "cli/options/output.h"
#include "costmodel/calibrate/calibration.h"
#include "sim/explain/advise.h"
#include "sim/explain/explain_view.h"
#include "sim/search/mesh_orders.h"
#include "sim/search/search_report.h"
#include "sim/validate/collectives_fit.h"
#include "sim/validate/fits_score.h"
#include "sim/validate/kernels_fit.h"
#include "sim/validate/pubrun_measurement.h"

/* ---- plans ---- */

/* Prints a prediction: inputs, step time, memory, stages and axes. */
void ms_prediction_print(FILE *out, ms_arena *arena, const ms_plan *plan,
                         const ms_prediction *prediction);
/* The assumptions of a prediction on states, traffic, experts and padding, in one line. */
const char *ms_assumed_text(ms_arena *arena, const ms_plan *plan, const ms_prediction *p);
/* The peak FLOP rate that MFU refers to: "the dense bf16 peak". */
const char *ms_peak_rate_text(ms_arena *arena, ms_dtype compute, const ms_prediction *p);
/* The title and alignment (ms_table_columns) of a choice's column in tables of plans. In
 * short lines, columns of rare choices are left out first, then switches and methods; the
 * figures that follow from others have higher digits. */
const char *ms_choice_title(ms_choice choice);
const char *ms_choice_alignment(ms_choice choice);
/* The columns that a table of plans has for their choices: less usual ones only if a plan
 * sets them. */
typedef struct ms_plan_columns {
    int num;
    ms_choice choices[MS_NUM_CHOICES]; /* (num): from left to right */
    bool order;                        /* a column for the order of axes */
} ms_plan_columns;
ms_plan_columns ms_plan_columns_of(const ms_plan *const *plans, int num_plans);
/* Appends the columns to a table, and a plan's cells to a row. */
void ms_plan_columns_name(ms_table *table, const ms_plan_columns *columns);
void ms_plan_columns_cells(ms_table *table, ms_arena *arena,
                           const ms_plan_columns *columns, const ms_plan *plan);
/* Prints the inputs of a search, its plans, counts of rejected ones and the certificate
 * that no plan of the space is faster. */
void ms_search_print(FILE *out, ms_arena *arena, const ms_search_report *report);
/* Prints why a search did not choose a plan: one line per stage of the search. */
void ms_why_print(FILE *out, ms_arena *arena, const ms_why *why);
void ms_explanation_print(FILE *out, ms_arena *arena, const ms_explanation *explanation,
                          const ms_explain_view *view);

/* Prints advice on a plan: at most `rows` single changes that fit, the best pair, and what
 * to measure. */
/* Whether a faster change of the advice is the same but for virtual stages or recomputed
 * layers. */
bool ms_advice_is_repeated(const ms_advice *advice, int change);
/* "dp_shard 16 -> 32: step 8.12 s (-25.5 %), ...", or that no pair is better. */
const char *ms_advice_pair_text(ms_arena *arena, const ms_advice *advice);
/* The measurement that could most easily turn the choice, as a sentence. */
const char *ms_advice_measure_text(ms_arena *arena, const ms_advice *advice);
void ms_advice_print(FILE *out, ms_arena *arena, const ms_advice *advice, int rows);

/* Prints costs of a plan in all orders of its axes, and the reasons. */
void ms_mesh_orders_print(FILE *out, ms_arena *arena, const ms_mesh_orders *orders,
                          const ms_plan *plan, const ms_cluster *cluster);
/* Writes the members "orders", "refused_orders" and "why" of the open JSON object. */
void ms_mesh_orders_write_fields(ms_jout *json, ms_arena *arena,
                                 const ms_mesh_orders *orders, const ms_plan *plan,
                                 const ms_cluster *cluster);

/* ---- programs and coefficients ---- */

/* Writes the tensors' local SPMD types (costmodel/tensor/spmd.h), changes of type, and
 * findings of their checker (costmodel/program/program_check.h), for one block (NULL:
 * all), as text or as JSON of meshsim.types/1. MS_ECHECK if there are findings. */
ms_status ms_explain_types(ms_ctx *cx, ms_output *out, const ms_explanation *e,
                           const char *block, bool json);
void ms_calibration_print(FILE *out, ms_arena *arena, const ms_calibration *calibration,
                          double elapsed_s);
void ms_calibration_write_json(ms_jout *out, const ms_calibration *calibration,
                               double elapsed_s);

/* ---- validation: with `rows`, first one line per predicted row ---- */

void ms_validation_print(FILE *out, ms_arena *arena, const ms_validation *validation,
                         bool rows);
/* Prints the tables for step time or for peak memory; with the step time also the number
 * of runs predicted and the ranking of plans. */
void ms_validation_print_of(FILE *out, ms_arena *arena, const ms_validation *validation,
                            ms_measurement measurement);
/* Prints finished against unfinished runs by P(fit); nothing without unfinished runs. */
void ms_fits_print(FILE *out, ms_arena *arena, const ms_fits_score *score);
/* Prints how many measured peaks are at most capacities of given P(fit); nothing for
 * fewer than MS_POOLED_SOURCES peaks, which tell no shares. */
void ms_fits_capacities_print(FILE *out, ms_arena *arena,
                              const ms_fits_capacity capacities[MS_FITS_CAPACITIES]);
/* Prints, as the end of a line, the share of measurements within predicted intervals. */
void ms_coverage_print(FILE *out, const ms_error_summary *summary);
/* Prints how many measurements were skipped for each reason; nothing if none was. */
void ms_skipped_print(FILE *out, ms_arena *arena, const ms_skipped *skipped);
void ms_kernel_validation_print(FILE *out, ms_arena *arena,
                                const ms_kernel_validation *validation, bool rows);
void ms_collective_validation_print(FILE *out, ms_arena *arena,
                                    const ms_collective_validation *validation,
                                    bool rows);
void ms_kernels_fit_print(FILE *out, ms_arena *arena, const ms_kernels_fit *fit);
/* Prints fitted coefficients of collectives; with `holdout` also each system's errors by
 * coefficients fitted to the other systems. */
void ms_collectives_fit_print(FILE *out, ms_arena *arena, const ms_collectives_fit *fit,
                              bool holdout);

#endif
