#include "plots/roofline_data.h"

#include "base/number.h"
#include "base/print.h"
#include "base/table.h"
#include "plots/caption.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH       1180.0
#define LEFT        84.0
#define RIGHT       330.0 /* room for the list of kernels */
#define TOP         104.0
#define HEIGHT      440.0 /* height of the axes */
#define BOTTOM      62.0
#define NUM_NAMED   16 /* kernels in the list */
#define NAME_BYTES  28
#define LEAST_SHARE 1e-4 /* share of the layer's time from which a kernel is drawn */

const char *const ms_kernel_group_names[] = {"GEMM", "attention", "scan", "pointwise",
                                             NULL};

/* ---- kernels ---- */

static ms_kernel_group group_of(const ms_node *node)
{
    if (ms_node_is_product(node))
        return MS_KERNELS_GEMM;
    if (node->op == MS_OP_ATTENTION || node->op == MS_OP_ATTENTION_GRAD)
        return MS_KERNELS_ATTENTION;
    if (node->op == MS_OP_SCAN || node->op == MS_OP_SCAN_GRAD)
        return MS_KERNELS_SCAN;
    return MS_KERNELS_POINTWISE;
}

static double gemm_bytes(ms_gemm_shape s)
{
    return s.batch *
           ((s.m * s.k + s.k * s.n) * s.element_bytes + s.m * s.n * s.result_bytes);
}

static double bytes_of(const ms_program *program, const ms_node *node,
                       const ms_stack *stack)
{
    ms_kernel_group group = group_of(node);
    if (group == MS_KERNELS_GEMM)
        return gemm_bytes(ms_node_product(program, node, stack));
    if (group == MS_KERNELS_ATTENTION)
        return ms_node_attention(program, node).traffic_bytes;
    if (group == MS_KERNELS_SCAN)
        return ms_scan_traffic_bytes(ms_node_scan(program, node));
    return ms_node_traffic_bytes(program, node);
}

static double flop_of(const ms_program *program, const ms_node *node, bool fused)
{
    if (group_of(node) != MS_KERNELS_POINTWISE)
        return ms_node_mean_flop(program, node, fused);
    double elements = 0.0;
    for (int i = 0; i < node->num_out; i++)
        elements += ms_tensor_local_elements(program, node->out[i]);
    return elements;
}

static ms_roofline_kernel *find_kernel(ms_roofline_kernel *kernels, int *num,
                                       const ms_node *node)
{
    bool backward = node->pass != MS_PASS_FORWARD;
    for (int i = 0; i < *num; i++)
        if (strcmp(kernels[i].name, node->name) == 0 && kernels[i].backward == backward &&
            kernels[i].group == group_of(node))
            return &kernels[i];
    kernels[*num] = (ms_roofline_kernel){
        .name = node->name, .backward = backward, .group = group_of(node)};
    return &kernels[(*num)++];
}

static int by_seconds(const void *a, const void *b)
{
    const ms_roofline_kernel *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? 1 : -1;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (int)x->backward - (int)y->backward;
}

static int keep_visible(ms_roofline_kernel *kernels, int num, double total_s)
{
    int num_kept = 0;
    for (int i = 0; i < num; i++)
        if (kernels[i].seconds >= LEAST_SHARE * total_s && kernels[i].bytes > 0.0 &&
            kernels[i].flop > 0.0)
            kernels[num_kept++] = kernels[i];
    return num_kept;
}

ms_status ms_roofline_make(ms_ctx *cx, const ms_explanation *e, ms_roofline *out)
{
    const ms_explain_block *block = ms_explain_main_block(e);
    const ms_program *program = block->program;
    const ms_workload *workload = e->planned->workload;
    const ms_pricer *pricer = &workload->pricer;
    ms_roofline_kernel *kernels =
        MS_NEW_ARRAY(cx->arena, program->num_nodes, ms_roofline_kernel);
    int num = 0;
    double total_s = 0.0;
    for (int i = 0; i < program->num_nodes; i++) {
        const ms_node *node = &program->nodes[i];
        double seconds = ms_node_compute_s(program, node, pricer);
        if (node->pass == MS_PASS_OPTIMIZER || seconds <= 0.0)
            continue;
        ms_roofline_kernel *kernel = find_kernel(kernels, &num, node);
        kernel->flop += flop_of(program, node, pricer->attention_fused);
        kernel->bytes += bytes_of(program, node, pricer->stack);
        kernel->seconds += seconds;
        total_s += seconds;
    }
    num = keep_visible(kernels, num, total_s);
    if (num == 0)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "a %s of this plan runs no kernel",
                       block->name);
    qsort(kernels, (size_t)num, sizeof *kernels, by_seconds);
    *out = (ms_roofline){.arena = cx->arena,
                         .plan = e->plan,
                         .workload = workload,
                         .block = block->name,
                         .peak_flop_per_s = pricer->peak_flop_per_s,
                         .hbm_bytes_per_s = workload->cluster->device.hbm_bytes_per_s,
                         .total_s = total_s,
                         .num_kernels = num,
                         .kernels = kernels};
    return MS_OK;
}

/* ---- words ---- */

static double intensity(const ms_roofline_kernel *kernel)
{
    return kernel->flop / kernel->bytes;
}

static double ridge(const ms_roofline *plot)
{
    return plot->peak_flop_per_s / plot->hbm_bytes_per_s;
}

static double share(const ms_roofline *plot, const ms_roofline_kernel *kernel)
{
    return kernel->seconds / plot->total_s;
}

/* Share of the layer's time in kernels that the peak limits, not the memory. */
static double compute_bound_frac(const ms_roofline *plot)
{
    double bound = 0.0;
    for (int i = 0; i < plot->num_kernels; i++)
        if (intensity(&plot->kernels[i]) >= ridge(plot))
            bound += share(plot, &plot->kernels[i]);
    return bound;
}

static const char *title(const ms_roofline *plot)
{
    return ms_arena_printf(
        plot->arena, "%.0f %% of a layer's time is limited by the peak, not by memory",
        100.0 * compute_bound_frac(plot));
}

static const char *subtitle(const ms_roofline *plot)
{
    ms_arena *arena = plot->arena;
    return ms_arena_printf(arena, "%s · %s · %s · %s a micro-batch, forward and backward",
                           ms_caption_job(arena, plot->plan, plot->workload),
                           ms_caption_axes(arena, plot->plan), plot->block,
                           ms_caption_time(arena, plot->total_s));
}

static const char *kernel_text(ms_arena *arena, const ms_roofline_kernel *kernel)
{
    return ms_arena_printf(arena, "%s %s", kernel->name,
                           kernel->backward ? "backward" : "forward");
}

/* ---- files ---- */

void ms_roofline_write_data(FILE *out, const ms_roofline *plot)
{
    fputs("# FLOP/B\tTFLOP/s\tshare of time\tgroup\tkernel; groups:", out);
    for (int i = 0; i < MS_NUM_KERNEL_GROUPS; i++)
        ms_print(out, " %d %s", i + 1, ms_kernel_group_names[i]);
    fputc('\n', out);
    for (int i = 0; i < plot->num_kernels; i++) {
        const ms_roofline_kernel *k = &plot->kernels[i];
        ms_print(out, "%.9g\t%.9g\t%.9g\t%d\t", intensity(k),
                 1e-12 * k->flop / k->seconds, share(plot, k), k->group + 1);
        ms_data_text(out, kernel_text(plot->arena, k));
        fputc('\n', out);
    }
}

typedef struct extent {
    double low, high;   /* FLOP/B */
    double least, most; /* FLOP/s */
    int groups;         /* bit mask */
} extent;

static extent extent_of(const ms_roofline *plot)
{
    extent e = {ridge(plot), ridge(plot), plot->peak_flop_per_s, plot->peak_flop_per_s,
                0};
    for (int i = 0; i < plot->num_kernels; i++) {
        const ms_roofline_kernel *k = &plot->kernels[i];
        e.low = ms_min(e.low, intensity(k));
        e.high = ms_max(e.high, intensity(k));
        e.least = ms_min(e.least, k->flop / k->seconds);
        e.most = ms_max(e.most, k->flop / k->seconds);
        e.groups |= 1 << k->group;
    }
    return (extent){e.low / 2.5, e.high * 2.5, e.least / 2.5, e.most * 2.0, e.groups};
}

static void write_names(FILE *out, const ms_roofline *plot)
{
    int num = plot->num_kernels < NUM_NAMED ? plot->num_kernels : NUM_NAMED;
    ms_script_number(out, "num_named", num);
    for (int i = 0; i < num; i++) {
        const ms_roofline_kernel *k = &plot->kernels[i];
        const char *text = kernel_text(plot->arena, k);
        bool cut = strlen(text) > NAME_BYTES;
        ms_script_text(
            out, ms_arena_printf(plot->arena, "kernel_%d", i + 1),
            ms_arena_printf(plot->arena, "%.*s%s", NAME_BYTES, text, cut ? "…" : ""));
        ms_script_number(out, ms_arena_printf(plot->arena, "share_%d", i + 1),
                         100.0 * share(plot, k));
        ms_script_number(out, ms_arena_printf(plot->arena, "group_%d", i + 1),
                         k->group + 1);
    }
    double others = 0.0;
    for (int i = num; i < plot->num_kernels; i++)
        others += share(plot, &plot->kernels[i]);
    ms_script_number(out, "num_others", plot->num_kernels - num);
    ms_script_number(out, "share_others", 100.0 * others);
}

ms_status ms_roofline_write_script(ms_ctx *cx, FILE *out, const ms_roofline *plot,
                                   const char *name, ms_picture_format format)
{
    extent e = extent_of(plot);
    ms_script script = {.kind = "roofline",
                        .name = name,
                        .format = format,
                        .width = WIDTH,
                        .height = TOP + HEIGHT + BOTTOM,
                        .margins = {LEFT, RIGHT, TOP, BOTTOM},
                        .title = title(plot),
                        .subtitle = subtitle(plot)};
    ms_script_begin(out, &script);
    ms_script_number(out, "peak", 1e-12 * plot->peak_flop_per_s);
    ms_script_number(out, "hbm", 1e-12 * plot->hbm_bytes_per_s);
    ms_script_number(out, "low", e.low);
    ms_script_number(out, "high", e.high);
    ms_script_number(out, "least", 1e-12 * e.least);
    ms_script_number(out, "most", 1e-12 * e.most);
    ms_script_number(out, "groups", e.groups);
    for (int i = 0; i < MS_NUM_KERNEL_GROUPS; i++)
        ms_script_text(out, ms_arena_printf(cx->arena, "title_%d", i + 1),
                       ms_kernel_group_names[i]);
    write_names(out, plot);
    return ms_script_end(cx, out, &script);
}

void ms_roofline_write_json(ms_jout *out, const ms_roofline *plot)
{
    ms_jout_key(out, "plan");
    ms_plan_write_json(out, plot->plan);
    ms_jout_text_field(out, "block", plot->block);
    ms_jout_number_field(out, "peak_flop_per_s", plot->peak_flop_per_s);
    ms_jout_number_field(out, "hbm_bytes_per_s", plot->hbm_bytes_per_s);
    ms_jout_number_field(out, "ridge_flop_per_byte", ridge(plot));
    ms_jout_number_field(out, "compute_bound_frac", compute_bound_frac(plot));
    ms_jout_number_field(out, "layer_s", plot->total_s);
    ms_jout_begin_array_field(out, "kernels");
    for (int i = 0; i < plot->num_kernels; i++) {
        const ms_roofline_kernel *k = &plot->kernels[i];
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "name", k->name);
        ms_jout_text_field(out, "direction", k->backward ? "backward" : "forward");
        ms_jout_text_field(out, "group", ms_kernel_group_names[k->group]);
        ms_jout_number_field(out, "flop", k->flop);
        ms_jout_number_field(out, "bytes", k->bytes);
        ms_jout_number_field(out, "seconds", k->seconds);
        ms_jout_number_field(out, "flop_per_byte", intensity(k));
        ms_jout_number_field(out, "flop_per_s", k->flop / k->seconds);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

void ms_roofline_print(FILE *out, const ms_roofline *plot)
{
    ms_print(out,
             "roofline  %s\n          %s\n          peak %.4g TFLOP/s, HBM %.4g TB/s, "
             "equal at %.4g FLOP/B\n\n",
             title(plot), subtitle(plot), 1e-12 * plot->peak_flop_per_s,
             1e-12 * plot->hbm_bytes_per_s, ridge(plot));
    ms_table *table = MS_TABLE(plot->arena, "Llrrrrr", "kernel", "group", "time (us)",
                               "share (%)", "FLOP/B", "TFLOP/s", "of the roof (%)");
    for (int i = 0; i < plot->num_kernels; i++) {
        const ms_roofline_kernel *k = &plot->kernels[i];
        double roof = ms_min(plot->peak_flop_per_s, intensity(k) * plot->hbm_bytes_per_s);
        ms_table_cells(table, "%s\t%s\t%.1f\t%.1f\t%.4g\t%.4g\t%.1f",
                       kernel_text(plot->arena, k), ms_kernel_group_names[k->group],
                       1e6 * k->seconds, 100.0 * share(plot, k), intensity(k),
                       1e-12 * k->flop / k->seconds, 100.0 * k->flop / k->seconds / roof);
    }
    ms_table_print(table, out);
    fputs("\npointwise kernels count one FLOP an element that they write\n\n", out);
}
