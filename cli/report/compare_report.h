/* Many results side by side (meshsim compare with more than two). */
#ifndef MS_CLI_REPORT_COMPARE_REPORT_H
#define MS_CLI_REPORT_COMPARE_REPORT_H

#include "cli/options/output.h"
#include "sim/result/result_file.h"

/* Prints results as one table: choices that are equal in all once above it, the others and
 * the figures in it, results side by side, or one a line if they are too many. */
void ms_results_print(FILE *out, ms_arena *arena, const ms_results *results);
/* Writes the array "plans" of meshsim.comparison/1: each result's figures, its plan, and
 * its step time divided by that of the first. */
void ms_results_write_plans(ms_jout *out, const ms_results *results);

#endif
