#include "cli/options/sweep_options.h"

#include "cli/options/output.h"
#include "sim/planning/sizes.h"
#include "sim/request/plan_flags.h"
#include "sim/request/searched_plan.h"

#include <math.h>
#include <string.h>

#define MAX_NAMES  64
#define MAX_LENGTH 16777216

const ms_option ms_sweep_option_table[] = {
    MS_OPT_TEXT(ms_sweep_options, gpus, "--gpus", "A..B|A,B,...",
                "numbers of GPUs: 64..4096 doubles from 64, 64,96,128 is a list"),
    MS_OPT_TEXT(ms_sweep_options, models, "--models", "A,B,...",
                "models (default the one of --model)"),
    MS_OPT_TEXT(ms_sweep_options, clusters, "--clusters", "A,B,...",
                "clusters (default the one of --cluster)"),
    MS_OPT_TEXT(ms_sweep_options, seqs, "--seq", "A,B,...",
                "sequence lengths: 4k,32k (default 8192)"),
    MS_OPT_TEXT(ms_sweep_options, batches, "--global-batch", "A,B,...",
                "sequences a step (default at least 4 Mi tokens, and 1 Ki a GPU)"),
    MS_OPT_TEXT(ms_sweep_options, prices, "--prices", "CLUSTER=X,...",
                "price of a GPU for an hour of clusters that do not cost --price"),
    MS_OPT_LIST(ms_sweep_options, limit, "--limit", "CHOICE<=VALUE,...",
                "narrow the searches: tp<=8, pp=4, recompute=none"),
    {0},
};

void ms_sweep_options_sets(ms_ctx *cx, ms_sweep_options *options,
                           ms_option_set sets[MS_NUM_SWEEP_SETS])
{
    static const char *const own[] = {"--gpus", "--seq", "--global-batch", NULL};
    static const char *const kept[] = {"--plan",  "--model",   "--cluster", "--precision",
                                       "--stack", "--profile", NULL};
    const ms_option_set all[MS_NUM_SWEEP_SETS] = {
        {"sweep", ms_sweep_option_table, options},
        {"memory", ms_memory_option_table, &options->memory},
        {"campaign", ms_campaign_jobs_option_table, &options->campaign},
        {"plan", ms_searched_plan_table(cx, kept, own), &options->plan}};
    memcpy(sets, all, sizeof all);
}

/* ---- lists ---- */

typedef struct names {
    int num;
    const char *of[MAX_NAMES];
} names;

static ms_status read_names(ms_ctx *cx, const char *option, const char *text,
                            const char *otherwise, names *out)
{
    *out = (names){.num = 1, .of = {otherwise}};
    if (text == NULL)
        return MS_OK;
    out->num = 0;
    for (const char *name; (name = ms_list_next(cx->arena, &text)) != NULL;) {
        if (name[0] == '\0' || out->num == MAX_NAMES) {
            ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                    name[0] == '\0' ? "%s: a name is missing" : "%s: more than 64 names",
                    option);
            return ms_hint(cx, "%s A,B", option);
        }
        for (int i = 0; i < out->num; i++)
            if (strcmp(out->of[i], name) == 0)
                return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s names \"%s\" twice", option,
                               name);
        out->of[out->num++] = name;
    }
    return MS_OK;
}

/* Reads a list of numbers; without one the only "number" is 0, the default. */
static ms_status read_numbers(ms_ctx *cx, const char *option, const char *text,
                              ms_sizes *out)
{
    *out = (ms_sizes){.num = 1};
    return text == NULL ? MS_OK : ms_sizes_parse(cx, option, text, MAX_LENGTH, out);
}

/* ---- the grid ---- */

typedef struct grid {
    ms_ctx *cx;
    const ms_sweep_options *options;
    ms_sizes gpus, seqs, batches;
    names models, clusters;
    ms_plan_limits *limits;
    ms_campaign_question *campaigns; /* (clusters); NULL: no campaign */
} grid;

static ms_status fail_prices(ms_ctx *cx, const char *item, const char *why)
{
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--prices: \"%s\" %s", item, why);
    return ms_hint(cx, "--prices hgx-h100=2.5,gb200-nvl72=4");
}

/* Sets the price of an item; `has_price` (clusters) marks those that have one. */
static ms_status read_price(const grid *g, const char *item, bool *has_price)
{
    const char *equals = strchr(item, '=');
    double price;
    if (equals == NULL ||
        !ms_option_quantity(equals + 1, MS_UNIT_DECIMAL, MS_PRICE_ENDINGS, &price) ||
        !(price > 0.0))
        return fail_prices(g->cx, item, "is no CLUSTER=X with a price above 0");
    size_t length = (size_t)(equals - item);
    for (int i = 0; i < g->clusters.num; i++) {
        const char *name = g->clusters.of[i];
        if (name == NULL)
            name = ms_plan_default(1).cluster;
        if (strlen(name) != length || strncmp(name, item, length) != 0)
            continue;
        if (has_price[i])
            return fail_prices(g->cx, item, "is another price of the same cluster");
        has_price[i] = true;
        g->campaigns[i].given.gpu_hour_price = price;
        return MS_OK;
    }
    return fail_prices(g->cx, item, "names none of the clusters");
}

static ms_status read_campaigns(grid *g)
{
    ms_ctx *cx = g->cx;
    bool asked;
    const ms_campaign_options *options = &g->options->campaign;
    MS_TRY(ms_campaign_options_check(cx, options, &asked));
    const char *prices = g->options->prices;
    if (prices != NULL && !asked) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "--prices is about a whole training, and its length is not given");
        return ms_hint(cx, "add --tokens 15T, --chinchilla or --flop 3.8e25");
    }
    if (!asked)
        return MS_OK;
    if (options->simulate_failures) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "a sweep does not simulate failures");
        return ms_hint(cx, "\"meshsim predict --simulate-failures\" does, for one plan");
    }
    g->campaigns = MS_NEW_ARRAY(cx->arena, g->clusters.num, ms_campaign_question);
    for (int i = 0; i < g->clusters.num; i++)
        g->campaigns[i] = ms_campaign_options_question(options);
    bool *has_price = MS_NEW_ARRAY(cx->arena, g->clusters.num, bool);
    for (const char *item; (item = ms_list_next(cx->arena, &prices)) != NULL;)
        MS_TRY(read_price(g, item, has_price));
    return MS_OK;
}

static ms_status read_grid(grid *g)
{
    ms_ctx *cx = g->cx;
    const ms_sweep_options *o = g->options;
    if (o->gpus == NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the numbers of GPUs are not given");
        return ms_hint(cx, "for example --gpus 64..4096");
    }
    MS_TRY(ms_sizes_parse(cx, "--gpus", o->gpus, MS_MAX_GPUS, &g->gpus));
    MS_TRY(read_numbers(cx, "--seq", o->seqs, &g->seqs));
    MS_TRY(read_numbers(cx, "--global-batch", o->batches, &g->batches));
    MS_TRY(read_names(cx, "--models", o->models, NULL, &g->models));
    MS_TRY(read_names(cx, "--clusters", o->clusters, o->plan.of[MS_CHOOSE_CLUSTER].text,
                      &g->clusters));
    g->limits = MS_NEW(cx->arena, ms_plan_limits);
    MS_TRY(ms_plan_limits_read(cx, &o->limit, &o->memory, g->limits));
    double num = (double)g->gpus.num * g->seqs.num * g->batches.num * g->models.num *
                 g->clusters.num;
    if (num > MS_MAX_SWEEP_POINTS)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "these lists make %.0f searches, and a sweep takes at most %d",
                       num, MS_MAX_SWEEP_POINTS);
    return read_campaigns(g);
}

/* Checks model, cluster and limits once for all numbers of GPUs. */
static ms_status check_files(const grid *g, const ms_best_question *question)
{
    ms_ctx *cx = g->cx;
    ms_workload *workload;
    MS_TRY(ms_workload_open(cx, &question->base, &workload));
    ms_space space = ms_space_all(&question->base, workload->stack);
    ms_status status = ms_memory_options_check(cx, &g->limits->memory, workload->cluster);
    if (status == MS_OK)
        status =
            ms_plan_check_positions(cx, &question->base, workload->model, MS_NOWHERE);
    for (int i = 0; i < g->limits->num && status == MS_OK; i++)
        status = ms_space_limit(cx, &space, g->limits->texts[i]);
    if (question->campaign != NULL) {
        ms_campaign_terms terms = ms_campaign_terms_of(question->campaign, workload,
                                                       (double)question->base.gpus);
        ms_campaign_options_note(cx, &g->options->campaign, &terms);
    }
    ms_workload_close(workload);
    return status;
}

typedef struct place {
    int model, seq, batch, cluster, gpus;
} place;

static ms_status make_question(const grid *g, const place *at, ms_best_question *out)
{
    ms_plan_options options = g->options->plan;
    if (g->models.of[at->model] != NULL)
        options.of[MS_CHOOSE_MODEL].text = g->models.of[at->model];
    if (g->clusters.of[at->cluster] != NULL)
        options.of[MS_CHOOSE_CLUSTER].text = g->clusters.of[at->cluster];
    ms_plan_give(&options, MS_CHOOSE_GPUS, g->gpus.sizes[at->gpus]);
    if (g->seqs.sizes[at->seq] > 0)
        ms_plan_give(&options, MS_CHOOSE_SEQUENCE_LENGTH, g->seqs.sizes[at->seq]);
    if (g->batches.sizes[at->batch] > 0)
        ms_plan_give(&options, MS_CHOOSE_GLOBAL_BATCH, g->batches.sizes[at->batch]);
    *out = (ms_best_question){
        .limits = g->limits,
        .campaign = g->campaigns == NULL ? NULL : &g->campaigns[at->cluster]};
    MS_TRY(ms_plan_base_from_options(g->cx, &options, &out->base));
    return at->gpus == 0 ? check_files(g, out) : MS_OK;
}

/* The place of a question: GPUs vary fastest, then clusters, batches, lengths, models. */
static place place_of(const grid *g, int index)
{
    place p;
    p.gpus = index % g->gpus.num;
    index /= g->gpus.num;
    p.cluster = index % g->clusters.num;
    index /= g->clusters.num;
    p.batch = index % g->batches.num;
    index /= g->batches.num;
    p.seq = index % g->seqs.num;
    p.model = index / g->seqs.num;
    return p;
}

static ms_status check_plan_file(ms_ctx *cx, const ms_sweep_options *options)
{
    if (options->plan.plan_file == NULL || strcmp(options->plan.plan_file, "-") != 0)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "a plan from standard input is for one job");
    return ms_hint(cx, "give it as a file");
}

ms_status ms_sweep_options_make(ms_ctx *cx, const ms_sweep_options *options,
                                ms_plan_sweep *out)
{
    grid g = {.cx = cx, .options = options};
    MS_TRY(check_plan_file(cx, options));
    MS_TRY(read_grid(&g));
    int per_task = g.gpus.num * g.clusters.num,
        num_tasks = g.models.num * g.seqs.num * g.batches.num, num = per_task * num_tasks;
    ms_best_question *questions = MS_NEW_ARRAY(cx->arena, num, ms_best_question);
    int verbosity = cx->verbosity;
    ms_status status = MS_OK;
    for (int i = 0; i < num && status == MS_OK; i++) {
        place at = place_of(&g, i);
        status = make_question(&g, &at, &questions[i]);
        cx->verbosity = -1; /* notes on defaults of the first are those of all */
    }
    cx->verbosity = verbosity;
    *out = (ms_plan_sweep){num_tasks, per_task, questions,
                           MS_NEW_ARRAY(cx->arena, num, bool),
                           MS_NEW_ARRAY(cx->arena, num, ms_best_plan)};
    return status;
}
