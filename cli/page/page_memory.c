/* Section of a page: memory of every pipeline stage at its peak. */
#include "cli/page/page_priv.h"

#include "base/number.h"
#include "plots/caption.h"
#include "sim/step/prediction_text.h"

#define LEFT      70.0 /* ends of bars in a picture 1000 wide */
#define RIGHT     990.0
#define MAX_DRAWN 64 /* stages; more are alike and stand in the table */

static bool is_used(const ms_prediction *p, int category)
{
    for (int i = 0; i < p->num_stages; i++)
        if (p->stages[i].memory[category] > 0.0)
            return true;
    return false;
}

static double largest_bytes(const ms_prediction *p)
{
    double largest = p->capacity_bytes;
    for (int i = 0; i < p->num_stages; i++)
        largest = ms_max(largest, p->stages[i].peak_bytes);
    return largest;
}

static void draw_stage(const ms_html *html, const ms_prediction *p, int i, double y,
                       double px_per_byte)
{
    double x = LEFT;
    ms_html_print(html, "<text x=\"0\" y=\"%.0f\">rank %d</text>\n", y + 13.0,
                  p->stages[i].rank);
    for (int category = 0; category < MS_NUM_MEMORY_CATEGORIES; category++) {
        double width = p->stages[i].memory[category] * px_per_byte;
        if (width > 0.0) {
            ms_html_print(html,
                          "<rect class=\"m%d\" x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" "
                          "height=\"17\"/>\n",
                          category, x, y, width);
        }
        x += width;
    }
}

static void draw(const ms_html *html, const ms_prediction *p)
{
    int drawn = p->num_stages < MAX_DRAWN ? p->num_stages : MAX_DRAWN;
    double height = 22.0 * drawn + 20.0;
    double px_per_byte = (RIGHT - LEFT) / largest_bytes(p);
    double end = LEFT + p->capacity_bytes * px_per_byte;
    ms_html_print(html,
                  "<figure>\n<div class=\"wide\" role=\"region\" tabindex=\"0\" "
                  "aria-label=\"Memory of each stage, drawn\">\n"
                  "<svg viewBox=\"0 0 1000 %.0f\" role=\"img\" "
                  "aria-labelledby=\"memory-title memory-desc\">\n"
                  "<title id=\"memory-title\">Peak memory of each pipeline rank</title>\n"
                  "<desc id=\"memory-desc\">Stacked bars; the table below has the same "
                  "figures.</desc>\n",
                  height);
    for (int i = 0; i < drawn; i++)
        draw_stage(html, p, i, 22.0 * i + 2.0, px_per_byte);
    ms_html_print(html,
                  "<path class=\"limit\" d=\"M%.1f 0V%.0f\"/>\n"
                  "<text class=\"end\" x=\"%.1f\" y=\"%.0f\">device memory %.1f "
                  "GiB</text>\n</svg>\n</div>\n<ul class=\"legend\">\n",
                  end, height - 16.0, end, height - 3.0, ms_gib(p->capacity_bytes));
    for (int category = 0; category < MS_NUM_MEMORY_CATEGORIES; category++)
        if (is_used(p, category))
            ms_page_legend(html, ms_arena_printf(html->arena, "m%d", category),
                           ms_memory_category_titles[category]);
    ms_html_print(html,
                  "</ul>\n<figcaption>Peak of each pipeline rank as the framework counts "
                  "it, from left to right in the order of the legend.%s</figcaption>\n"
                  "</figure>\n",
                  drawn < p->num_stages ? " Only the first 64 are drawn." : "");
}

static void write_table(const ms_html *html, const ms_prediction *p)
{
    const char *headings[MS_NUM_MEMORY_CATEGORIES + 4] = {"pipeline rank", "peak",
                                                          "left on the device"};
    int num = 3;
    for (int category = 0; category < MS_NUM_MEMORY_CATEGORIES; category++)
        if (is_used(p, category))
            headings[num++] = ms_memory_category_titles[category];
    headings[num] = NULL;
    char alignment[MS_NUM_MEMORY_CATEGORIES + 4] = "rrrrrrrrrrrr";
    alignment[num] = '\0';
    ms_html_table table = ms_html_table_begin(
        html, "t-memory", "Memory of each pipeline rank at its peak, GiB", alignment,
        headings);
    for (int i = 0; i < p->num_stages; i++) {
        const ms_stage_prediction *stage = &p->stages[i];
        ms_html_cell(&table, "%d", stage->rank);
        ms_html_cell(&table, "%.2f", ms_gib(stage->peak_bytes));
        ms_html_cell(&table, "%.2f",
                     ms_gib(ms_prediction_free_bytes(p, stage->peak_bytes)));
        for (int category = 0; category < MS_NUM_MEMORY_CATEGORIES; category++)
            if (is_used(p, category))
                ms_html_cell(&table, "%.2f", ms_gib(stage->memory[category]));
    }
    ms_html_table_end(&table);
}

void ms_page_memory(const ms_html *html, const ms_page *page)
{
    const ms_prediction *p = page->prediction;
    ms_html_print(
        html, "<p>The highest peak is pipeline rank %d's: %.2f GiB%s of %.2f GiB.</p>\n",
        p->worst_rank, ms_gib(p->peak_bytes), ms_outside_text(page->arena, p),
        ms_gib(p->capacity_bytes));
    draw(html, p);
    write_table(html, p);
}
