/* Reports of `calibrate --from-run`: what moved, and errors before and after. */
#ifndef MS_CLI_REPORT_OWN_REPORT_H
#define MS_CLI_REPORT_OWN_REPORT_H

#include "sim/validate/own_runs.h"

#include <stdio.h>

typedef struct ms_own_report {
    const ms_own_runs *own; /* fitted */
    const char *table;      /* name of the table of runs */
    bool holdout;           /* the members below are set */
    int fit_rows;           /* runs that each fit saw; 0: all but the layouts left out */
    int num_held_out;
    ms_own_held_out *held_out;
} ms_own_report;

void ms_own_report_print(FILE *out, ms_arena *arena, const ms_own_report *report);
/* Writes meshsim.own_fit/1 (docs/json.md). */
void ms_own_report_write_json(ms_jout *out, ms_arena *arena, const ms_own_report *report);

/* Mean over groups of their medians, and how many groups are better and worse after. */
typedef struct ms_own_held_summary {
    int num_groups, num_better, num_worse;
    double before_ape_frac, after_ape_frac; /* NaN: no groups */
} ms_own_held_summary;
ms_own_held_summary ms_own_report_summarise(const ms_own_report *report,
                                            ms_measurement measurement);

#endif
