/* meshsim plot scaling: the best plan on each of several numbers of GPUs. */
#include "cli/cmd/plot_jobs.h"

#include "cli/options/interrupt.h"
#include "cli/options/plan_command.h"
#include "cli/options/progress.h"
#include "plots/caption.h"
#include "plots/scaling_clusters_data.h"
#include "sim/planning/sizes.h"
#include "sim/request/plan_flags.h"
#include "sim/request/searched_plan.h"

#include <math.h>
#include <string.h>

#define NO_PLAN "no plan fits on any of these numbers of GPUs"

MS_PLOTTED_FUNCTIONS(ms_scaling, (out, plot))
MS_PLOTTED_FUNCTIONS(ms_scaling_clusters, (out, plot))

/* Lists and limits that all searches share. */
typedef struct searches {
    ms_sizes sizes;
    ms_plan_limits limits;
    const char *limits_text;
    int num_clusters;
    const char *clusters[MS_MAX_PLOT_CLUSTERS]; /* NULL: the plan's */
    int num_done;
} searches;

/* Sets the batch that grows with the GPUs from that of the first point. */
static ms_status give_weak_batch(ms_ctx *cx, const searches *s,
                                 const ms_scaling_point *first, ms_plan *base)
{
    long least = s->sizes.sizes[0];
    if (base->gpus == least)
        return MS_OK;
    if (first->global_batch * base->gpus % least != 0)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "--weak: %ld sequences on %ld GPUs are no whole number on %ld",
                       first->global_batch, least, base->gpus);
    base->global_batch = first->global_batch * base->gpus / least;
    return MS_OK;
}

static ms_status search_size(const ms_plot_request *r, const searches *s,
                             const char *name, ms_scaling *scaling,
                             ms_scaling_point *point)
{
    ms_ctx *cx = r->cx;
    long gpus = point->gpus;
    ms_plan_options opts = r->plan;
    if (name != NULL)
        opts.of[MS_CHOOSE_CLUSTER].text = name;
    ms_plan_give(&opts, MS_CHOOSE_GPUS, gpus);
    ms_best_question question = {.limits = &s->limits};
    ms_plan *base = &question.base;
    MS_TRY(ms_plan_base_from_options(cx, &opts, base));
    if (r->options.weak)
        MS_TRY(give_weak_batch(cx, s, &scaling->points[0], base));
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
    ms_status status = ms_best_plan_find(cx, &question, &options, &point->best);
    if (status == MS_EINTERRUPTED)
        point->best.reason = "not searched";
    return status;
}

/* Shows on a terminal which search runs; `gpus` 0 clears the line. */
static void show_progress(const ms_plot_request *r, const searches *s, long gpus)
{
    const ms_progress now = {"searches", s->num_done, s->num_clusters * s->sizes.num, NAN,
                             NAN};
    if (!ms_progress_is_shown(r->args) || ms_progress_write(r->args, &now))
        return;
    if (gpus > 0)
        fprintf(stderr, "\rsearching plans for %ld GPUs (%d of %d)\033[K", gpus,
                s->num_done + 1, s->num_clusters * s->sizes.num);
    else
        ms_progress_clear(r->args);
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

static ms_status search_cluster(const ms_plot_request *r, searches *s, int k,
                                ms_scaling *out)
{
    ms_arena *arena = r->cx->arena;
    *out = (ms_scaling){.arena = arena,
                        .limits = s->limits_text,
                        .num_points = s->sizes.num,
                        .points = MS_NEW_ARRAY(arena, s->sizes.num, ms_scaling_point)};
    for (int i = 0; i < s->sizes.num; i++) {
        out->points[i].gpus = s->sizes.sizes[i];
        out->points[i].best.reason = "not searched";
    }
    for (int i = 0; i < s->sizes.num; i++, s->num_done++) {
        show_progress(r, s, s->sizes.sizes[i]);
        MS_TRY(search_size(r, s, s->clusters[k], out, &out->points[i]));
    }
    return MS_OK;
}

static ms_status read_clusters(const ms_plot_request *r, searches *s)
{
    ms_ctx *cx = r->cx;
    const char *list = r->options.clusters;
    s->num_clusters = 1;
    if (list == NULL)
        return MS_OK;
    if (ms_plan_is_given(&r->plan, MS_CHOOSE_CLUSTER))
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "--clusters and --cluster name clusters twice");
    int num = 0;
    for (const char *item; (item = ms_list_next(cx->arena, &list)) != NULL;) {
        if (num == MS_MAX_PLOT_CLUSTERS)
            return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                           "--clusters: a picture has room for %d clusters", num);
        for (int i = 0; i < num; i++)
            if (strcmp(s->clusters[i], item) == 0)
                return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--clusters names \"%s\" twice",
                               item);
        s->clusters[num++] = item;
    }
    if (num == 0)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--clusters names none");
    s->num_clusters = num;
    return MS_OK;
}

static ms_status read_searches(const ms_plot_request *r, searches *s)
{
    ms_ctx *cx = r->cx;
    if (r->options.gpus == NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the numbers of GPUs are not given");
        return ms_hint(cx, "for example --gpus 64..4096");
    }
    MS_TRY(ms_sizes_parse(cx, "--gpus", r->options.gpus, MS_MAX_GPUS, &s->sizes));
    MS_TRY(ms_plan_limits_read(cx, &r->options.limit, &r->memory, &s->limits));
    s->limits_text = limits_text(r);
    return read_clusters(r, s);
}

static ms_status show_several(const ms_plot_request *r, const searches *s,
                              const ms_scaling *scaling, ms_status searched)
{
    const char **names = MS_NEW_ARRAY(r->cx->arena, s->num_clusters, const char *);
    bool found = false;
    for (int k = 0; k < s->num_clusters; k++) {
        names[k] = ms_caption_name(r->cx->arena, s->clusters[k]);
        found = found || ms_scaling_first(&scaling[k]) != NULL;
    }
    ms_scaling_clusters plot = {r->cx->arena, s->num_clusters, names, scaling};
    return ms_plot_show_found(r, &(ms_plotted)MS_PLOTTED(ms_scaling_clusters, &plot),
                              searched, found ? NULL : NO_PLAN);
}

ms_status ms_plot_scaling(ms_plot_request *r)
{
    searches s = {0};
    ms_scaling scaling[MS_MAX_PLOT_CLUSTERS];
    MS_TRY(read_searches(r, &s));
    ms_status status = MS_OK;
    int num_begun = 0;
    while (num_begun < s.num_clusters && status == MS_OK) {
        status = search_cluster(r, &s, num_begun, &scaling[num_begun]);
        num_begun++;
    }
    show_progress(r, &s, 0);
    if (status != MS_OK && (status != MS_EINTERRUPTED || s.num_done == 0))
        return status;
    s.num_clusters = num_begun;
    if (s.num_clusters > 1)
        return show_several(r, &s, scaling, status);
    return ms_plot_show_found(r, &(ms_plotted)MS_PLOTTED(ms_scaling, &scaling[0]), status,
                              ms_scaling_first(&scaling[0]) != NULL ? NULL : NO_PLAN);
}
