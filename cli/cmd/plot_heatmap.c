/* meshsim plot heatmap: the fastest plan for each pair of values of two choices. */
#include "cli/cmd/plot_request.h"

#include "cli/options/grid_axis.h"
#include "cli/options/sweep_answer.h"
#include "plots/heatmap_data.h"
#include "sim/request/searched_plan.h"

MS_PLOTTED_FUNCTIONS(ms_heatmap, (out, plot))

typedef struct heatmap {
    const ms_plot_request *r;
    ms_grid_axis x, y;
    ms_plan_limits limits; /* limits of every cell */
    const ms_model *model;
    const ms_cluster *cluster;
} heatmap;

static ms_status read_axes(heatmap *h)
{
    ms_ctx *cx = h->r->cx;
    const ms_plot_options *o = &h->r->options;
    if (o->x == NULL || o->y == NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s is not given",
                o->x == NULL ? "--x" : "--y");
        return ms_hint(cx, "for example --x tp=1,2,4,8 --y pp=1..8, or names alone");
    }
    MS_TRY(ms_grid_axis_read(cx, "--x", o->x, &h->x));
    MS_TRY(ms_grid_axis_read(cx, "--y", o->y, &h->y));
    if (h->x.choice == h->y.choice)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--x and --y are both %s", h->x.name);
    const ms_grid_axis *axes[] = {&h->x, &h->y};
    for (int i = 0; i < 2; i++)
        if (axes[i]->of_job && ms_plan_is_given(&h->r->plan, axes[i]->choice))
            return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                           "%s is on an axis, and an option gives it too", axes[i]->name);
    return MS_OK;
}

/* Makes the job of a cell, or of the last values of the axes where these are not yet
 * read. */
static ms_status make_job(const heatmap *h, int column, int row, ms_plan *out)
{
    ms_plan_options options = h->r->plan;
    if (h->x.of_job)
        ms_plan_give(&options, h->x.choice, h->x.values[column]);
    if (h->y.of_job)
        ms_plan_give(&options, h->y.choice, h->y.values[row]);
    MS_TRY(ms_plan_base_from_options(h->r->cx, &options, out));
    return ms_plot_check_outputs(h->r, &options, out);
}

/* Reads the values of the axes in the space of the largest job. */
static ms_status fill_axes(heatmap *h)
{
    ms_ctx *cx = h->r->cx;
    ms_plan base;
    ms_workload *workload;
    MS_TRY(make_job(h, h->x.num - 1, h->y.num - 1, &base));
    MS_TRY(ms_workload_open(cx, &base, &workload));
    h->model = workload->model;
    h->cluster = workload->cluster;
    ms_space space = ms_space_all(&base, workload->stack);
    ms_status status = ms_plan_check_positions(cx, &base, h->model, MS_NOWHERE);
    for (int i = 0; i < h->limits.num && status == MS_OK; i++)
        status = ms_space_limit(cx, &space, h->limits.texts[i]);
    if (status == MS_OK)
        status = ms_grid_axis_fill(cx, &space, h->model, &h->x);
    if (status == MS_OK)
        status = ms_grid_axis_fill(cx, &space, h->model, &h->y);
    ms_workload_close(workload);
    return status;
}

static const ms_plan_limits *cell_limits(const heatmap *h, int column, int row)
{
    ms_arena *arena = h->r->cx->arena;
    ms_plan_limits *limits = MS_NEW(arena, ms_plan_limits);
    const char **texts = MS_NEW_ARRAY(arena, h->limits.num + 2, const char *);
    *limits = h->limits;
    limits->texts = texts;
    for (int i = 0; i < h->limits.num; i++)
        texts[i] = h->limits.texts[i];
    if (!h->x.of_job)
        texts[limits->num++] =
            ms_space_choice_text(arena, h->x.choice, h->x.values[column]);
    if (!h->y.of_job)
        texts[limits->num++] = ms_space_choice_text(arena, h->y.choice, h->y.values[row]);
    return limits;
}

/* A search for each cell, row by row. */
static ms_status make_searches(heatmap *h, ms_plan_sweep *out)
{
    ms_ctx *cx = h->r->cx;
    int num = h->x.num * h->y.num;
    ms_best_question *questions = MS_NEW_ARRAY(cx->arena, num, ms_best_question);
    int verbosity = cx->verbosity;
    cx->verbosity = -1; /* defaults of the first job are noted already */
    ms_status status = MS_OK;
    for (int i = 0; i < num && status == MS_OK; i++) {
        int column = i % h->x.num, row = i / h->x.num;
        questions[i].limits = cell_limits(h, column, row);
        status = make_job(h, column, row, &questions[i].base);
    }
    cx->verbosity = verbosity;
    *out = (ms_plan_sweep){1, num, questions, MS_NEW_ARRAY(cx->arena, num, bool),
                           MS_NEW_ARRAY(cx->arena, num, ms_best_plan)};
    return status;
}

/* Text of model, GPUs, device, batch and limits, where all cells have the same. */
static const char *common_text(const heatmap *h, const ms_plan *base)
{
    ms_arena *arena = h->r->cx->arena;
    bool varies[MS_NUM_CHOICES] = {false};
    varies[h->x.choice] = varies[h->y.choice] = true;
    bool same_batch = !varies[MS_CHOOSE_GLOBAL_BATCH] && !varies[MS_CHOOSE_GPUS] &&
                      !varies[MS_CHOOSE_SEQUENCE_LENGTH];
    const char *text = ms_arena_printf(arena, "%s on ", h->model->name);
    if (!varies[MS_CHOOSE_GPUS])
        text = ms_arena_printf(arena, "%s%ld × ", text, base->gpus);
    text = ms_arena_printf(arena, "%s%s", text, h->cluster->device.name);
    if (same_batch)
        text = ms_arena_printf(arena, "%s · %ld sequences of %ld a step", text,
                               base->global_batch, base->sequence_length);
    else if (!varies[MS_CHOOSE_SEQUENCE_LENGTH])
        text =
            ms_arena_printf(arena, "%s · sequences of %ld", text, base->sequence_length);
    for (int i = 0; i < h->limits.num; i++)
        text = ms_arena_printf(arena, "%s%s%s", text, i == 0 ? " · " : ", ",
                               h->limits.texts[i]);
    return text;
}

static ms_heatmap_value value_to_show(const heatmap *h)
{
    const ms_opt_choice *value = &h->r->options.value;
    bool same_work = !h->x.of_job && !h->y.of_job;
    if (value->given)
        return (ms_heatmap_value)value->value;
    return same_work ? MS_HEATMAP_TIME : MS_HEATMAP_MFU;
}

ms_status ms_plot_heatmap(ms_plot_request *r)
{
    heatmap h = {.r = r};
    ms_plan_sweep sweep;
    MS_TRY(read_axes(&h));
    MS_TRY(ms_plan_limits_read(r->cx, &r->options.limit, &r->memory, &h.limits));
    MS_TRY(fill_axes(&h));
    MS_TRY(ms_memory_options_check(r->cx, &h.limits.memory, h.cluster));
    MS_TRY(make_searches(&h, &sweep));
    ms_status status = ms_sweep_answer(r->cx, r->args, NULL, &sweep);
    if (status != MS_OK && status != MS_EINTERRUPTED)
        return status;
    ms_heatmap plot = {.arena = r->cx->arena,
                       .job = common_text(&h, &sweep.questions[0].base),
                       .value = value_to_show(&h),
                       .x = {h.x.name, h.x.num, h.x.texts},
                       .y = {h.y.name, h.y.num, h.y.texts},
                       .cells = sweep.answers};
    return ms_plot_show_found(
        r, &(ms_plotted)MS_PLOTTED(ms_heatmap, &plot), status,
        ms_heatmap_best(&plot) >= 0 ? NULL : "no plan fits in any cell of this picture");
}
