#include "plots/pareto_data.h"

#include "base/number.h"
#include "base/print.h"
#include "base/table.h"
#include "plots/caption.h"
#include "plots/labels.h"
#include "sim/planning/campaign_text.h"
#include "sim/step/prediction_text.h"

#include <math.h>

#define WIDTH        1100.0
#define HEIGHT       560.0
#define LEFT         76.0
#define RIGHT        90.0
#define TOP          104.0
#define BOTTOM       62.0
#define PADDING      1.25 /* ends of the axis of days / the extreme points */
#define LABEL_WIDTH  92.0 /* pixels of a label beside its point */
#define LABEL_HEIGHT 15.0

/* ---- points ---- */

static double days_of(const ms_pareto_point *p)
{
    return p->answer->campaign.campaign.elapsed_s / MS_DAY_S;
}

static double gib_of(const ms_pareto_point *p)
{
    return ms_gib(p->answer->needed_bytes);
}

/* Whether `a` is at least as good as `b` in time, memory and money. */
static bool is_as_good(const ms_pareto_point *a, const ms_pareto_point *b)
{
    return days_of(a) <= days_of(b) && gib_of(a) <= gib_of(b) && a->cost <= b->cost;
}

static bool is_beaten(const ms_pareto *plot, const ms_pareto_point *p)
{
    for (int i = 0; i < plot->num; i++) {
        const ms_pareto_point *other = &plot->points[i];
        if (is_as_good(other, p) && !is_as_good(p, other))
            return true;
    }
    return false;
}

static bool is_there(const ms_pareto *plot, const ms_pareto_point *p)
{
    for (int i = 0; i < plot->num; i++)
        if (plot->points[i].cluster == p->cluster && is_as_good(&plot->points[i], p) &&
            is_as_good(p, &plot->points[i]))
            return true;
    return false;
}

static bool knows_money(const ms_plan_sweep *sweep)
{
    for (int i = 0; i < ms_plan_sweep_num(sweep); i++)
        if (sweep->answers[i].found && !isnan(sweep->answers[i].campaign.campaign.cost))
            return true;
    return false;
}

/* Adds the plan of a job unless it has none, no price, or is there already. */
static void add_point(ms_pareto *plot, int cluster, const ms_best_plan *answer)
{
    const ms_campaign *c = &answer->campaign.campaign;
    ms_pareto_point point = {cluster, answer, plot->by_money ? c->cost : c->gpu_hours,
                             false};
    if (answer->found && ms_campaign_advances(c) && !isnan(point.cost) &&
        !is_there(plot, &point))
        plot->points[plot->num++] = point;
}

ms_pareto ms_pareto_make(ms_arena *arena, const ms_plan_sweep *sweep, int num_clusters,
                         const char *model)
{
    int num = ms_plan_sweep_num(sweep), each = num / num_clusters;
    const char **clusters = MS_NEW_ARRAY(arena, num_clusters, const char *);
    ms_pareto plot = {.arena = arena,
                      .model = model,
                      .by_money = knows_money(sweep),
                      .is_stuck = ms_best_plans_stuck(sweep->answers, num) != NULL,
                      .num_clusters = num_clusters,
                      .clusters = clusters,
                      .points = MS_NEW_ARRAY(arena, num, ms_pareto_point)};
    for (int k = 0; k < num_clusters; k++) {
        clusters[k] = ms_caption_name(arena, sweep->questions[k * each].base.cluster);
        for (int i = k * each; i < (k + 1) * each; i++)
            add_point(&plot, k, &sweep->answers[i]);
    }
    for (int i = 0; i < plot.num; i++)
        plot.points[i].is_best = !is_beaten(&plot, &plot.points[i]);
    return plot;
}

typedef struct extent {
    double low, high;
} extent;

static void take(extent *e, double value)
{
    e->low = ms_min(e->low, value);
    e->high = ms_max(e->high, value);
}

/* Extremes of all points, or of the best ones. Returns the number of those. */
static int extents_of(const ms_pareto *plot, bool best_only, extent *days, extent *gib,
                      extent *cost)
{
    int num = 0;
    *days = *gib = *cost = (extent){INFINITY, 0.0};
    for (int i = 0; i < plot->num; i++) {
        const ms_pareto_point *p = &plot->points[i];
        if (best_only && !p->is_best)
            continue;
        take(days, days_of(p));
        take(gib, gib_of(p));
        take(cost, p->cost);
        num++;
    }
    return num;
}

/* ---- words ---- */

static const char *cost_text(const ms_pareto *plot, double cost)
{
    return ms_large_text(plot->arena, cost, "");
}

static const char *title(const ms_pareto *plot)
{
    extent days, gib, cost;
    int num = extents_of(plot, true, &days, &gib, &cost);
    if (num == 0)
        return plot->is_stuck ? "No plan makes progress" : "No plan fits";
    return ms_arena_printf(
        plot->arena,
        "%d plan%s that none beats: %.1f to %.1f days, %.0f to %.0f GiB, %s to %s%s", num,
        num == 1 ? "" : "s", days.low, days.high, gib.low, gib.high,
        cost_text(plot, cost.low), cost_text(plot, cost.high),
        plot->by_money ? "" : " GPU-hours");
}

static const char *subtitle(const ms_pareto *plot)
{
    if (plot->num == 0)
        return plot->model;
    return ms_arena_printf(
        plot->arena,
        "%s, %s tokens · each point the fastest plan of a job within some memory · %d "
        "plans, faint: another is as good in time, memory and %s",
        plot->model,
        ms_large_text(plot->arena, plot->points[0].answer->campaign.terms.tokens, ""),
        plot->num, plot->by_money ? "money" : "GPU-hours");
}

/* ---- files ---- */

/* Marks the points with a label: the best ones that have room. */
static bool *place_labels(const ms_pareto *plot)
{
    extent days, gib, cost;
    extents_of(plot, false, &days, &gib, &cost);
    ms_label_place *places = MS_NEW_ARRAY(plot->arena, plot->num, ms_label_place);
    bool *has_label = MS_NEW_ARRAY(plot->arena, plot->num, bool);
    double width = log(PADDING * PADDING * days.high / days.low);
    for (int i = 0; i < plot->num; i++) {
        const ms_pareto_point *p = &plot->points[i];
        places[i] = (ms_label_place){p->is_best ? (WIDTH - LEFT - RIGHT) *
                                                      log(days_of(p) / days.low) / width
                                                : (double)NAN,
                                     (HEIGHT - TOP - BOTTOM) * gib_of(p) / gib.high};
    }
    ms_labels_choose(places, plot->num, (ms_label_size){LABEL_WIDTH, LABEL_HEIGHT},
                     has_label);
    return has_label;
}

void ms_pareto_write_data(FILE *out, const ms_pareto *plot)
{
    const bool *has_label = place_labels(plot);
    ms_print(out, "# days\tGiB\t%s\tbest\tlabel\n",
             plot->by_money ? "cost" : "GPU-hours");
    for (int k = 0; k < plot->num_clusters; k++) {
        fputs(k == 0 ? "" : "\n\n", out);
        ms_print(out, "# %s\n", plot->clusters[k]);
        int drawn = 0;
        for (int i = 0; i < plot->num; i++) {
            const ms_pareto_point *p = &plot->points[i];
            if (p->cluster != k)
                continue;
            ms_print(out, "%.9g\t%.9g\t%.9g\t%d\t", days_of(p), gib_of(p), p->cost,
                     p->is_best);
            ms_data_text(out, has_label[i] ? ms_arena_printf(plot->arena, "%ld, %s",
                                                             p->answer->plan.gpus,
                                                             cost_text(plot, p->cost))
                                           : "");
            fputc('\n', out);
            drawn++;
        }
        if (drawn == 0) /* an empty block would be none to gnuplot */
            fputs("nan\tnan\tnan\t0\t\"\"\n", out);
    }
}

ms_status ms_pareto_write_script(ms_ctx *cx, FILE *out, const ms_pareto *plot,
                                 const char *name, ms_picture_format format)
{
    extent days, gib, cost;
    extents_of(plot, false, &days, &gib, &cost);
    double text_width = ms_script_title_width(title(plot), subtitle(plot));
    ms_script script = {.kind = "pareto",
                        .name = name,
                        .format = format,
                        .width = ms_max(WIDTH, LEFT + RIGHT + text_width),
                        .height = HEIGHT,
                        .margins = {LEFT, RIGHT, TOP, BOTTOM},
                        .title = title(plot),
                        .subtitle = subtitle(plot)};
    ms_script_begin(out, &script);
    ms_script_number(out, "num_clusters", plot->num_clusters);
    for (int k = 0; k < plot->num_clusters; k++)
        ms_script_text(out, ms_arena_printf(cx->arena, "cluster_%d", k + 1),
                       plot->clusters[k]);
    ms_script_text(out, "label_title",
                   plot->by_money ? "beside the points: GPUs, cost"
                                  : "beside the points: GPUs, GPU-hours");
    ms_script_number(out, "x_low", days.low / PADDING);
    ms_script_number(out, "x_high", days.high * PADDING);
    ms_script_number(out, "y_high", gib.high * 1.08);
    return ms_script_end(cx, out, &script);
}

void ms_pareto_write_json(ms_jout *out, const ms_pareto *plot)
{
    ms_jout_text_field(out, "model", plot->model);
    ms_jout_text_field(out, "by", plot->by_money ? "cost" : "gpu_hours");
    ms_jout_begin_array_field(out, "points");
    for (int i = 0; i < plot->num; i++) {
        const ms_pareto_point *p = &plot->points[i];
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "cluster", plot->clusters[p->cluster]);
        ms_jout_number_field(out, "gpus", (double)p->answer->plan.gpus);
        ms_jout_bool_field(out, "pareto", p->is_best);
        ms_jout_number_field(out, "elapsed_s", p->answer->campaign.campaign.elapsed_s);
        ms_jout_number_field(out, "needed_bytes", p->answer->needed_bytes);
        ms_jout_number_field(out, "gpu_hours", p->answer->campaign.campaign.gpu_hours);
        ms_jout_number_field(out, "cost", p->answer->campaign.campaign.cost);
        ms_jout_key(out, "plan");
        ms_plan_write_json(out, &p->answer->plan);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

void ms_pareto_print(FILE *out, const ms_pareto *plot)
{
    ms_print(out, "pareto    %s\n          %s\n\n", title(plot), subtitle(plot));
    ms_table *table = MS_TABLE(plot->arena, "lrr1r1rL", "cluster", "GPUs", "days", "GiB",
                               plot->by_money ? "cost" : "GPU-hours", "plan");
    for (int i = 0; i < plot->num; i++) {
        const ms_pareto_point *p = &plot->points[i];
        if (!p->is_best)
            continue;
        ms_table_cell(table, "%s", plot->clusters[p->cluster]);
        ms_table_cell(table, "%ld", p->answer->plan.gpus);
        ms_table_cells(table, "%.1f\t%.1f", days_of(p), gib_of(p));
        ms_table_cell(table, "%s", cost_text(plot, p->cost));
        ms_table_cell(table, "%s", ms_plan_text(plot->arena, &p->answer->plan));
    }
    ms_table_print(table, out);
    fputc('\n', out);
}
