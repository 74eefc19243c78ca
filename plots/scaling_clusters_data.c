#include "plots/scaling_clusters_data.h"

#include "base/number.h"
#include "base/print.h"
#include "base/table.h"
#include "plots/caption.h"
#include "sim/planning/campaign_text.h"
#include "sim/step/prediction_text.h"

#include <math.h>

#define WIDTH   1100.0
#define LEFT    92.0
#define RIGHT   60.0
#define TOP     104.0
#define UPPER   300.0 /* height of the upper panel, pixels */
#define BETWEEN 26.0
#define LOWER   140.0
#define BOTTOM  58.0

/* The fastest of all points at the largest number of GPUs at which any has a plan; its
 * cluster in *cluster. NULL: none has. */
static const ms_scaling_point *fastest(const ms_scaling_clusters *plot, int *cluster)
{
    for (int i = plot->scaling[0].num_points - 1; i >= 0; i--) {
        const ms_scaling_point *best = NULL;
        for (int k = 0; k < plot->num; k++) {
            const ms_scaling_point *p = &plot->scaling[k].points[i];
            if (p->best.found &&
                (best == NULL ||
                 p->best.prediction.tokens_per_s > best->best.prediction.tokens_per_s)) {
                best = p;
                *cluster = k;
            }
        }
        if (best != NULL)
            return best;
    }
    return NULL;
}

/* ---- words ---- */

static const char *title(const ms_scaling_clusters *plot)
{
    int k = 0;
    const ms_scaling_point *best = fastest(plot, &k);
    if (best == NULL)
        return "No plan fits";
    double tokens_per_s = best->best.prediction.tokens_per_s;
    return ms_arena_printf(
        plot->arena, "%s on %ld GPUs: %s is fastest, %s tokens/s, %.0f %% of linear",
        plot->scaling[k].model, best->gpus, plot->names[k],
        ms_large_text(plot->arena, tokens_per_s, ""),
        100.0 * tokens_per_s / ms_scaling_linear(&plot->scaling[k], best));
}

static const char *subtitle(const ms_scaling_clusters *plot)
{
    const ms_scaling *first = &plot->scaling[0];
    return ms_arena_printf(
        plot->arena,
        "the fastest plan at each size · sequences of %ld · %s%s%s · bands: 90 %% intervals",
        first->sequence_length, ms_scaling_batch_text(first),
        first->limits[0] == '\0' ? "" : " · ", first->limits);
}

/* ---- files ---- */

static void write_point(FILE *out, const ms_scaling *scaling,
                        const ms_scaling_point *point)
{
    const ms_prediction *p = &point->best.prediction;
    double low, high;
    ms_scaling_interval(point, &low, &high);
    ms_print(out, "%ld\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\n", point->gpus, p->tokens_per_s,
             ms_scaling_linear(scaling, point), low, high, 100.0 * p->mfu_frac);
}

void ms_scaling_clusters_write_data(FILE *out, const ms_scaling_clusters *plot)
{
    fputs("# GPUs\ttokens/s\tlinear\tlow\thigh\tMFU (%)\n", out);
    for (int k = 0; k < plot->num; k++) {
        fputs(k == 0 ? "" : "\n\n", out);
        ms_print(out, "# %s\n", plot->names[k]);
        int drawn = 0;
        for (int i = 0; i < plot->scaling[k].num_points; i++) {
            const ms_scaling_point *point = &plot->scaling[k].points[i];
            if (!point->best.found)
                continue;
            write_point(out, &plot->scaling[k], point);
            drawn++;
        }
        if (drawn == 0) /* an empty block would be none to gnuplot */
            fputs("nan\tnan\tnan\tnan\tnan\tnan\n", out);
    }
}

typedef struct extent {
    double low, high; /* tokens/s of all points and intervals */
    double mfu_percent;
} extent;

static extent extent_of(const ms_scaling_clusters *plot)
{
    extent e = {.low = INFINITY};
    for (int k = 0; k < plot->num; k++) {
        for (int i = 0; i < plot->scaling[k].num_points; i++) {
            const ms_scaling_point *point = &plot->scaling[k].points[i];
            double low, high;
            if (!point->best.found)
                continue;
            ms_scaling_interval(point, &low, &high);
            e.low = ms_min(e.low, low);
            e.high = ms_max(e.high, high);
            e.high = ms_max(e.high, ms_scaling_linear(&plot->scaling[k], point));
            e.mfu_percent =
                ms_max(e.mfu_percent, 100.0 * point->best.prediction.mfu_frac);
        }
    }
    return e;
}

ms_status ms_scaling_clusters_write_script(ms_ctx *cx, FILE *out,
                                           const ms_scaling_clusters *plot,
                                           const char *name, ms_picture_format format)
{
    const ms_scaling *first = &plot->scaling[0];
    extent e = extent_of(plot);
    double text_width = ms_script_title_width(title(plot), subtitle(plot));
    ms_script script = {.kind = "scaling_clusters",
                        .name = name,
                        .format = format,
                        .width = ms_max(WIDTH, LEFT + RIGHT + text_width),
                        .height = TOP + UPPER + BETWEEN + LOWER + BOTTOM,
                        .margins = {LEFT, RIGHT, TOP, BOTTOM},
                        .title = title(plot),
                        .subtitle = subtitle(plot)};
    ms_script_begin(out, &script);
    ms_script_number(out, "upper", UPPER);
    ms_script_number(out, "between", BETWEEN);
    ms_script_number(out, "num_clusters", plot->num);
    for (int k = 0; k < plot->num; k++)
        ms_script_text(out, ms_arena_printf(cx->arena, "cluster_%d", k + 1),
                       plot->names[k]);
    ms_script_number(out, "num_sizes", first->num_points);
    ms_script_number(out, "least_gpus", (double)first->points[0].gpus);
    ms_script_number(out, "most_gpus", (double)first->points[first->num_points - 1].gpus);
    ms_script_number(out, "least_tokens", e.low);
    ms_script_number(out, "most_tokens", e.high);
    ms_script_number(out, "most_mfu", e.mfu_percent);
    return ms_script_end(cx, out, &script);
}

void ms_scaling_clusters_write_json(ms_jout *out, const ms_scaling_clusters *plot)
{
    ms_jout_begin_array_field(out, "clusters");
    for (int k = 0; k < plot->num; k++) {
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "cluster", plot->names[k]);
        ms_scaling_write_json(out, &plot->scaling[k]);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

void ms_scaling_clusters_print(FILE *out, const ms_scaling_clusters *plot)
{
    ms_print(out, "scaling   %s\n          %s\n\n", title(plot), subtitle(plot));
    for (int k = 0; k < plot->num; k++)
        ms_scaling_print(out, &plot->scaling[k]);
}
