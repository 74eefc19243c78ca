/* Sections of a page: parts of the step time, and the pipeline over time. */
#include "cli/page/page_priv.h"

#include "plots/caption.h"
#include "sim/step/prediction_text.h"

/* ---- parts of the step ---- */

typedef struct part {
    const char *key, *name, *meaning;
    double seconds;
} part;
#define NUM_PARTS 5

static void draw_parts(const ms_html *html, const part *parts, double step_s)
{
    double x = 0.0;
    fputs("<figure>\n<svg viewBox=\"0 0 1000 40\" preserveAspectRatio=\"none\" "
          "class=\"bar\" role=\"img\" aria-labelledby=\"step-title step-desc\">\n"
          "<title id=\"step-title\">Parts of the step time</title>\n"
          "<desc id=\"step-desc\">One bar; the table below has the same figures.</desc>\n",
          html->out);
    for (int i = 0; i < NUM_PARTS; i++) {
        double width = 1000.0 * parts[i].seconds / step_s;
        if (width > 0.0)
            ms_html_print(html,
                          "<rect class=\"p%d\" x=\"%.2f\" y=\"0\" width=\"%.2f\" "
                          "height=\"40\"/>\n",
                          i, x, width);
        x += width;
    }
    fputs("</svg>\n<ul class=\"legend\">\n", html->out);
    for (int i = 0; i < NUM_PARTS; i++)
        if (parts[i].seconds > 0.0)
            ms_page_legend(html, ms_arena_printf(html->arena, "p%d", i), parts[i].name);
    fputs("</ul>\n<figcaption>Parts of the step time, from left to right in the order of "
          "the legend.</figcaption>\n</figure>\n",
          html->out);
}

void ms_page_step(const ms_html *html, const ms_page *page)
{
    const ms_prediction *p = page->prediction;
    const part parts[NUM_PARTS] = {
        {"compute_s", "compute", "kernels of the layers", p->compute_s},
        {"exposed_comm_s", "exposed communication", "transfers that compute waits for",
         p->exposed_comm_s},
        {"bubble_s", "pipeline bubble", "no action is ready", p->bubble_s},
        {"optimizer_s", "optimizer", "update of the parameters", p->optimizer_s},
        {"host_s", "host", "launches that the device waits for", p->host_s}};
    draw_parts(html, parts, p->step_s);
    ms_html_table table = MS_HTML_TABLE(
        html, "t-step",
        ms_arena_printf(page->arena,
                        "Step time of pipeline rank %d, which ends last: %s s",
                        p->ending_rank, ms_amount_text(page->arena, p->step_s)),
        "lrrl", "part", "time (s)", "share (%)", "meaning");
    for (int i = 0; i < NUM_PARTS; i++) {
        ms_html_cell(&table, "%s", parts[i].name);
        ms_html_cell(&table, "%.4g", parts[i].seconds);
        ms_html_cell(&table, "%.1f", 100.0 * parts[i].seconds / p->step_s);
        ms_html_cell(&table, "%s", parts[i].meaning);
    }
    ms_html_table_end(&table);
}

/* ---- the pipeline over time ---- */

#define LEFT        60.0 /* of lanes, in a picture 1000 wide */
#define RIGHT       995.0
#define MAX_DRAWN   6000  /* boxes drawn one by one */
#define MAX_SAMPLES 16000 /* of all lanes together, if there are more boxes */
#define MAX_NUMBERS 600

typedef struct picture {
    const ms_html *html;
    const ms_timeline *timeline;
    double lane_px, px_per_s;
} picture;

/* Forwards are shorter bars than backwards, so that colour alone tells nothing. */
static void extent_of(const picture *p, const ms_box *box, double *top, double *height)
{
    double all = p->lane_px - 2.0, actions = 0.8 * all;
    bool forward = box->kind == MS_BOX_FORWARD, weight = box->kind == MS_BOX_WEIGHT;
    *top = p->lane_px * box->lane + 1.0;
    *height = forward || weight ? 0.6 * actions : actions;
    if (weight)
        *top += 0.4 * actions;
    if (box->half == MS_BOX_COMMUNICATION) {
        *top += actions + 0.05 * all;
        *height = 0.15 * all;
    } else if (box->half != MS_BOX_WHOLE) {
        *height = actions / 2.0;
        *top += box->half == MS_BOX_LOWER ? actions / 2.0 : 0.0;
    }
}

static void put_box(const picture *p, const ms_box *box)
{
    double top, height;
    double x = LEFT + box->start_s * p->px_per_s;
    double width = (box->end_s - box->start_s) * p->px_per_s;
    extent_of(p, box, &top, &height);
    ms_html_print(p->html, "M%.1f %.1fh%.1fv%.1fh-%.1fz", x, top, width, height, width);
}

/* The boxes of one kind as one path. */
static void draw_kind(const picture *p, const ms_box *boxes, long num, int kind)
{
    bool any = false;
    for (long i = 0; i < num; i++) {
        if ((int)boxes[i].kind != kind)
            continue;
        if (!any)
            ms_html_print(p->html, "<path class=\"k%d\" d=\"", kind);
        any = true;
        put_box(p, &boxes[i]);
    }
    if (any)
        fputs("\"/>\n", p->html->out);
}

static void put_numbers(const picture *p)
{
    const ms_timeline *t = p->timeline;
    for (long i = 0; i < t->num_boxes && t->num_boxes <= MAX_NUMBERS; i++) {
        const ms_box *box = &t->boxes[i];
        double width = (box->end_s - box->start_s) * p->px_per_s, top, height;
        if (box->microbatch < 0 || width < 14.0 || box->half == MS_BOX_COMMUNICATION)
            continue;
        extent_of(p, box, &top, &height);
        if (height >= 9.0)
            ms_html_print(p->html,
                          "<text class=\"on k%d-text\" x=\"%.1f\" y=\"%.1f\">%d</text>\n",
                          (int)box->kind, LEFT + box->start_s * p->px_per_s + width / 2.0,
                          top + height / 2.0 + 3.0, box->microbatch);
    }
}

/* Boxes of what each lane does at equally spaced instants; neighbours of one kind and
 * half are one box. Collectives beside the actions are left out. Returns their number. */
static long sample(ms_arena *arena, const ms_timeline *t, ms_box **out)
{
    int per_lane = MAX_SAMPLES / t->num_lanes;
    ms_box *boxes = MS_NEW_ARRAY(arena, MAX_SAMPLES, ms_box);
    long num = 0, at = 0;
    for (int lane = 0; lane < t->num_lanes; lane++) {
        long first = num;
        while (at < t->num_boxes && (t->boxes[at].lane < lane ||
                                     t->boxes[at].half == MS_BOX_COMMUNICATION))
            at++;
        for (int i = 0; i < per_lane; i++) {
            double now_s = t->step_s * (i + 0.5) / per_lane, half_s = t->step_s / per_lane / 2.0;
            while (at + 1 < t->num_boxes && t->boxes[at + 1].lane == lane &&
                   t->boxes[at + 1].start_s <= now_s)
                at++;
            const ms_box *box = &t->boxes[at];
            if (at >= t->num_boxes || box->lane != lane || now_s < box->start_s ||
                now_s >= box->end_s)
                continue;
            ms_box *last = num > first ? &boxes[num - 1] : NULL;
            if (last != NULL && last->kind == box->kind && last->half == box->half &&
                last->end_s >= now_s - 1.5 * half_s) {
                last->end_s = now_s + half_s;
                continue;
            }
            boxes[num] = *box;
            boxes[num].start_s = now_s - half_s;
            boxes[num++].end_s = now_s + half_s;
        }
    }
    *out = boxes;
    return num;
}

static void draw_lanes(const picture *p)
{
    const ms_timeline *t = p->timeline;
    int step = 1;
    while (step * p->lane_px < 14.0)
        step *= 2;
    for (int lane = 0; lane < t->num_lanes; lane++) {
        ms_html_print(p->html,
                      "<rect class=\"idle\" x=\"%.0f\" y=\"%.1f\" width=\"%.0f\" "
                      "height=\"%.1f\"/>\n",
                      LEFT, p->lane_px * lane + 1.0, RIGHT - LEFT, p->lane_px - 2.0);
        if (lane % step == 0)
            ms_html_print(p->html, "<text x=\"0\" y=\"%.1f\">rank %d</text>\n",
                          p->lane_px * (lane + 0.5) + 4.0, lane);
    }
}

static void draw_axis(const picture *p, double top)
{
    ms_time_unit unit = ms_time_unit_of(p->timeline->step_s);
    double step_s = p->timeline->step_s;
    for (int i = 0; i <= 4; i++)
        ms_html_print(p->html,
                      "<text class=\"%s\" x=\"%.1f\" y=\"%.0f\">%.4g %s</text>\n",
                      i == 0   ? "start"
                      : i == 4 ? "end"
                               : "middle",
                      LEFT + (RIGHT - LEFT) * i / 4.0, top + 14.0,
                      step_s * unit.per_s * i / 4.0, unit.name);
}

static void write_legend(const ms_html *html, const ms_box *boxes, long num)
{
    static const char *const names[MS_NUM_BOX_KINDS] = {
        "forward (short bar)",  "backward",           "backward: inputs",
        "backward: weights (short bar, low)", "gathering parameters (thin bar)",
        "reducing gradients (thin bar)", "optimizer"};
    fputs("<ul class=\"legend\">\n", html->out);
    for (int kind = 0; kind < MS_NUM_BOX_KINDS; kind++)
        for (long i = 0; i < num; i++)
            if ((int)boxes[i].kind == kind) {
                ms_page_legend(html, ms_arena_printf(html->arena, "k%d", kind),
                               names[kind]);
                break;
            }
    ms_page_legend(html, "idle", "idle");
    fputs("</ul>\n", html->out);
}

static void draw(const ms_html *html, const ms_page *page)
{
    const ms_timeline *t = page->timeline;
    double all = t->num_lanes <= 8 ? 40.0 * t->num_lanes : 200.0 + 15.0 * t->num_lanes;
    picture p = {html, t, (all < 900.0 ? all : 900.0) / t->num_lanes,
                 (RIGHT - LEFT) / t->step_s};
    const ms_box *boxes = t->boxes;
    long num = t->num_boxes;
    ms_box *sampled;
    bool is_sampled = num > MAX_DRAWN && t->num_lanes <= MAX_SAMPLES;
    if (is_sampled) {
        num = sample(page->arena, t, &sampled);
        boxes = sampled;
    }
    ms_html_print(html,
                  "<figure>\n<div class=\"wide\" role=\"region\" tabindex=\"0\" "
                  "aria-label=\"Timeline, drawn\">\n"
                  "<svg viewBox=\"0 0 1000 %.0f\" role=\"img\" "
                  "aria-labelledby=\"timeline-title timeline-desc\">\n"
                  "<title id=\"timeline-title\">Actions of every pipeline rank over one "
                  "step</title>\n<desc id=\"timeline-desc\">A row for each rank; the table "
                  "below sums its actions.</desc>\n",
                  p.lane_px * t->num_lanes + 20.0);
    draw_lanes(&p);
    for (int kind = 0; kind < MS_NUM_BOX_KINDS; kind++)
        draw_kind(&p, boxes, num, kind);
    put_numbers(&p);
    draw_axis(&p, p.lane_px * t->num_lanes);
    fputs("</svg>\n</div>\n", html->out);
    write_legend(html, boxes, num);
    ms_html_print(html, "<figcaption>One step of %s, a row for each pipeline rank.%s%s"
                        "</figcaption>\n</figure>\n",
                  ms_plan_schedule_name(page->plan),
                  t->num_boxes <= MAX_NUMBERS ? " Numbers are micro-batches." : "",
                  is_sampled ? ms_arena_printf(page->arena,
                                               " %ld actions are too many to be drawn one "
                                               "by one: each row shows what its rank does "
                                               "at %d equally spaced instants.",
                                               t->num_boxes, MAX_SAMPLES / t->num_lanes)
                             : "");
}

static void write_stages(const ms_html *html, const ms_page *page)
{
    const ms_prediction *p = page->prediction;
    ms_html_table table = MS_HTML_TABLE(
        html, "t-stages", "Work of each pipeline rank in a step", "rrrrrrr",
        "pipeline rank", "layers", "forward (ms)", "backward (ms)", "busy (s)",
        "busy (%)", "micro-batches in flight");
    for (int i = 0; i < p->num_stages; i++) {
        const ms_stage_prediction *stage = &p->stages[i];
        ms_html_cell(&table, "%d", stage->rank);
        ms_html_cell(&table, "%ld", stage->num_layers);
        ms_html_cell(&table, "%.3f", 1e3 * stage->forward_s);
        ms_html_cell(&table, "%.3f", 1e3 * stage->backward_s);
        ms_html_cell(&table, "%.4g", stage->busy_s);
        ms_html_cell(&table, "%.1f", 100.0 * stage->busy_s / p->step_s);
        ms_html_cell(&table, "%d", stage->live_microbatches);
    }
    ms_html_table_end(&table);
    fputs("<p>Forward and backward are of one micro-batch.</p>\n", html->out);
}

void ms_page_timeline(const ms_html *html, const ms_page *page)
{
    if (page->timeline != NULL)
        draw(html, page);
    else
        ms_html_print(html, "<p>Not drawn: %s.</p>\n", page->no_timeline);
    write_stages(html, page);
}
