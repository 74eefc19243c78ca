/* Internals of own_runs*.c: the files of a group, and the corrections in them. */
#ifndef MS_SIM_VALIDATE_OWN_RUNS_PRIV_H
#define MS_SIM_VALIDATE_OWN_RUNS_PRIV_H

#include "base/figure.h"
#include "costmodel/calibrate/penalised.h"
#include "sim/validate/own_runs.h"

/* A profile or stack that runs of a group use, and the copy that corrections change. */
typedef struct ms_own_copy {
    const void *original;
    void *copy;
    bool is_stack;
    const ms_cluster *cluster; /* cluster of the first run that uses it */
} ms_own_copy;

/* A figure that a constant moves in every copy of its file. */
typedef struct ms_own_target {
    int constant; /* index in the list */
    bool is_stack;
    const ms_figure *figure;
} ms_own_target;

typedef struct ms_own_files {
    int num_copies;
    ms_own_copy *copies;
    ms_figures profile_figures, stack_figures;
    int num_targets;
    ms_own_target *targets; /* sorted by constant */
    double *x;              /* (num_constants): corrections that the copies have now */
} ms_own_files;

/* Makes copies of the files that `group`'s runs use, and has the runs use them. */
void ms_own_files_open(ms_arena *arena, const ms_own_runs *own, ms_own_group *group);
/* Sets correction x of a constant in all copies; `only`: moves no other target. */
void ms_own_files_set(const ms_own_runs *own, ms_own_files *files, int constant, double x,
                      const ms_own_target *only);
/* Value of a target with its constant's correction at x, in its first file; NaN if the
 * file has none. */
double ms_own_target_value(const ms_own_runs *own, const ms_own_files *files,
                           const ms_own_target *target, double x);

/* Rows of a group that one measurement's constants are fitted to. */
typedef struct ms_own_trial {
    const ms_own_runs *own;
    const ms_own_group *group;
    ms_measurement measurement;
    int num_rows;
    const int *rows; /* indices of runs */
    int num_free;
    int *free; /* (num_free): indices of constants on which the rows depend */
} ms_own_trial;

/* Whether the run has this measurement and finished. */
bool ms_own_is_measured(const ms_pubrun *run, ms_measurement measurement);
/* Keeps those of `rows` that are evidence on the measurement and can be predicted. */
void ms_own_trial_take(ms_arena *arena, ms_own_trial *t, const int *rows, int num_rows);
/* ln(predicted / measured) of the trial's rows, by the files as they are now; of a run
 * that ran out of memory ln(predicted / capacity) if negative, else 0. */
void ms_own_log_errors(const ms_own_trial *t, double *out);
/* Undoes all corrections of the group's files. */
void ms_own_trial_reset(const ms_own_trial *t);
/* Fits the group's constants to `rows`; its files then have the corrections. MS_EIO if
 * the fit fails. */
ms_status ms_own_trial_fit(ms_ctx *cx, ms_own_trial *t, const int *rows, int num_rows,
                           ms_penalised_fit *out);

#endif
