/* meshsim plot cost, plot pareto: the jobs of a training on clusters and numbers of GPUs. */
#ifndef MS_CLI_CMD_PLOT_JOBS_H
#define MS_CLI_CMD_PLOT_JOBS_H

#include "cli/cmd/plot_request.h"

#define MS_MAX_PLOT_CLUSTERS 7

typedef struct ms_plot_jobs {
    ms_plan_sweep sweep; /* one task, each with a campaign; cluster by cluster */
    int num_clusters;    /* at most MS_MAX_PLOT_CLUSTERS */
    const char *model;   /* name of the model */
} ms_plot_jobs;

/* Reads the jobs that the options of sweeps ask for, none answered. MS_EINPUT: bad
 * options, several tasks, no campaign, or outputs that would replace files in use. */
ms_status ms_plot_jobs_read(const ms_plot_request *r, ms_plot_jobs *out);

/* Why there is nothing to draw of jobs none of which is drawn. */
const char *ms_plot_jobs_reason(ms_arena *arena, const ms_plan_sweep *sweep);

#endif
