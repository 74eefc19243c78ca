/* meshsim plot: pictures made by gnuplot. */
#include "cli/cmd/plot_request.h"

#include "costmodel/tensor/collective.h"
#include "plots/heatmap_data.h"
#include "plots/memory_data.h"
#include "sim/request/plan_flags.h"
#include "sim/request/searched_plan.h"

#include <string.h>

static const ms_option plot_table[] = {
    MS_OPT_CHOICE(ms_plot_options, format, "--format", ms_picture_format_names,
                  "format of the picture (default: by the ending of -o FILE, else png)"),
    MS_OPT_FLAG(ms_plot_options, keep, "--keep",
                "keep data and script in the folder of the picture: NAME.dat, NAME.gp"),
    {0},
};

static const ms_option scaling_table[] = {
    MS_OPT_TEXT(ms_plot_options, gpus, "--gpus", "A..B|A,B,...",
                "numbers of GPUs: 64..4096 doubles from 64, 64,96,128 is a list"),
    MS_OPT_TEXT(ms_plot_options, clusters, "--clusters", "NAME,...",
                "several clusters in one picture, instead of --cluster"),
    MS_OPT_FLAG(ms_plot_options, weak, "--weak",
                "batches in proportion to the number of GPUs, from that of the first one "
                "(default: the same batch, or at least 1 Ki tokens a GPU)"),
    {0},
};

static const ms_option limit_table[] = {
    MS_OPT_LIST(ms_plot_options, limit, "--limit", "CHOICE<=VALUE,...",
                "narrow the searches: tp<=8, pp=4, recompute=none"),
    {0},
};

static const ms_option heatmap_table[] = {
    MS_OPT_TEXT(
        ms_plot_options, x, "--x", "CHOICE=A,B,...",
        "a choice and its values: tp=1,2,4, tp=1..8, gpus=64..512; a choice alone: "
        "all values of the search"),
    MS_OPT_TEXT(ms_plot_options, y, "--y", "CHOICE=A,B,...", "the other choice"),
    MS_OPT_CHOICE(ms_plot_options, value, "--value", ms_heatmap_value_names,
                  "what a cell shows of its fastest plan (default time; mfu where GPUs, "
                  "batch or sequences vary)"),
    {0},
};

static const char *const against_names[] = {"days", "gpus", NULL};

static const ms_option cost_table[] = {
    MS_OPT_CHOICE(ms_plot_options, against, "--against", against_names,
                  "what the cost is drawn against (default days)"),
    {0},
};

static const ms_option jobs_table[] = {
    MS_OPT_TEXT(ms_plot_options, state, "--state", "FILE",
                "keep finished searches in FILE, and take those that are there already"),
    {0},
};

static const ms_option memory_table[] = {
    MS_OPT_FLAG(ms_plot_options, over_time, "--over-time",
                "memory of one rank over the step, instead of the peaks of all"),
    MS_OPT_INTEGER(ms_plot_options, rank, "--rank", "R", 0, MS_MAX_GPUS - 1,
                   "rank of --over-time (default: the one with the highest peak)"),
    {0},
};

static const ms_option collectives_table[] = {
    MS_OPT_CHOICE(ms_plot_options, collective, "--collective", ms_collective_names,
                  "the collective (default all-reduce)"),
    MS_OPT_TEXT(ms_plot_options, measured, "--measured", "FILE.csv",
                "measured collectives of the cluster, drawn as points"),
    {0},
};

static ms_status read_target(ms_plot_request *r)
{
    if (r->args->common.json) {
        const char *idle = r->options.format.given ? "--format"
                           : r->options.keep       ? "--keep"
                                                   : NULL;
        if (idle != NULL)
            ms_note(r->cx, "%s has no effect with --json: nothing is drawn", idle);
        return MS_OK;
    }
    int format = r->options.format.given ? r->options.format.value : -1;
    return ms_plot_target_read(r->cx, r->kind, r->args->common.output, format,
                               r->options.keep, &r->target);
}

/* Sets of options, in the order of the help. */
typedef enum plot_set {
    SET_KINDS, /* names of the kinds, for the help of all of them */
    SET_PLOT,
    SET_MEMORY,
    SET_SCALING,
    SET_HEATMAP,
    SET_LIMIT,
    SET_COST,
    SET_JOBS,
    SET_RISK,
    SET_SIMULATION,
    SET_INTERRUPTIONS,
    SET_COLLECTIVES,
    SET_PLAN, /* this one and those after it exclude each other */
    SET_SEARCHED_PLAN,
    SET_JOB,
    SET_DEVICE,
    SET_SWEEP,                                  /* the first of MS_NUM_SWEEP_SETS */
    SET_WHATIF = SET_SWEEP + MS_NUM_SWEEP_SETS, /* the first of MS_NUM_WHATIF_SETS */
    NUM_SETS = SET_WHATIF + MS_NUM_WHATIF_SETS
} plot_set;
#define WITH(set)             (1U << (set))
#define WITH_SEVERAL(num, at) (((1U << (num)) - 1U) << (at))
#define WITH_SWEEP            WITH_SEVERAL(MS_NUM_SWEEP_SETS, SET_SWEEP)
#define WITH_WHATIF           WITH_SEVERAL(MS_NUM_WHATIF_SETS, SET_WHATIF)

#define MAX_FILES 17 /* the kind of plot and 16 files */

typedef struct plot_kind {
    const char *name;
    ms_status (*run)(ms_plot_request *r);
    unsigned sets;     /* bit mask of plot_set besides SET_PLOT */
    int max_words;     /* most arguments that are no options, counting the kind of plot */
    const char *takes; /* the arguments in words */
    const char *help;
} plot_kind;

/* The kinds of plot; a new kind is a row here. */
static const plot_kind plot_kinds[] = {
    {"timeline", ms_plot_timeline, WITH(SET_SIMULATION) | WITH(SET_PLAN), 2, "one plan",
     "actions of the pipeline over one step"},
    {"memory", ms_plot_memory, WITH(SET_MEMORY) | WITH(SET_SIMULATION) | WITH(SET_PLAN),
     1 + MS_MAX_PLOT_PLANS, "at most 12 plans",
     "peak memory of every pipeline rank, of several plans; or of one rank over time"},
    {"scaling", ms_plot_scaling,
     WITH(SET_SCALING) | WITH(SET_LIMIT) | WITH(SET_RISK) | WITH(SET_SEARCHED_PLAN), 1,
     "options only", "the fastest plan on each of several numbers of GPUs"},
    {"heatmap", ms_plot_heatmap,
     WITH(SET_HEATMAP) | WITH(SET_LIMIT) | WITH(SET_RISK) | WITH(SET_JOB), 1,
     "options only", "two choices, each cell the fastest plan with both of them fixed"},
    {"cost", ms_plot_cost, WITH(SET_COST) | WITH(SET_JOBS) | WITH_SWEEP, 1,
     "options only",
     "money or GPU-hours of a training against days, on clusters and numbers of GPUs"},
    {"pareto", ms_plot_pareto, WITH(SET_JOBS) | WITH_SWEEP, 1, "options only",
     "plans that none beats in time of a training, memory and money"},
    {"sensitivity", ms_plot_sensitivity, WITH_WHATIF, 2, "one plan",
     "how step, days or money change when each number is lower and higher: a tornado"},
    {"breakdown", ms_plot_breakdown, WITH(SET_PLAN), 1 + MS_MAX_PLOT_PLANS,
     "at most 12 plans",
     "where the step goes: compute, communication by axis, bubble, optimizer, host"},
    {"roofline", ms_plot_roofline, WITH(SET_PLAN), 2, "one plan",
     "kernels of a layer over arithmetic intensity, below peak and memory bandwidth"},
    {"collectives", ms_plot_collectives, WITH(SET_COLLECTIVES) | WITH(SET_PLAN), 2,
     "one plan", "time and bandwidth of a collective over sizes, on the cluster's tiers"},
    {"topology", ms_plot_topology, WITH(SET_PLAN), 2, "one plan",
     "nodes, domains and links of the cluster, and which axis goes over which"},
    {"goodput", ms_plot_goodput, WITH(SET_INTERRUPTIONS) | WITH(SET_PLAN), 2, "one plan",
     "goodput over the interval between checkpoints, and the best interval"},
    {"calibration", ms_plot_calibration, WITH(SET_DEVICE), 2, "one profile or table",
     "measured against fitted times of a calibrated PROFILE.json or a table FILE.csv"},
    {"validation", ms_plot_validation, 0, MAX_FILES, "at most 16 tables",
     "predicted against measured step times and memory peaks of RUNS.csv"},
};
#define NUM_KINDS (int)(sizeof plot_kinds / sizeof *plot_kinds)

static const plot_kind *find_kind(const char *word)
{
    for (int i = 0; i < NUM_KINDS; i++)
        if (word != NULL && strcmp(plot_kinds[i].name, word) == 0)
            return &plot_kinds[i];
    return NULL;
}

static ms_status refuse_kind(ms_ctx *cx, const char *word)
{
    const char *names[NUM_KINDS + 1] = {NULL};
    for (int i = 0; i < NUM_KINDS; i++)
        names[i] = plot_kinds[i].name;
    const char *nearest = word == NULL ? NULL : ms_nearest(word, names, NUM_KINDS);
    if (word == NULL)
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the kind of plot is not given");
    else
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "unknown plot \"%s\"", word);
    if (nearest != NULL)
        return ms_hint(cx, "did you mean \"meshsim plot %s\"?", nearest);
    return ms_hint(cx, "kinds: %s", ms_choice_text(cx->arena, names, ", "));
}

static ms_status check_words(ms_ctx *cx, const plot_kind *kind, const ms_words *words)
{
    if (words->num_words <= kind->max_words)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "unexpected argument \"%s\"",
            words->words[kind->max_words]);
    return ms_hint(cx, "meshsim plot %s takes %s", kind->name, kind->takes);
}

/* The kinds as rows of the help. */
static const ms_option *kind_table(ms_ctx *cx)
{
    ms_option *table = MS_NEW_ARRAY(cx->arena, NUM_KINDS + 1, ms_option);
    for (int i = 0; i < NUM_KINDS; i++)
        table[i] = (ms_option)MS_OPT_WORD(plot_kinds[i].name, plot_kinds[i].help);
    return table;
}

/* The rows of `all` that are named in `kept`, a NULL-ended list. */
static ms_option *rows_named(ms_ctx *cx, const ms_option *all, const char *const *kept)
{
    int num = 0;
    while (all[num].kind != MS_OPTION_END)
        num++;
    ms_option *table = MS_NEW_ARRAY(cx->arena, num + 1, ms_option);
    num = 0;
    for (const ms_option *o = all; o->kind != MS_OPTION_END; o++)
        if (o->name != NULL && ms_choice_find(o->name, kept) >= 0)
            table[num++] = *o;
    return table;
}

/* Options of a simulation that affect a plot. */
static const ms_option *drawn_simulate_table(ms_ctx *cx)
{
    static const char *const kept[] = {"--engine", "--slow", "--jitter", "--seed", NULL};
    ms_option *table = rows_named(cx, ms_simulate_option_table, kept);
    table[0].help =
        "longest path, or events with shared links, SMs and HBM (default replay)";
    return table;
}

/* Sets of options of a what-if study that affect a plot. */
static void make_whatif_sets(ms_ctx *cx, ms_whatif_options *options, ms_option_set *sets)
{
    static const char *const kept[] = {"--change", "--limit", NULL};
    ms_whatif_options_sets(cx, options, sets);
    sets[0].options = rows_named(cx, ms_whatif_option_table, kept);
}

/* Options of a campaign that affect its goodput. */
static const ms_option *interruption_table(ms_ctx *cx)
{
    static const char *const kept[] = {"--mtbf", "--restart", "--write-bandwidth",
                                       "--checkpoint-stall", NULL};
    return rows_named(cx, ms_campaign_option_table, kept);
}

/* The plan's option that says which cluster a profile is of. */
static const ms_option *device_table(ms_ctx *cx)
{
    static const char *const kept[] = {"--cluster", NULL};
    ms_option *table = rows_named(cx, ms_plan_option_table(), kept);
    table[0].help = "cluster that the profile was calibrated for (default cpu)";
    return table;
}

/* Reads the options of one kind of plot; `kind` NULL: those of all kinds. */
static ms_status read_options(ms_plot_request *r, const plot_kind *kind)
{
    ms_ctx *cx = r->cx;
    static const char *const searched[] = {"--plan",  "--model",        "--cluster",
                                           "--seq",   "--global-batch", "--precision",
                                           "--stack", "--profile",      NULL};
    static const char *const of_job[] = {
        "--plan",         "--model",     "--cluster", "--gpus",    "--seq",
        "--global-batch", "--precision", "--stack",   "--profile", NULL};
    ms_option_set sets[NUM_SETS] = {
        [SET_KINDS] = {"kinds of plot", kind_table(cx), r},
        [SET_PLOT] = {"plot", plot_table, &r->options},
        [SET_MEMORY] = {"plot memory", memory_table, &r->options},
        [SET_SCALING] = {"plot scaling", scaling_table, &r->options},
        [SET_HEATMAP] = {"plot heatmap", heatmap_table, &r->options},
        [SET_LIMIT] = {"searches of plots", limit_table, &r->options},
        [SET_COST] = {"plot cost", cost_table, &r->options},
        [SET_JOBS] = {"plot cost, plot pareto, with the options of sweep", jobs_table,
                      &r->options},
        [SET_RISK] = {"searches of plots", ms_memory_option_table, &r->memory},
        [SET_SIMULATION] = {"plot timeline, plot memory --over-time", r->simulate_table,
                            &r->simulate},
        [SET_INTERRUPTIONS] = {"plot goodput", interruption_table(cx), &r->campaign},
        [SET_COLLECTIVES] = {"plot collectives", collectives_table, &r->options},
        [SET_PLAN] = {"plan", ms_plan_option_table(), &r->plan},
        [SET_SEARCHED_PLAN] = {"plan", ms_searched_plan_table(cx, searched, NULL),
                               &r->plan},
        [SET_JOB] = {"plan", ms_searched_plan_table(cx, of_job, NULL), &r->plan},
        [SET_DEVICE] = {"plot calibration", device_table(cx), &r->plan},
    };
    ms_sweep_options_sets(cx, &r->sweep, sets + SET_SWEEP);
    make_whatif_sets(cx, &r->whatif, sets + SET_WHATIF);
    unsigned wanted =
        kind == NULL ? WITH(SET_SEARCHED_PLAN) - 1 : kind->sets | WITH(SET_PLOT);
    ms_option_set chosen[NUM_SETS];
    int num = 0;
    for (int i = 0; i < NUM_SETS; i++)
        if ((wanted & WITH(i)) != 0)
            chosen[num++] = sets[i];
    return ms_args_read(cx, r->args, chosen, num);
}

/* Reads the kind of plot first, because it determines the options. */
ms_status ms_cmd_plot(ms_ctx *cx, ms_args *args)
{
    ms_plot_request r = {.cx = cx, .args = args};
    const char *word = args->argc > 0 && args->argv[0][0] != '-' ? args->argv[0] : NULL;
    const plot_kind *kind = find_kind(word);
    r.simulate_table = drawn_simulate_table(cx);
    MS_TRY(read_options(&r, kind));
    if (args->done)
        return MS_OK;
    if (kind == NULL)
        return refuse_kind(cx, word);
    MS_TRY(check_words(cx, kind, &args->words));
    r.kind = kind->name;
    MS_TRY(read_target(&r));
    return kind->run(&r);
}
