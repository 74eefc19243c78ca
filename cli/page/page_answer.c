/* Sections of a page: the answer, its risk and assumptions, the whole training. */
#include "cli/page/page_priv.h"

#include "cli/report/report.h"
#include "plots/caption.h"
#include "sim/planning/campaign_text.h"
#include "sim/step/prediction_text.h"

#include <math.h>
#include <string.h>

/* Step times of one plan closer than this differ by rounding on another machine. */
#define SAME_STEP_FRAC 1e-9

/* ---- the layout in words ---- */

static const char *join(ms_arena *arena, const char *text, const char *more)
{
    return ms_arena_printf(arena, "%s%s%s", text, text[0] == '\0' ? "" : "; ", more);
}

static const char *axes_in_words(ms_arena *arena, const ms_plan *plan)
{
    static const char *const words[MS_NUM_PLAN_AXES] = {
        [MS_PP] = "pipeline stages (pp)",
        [MS_DP_REPLICATE] = "replicas (dp_replicate)",
        [MS_DP_SHARD] = "data-parallel ranks (dp_shard)",
        [MS_CP] = "ranks to a sequence (cp)",
        [MS_TP] = "ranks to a layer (tp)",
    };
    const char *text = "";
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++) {
        int axis = plan->order[i];
        if (plan->size[axis] > 1)
            text =
                ms_arena_printf(arena, "%s%s%ld %s", text, text[0] == '\0' ? "" : " × ",
                                plan->size[axis], words[axis]);
    }
    return text[0] == '\0' ? "One rank, nothing is split" : text;
}

static const char *sharding_in_words(ms_arena *arena, const ms_plan *plan)
{
    static const char *const zero[] = {
        "ZeRO 0: every data-parallel rank holds everything",
        "ZeRO 1: optimizer states are sharded over the data-parallel ranks",
        "ZeRO 2: optimizer states and gradients are sharded over the data-parallel ranks",
        "ZeRO 3: parameters, gradients and optimizer states are sharded over the "
        "data-parallel ranks",
    };
    const char *text = "";
    if (plan->ep > 1)
        text = ms_arena_printf(arena, "experts over %ld ranks (ep)", plan->ep);
    if (plan->etp > 1)
        text =
            join(arena, text,
                 ms_arena_printf(arena, "each expert over %ld ranks (etp)", plan->etp));
    if (plan->size[MS_DP_SHARD] * plan->size[MS_CP] > 1)
        text = join(arena, text, zero[plan->zero]);
    return text;
}

static const char *schedule_in_words(ms_arena *arena, const ms_plan *plan)
{
    long num = ms_plan_microbatches(plan);
    const char *text = ms_arena_printf(
        arena, "%ld micro-batch%s of %ld sequence%s a rank and step", num,
        num == 1 ? "" : "es", plan->microbatch, plan->microbatch == 1 ? "" : "s");
    if (plan->size[MS_PP] == 1)
        return text;
    text = ms_arena_printf(arena, "%s in schedule %s", text, ms_plan_schedule_name(plan));
    if (plan->virtual_stages == 1)
        return text;
    return ms_arena_printf(arena, "%s, %ld virtual stages a rank", text,
                           plan->virtual_stages);
}

const char *ms_page_layout_text(const ms_page *page)
{
    ms_arena *arena = page->arena;
    const ms_plan *plan = page->plan;
    const char *text = axes_in_words(arena, plan);
    const char *sharding = sharding_in_words(arena, plan);
    if (sharding[0] != '\0')
        text = join(arena, text, sharding);
    text = join(arena, text, schedule_in_words(arena, plan));
    return ms_arena_printf(arena, "%s; recomputation %s; %s.", text,
                           ms_recompute_names[plan->recompute],
                           ms_dtype_names[plan->compute]);
}

/* ---- the answer ---- */

static void open_card(const ms_html *html, const char *name)
{
    ms_html_print(html, "<div class=\"card\"><dt>%s</dt>\n<dd>", name);
}

/* Ends a card with a line of small type. */
static void close_card(const ms_html *html, const char *note)
{
    ms_html_print(html, "<small>%s</small></dd></div>\n", note);
}

static void card_interval(const ms_html *html, const char *key, const double ends[2],
                          const char *const texts[2])
{
    if (isnan(ends[0]) || isnan(ends[1])) {
        fputs("<small>no interval: errors are not known</small></dd></div>\n", html->out);
        return;
    }
    fputs("<small>90 % interval ", html->out);
    ms_html_figure(html, ms_arena_printf(html->arena, "%s_low", key), ends[0], "%s",
                   texts[0]);
    fputs(" to ", html->out);
    ms_html_figure(html, ms_arena_printf(html->arena, "%s_high", key), ends[1], "%s",
                   texts[1]);
    fputs("</small></dd></div>\n", html->out);
}

static void step_card(const ms_html *html, const ms_page *page)
{
    const ms_prediction *p = page->prediction;
    ms_arena *arena = page->arena;
    const double ends[] = {p->step_low_s, p->step_high_s};
    const char *const texts[] = {
        ms_arena_printf(arena, "%s s", ms_amount_text(arena, ends[0])),
        ms_arena_printf(arena, "%s s", ms_amount_text(arena, ends[1]))};
    open_card(html, "Step time");
    ms_html_figure(html, "step_s", p->step_s, "%s s", ms_amount_text(arena, p->step_s));
    card_interval(html, "step_s", ends, texts);
}

static void rate_cards(const ms_html *html, const ms_page *page)
{
    const ms_prediction *p = page->prediction;
    ms_arena *arena = page->arena;
    const char *unit = p->unit == NULL ? "GPU" : p->unit;
    open_card(html, "Tokens per second");
    ms_html_figure(html, "tokens_per_s", p->tokens_per_s, "%.0f", p->tokens_per_s);
    fputs("<small>", html->out);
    ms_html_figure(html, "tokens_per_s_per_gpu", p->tokens_per_s_per_gpu, "%s",
                   ms_amount_text(arena, p->tokens_per_s_per_gpu));
    ms_html_print(html, " a %s</small></dd></div>\n", unit);
    open_card(html, "MFU");
    ms_html_figure(html, "mfu_frac", p->mfu_frac, "%.1f %%", 100.0 * p->mfu_frac);
    close_card(html, ms_arena_printf(
                         arena, "model FLOP, all attention pairs, of %s; causal %.1f %%",
                         ms_peak_rate_text(arena, page->plan->compute, p),
                         100.0 * p->mfu_causal_frac));
}

static void memory_cards(const ms_html *html, const ms_page *page)
{
    const ms_prediction *p = page->prediction;
    ms_arena *arena = page->arena;
    const double ends[] = {p->peak_low_bytes, p->peak_high_bytes};
    const char *const texts[] = {ms_arena_printf(arena, "%.1f GiB", ms_gib(ends[0])),
                                 ms_arena_printf(arena, "%.1f GiB", ms_gib(ends[1]))};
    open_card(html, "Peak memory of a device");
    ms_html_figure(html, "peak_bytes", p->peak_bytes, "%.1f GiB", ms_gib(p->peak_bytes));
    fputs(" of ", html->out);
    ms_html_figure(html, "capacity_bytes", p->capacity_bytes, "%.1f GiB",
                   ms_gib(p->capacity_bytes));
    card_interval(html, "peak_bytes", ends, texts);
    open_card(html, "Probability that it fits");
    ms_html_figure(html, "fits_probability", p->fits_probability, "%.1f %%",
                   100.0 * p->fits_probability);
    double free_bytes = ms_prediction_free_bytes(p, p->peak_bytes);
    close_card(html, ms_arena_printf(arena, "%.1f GiB %s by the predicted peak%s",
                                     ms_gib(fabs(free_bytes)),
                                     free_bytes < 0.0 ? "short" : "free",
                                     ms_outside_text(arena, p)));
}

/* Ends a card with the interval of a figure that is proportional to the time. */
static void proportional_interval(const ms_html *html, const ms_page *page,
                                  const char *key, double value, const char *unit)
{
    const ms_campaign *c = &page->campaign->campaign;
    ms_arena *arena = page->arena;
    const double ends[] = {value * c->elapsed_low_s / c->elapsed_s,
                           value * c->elapsed_high_s / c->elapsed_s};
    const char *texts[2];
    double scale = unit[0] == '\0' ? 1.0 : 1e3; /* energies are kWh */
    if (isnan(value)) {
        fputs("</dd></div>\n", html->out);
        return;
    }
    for (int i = 0; i < 2; i++)
        texts[i] = ms_arena_printf(arena, "%s%s",
                                   ms_large_text(arena, scale * ends[i], " "), unit);
    card_interval(html, key, ends, texts);
}

static void campaign_cards(const ms_html *html, const ms_page *page)
{
    const ms_campaign *c = &page->campaign->campaign;
    ms_arena *arena = page->arena;
    const double ends[] = {c->elapsed_low_s, c->elapsed_high_s};
    const char *const texts[] = {ms_long_time_text(arena, ends[0]),
                                 ms_long_time_text(arena, ends[1])};
    open_card(html, "Training takes");
    ms_html_figure(html, "elapsed_s", c->elapsed_s, "%s",
                   ms_long_time_text(arena, c->elapsed_s));
    card_interval(html, "elapsed_s", ends, texts);
    open_card(html, "Money");
    ms_html_figure(html, "cost", c->cost, "%s", ms_large_text(arena, c->cost, " "));
    fputs("<small>", html->out);
    ms_html_figure(html, "gpu_hours", c->gpu_hours, "%s GPU-hours",
                   ms_large_text(arena, c->gpu_hours, " "));
    fputs("</small>", html->out);
    proportional_interval(html, page, "cost", c->cost, "");
    open_card(html, "Energy");
    ms_html_figure(html, "energy_kwh", c->energy_kwh, "%sWh",
                   ms_large_text(arena, 1e3 * c->energy_kwh, " "));
    fputs("<small>CO2: ", html->out);
    ms_html_figure(html, "co2_kg", c->co2_kg, "%.4g t", c->co2_kg / 1e3);
    fputs("</small>", html->out);
    proportional_interval(html, page, "energy_kwh", c->energy_kwh, "Wh");
}

/* Sentences on deadline and budget that the training breaks, or keeps. */
static const char *limits_text(const ms_page *page, bool broken)
{
    const ms_campaign_answer *a = page->campaign;
    ms_arena *arena = page->arena;
    const char *text = "";
    if (a == NULL)
        return text;
    const char *deadline = ms_deadline_text(arena, a), *budget = ms_budget_text(arena, a);
    bool late = a->campaign.elapsed_s > a->deadline_s,
         dear = a->campaign.cost > a->budget;
    if (deadline != NULL && late == broken)
        text = ms_arena_printf(arena, "Deadline of %s: %s. ",
                               ms_long_time_text(arena, a->deadline_s), deadline);
    if (budget != NULL && dear == broken)
        text = ms_arena_printf(arena, "%sBudget of %s: %s. ", text,
                               ms_large_text(arena, a->budget, ""), budget);
    return text;
}

void ms_page_answer(const ms_html *html, const ms_page *page)
{
    const ms_prediction *p = page->prediction;
    ms_html_print(html, "<p class=\"verdict\"><strong>%s%s</strong> %s%s</p>\n",
                  limits_text(page, true),
                  p->fits ? "It fits." : "It does not fit into memory.",
                  limits_text(page, false), ms_page_layout_text(page));
    ms_html_print(html, "<p><code>%s</code></p>\n<p>%s.</p>\n<dl class=\"cards\">\n",
                  ms_plan_text(page->arena, page->plan),
                  ms_plan_inputs_text(page->arena, page->plan, p->unit));
    step_card(html, page);
    rate_cards(html, page);
    memory_cards(html, page);
    if (page->campaign != NULL)
        campaign_cards(html, page);
    fputs("</dl>\n", html->out);
    if (isfinite(page->file_step_s) &&
        fabs(page->file_step_s / p->step_s - 1.0) > SAME_STEP_FRAC) {
        ms_html_print(html,
                      "<p class=\"warning\"><strong>Differs from the file:</strong> %s "
                      "states a step of %s s. It was made by another version, with other "
                      "data or other options; this page predicts the plan anew.</p>\n",
                      page->path, ms_amount_text(page->arena, page->file_step_s));
    }
}

/* ---- risk and assumptions ---- */

static void put_item(const ms_html *html, const char *text)
{
    if (text != NULL)
        ms_html_print(html, "<li>%s</li>\n", text);
}

static const char *certificate_text(const ms_page *page)
{
    const ms_page_search *s = page->search;
    ms_arena *arena = page->arena;
    const ms_page_sweep *sweep = page->sweep;
    if (s == NULL && sweep != NULL && !sweep->points[sweep->reported].optimal)
        return "The search of this job was interrupted: a faster plan may exist.";
    if (s == NULL && sweep != NULL)
        return "Certificate: no plan of this job's searched space is faster, by replay of "
               "every action.";
    if (s == NULL)
        return "No search stands behind this page: nothing says that no other plan is "
               "faster.";
    if (!s->has_certificate)
        return "The search was of several frameworks, each with its own certificate in "
               "its file.";
    if (!s->optimal)
        return "The search was interrupted: a faster plan may exist.";
    return ms_arena_printf(arena,
                           "Certificate: no plan of the searched space is faster than %s "
                           "s, by replay of every action.",
                           ms_amount_text(arena, s->best_step_s));
}

static const char *band_text(const ms_page *page)
{
    const ms_page_search *s = page->search;
    if (s == NULL || !(s->band_frac > 0.0))
        return NULL;
    return ms_arena_printf(page->arena,
                           "Plans less than %.1f %% slower than the fastest cannot be "
                           "told apart; of these the simplest is recommended.",
                           100.0 * s->band_frac);
}

static void write_risks(const ms_html *html, const ms_page *page)
{
    const ms_prediction *p = page->prediction;
    ms_arena *arena = page->arena;
    const char *step = ms_interval_text(arena, page->plan, p);
    const char *peak = ms_peak_interval_text(arena, page->plan, p);
    fputs("<h3>Risk</h3>\n<ul class=\"sentences\">\n", html->out);
    if (isfinite(p->fits_probability))
        put_item(html, ms_arena_printf(arena, "%.1f %% risk of running out of memory.",
                                       100.0 * (1.0 - p->fits_probability)));
    put_item(html, step != NULL ? ms_arena_printf(arena, "Step time: %s.", step)
                                : "Step time: errors are not known, so there is no "
                                  "interval.");
    put_item(html, peak != NULL ? ms_arena_printf(arena, "%s.", peak)
                                : "Peak memory: errors are not known.");
    put_item(html, ms_few_peaks_text(arena, page->plan->stack, p));
    put_item(html, certificate_text(page));
    put_item(html, band_text(page));
    fputs("</ul>\n", html->out);
}

/* Writes the command's notes or defaults as items. Returns how many. */
static int write_notes(const ms_html *html, const ms_page *page, const char *kind)
{
    int num = 0;
    for (const ms_kept_note *n = page->notes->first; n != NULL; n = n->next) {
        if (strcmp(n->kind, kind) == 0) {
            put_item(html, n->text);
            num++;
        }
    }
    return num;
}

void ms_page_risk(const ms_html *html, const ms_page *page)
{
    write_risks(html, page);
    ms_html_print(html, "<h3>Assumptions</h3>\n<ul class=\"sentences\">\n<li>%s.</li>\n",
                  ms_assumed_text(page->arena, page->plan, page->prediction));
    (void)write_notes(html, page, "note");
    fputs("</ul>\n<h3>Defaults used</h3>\n", html->out);
    if (page->path != NULL) {
        ms_html_print(
            html,
            "<p>%s states the choices of the plan; which of them were defaults "
            "when it was made, it does not say. Defaults of this command:</p>\n",
            page->path);
    }
    fputs("<ul class=\"columns\">\n", html->out);
    if (write_notes(html, page, "default") == 0)
        put_item(html, "none");
    fputs("</ul>\n", html->out);
}

/* ---- the whole training ---- */

typedef struct campaign_row {
    const char *name, *value, *note;
} campaign_row;

static const char *known(ms_arena *arena, double value, const char *text)
{
    return isnan(value) ? "not known" : ms_arena_strdup(arena, text);
}

static void term_rows(const ms_html *html, const ms_page *page)
{
    const ms_campaign_terms *t = &page->campaign->terms;
    ms_arena *a = page->arena;
    const campaign_row rows[] = {
        {"tokens", ms_large_text(a, t->tokens, " "), "that the model is to see"},
        {"price",
         known(a, t->gpu_hour_price, ms_arena_printf(a, "%g", t->gpu_hour_price)),
         "of a GPU for an hour"},
        {"power", known(a, t->gpu_power_w, ms_arena_printf(a, "%g W", t->gpu_power_w)),
         "of a GPU with its share of node and network"},
        {"PUE", ms_arena_printf(a, "%g", t->pue),
         "power of the data centre per power of its computers"},
        {"CO2 of the grid",
         known(a, t->co2_kg_per_kwh, ms_arena_printf(a, "%g kg/kWh", t->co2_kg_per_kwh)),
         ""},
        {"interruptions", ms_long_time_text(a, t->gpu_mean_s),
         "mean time between interruptions by one GPU"},
        {"restart", ms_long_time_text(a, t->restart_s),
         "from an interruption to the next step"},
        {"repair", known(a, t->repair_s, ms_long_time_text(a, t->repair_s)),
         "until a failed node is back; asks for spare nodes"},
        {"storage", ms_arena_printf(a, "%.3g GB/s", t->write_bytes_per_s / 1e9),
         "write bandwidth of the whole job"},
    };
    ms_html_table table = MS_HTML_TABLE(html, "t-terms", "Terms of the training", "lrl",
                                        "term", "value", "meaning");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_html_cell(&table, "%s", rows[i].name);
        ms_html_cell(&table, "%s", rows[i].value);
        ms_html_cell(&table, "%s", rows[i].note);
    }
    ms_html_table_end(&table);
}

void ms_page_campaign(const ms_html *html, const ms_page *page)
{
    const ms_campaign_answer *answer = page->campaign;
    const ms_campaign *c = &answer->campaign;
    ms_arena *a = page->arena;
    fputs("<ul>\n<li>Goodput ", html->out);
    ms_html_figure(html, "goodput_frac", c->goodput_frac, "%.1f %%",
                   100.0 * c->goodput_frac);
    ms_html_print(html,
                  ": interrupted every %s, about %.0f time%s, %s until the next "
                  "step.</li>\n",
                  ms_long_time_text(a, c->job.mean_s), c->num_interruptions,
                  c->num_interruptions >= 0.5 && c->num_interruptions < 1.5 ? "" : "s",
                  ms_long_time_text(a, c->job.restart_s));
    put_item(html,
             ms_arena_printf(
                 a,
                 "%.0f steps; a checkpoint of %.4g GB after every %.0f steps "
                 "(%s), which stops the job for %s.",
                 c->num_steps, answer->step.checkpoint_bytes / 1e9, c->interval_steps,
                 ms_long_time_text(a, c->interval_steps * answer->step.step_s),
                 ms_long_time_text(a, c->job.checkpoint_s)));
    if (c->spare_nodes >= 0.0)
        put_item(html, ms_arena_printf(a, "%.0f spare node%s, counted in GPU-hours.",
                                       c->spare_nodes, c->spare_nodes == 1.0 ? "" : "s"));
    if (answer->simulated) {
        put_item(html, ms_arena_printf(a,
                                       "Simulated interruption by interruption: %s, "
                                       "goodput %.1f %%, %ld interruptions.",
                                       ms_long_time_text(a, answer->failures.elapsed_s),
                                       100.0 * answer->failures.goodput_frac,
                                       answer->failures.num_interruptions));
    }
    const char *limits =
        ms_arena_printf(a, "%s%s", limits_text(page, true), limits_text(page, false));
    put_item(html, limits[0] == '\0' ? NULL : limits);
    fputs("</ul>\n", html->out);
    term_rows(html, page);
}
