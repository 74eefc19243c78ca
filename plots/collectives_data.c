#include "plots/collectives_data.h"

#include "base/number.h"
#include "base/print.h"
#include "base/table.h"
#include "plots/caption.h"

#include <math.h>
#include <string.h>

#define LEFT      84.0
#define RIGHT     40.0
#define TOP       128.0
#define PANEL     480.0
#define BETWEEN   96.0
#define HEIGHT    380.0
#define BOTTOM    62.0
#define FIRST     10 /* sizes are powers of two from 1 KiB to 4 GiB */
#define LAST      32
#define PER_POWER 2 /* sizes drawn in each factor of two */
#define NUM_SIZES ((LAST - FIRST) * PER_POWER + 1)
#define TOLD      30 /* the title and the table tell the time of 1 GiB */

static double size_at(int point)
{
    return exp2(FIRST + (double)point / PER_POWER);
}

/* Bus bandwidth of nccl-tests: bytes that a rank sends, by the time. */
static double bus_bytes_per_s(const ms_collectives_plot *plot, long ranks,
                              double size_bytes, double seconds)
{
    return ms_collective_wire_bytes(plot->collective, ranks, size_bytes) / seconds;
}

/* ---- curves ---- */

static ms_span span_of(long ranks, const ms_cluster *cluster)
{
    const ms_group group = {
        .size = ranks, .num_modes = 1, .modes = {{.size = ranks, .stride = 1}}};
    return ms_group_span(&group, ranks, cluster);
}

static void take_measured(ms_arena *arena, const ms_collectives_plot *plot,
                          const ms_collective_rows *rows, ms_collective_curve *curve)
{
    curve->measured = MS_NEW_ARRAY(arena, rows->num_rows, const ms_collective_row *);
    for (int i = 0; i < rows->num_rows; i++) {
        const ms_collective_row *row = &rows->rows[i];
        long nodes = (curve->ranks + plot->cluster->gpus_per_node - 1) /
                     plot->cluster->gpus_per_node;
        if (row->reason == NULL && strcmp(row->cluster->name, plot->cluster->name) == 0 &&
            row->collective == plot->collective && row->gpus == curve->ranks &&
            row->nodes == nodes && row->algorithm == MS_ALGORITHM_NONE)
            curve->measured[curve->num_measured++] = row;
    }
}

/* Refuses a table without rows to draw; hints at numbers of GPUs that it has. */
static ms_status refuse_rows(ms_ctx *cx, const ms_collectives_plot *plot,
                             const ms_collective_rows *rows)
{
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "no measured %s is on %s with as many GPUs as one of its tiers has here",
            ms_collective_names[plot->collective], plot->cluster->name);
    for (int i = 0; i < rows->num_rows; i++) {
        const ms_collective_row *row = &rows->rows[i];
        if (row->reason == NULL)
            return ms_hint(cx, "the table has, for example, %s over %ld GPUs of %s",
                           ms_collective_names[row->collective], row->gpus,
                           row->cluster->name);
    }
    return ms_hint(cx, "no row of the table can be predicted: see meshsim validate");
}

ms_status ms_collectives_plot_make(ms_ctx *cx, const ms_cluster *cluster,
                                   const ms_profile *profile, long gpus,
                                   const ms_collective_rows *rows,
                                   ms_collectives_plot *plot)
{
    plot->arena = cx->arena;
    plot->cluster = cluster;
    plot->profile = profile;
    MS_TRY(ms_network_check(cx, cluster, profile));
    for (int i = 0; i < cluster->num_levels; i++) {
        long domain = cluster->levels[i].gpus_per_domain;
        long ranks = domain > 0 && domain < gpus ? domain : gpus;
        if (ranks < 2 ||
            (plot->num_curves > 0 && plot->curves[plot->num_curves - 1].ranks == ranks))
            continue;
        ms_span span = span_of(ranks, cluster);
        ms_collective_curve *curve = &plot->curves[plot->num_curves++];
        *curve = (ms_collective_curve){
            .ranks = ranks,
            .level = &cluster->levels[span.tier],
            .law = ms_collective_law_make(plot->collective, &span, cluster, profile)};
        if (rows != NULL)
            take_measured(cx->arena, plot, rows, curve);
        plot->num_measured += curve->num_measured;
    }
    if (plot->num_curves == 0) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "one GPU has nobody to communicate with");
        return ms_hint(cx, "add --gpus 16");
    }
    return rows != NULL && plot->num_measured == 0 ? refuse_rows(cx, plot, rows) : MS_OK;
}

/* ---- words ---- */

static const char *title(const ms_collectives_plot *plot)
{
    ms_arena *arena = plot->arena;
    const char *name = ms_collective_names[plot->collective];
    const char *text =
        ms_arena_printf(arena, "%c%s of 1 GiB:", name[0] - 'a' + 'A', name + 1);
    for (int i = 0; i < plot->num_curves; i++) {
        const ms_collective_curve *curve = &plot->curves[i];
        text = ms_arena_printf(
            arena, "%s%s %s on %ld GPUs", text, i == 0 ? "" : ",",
            ms_caption_time(arena, ms_collective_s(&curve->law, exp2(TOLD))),
            curve->ranks);
    }
    return text;
}

static const char *subtitle(const ms_collectives_plot *plot)
{
    const char *points =
        plot->num_measured == 0
            ? ""
            : ms_arena_printf(plot->arena, " · points: %d measured", plot->num_measured);
    return ms_arena_printf(plot->arena,
                           "%s, %s · sizes and bus bandwidth as nccl-tests counts them%s",
                           plot->cluster->name, plot->cluster->device.name, points);
}

static const char *curve_text(ms_arena *arena, const ms_collective_curve *curve)
{
    return ms_arena_printf(arena, "%ld GPUs, %s %.4g GB/s a GPU", curve->ranks,
                           curve->level->name,
                           1e-9 * curve->level->bandwidth_bytes_per_s);
}

/* ---- files ---- */

void ms_collectives_plot_write_data(FILE *out, const ms_collectives_plot *plot)
{
    fputs("# one block a curve, then one a curve with the measured points\n"
          "# bytes\ttime (us)\tbus bandwidth (GB/s)\n",
          out);
    for (int c = 0; c < plot->num_curves; c++) {
        const ms_collective_curve *curve = &plot->curves[c];
        for (int i = 0; i < NUM_SIZES; i++) {
            double seconds = ms_collective_s(&curve->law, size_at(i));
            ms_print(out, "%.9g\t%.9g\t%.9g\n", size_at(i), 1e6 * seconds,
                     1e-9 * bus_bytes_per_s(plot, curve->ranks, size_at(i), seconds));
        }
        fputs("\n\n", out);
    }
    for (int c = 0; c < plot->num_curves && plot->num_measured > 0; c++) {
        const ms_collective_curve *curve = &plot->curves[c];
        if (curve->num_measured == 0)
            fputs("nan\tnan\tnan\n", out);
        for (int i = 0; i < curve->num_measured; i++) {
            const ms_collective_row *row = curve->measured[i];
            ms_print(out, "%.9g\t%.9g\t%.9g\n", row->size_bytes, 1e6 * row->measured_s,
                     1e-9 * bus_bytes_per_s(plot, curve->ranks, row->size_bytes,
                                            row->measured_s));
        }
        fputs("\n\n", out);
    }
}

typedef struct extent {
    double least_s, most_s, most_bytes_per_s;
} extent;

static void widen(extent *e, double seconds, double bytes_per_s)
{
    e->least_s = ms_min(e->least_s, seconds);
    e->most_s = ms_max(e->most_s, seconds);
    e->most_bytes_per_s = ms_max(e->most_bytes_per_s, bytes_per_s);
}

static extent extent_of(const ms_collectives_plot *plot)
{
    extent e = {.least_s = INFINITY};
    for (int c = 0; c < plot->num_curves; c++) {
        const ms_collective_curve *curve = &plot->curves[c];
        for (int i = 0; i < NUM_SIZES; i++) {
            double seconds = ms_collective_s(&curve->law, size_at(i));
            widen(&e, seconds, bus_bytes_per_s(plot, curve->ranks, size_at(i), seconds));
        }
        for (int i = 0; i < curve->num_measured; i++) {
            double bytes = curve->measured[i]->size_bytes,
                   seconds = curve->measured[i]->measured_s;
            if (bytes >= size_at(0) && bytes <= size_at(NUM_SIZES - 1))
                widen(&e, seconds, bus_bytes_per_s(plot, curve->ranks, bytes, seconds));
        }
    }
    return e;
}

ms_status ms_collectives_plot_write_script(ms_ctx *cx, FILE *out,
                                           const ms_collectives_plot *plot,
                                           const char *name, ms_picture_format format)
{
    extent e = extent_of(plot);
    ms_script script = {.kind = "collectives",
                        .name = name,
                        .format = format,
                        .width = LEFT + 2.0 * PANEL + BETWEEN + RIGHT,
                        .height = TOP + HEIGHT + BOTTOM,
                        .margins = {LEFT, RIGHT, TOP, BOTTOM},
                        .title = title(plot),
                        .subtitle = subtitle(plot)};
    ms_script_begin(out, &script);
    ms_script_number(out, "panel", PANEL);
    ms_script_number(out, "between", BETWEEN);
    ms_script_number(out, "low", size_at(0));
    ms_script_number(out, "high", size_at(NUM_SIZES - 1));
    ms_script_number(out, "least_time", 1e6 * e.least_s / 1.6);
    ms_script_number(out, "most_time", 1e6 * e.most_s * 1.6);
    ms_script_number(out, "most_bandwidth", 1e-9 * e.most_bytes_per_s * 1.08);
    ms_script_number(out, "num_measured", plot->num_measured);
    ms_script_number(out, "num_curves", plot->num_curves);
    for (int i = 0; i < plot->num_curves; i++) {
        const ms_collective_curve *curve = &plot->curves[i];
        ms_script_text(out, ms_arena_printf(cx->arena, "curve_%d", i + 1),
                       curve_text(cx->arena, curve));
    }
    return ms_script_end(cx, out, &script);
}

static void write_curve(ms_jout *out, const ms_collectives_plot *plot,
                        const ms_collective_curve *curve)
{
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "gpus", (double)curve->ranks);
    ms_jout_text_field(out, "tier", curve->level->name);
    ms_jout_number_field(out, "link_bytes_per_s", curve->level->bandwidth_bytes_per_s);
    ms_jout_begin_array_field(out, "points");
    for (int i = 0; i < NUM_SIZES; i++) {
        double bytes = size_at(i), seconds = ms_collective_s(&curve->law, bytes);
        ms_jout_begin_object(out);
        ms_jout_number_field(out, "bytes", bytes);
        ms_jout_number_field(out, "seconds", seconds);
        ms_jout_number_field(out, "bus_bytes_per_s",
                             bus_bytes_per_s(plot, curve->ranks, bytes, seconds));
        ms_jout_text_field(
            out, "algorithm",
            ms_algorithm_name(ms_collective_algorithm(&curve->law, bytes)));
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "measured");
    for (int i = 0; i < curve->num_measured; i++) {
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "system", curve->measured[i]->system);
        ms_jout_number_field(out, "bytes", curve->measured[i]->size_bytes);
        ms_jout_number_field(out, "seconds", curve->measured[i]->measured_s);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

void ms_collectives_plot_write_json(ms_jout *out, const ms_collectives_plot *plot)
{
    ms_jout_text_field(out, "cluster", plot->cluster->name);
    ms_jout_text_field(out, "profile", plot->profile->name);
    ms_jout_text_field(out, "collective", ms_collective_names[plot->collective]);
    ms_jout_begin_array_field(out, "curves");
    for (int i = 0; i < plot->num_curves; i++)
        write_curve(out, plot, &plot->curves[i]);
    ms_jout_end_array(out);
}

void ms_collectives_plot_print(FILE *out, const ms_collectives_plot *plot)
{
    static const int powers[] = {10, 20, 30};
    ms_print(out, "collectives  %s\n             %s\n\n", title(plot), subtitle(plot));
    ms_table *table =
        MS_TABLE(plot->arena, "rlrrrrr", "GPUs", "tier", "1 KiB (us)", "1 MiB (us)",
                 "1 GiB (us)", "bus at 1 GiB (GB/s)", "measured");
    for (int c = 0; c < plot->num_curves; c++) {
        const ms_collective_curve *curve = &plot->curves[c];
        ms_table_cells(table, "%ld\t%s", curve->ranks, curve->level->name);
        for (int i = 0; i < 3; i++)
            ms_table_cell(table, "%.1f",
                          1e6 * ms_collective_s(&curve->law, exp2(powers[i])));
        double seconds = ms_collective_s(&curve->law, exp2(TOLD));
        ms_table_cells(table, "%.1f\t%d",
                       1e-9 * bus_bytes_per_s(plot, curve->ranks, exp2(TOLD), seconds),
                       curve->num_measured);
    }
    ms_table_print(table, out);
    fputc('\n', out);
}
