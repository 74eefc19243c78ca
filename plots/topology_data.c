#include "plots/topology_data.h"

#include "base/number.h"
#include "base/print.h"
#include "base/table.h"
#include "base/units.h"
#include "plots/caption.h"

#define WIDTH  1180.0
#define SIDE   24.0 /* left and right margin */
#define TOP    72.0
#define BELOW  28.0 /* between the drawing and the list of levels */
#define ROW    26.0 /* a level in the list */
#define BOTTOM 16.0

/* ---- the job ---- */

/* Whether the plan communicates in a group: parameters are sharded, or replicated. */
static bool is_used(const ms_plan *plan, ms_traffic_group group)
{
    bool sharded = plan->zero > 0, experts = plan->ep > 1;
    switch (group) {
    case MS_TRAFFIC_FSDP:
    case MS_TRAFFIC_REPLICATE:
        return sharded;
    case MS_TRAFFIC_EXPERT_FSDP:
        return sharded && experts;
    case MS_TRAFFIC_SECONDARY:
    case MS_TRAFFIC_EXPERT_SECONDARY:
        return plan->zero == 3 && ms_plan_secondary_shards(plan) > 0;
    case MS_TRAFFIC_ALL:
        return !sharded;
    case MS_TRAFFIC_EXPERT_ALL:
        return !sharded && experts;
    case MS_TRAFFIC_WORLD:
        return false;
    case MS_TRAFFIC_TP:
    case MS_TRAFFIC_CP:
    case MS_TRAFFIC_EP:
    case MS_TRAFFIC_PP:
    case MS_NUM_TRAFFIC_GROUPS:
        break;
    }
    return true;
}

ms_topology_plot ms_topology_plot_make(ms_arena *arena, const ms_plan *plan,
                                       const ms_cluster *cluster)
{
    ms_topology_plot plot = {.arena = arena, .plan = plan, .cluster = cluster};
    for (int i = 0; i < cluster->num_levels; i++) {
        long domain = cluster->levels[i].gpus_per_domain;
        long gpus = domain > 0 && domain < plan->gpus ? domain : plan->gpus;
        plot.domain_gpus[plot.num_levels++] = gpus;
        if (gpus == plan->gpus)
            break;
    }
    ms_span spans[MS_NUM_SPANS];
    ms_links_spans(plan, cluster, spans);
    for (int i = 0; i < MS_NUM_SPANS; i++)
        if (spans[i].size > 1 && is_used(plan, (ms_traffic_group)i))
            plot.axes[plot.num_axes++] = (ms_topology_axis){
                ms_traffic_group_name(plan, (ms_traffic_group)i), spans[i]};
    return plot;
}

long ms_topology_domains(const ms_topology_plot *plot, int level)
{
    long gpus = plot->domain_gpus[level];
    return (plot->plan->gpus + gpus - 1) / gpus;
}

/* ---- words ---- */

/* "512 GPUs of hgx-h100: tp in nvlink; ep, dp_shard in leaf; pp in spine" */
static const char *title(const ms_topology_plot *plot)
{
    ms_arena *arena = plot->arena;
    const char *text =
        ms_arena_printf(arena, "%ld GPU%s of %s", plot->plan->gpus,
                        plot->plan->gpus == 1 ? "" : "s", plot->cluster->name);
    const char *before = ": ";
    for (int level = 0; level < plot->num_levels; level++) {
        bool any = false;
        for (int i = 0; i < plot->num_axes; i++) {
            if (plot->axes[i].span.tier != level)
                continue;
            text = ms_arena_printf(arena, "%s%s%s", text, any ? ", " : before,
                                   plot->axes[i].name);
            any = true;
        }
        if (!any)
            continue;
        text =
            ms_arena_printf(arena, "%s in %s", text, plot->cluster->levels[level].name);
        before = "; ";
    }
    return text;
}

static const char *subtitle(const ms_topology_plot *plot)
{
    return ms_arena_printf(plot->arena, "%s · %s · bandwidths per GPU and direction",
                           plot->cluster->device.name,
                           ms_caption_axes(plot->arena, plot->plan));
}

/* The axes whose groups meet at a level: "dp_shard 16 (4 a domain of nvlink) · pp 4". */
static const char *axes_text(const ms_topology_plot *plot, int level)
{
    ms_arena *arena = plot->arena;
    const char *text = "";
    for (int i = 0; i < plot->num_axes; i++) {
        const ms_span *span = &plot->axes[i].span;
        if (span->tier != level)
            continue;
        const char *inside =
            level > 0 && span->per_domain[0] > 1
                ? ms_arena_printf(arena, " (%ld in %s)", span->per_domain[0],
                                  plot->cluster->levels[0].name)
                : "";
        text = ms_arena_printf(arena, "%s%s%s %ld%s", text, text[0] == '\0' ? "" : " · ",
                               plot->axes[i].name, span->size, inside);
    }
    return text[0] == '\0' ? "no axis" : text;
}

/* "switch · 1 NIC a GPU · 8 rails · +10.8 us" */
static const char *details_text(const ms_topology_plot *plot, int level)
{
    ms_arena *arena = plot->arena;
    const ms_level *l = &plot->cluster->levels[level];
    const char *text = ms_topology_names[l->topology];
    for (int i = 0; i < l->num_dims; i++)
        text = ms_arena_printf(arena, "%s%s%ld", text, i == 0 ? " " : "×", l->dims[i]);
    if (l->nics_per_gpu > 0.0)
        text = ms_arena_printf(arena, "%s · %g NIC%s a GPU", text, l->nics_per_gpu,
                               l->nics_per_gpu == 1.0 ? "" : "s");
    if (l->rails > 0)
        text = ms_arena_printf(arena, "%s · %ld rails", text, l->rails);
    if (l->oversubscription > 1.0)
        text = ms_arena_printf(arena, "%s · %g:1", text, l->oversubscription);
    if (l->latency_s > 0.0)
        text = ms_arena_printf(arena, "%s · +%.3g us", text, 1e6 * l->latency_s);
    return text;
}

/* ---- files ---- */

static ms_drawing drawing_of(const ms_topology_plot *plot)
{
    return ms_topology_draw(plot, SIDE, TOP, WIDTH - 2.0 * SIDE);
}

static double list_y(const ms_drawing *drawing, int row)
{
    return TOP + drawing->height + BELOW + ROW * (row + 0.5);
}

static void write_boxes(FILE *out, const ms_topology_plot *plot, const ms_drawing *d)
{
    fputs("# boxes: from x\tto x\tfrom y\tto y\trgb\n", out);
    for (int i = 0; i < d->num_boxes; i++) {
        const ms_drawn_box *b = &d->boxes[i];
        ms_print(out, "%.1f\t%.1f\t%.1f\t%.1f\t%u\n", b->x, b->x + b->width, b->y,
                 b->y + b->height, b->rgb);
    }
    for (int i = 0; i < plot->num_levels; i++)
        ms_print(out, "%.1f\t%.1f\t%.1f\t%.1f\t%u\n", SIDE, SIDE + 13.0,
                 list_y(d, i) - 6.0, list_y(d, i) + 6.0, ms_topology_rgb(i));
}

static void write_list(FILE *out, const ms_topology_plot *plot, const ms_drawing *d)
{
    fputs("\n\n# levels: y\tname\tdomains\tbandwidth\tdetails\taxes\n", out);
    for (int i = 0; i < plot->num_levels; i++) {
        const ms_level *l = &plot->cluster->levels[i];
        long domains = ms_topology_domains(plot, i);
        const char *const cells[] = {
            l->name,
            ms_arena_printf(plot->arena, "%ld × %ld GPUs", domains, plot->domain_gpus[i]),
            ms_arena_printf(plot->arena, "%.4g GB/s", 1e-9 * l->bandwidth_bytes_per_s),
            details_text(plot, i), axes_text(plot, i)};
        ms_print(out, "%.1f", list_y(d, i));
        for (int k = 0; k < 5; k++) {
            fputc('\t', out);
            ms_data_text(out, cells[k]);
        }
        fputc('\n', out);
    }
}

void ms_topology_plot_write_data(FILE *out, const ms_topology_plot *plot)
{
    ms_drawing d = drawing_of(plot);
    write_boxes(out, plot, &d);
    fputs("\n\n# links: x\tfrom y\tto y\trgb\n", out);
    for (int i = 0; i < d.num_lines; i++)
        ms_print(out, "%.1f\t%.1f\t%.1f\t%u\n", d.lines[i].x, d.lines[i].from_y,
                 d.lines[i].to_y, d.lines[i].rgb);
    if (d.num_lines == 0)
        fputs("nan\tnan\tnan\t0\n", out);
    fputs("\n\n# texts: x\ty\ttext\trgb\n", out);
    for (int i = 0; i < d.num_texts; i++) {
        ms_print(out, "%.1f\t%.1f\t", d.texts[i].x, d.texts[i].y);
        ms_data_text(out, d.texts[i].text);
        ms_print(out, "\t%u\n", d.texts[i].rgb);
    }
    write_list(out, plot, &d);
}

ms_status ms_topology_plot_write_script(ms_ctx *cx, FILE *out,
                                        const ms_topology_plot *plot, const char *name,
                                        ms_picture_format format)
{
    ms_drawing d = drawing_of(plot);
    ms_script script = {.kind = "topology",
                        .name = name,
                        .format = format,
                        .width = ms_max(WIDTH, d.width + 2.0 * SIDE),
                        .height =
                            TOP + d.height + BELOW + ROW * plot->num_levels + BOTTOM,
                        .margins = {SIDE, SIDE, TOP, BOTTOM},
                        .title = title(plot),
                        .subtitle = subtitle(plot)};
    ms_script_begin(out, &script);
    ms_script_number(out, "num_lines", d.num_lines);
    return ms_script_end(cx, out, &script);
}

void ms_topology_plot_write_json(ms_jout *out, const ms_topology_plot *plot)
{
    ms_jout_text_field(out, "cluster", plot->cluster->name);
    ms_jout_number_field(out, "gpus", (double)plot->plan->gpus);
    ms_jout_begin_array_field(out, "levels");
    for (int i = 0; i < plot->num_levels; i++) {
        const ms_level *l = &plot->cluster->levels[i];
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "name", l->name);
        ms_jout_text_field(out, "topology", ms_topology_names[l->topology]);
        ms_jout_number_field(out, "domains", (double)ms_topology_domains(plot, i));
        ms_jout_number_field(out, "gpus_per_domain", (double)plot->domain_gpus[i]);
        ms_jout_number_field(out, "bandwidth_bytes_per_s", l->bandwidth_bytes_per_s);
        ms_jout_number_field(out, "latency_s", l->latency_s);
        ms_jout_number_field(out, "oversubscription", l->oversubscription);
        ms_jout_number_field(out, "nics_per_gpu", l->nics_per_gpu);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "axes");
    for (int i = 0; i < plot->num_axes; i++) {
        const ms_topology_axis *axis = &plot->axes[i];
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "axis", axis->name);
        ms_jout_number_field(out, "size", (double)axis->span.size);
        ms_jout_text_field(out, "tier", plot->cluster->levels[axis->span.tier].name);
        ms_jout_number_field(out, "ranks_per_node", (double)axis->span.per_domain[0]);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

void ms_topology_plot_print(FILE *out, const ms_topology_plot *plot)
{
    ms_print(out, "topology  %s\n          %s\n\n", title(plot), subtitle(plot));
    ms_table *table = MS_TABLE(plot->arena, "lrrrLL", "level", "domains", "GPUs in each",
                               "GB/s per GPU", "links", "axes over it");
    for (int i = 0; i < plot->num_levels; i++) {
        const ms_level *l = &plot->cluster->levels[i];
        ms_table_cells(table, "%s\t%ld\t%ld\t%.4g\t%s\t%s", l->name,
                       ms_topology_domains(plot, i), plot->domain_gpus[i],
                       1e-9 * l->bandwidth_bytes_per_s, details_text(plot, i),
                       axes_text(plot, i));
    }
    ms_table_print(table, out);
    fputc('\n', out);
}
