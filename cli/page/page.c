#include "cli/page/page_priv.h"

#include "base/print.h"
#include "cli/options/commands.h"
#include "cli/report/mesh_draw.h"
#include "plots/caption.h"

typedef struct section {
    const char *id, *title;
    void (*write)(const ms_html *html, const ms_page *page);
} section;

static const section sections[] = {
    {"answer", "Answer", ms_page_answer},
    {"risk", "Risk and assumptions", ms_page_risk},
    {"campaign", "Whole training", ms_page_campaign},
    {"mesh", "Mesh and network", ms_page_mesh},
    {"memory", "Memory", ms_page_memory},
    {"step", "Where the step goes", ms_page_step},
    {"timeline", "Timeline of the pipeline", ms_page_timeline},
    {"sweep", "Other sizes and clusters", ms_page_of_sweep},
    {"alternatives", "Alternatives, and why they lost", ms_page_alternatives},
    {"changes", "What would change the choice", ms_page_changes},
    {"coefficients", "Sources of every coefficient", ms_page_coefficients},
    {"repeat", "How to repeat it", ms_page_repeat},
};
#define NUM_SECTIONS ((int)(sizeof sections / sizeof *sections))

const char *ms_page_title(const ms_page *page)
{
    const ms_plan *plan = page->plan;
    const char *unit = page->prediction->unit;
    return ms_arena_printf(page->arena, "%s on %ld %s%s of %s",
                           ms_caption_name(page->arena, plan->model), plan->gpus,
                           unit == NULL ? "GPU" : unit, plan->gpus == 1 ? "" : "s",
                           ms_caption_name(page->arena, plan->cluster));
}

static bool is_shown(const section *s, const ms_page *page)
{
    return (s->write != ms_page_campaign || page->campaign != NULL) &&
           (s->write != ms_page_of_sweep || page->sweep != NULL);
}

void ms_page_legend(const ms_html *html, const char *style, const char *name)
{
    ms_html_print(html, "<li><span class=\"mark %s\"></span>%s</li>\n", style, name);
}

static void write_head(const ms_html *html, const ms_page *page)
{
    ms_html_print(html,
                  "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
                  "<meta charset=\"utf-8\"/>\n"
                  "<meta name=\"viewport\" content=\"width=device-width, "
                  "initial-scale=1\"/>\n"
                  "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
                  "<meta name=\"generator\" content=\"meshsim " MS_VERSION "\"/>\n"
                  "<title>%s: training plan</title>\n<style>\n",
                  ms_page_title(page));
    for (const char *const *line = ms_page_style; *line != NULL; line++)
        fputs(*line, html->out); /* ms_print would escape its newlines */
    for (const char *const *style = ms_mesh_svg_styles; *style != NULL; style++)
        (void)ms_print(html->out, ".mesh %s\n", *style);
    fputs("</style>\n</head>\n", html->out);
}

static void write_contents(const ms_html *html, const ms_page *page)
{
    fputs("<nav aria-label=\"Sections\">\n<ul>\n", html->out);
    for (const section *s = sections; s < sections + NUM_SECTIONS; s++)
        if (is_shown(s, page))
            ms_html_print(html, "<li><a href=\"#%s\">%s</a></li>\n", s->id, s->title);
    fputs("</ul>\n</nav>\n", html->out);
}

void ms_page_write(FILE *out, const ms_page *page)
{
    const ms_html html = {out, page->arena};
    write_head(&html, page);
    ms_html_print(&html,
                  "<body>\n<a class=\"skip\" href=\"#main\">Skip to the answer</a>\n"
                  "<header>\n<p class=\"kicker\">Training plan, predicted by "
                  "meshsim</p>\n<h1>%s</h1>\n</header>\n",
                  ms_page_title(page));
    write_contents(&html, page);
    fputs("<main id=\"main\">\n", out);
    for (const section *s = sections; s < sections + NUM_SECTIONS; s++) {
        if (!is_shown(s, page))
            continue;
        ms_html_print(&html,
                      "<section id=\"%s\" aria-labelledby=\"h-%s\">\n"
                      "<h2 id=\"h-%s\">%s</h2>\n",
                      s->id, s->id, s->id, s->title);
        s->write(&html, page);
        fputs("</section>\n", out);
    }
    fputs("</main>\n<footer>\n<p>meshsim " MS_VERSION
          ": figures are predictions unless they say that they were measured.</p>\n"
          "</footer>\n</body>\n</html>\n",
          out);
}
