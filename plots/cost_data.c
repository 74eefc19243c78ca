#include "plots/cost_data.h"

#include "base/number.h"
#include "base/print.h"
#include "base/table.h"
#include "plots/caption.h"
#include "plots/labels.h"
#include "sim/planning/campaign_text.h"

#include <math.h>
#include <stdlib.h>

#define WIDTH        1100.0
#define HEIGHT       560.0
#define LEFT         92.0
#define RIGHT        46.0
#define TOP          104.0
#define BOTTOM       62.0
#define PADDING      1.25 /* end of an axis / largest value */
#define LABEL_WIDTH  44.0 /* pixels of a number of GPUs beside its point */
#define LABEL_HEIGHT 15.0

/* ---- points ---- */

static int num_points(const ms_cost_plot *plot)
{
    return ms_plan_sweep_num(plot->sweep);
}

static const ms_campaign *campaign_of(const ms_cost_plot *plot, int point)
{
    return &plot->sweep->answers[point].campaign.campaign;
}

/* Money or GPU-hours; NaN: no plan, no progress or no price. */
static double cost_of(const ms_cost_plot *plot, int point)
{
    const ms_best_plan *answer = &plot->sweep->answers[point];
    const ms_campaign *c = &answer->campaign.campaign;
    if (!answer->found || !ms_campaign_advances(c))
        return (double)NAN;
    return plot->by_money ? c->cost : c->gpu_hours;
}

static bool is_drawn(const ms_cost_plot *plot, int point)
{
    return !isnan(cost_of(plot, point));
}

int ms_cost_plot_num_points(const ms_cost_plot *plot)
{
    int num = 0;
    for (int i = 0; i < num_points(plot); i++)
        num += is_drawn(plot, i);
    return num;
}

ms_cost_plot ms_cost_plot_make(ms_arena *arena, const ms_plan_sweep *sweep,
                               int num_clusters, const char *model)
{
    ms_cost_plot plot = {.arena = arena,
                         .model = model,
                         .sweep = sweep,
                         .choice = ms_plan_sweep_choose(arena, sweep, 0),
                         .num_gpus = sweep->per_task / num_clusters,
                         .num_clusters = num_clusters};
    for (int i = 0; i < num_points(&plot); i++)
        plot.by_money |= sweep->answers[i].found && !isnan(campaign_of(&plot, i)->cost);
    return plot;
}

static double x_of(const ms_cost_plot *plot, int point)
{
    return plot->against_gpus ? (double)plot->sweep->questions[point].base.gpus
                              : campaign_of(plot, point)->elapsed_s / MS_DAY_S;
}

/* The limits of the question, which all points share; NaN: none. */
static double deadline_days(const ms_cost_plot *plot)
{
    return plot->sweep->questions[0].campaign->deadline_s / MS_DAY_S;
}

static double budget(const ms_cost_plot *plot)
{
    return plot->by_money ? plot->sweep->questions[0].campaign->budget : (double)NAN;
}

typedef struct extent {
    double low, high;
} extent;

static void take(extent *e, double value)
{
    if (isnan(value))
        return;
    e->low = ms_min(e->low, value);
    e->high = ms_max(e->high, value);
}

/* Ends of the axes: all points with their intervals, and the limits. */
static void extents_of(const ms_cost_plot *plot, extent *x, extent *y)
{
    *x = *y = (extent){INFINITY, 0.0};
    for (int i = 0; i < num_points(plot); i++) {
        if (!is_drawn(plot, i))
            continue;
        const ms_campaign *c = campaign_of(plot, i);
        take(x, x_of(plot, i));
        take(y, cost_of(plot, i));
        take(y, cost_of(plot, i) * c->elapsed_low_s / c->elapsed_s);
        take(y, cost_of(plot, i) * c->elapsed_high_s / c->elapsed_s);
        take(x, plot->against_gpus ? (double)NAN : c->elapsed_low_s / MS_DAY_S);
        take(x, plot->against_gpus ? (double)NAN : c->elapsed_high_s / MS_DAY_S);
    }
    if (!plot->against_gpus)
        take(x, deadline_days(plot));
    take(y, budget(plot));
    *x = (extent){x->low / PADDING, x->high * PADDING};
    *y = (extent){y->low / PADDING, y->high * PADDING};
}

/* ---- labels ---- */

static ms_label_place place_of(const ms_cost_plot *plot, int point, const extent *x,
                               const extent *y)
{
    return (ms_label_place){(WIDTH - LEFT - RIGHT) * log(x_of(plot, point) / x->low) /
                                log(x->high / x->low),
                            (HEIGHT - TOP - BOTTOM) * log(cost_of(plot, point) / y->low) /
                                log(y->high / y->low)};
}

/* Marks the points whose number of GPUs has room beside them: the chosen ones first. */
static bool *place_labels(const ms_cost_plot *plot)
{
    enum {
        NUM_FIRST = 3
    };
    int num = num_points(plot);
    const int first[NUM_FIRST] = {plot->choice.cheapest, plot->choice.fastest,
                                  plot->choice.fewest};
    bool *has_label = MS_NEW_ARRAY(plot->arena, num, bool);
    bool *chosen = MS_NEW_ARRAY(plot->arena, NUM_FIRST + num, bool);
    ms_label_place *places = MS_NEW_ARRAY(plot->arena, NUM_FIRST + num, ms_label_place);
    extent x, y;
    extents_of(plot, &x, &y);
    for (int i = 0; i < NUM_FIRST + num; i++) {
        int point = i < NUM_FIRST ? first[i] : i - NUM_FIRST;
        places[i] = point >= 0 && is_drawn(plot, point) ? place_of(plot, point, &x, &y)
                                                        : (ms_label_place){NAN, NAN};
    }
    ms_labels_choose(places, NUM_FIRST + num, (ms_label_size){LABEL_WIDTH, LABEL_HEIGHT},
                     chosen);
    for (int i = 0; i < NUM_FIRST + num; i++) {
        int point = i < NUM_FIRST ? first[i] : i - NUM_FIRST;
        if (point >= 0)
            has_label[point] = has_label[point] || chosen[i];
    }
    return has_label;
}

/* ---- words ---- */

static const char *cluster_of(const ms_cost_plot *plot, int point)
{
    return ms_caption_name(plot->arena, plot->sweep->questions[point].base.cluster);
}

static const char *cost_text(const ms_cost_plot *plot, double cost)
{
    return ms_arena_printf(plot->arena, "%s%s", ms_large_text(plot->arena, cost, ""),
                           plot->by_money ? "" : " GPU-hours");
}

static const char *job_text(const ms_cost_plot *plot, int point)
{
    return ms_arena_printf(
        plot->arena, "%ld × %s, %s, %s", plot->sweep->questions[point].base.gpus,
        cluster_of(plot, point),
        ms_long_time_text(plot->arena, campaign_of(plot, point)->elapsed_s),
        cost_text(plot, cost_of(plot, point)));
}

/* "No job ends within 1 day and costs at most 1M" */
static const char *none_text(const ms_cost_plot *plot)
{
    ms_arena *arena = plot->arena;
    double days = deadline_days(plot), most = budget(plot);
    const char *text = "No job";
    if (!isnan(days))
        text = ms_arena_printf(arena, "%s ends within %.4g day%s", text, days,
                               days == 1.0 ? "" : "s");
    if (!isnan(most))
        text = ms_arena_printf(arena, "%s %scosts at most %s", text,
                               isnan(days) ? "" : "and ", cost_text(plot, most));
    return text;
}

static const char *title(const ms_cost_plot *plot)
{
    ms_arena *arena = plot->arena;
    const char *within = "";
    if (!isnan(deadline_days(plot)))
        within = ms_arena_printf(arena, " within %.4g days", deadline_days(plot));
    if (!isnan(budget(plot)))
        within = ms_arena_printf(arena, "%s%s for at most %s", within,
                                 within[0] == '\0' ? "" : " and",
                                 cost_text(plot, budget(plot)));
    if (ms_cost_plot_num_points(plot) == 0)
        return ms_best_plans_stuck(plot->sweep->answers, num_points(plot)) != NULL
                   ? "No plan makes progress"
                   : "No plan fits";
    if (plot->choice.cheapest < 0)
        return none_text(plot);
    return ms_arena_printf(arena, "%s%s: %s",
                           plot->by_money ? "Cheapest" : "Fewest GPU-hours", within,
                           job_text(plot, plot->choice.cheapest));
}

/* Tokens of the training, which all found plans share; NaN: none was found. */
static double tokens_of(const ms_cost_plot *plot)
{
    for (int i = 0; i < num_points(plot); i++)
        if (plot->sweep->answers[i].found)
            return plot->sweep->answers[i].campaign.terms.tokens;
    return (double)NAN;
}

static const char *subtitle(const ms_cost_plot *plot)
{
    ms_arena *arena = plot->arena;
    double tokens = tokens_of(plot);
    if (isnan(tokens))
        return plot->model;
    const char *text = ms_arena_printf(
        arena, "%s, %s tokens · each point the fastest plan of its job · 90 %% intervals",
        plot->model, ms_large_text(arena, tokens, ""));
    if (plot->choice.cheapest >= 0)
        text = ms_arena_printf(
            arena, "%s · %s", text,
            ms_caption_axes(arena, &plot->sweep->answers[plot->choice.cheapest].plan));
    return plot->by_money || ms_cost_plot_num_points(plot) == 0
               ? text
               : ms_arena_printf(arena, "%s · no price known", text);
}

/* ---- files ---- */

static void write_point(FILE *out, const ms_cost_plot *plot, int point, bool has_label)
{
    const ms_campaign *c = campaign_of(plot, point);
    double cost = cost_of(plot, point), days = c->elapsed_s / MS_DAY_S;
    double low = isnan(c->elapsed_low_s) ? 1.0 : c->elapsed_low_s / c->elapsed_s;
    double high = isnan(c->elapsed_high_s) ? 1.0 : c->elapsed_high_s / c->elapsed_s;
    ms_print(out, "%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t", x_of(plot, point), cost,
             plot->against_gpus ? x_of(plot, point) : days * low, cost * low,
             plot->against_gpus ? x_of(plot, point) : days * high, cost * high);
    ms_data_text(out, has_label ? ms_arena_printf(plot->arena, "%ld",
                                                  plot->sweep->questions[point].base.gpus)
                                : "");
    ms_print(out, "\t%d\n", point == plot->choice.cheapest);
}

void ms_cost_plot_write_data(FILE *out, const ms_cost_plot *plot)
{
    const bool *has_label = place_labels(plot);
    ms_print(out, "# %s\t%s\tx low\tcost low\tx high\tcost high\tGPUs\tchosen\n",
             plot->against_gpus ? "GPUs" : "days", plot->by_money ? "cost" : "GPU-hours");
    for (int k = 0; k < plot->num_clusters; k++) {
        fputs(k == 0 ? "" : "\n\n", out);
        ms_print(out, "# %s\n", cluster_of(plot, k * plot->num_gpus));
        int drawn = 0;
        for (int i = k * plot->num_gpus; i < (k + 1) * plot->num_gpus; i++) {
            if (!is_drawn(plot, i))
                continue;
            write_point(out, plot, i, has_label[i]);
            drawn++;
        }
        if (drawn == 0) /* an empty block would be none to gnuplot */
            fputs("nan\tnan\tnan\tnan\tnan\tnan\t\"\"\t0\n", out);
    }
}

ms_status ms_cost_plot_write_script(ms_ctx *cx, FILE *out, const ms_cost_plot *plot,
                                    const char *name, ms_picture_format format)
{
    extent x, y;
    extents_of(plot, &x, &y);
    ms_script script = {
        .kind = "cost",
        .name = name,
        .format = format,
        .width = ms_max(WIDTH, LEFT + RIGHT +
                                   ms_script_title_width(title(plot), subtitle(plot))),
        .height = HEIGHT,
        .margins = {LEFT, RIGHT, TOP, BOTTOM},
        .title = title(plot),
        .subtitle = subtitle(plot)};
    ms_script_begin(out, &script);
    ms_script_number(out, "num_clusters", plot->num_clusters);
    for (int k = 0; k < plot->num_clusters; k++)
        ms_script_text(out, ms_arena_printf(cx->arena, "cluster_%d", k + 1),
                       cluster_of(plot, k * plot->num_gpus));
    ms_script_text(out, "x_title",
                   plot->against_gpus ? "GPUs" : "days of the whole training");
    ms_script_text(out, "y_title",
                   plot->by_money ? "cost (currency of the price)" : "GPU-hours");
    ms_script_number(out, "x_low", x.low);
    ms_script_number(out, "x_high", x.high);
    ms_script_number(out, "y_low", y.low);
    ms_script_number(out, "y_high", y.high);
    double deadline = plot->against_gpus ? (double)NAN : deadline_days(plot);
    ms_script_number(out, "deadline", isnan(deadline) ? 0.0 : deadline);
    ms_script_number(out, "budget", isnan(budget(plot)) ? 0.0 : budget(plot));
    return ms_script_end(cx, out, &script);
}

static void write_json_point(ms_jout *out, const ms_cost_plot *plot, int point)
{
    const ms_best_plan *a = &plot->sweep->answers[point];
    const ms_plan *base = &plot->sweep->questions[point].base;
    const ms_campaign *c = &a->campaign.campaign;
    double none = (double)NAN;
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "cluster", base->cluster);
    ms_jout_number_field(out, "gpus", (double)base->gpus);
    ms_jout_bool_field(out, "found", a->found);
    ms_jout_text_field(out, "reason", a->reason);
    ms_jout_bool_field(out, "keeps_limits", ms_best_plan_keeps_limits(a));
    ms_jout_number_field(out, "elapsed_s", a->found ? c->elapsed_s : none);
    ms_jout_number_field(out, "elapsed_s_low", a->found ? c->elapsed_low_s : none);
    ms_jout_number_field(out, "elapsed_s_high", a->found ? c->elapsed_high_s : none);
    ms_jout_number_field(out, "gpu_hours", a->found ? c->gpu_hours : none);
    ms_jout_number_field(out, "cost", a->found ? c->cost : none);
    ms_jout_end_object(out);
}

void ms_cost_plot_write_json(ms_jout *out, const ms_cost_plot *plot)
{
    int cheapest = plot->choice.cheapest;
    ms_jout_text_field(out, "model", plot->model);
    ms_jout_text_field(out, "by", plot->by_money ? "cost" : "gpu_hours");
    ms_jout_number_field(out, "cheapest", cheapest < 0 ? (double)NAN : cheapest);
    ms_jout_number_field(out, "deadline_s",
                         plot->sweep->questions[0].campaign->deadline_s);
    ms_jout_number_field(out, "budget", plot->sweep->questions[0].campaign->budget);
    ms_jout_begin_array_field(out, "points");
    for (int i = 0; i < num_points(plot); i++)
        write_json_point(out, plot, i);
    ms_jout_end_array(out);
}

static const char *word_for(const ms_cost_plot *plot, int point)
{
    const ms_best_plan *a = &plot->sweep->answers[point];
    if (!a->found)
        return ms_arena_printf(plot->arena, "none: %s", a->reason);
    if (!ms_best_plan_keeps_limits(a))
        return ms_broken_limit_text(plot->arena, &a->campaign);
    return point == plot->choice.cheapest  ? "cheapest"
           : point == plot->choice.fastest ? "fastest"
                                           : "";
}

void ms_cost_plot_print(FILE *out, const ms_cost_plot *plot)
{
    ms_print(out, "cost      %s\n          %s\n\n", title(plot), subtitle(plot));
    ms_table *table = MS_TABLE(plot->arena, "lrrrrrL", "cluster", "GPUs", "days", "from",
                               "to", plot->by_money ? "cost" : "GPU-hours", "choice");
    for (int i = 0; i < num_points(plot); i++) {
        const ms_campaign *c = campaign_of(plot, i);
        bool drawn = is_drawn(plot, i);
        double none = (double)NAN;
        ms_table_cell(table, "%s", cluster_of(plot, i));
        ms_table_cell(table, "%ld", plot->sweep->questions[i].base.gpus);
        ms_table_cells(table, "%.1f\t%.1f\t%.1f", drawn ? c->elapsed_s / MS_DAY_S : none,
                       drawn ? c->elapsed_low_s / MS_DAY_S : none,
                       drawn ? c->elapsed_high_s / MS_DAY_S : none);
        ms_table_cell(table, "%s",
                      drawn ? ms_large_text(plot->arena, cost_of(plot, i), "") : "-");
        ms_table_cell(table, "%s", word_for(plot, i));
    }
    ms_table_print(table, out);
    fputc('\n', out);
}
