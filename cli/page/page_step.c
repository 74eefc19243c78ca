/* Sections of a page: parts of the step time, and the pipeline over time. */
#include "cli/page/page_priv.h"

#include "base/number.h"
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
    fputs(
        "<figure>\n<svg viewBox=\"0 0 1000 40\" preserveAspectRatio=\"none\" "
        "class=\"bar\" role=\"img\" aria-labelledby=\"step-title step-desc\">\n"
        "<title id=\"step-title\">Parts of the step time</title>\n"
        "<desc id=\"step-desc\">One bar; the table below has the same figures.</desc>\n",
        html->out);
    for (int i = 0; i < NUM_PARTS; i++) {
        double width = 1000.0 * parts[i].seconds / step_s;
        if (width > 0.0) {
            ms_html_print(html,
                          "<rect class=\"p%d\" x=\"%.2f\" y=\"0\" width=\"%.2f\" "
                          "height=\"40\"/>\n",
                          i, x, width);
        }
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
        ms_html_cell(&table, "%.*f", ms_decimals(p->step_s) + 2, parts[i].seconds);
        ms_html_cell(&table, "%.1f", 100.0 * parts[i].seconds / p->step_s);
        ms_html_cell(&table, "%s", parts[i].meaning);
    }
    ms_html_table_end(&table);
}

/* ---- the pipeline over time ---- */

#define LEFT        60.0 /* ends of lanes in a picture 1000 wide */
#define RIGHT       995.0
#define MAX_DRAWN   6000  /* boxes drawn one by one */
#define MAX_SAMPLES 16000 /* samples in all lanes together, if there are more boxes */
#define MAX_NUMBERS 600

typedef struct picture {
    const ms_html *html;
    const ms_timeline *timeline;
    const char *id;
    double end_s; /* drawn from the start of the step until then */
    double lane_px, px_per_s;
    long num_boxes;
    const ms_box *boxes;
    bool is_sampled;
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
    double width = (ms_min(box->end_s, p->end_s) - box->start_s) * p->px_per_s;
    extent_of(p, box, &top, &height);
    ms_html_print(p->html, "M%.1f %.1fh%.1fv%.1fh-%.1fz", x, top, width, height, width);
}

/* The boxes of one kind as one path. */
static void draw_kind(const picture *p, int kind)
{
    bool any = false;
    for (long i = 0; i < p->num_boxes; i++) {
        if ((int)p->boxes[i].kind != kind || p->boxes[i].start_s >= p->end_s)
            continue;
        if (!any)
            ms_html_print(p->html, "<path class=\"k%d\" d=\"", kind);
        any = true;
        put_box(p, &p->boxes[i]);
    }
    if (any)
        fputs("\"/>\n", p->html->out);
}

/* Numbers of micro-batches in boxes with room for them. */
static void put_numbers(const picture *p)
{
    for (long i = 0; i < p->num_boxes && !p->is_sampled; i++) {
        const ms_box *box = &p->boxes[i];
        double width = (box->end_s - box->start_s) * p->px_per_s, top, height;
        if (box->microbatch < 0 || width < 14.0 || box->half == MS_BOX_COMMUNICATION ||
            box->end_s > p->end_s)
            continue;
        extent_of(p, box, &top, &height);
        if (height >= 9.0) {
            ms_html_print(p->html,
                          "<text class=\"on k%d-text\" x=\"%.1f\" y=\"%.1f\">%d</text>\n",
                          (int)box->kind, LEFT + box->start_s * p->px_per_s + width / 2.0,
                          top + height / 2.0 + 3.0, box->microbatch);
        }
    }
}

/* Index of the box of a lane that is under way at a time, from `at` on, where boxes of the
 * lane begin; -1: none is. `at` moves on. */
static long box_at(const ms_timeline *t, int lane, double now_s, long *at)
{
    while (*at + 1 < t->num_boxes && t->boxes[*at + 1].lane == lane &&
           t->boxes[*at + 1].start_s <= now_s)
        (*at)++;
    if (*at >= t->num_boxes)
        return -1;
    const ms_box *box = &t->boxes[*at];
    return box->lane == lane && box->start_s <= now_s && now_s < box->end_s ? *at : -1;
}

/* Adds what one lane does at `num_samples` equally spaced instants to `boxes`; neighbours
 * of one kind and half become one box. `at`: the lane's first action. */
static long sample_lane(const ms_timeline *t, int lane, int num_samples, long at,
                        ms_box *boxes)
{
    long num = 0;
    double half_s = t->step_s / num_samples / 2.0;
    for (int i = 0; i < num_samples; i++) {
        double now_s = (2.0 * i + 1.0) * half_s;
        long found = box_at(t, lane, now_s, &at);
        if (found < 0)
            continue;
        const ms_box *box = &t->boxes[found];
        ms_box *last = num > 0 ? &boxes[num - 1] : NULL;
        if (last != NULL && last->kind == box->kind && last->half == box->half &&
            last->end_s > now_s - 1.5 * half_s) {
            last->end_s = now_s + half_s;
            continue;
        }
        boxes[num] = *box;
        boxes[num].start_s = now_s - half_s;
        boxes[num++].end_s = now_s + half_s;
    }
    return num;
}

/* Replaces the boxes by samples of all lanes, without collectives beside the actions. */
static void sample(ms_arena *arena, picture *p)
{
    const ms_timeline *t = p->timeline;
    ms_box *boxes = MS_NEW_ARRAY(arena, MAX_SAMPLES, ms_box);
    long at = 0;
    p->num_boxes = 0;
    for (int lane = 0; lane < t->num_lanes; lane++) {
        while (at < t->num_boxes &&
               (t->boxes[at].lane < lane || t->boxes[at].half == MS_BOX_COMMUNICATION))
            at++;
        p->num_boxes +=
            sample_lane(t, lane, MAX_SAMPLES / t->num_lanes, at, boxes + p->num_boxes);
    }
    p->boxes = boxes;
    p->is_sampled = true;
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
    ms_time_unit unit = ms_time_unit_of(p->end_s);
    for (int i = 0; i <= 4; i++) {
        ms_html_print(p->html,
                      "<text class=\"%s\" x=\"%.1f\" y=\"%.0f\">%.4g %s</text>\n",
                      i == 0   ? "start"
                      : i == 4 ? "end"
                               : "middle",
                      LEFT + (RIGHT - LEFT) * i / 4.0, top + 14.0,
                      p->end_s * unit.per_s * i / 4.0, unit.name);
    }
}

static void write_legend(const picture *p)
{
    static const char *const names[MS_NUM_BOX_KINDS] = {
        [MS_BOX_FORWARD] = "forward (short bar)",
        [MS_BOX_BACKWARD] = "backward",
        [MS_BOX_INPUT] = "backward: inputs",
        [MS_BOX_WEIGHT] = "backward: weights (short bar, low)",
        [MS_BOX_GATHER] = "gathering parameters (thin bar)",
        [MS_BOX_REDUCE] = "reducing gradients (thin bar)",
        [MS_BOX_OPTIMIZER] = "optimizer"};
    unsigned kinds = 0;
    for (long i = 0; i < p->num_boxes; i++)
        if (p->boxes[i].start_s < p->end_s)
            kinds |= 1u << p->boxes[i].kind;
    fputs("<ul class=\"legend\">\n", p->html->out);
    for (int kind = 0; kind < MS_NUM_BOX_KINDS; kind++)
        if ((kinds >> kind & 1u) != 0)
            ms_page_legend(p->html, ms_arena_printf(p->html->arena, "k%d", kind),
                           names[kind]);
    ms_page_legend(p->html, "idle", "idle");
    fputs("</ul>\n", p->html->out);
}

static void draw(const picture *p, const char *title, const char *caption)
{
    double height = p->lane_px * p->timeline->num_lanes;
    ms_html_print(
        p->html,
        "<figure>\n<div class=\"wide\" role=\"region\" tabindex=\"0\" "
        "aria-label=\"%s, drawn\">\n"
        "<svg viewBox=\"0 0 1000 %.0f\" role=\"img\" "
        "aria-labelledby=\"%s-title %s-desc\">\n<title id=\"%s-title\">%s</title>\n"
        "<desc id=\"%s-desc\">A row for each pipeline rank; the table below sums "
        "its actions.</desc>\n",
        title, height + 20.0, p->id, p->id, p->id, title, p->id);
    draw_lanes(p);
    ms_html_print(p->html, "<g class=\"%s\">\n",
                  p->timeline->num_boxes > MAX_NUMBERS ? "dense" : "apart");
    for (int kind = 0; kind < MS_NUM_BOX_KINDS; kind++)
        draw_kind(p, kind);
    fputs("</g>\n", p->html->out);
    put_numbers(p);
    draw_axis(p, height);
    fputs("</svg>\n</div>\n", p->html->out);
    write_legend(p);
    ms_html_print(p->html, "<figcaption>%s</figcaption>\n</figure>\n", caption);
}

static picture picture_of(const ms_html *html, const ms_timeline *t, const char *id,
                          double end_s)
{
    double all = t->num_lanes <= 8 ? 40.0 * t->num_lanes : 200.0 + 15.0 * t->num_lanes;
    return (picture){.html = html,
                     .timeline = t,
                     .id = id,
                     .end_s = end_s,
                     .lane_px = ms_min(all, 900.0) / t->num_lanes,
                     .px_per_s = (RIGHT - LEFT) / end_s,
                     .num_boxes = t->num_boxes,
                     .boxes = t->boxes};
}

static void draw_step(const ms_html *html, const ms_page *page)
{
    const ms_timeline *t = page->timeline;
    picture p = picture_of(html, t, "timeline", t->step_s);
    const char *caption =
        ms_arena_printf(page->arena, "One step of %s, a row for each pipeline rank.",
                        ms_plan_schedule_name(page->plan));
    if (t->num_boxes > MAX_DRAWN && t->num_lanes <= MAX_SAMPLES) {
        sample(page->arena, &p);
        caption =
            ms_arena_printf(page->arena,
                            "%s %ld actions are too many to be drawn one by one: "
                            "each row shows what its rank does at %d equally spaced "
                            "instants.",
                            caption, t->num_boxes, MAX_SAMPLES / t->num_lanes);
    }
    draw(&p, "Actions of every pipeline rank over one step", caption);
}

/* The beginning of a step with more actions than can be told apart. */
static void draw_start(const ms_html *html, const ms_page *page)
{
    const ms_timeline *t = page->timeline;
    if (t->num_boxes <= MAX_NUMBERS)
        return;
    double shown_frac = (24.0 + t->num_lanes) * t->num_lanes / (double)t->num_boxes;
    double start_s = t->step_s * ms_min(1.0, shown_frac);
    picture p = picture_of(html, t, "start", start_s);
    draw(&p, "The first actions of every pipeline rank",
         "The beginning of the same step; numbers are micro-batches.");
}

static void write_stages(const ms_html *html, const ms_page *page)
{
    const ms_prediction *p = page->prediction;
    ms_html_table table =
        MS_HTML_TABLE(html, "t-stages", "Work of each pipeline rank in a step", "rrrrrrr",
                      "pipeline rank", "layers", "forward (ms)", "backward (ms)",
                      "busy (s)", "busy (%)", "micro-batches in flight");
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
        draw_step(html, page);
    else
        ms_html_print(html, "<p>Not drawn: %s.</p>\n", page->no_timeline);
    if (page->timeline != NULL)
        draw_start(html, page);
    write_stages(html, page);
}
