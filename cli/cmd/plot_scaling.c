/* meshsim plot scaling: the best plan on each of several numbers of GPUs. */
#include "cli/cmd/plot_request.h"

#include "cli/options/interrupt.h"
#include "cli/options/plan_command.h"
#include "cli/options/plan_flags.h"
#include "cli/options/searched_plan.h"
#include "plots/scaling_data.h"
#include "sim/planning/sizes.h"

#include <string.h>
#include <unistd.h>

MS_PLOTTED_FUNCTIONS(ms_scaling, (out, plot))

static ms_status search_size(const ms_plot_request *r, long gpus,
                             const ms_plan_limits *limits, ms_scaling *scaling,
                             ms_scaling_point *point)
{
    ms_ctx *cx = r->cx;
    ms_plan_options opts = r->plan;
    ms_plan_give(&opts, MS_CHOOSE_GPUS, gpus);
    ms_best_question question = {.limits = limits};
    ms_plan *base = &question.base;
    MS_TRY(ms_plan_base_from_options(cx, &opts, base));
    MS_TRY(ms_plot_check_outputs(r, &opts, base));
    const ms_model *model;
    const ms_cluster *cluster;
    MS_TRY(ms_model_load(cx, base->model, &model));
    MS_TRY(ms_cluster_load(cx, base->cluster, &cluster));
    scaling->model = model->name;
    scaling->device = cluster->device.name;
    scaling->sequence_length = base->sequence_length;
    ms_search_options options = {.num_threads = ms_args_threads(r->args),
                                 .interrupted = &ms_interrupted};
    *point = (ms_scaling_point){.gpus = gpus, .global_batch = base->global_batch};
    return ms_best_plan_find(cx, &question, &options, &point->best);
}

/* Shows on a terminal which search runs; `next` = sizes->num clears the line. */
static void show_progress(const ms_plot_request *r, const ms_sizes *sizes, int next)
{
    if (r->cx->verbosity < 0 || !isatty(STDERR_FILENO))
        return;
    if (next < sizes->num)
        fprintf(stderr, "\rsearching plans for %ld GPUs (%d of %d)\033[K",
                sizes->sizes[next], next + 1, sizes->num);
    else
        fputs("\r\033[K", stderr);
}

static const char *limits_text(const ms_plot_request *r)
{
    const ms_opt_list *list = &r->options.limit;
    const char *text = "";
    for (int i = 0; i < list->num_texts; i++)
        text = ms_arena_printf(r->cx->arena, "%s%s%s", text, i == 0 ? "" : ", ",
                               list->texts[i]);
    return text;
}

ms_status ms_plot_scaling(ms_plot_request *r)
{
    ms_ctx *cx = r->cx;
    ms_sizes sizes;
    if (r->options.gpus == NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the numbers of GPUs are not given");
        return ms_hint(cx, "for example --gpus 64..4096");
    }
    MS_TRY(ms_sizes_parse(cx, "--gpus", r->options.gpus, MS_MAX_GPUS, &sizes));
    ms_plan_limits limits;
    MS_TRY(ms_plan_limits_read(cx, &r->options.limit, &r->memory, &limits));
    ms_scaling scaling = {.arena = cx->arena,
                          .limits = limits_text(r),
                          .num_points = sizes.num,
                          .points = MS_NEW_ARRAY(cx->arena, sizes.num, ms_scaling_point)};
    ms_status status = MS_OK;
    for (int i = 0; i < sizes.num && status == MS_OK; i++) {
        show_progress(r, &sizes, i);
        status = search_size(r, sizes.sizes[i], &limits, &scaling, &scaling.points[i]);
    }
    show_progress(r, &sizes, sizes.num);
    MS_TRY(status);
    return ms_plot_show_found(r, &(ms_plotted)MS_PLOTTED(ms_scaling, &scaling),
                              ms_scaling_first(&scaling) != NULL,
                              "no plan fits on any of these numbers of GPUs");
}
