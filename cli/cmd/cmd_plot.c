/* meshsim plot: pictures made by gnuplot. */
#include "cli/cmd/plot_request.h"

#include "cli/options/plan_flags.h"
#include "cli/options/searched_plan.h"
#include "plots/memory_data.h"

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
    MS_OPT_LIST(ms_plot_options, limit, "--limit", "CHOICE<=VALUE,...",
                "narrow the searches: tp<=8, pp=4, recompute=none"),
    {0},
};

static const ms_option memory_table[] = {
    MS_OPT_FLAG(ms_plot_options, over_time, "--over-time",
                "memory of one rank over the step, instead of the peaks of all"),
    MS_OPT_INTEGER(ms_plot_options, rank, "--rank", "R", 0, MS_MAX_GPUS - 1,
                   "rank of --over-time (default: the one with the highest peak)"),
    {0},
};

static ms_status read_target(ms_plot_request *r)
{
    if (r->args->common.json)
        return MS_OK;
    int format = r->options.format.given ? r->options.format.value : -1;
    return ms_plot_target_read(r->cx, r->kind, r->args->common.output, format,
                               r->options.keep, &r->target);
}

typedef struct plot_kind {
    const char *name;
    ms_status (*run)(ms_plot_request *r);
    int max_words; /* most arguments that are no options, counting the kind of plot */
} plot_kind;

static const plot_kind plot_kinds[] = {
    {"timeline", ms_plot_timeline, 2},
    {"memory", ms_plot_memory, 1 + MS_MAX_MEMORY_PLANS},
    {"scaling", ms_plot_scaling, 1},
    {NULL, NULL, 0},
};

static ms_status refuse_kind(ms_ctx *cx, const char *word)
{
    static const char *const names[] = {"timeline", "memory", "scaling"};
    const char *nearest = NULL;
    if (word == NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the kind of plot is not given");
    } else {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "unknown plot \"%s\"", word);
        nearest = ms_nearest(word, names, 3);
    }
    if (nearest != NULL)
        ms_hint(cx, "did you mean \"meshsim plot %s\"?", nearest);
    else
        ms_hint(cx, "meshsim plot timeline, meshsim plot memory or meshsim plot scaling");
    return MS_EINPUT;
}

static ms_status check_words(ms_ctx *cx, const plot_kind *kind, const ms_words *words)
{
    if (words->num_words <= kind->max_words)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "unexpected argument \"%s\"",
            words->words[kind->max_words]);
    return ms_hint(cx, "meshsim plot %s takes %s", kind->name,
                   kind->max_words == 1   ? "options only"
                   : kind->max_words == 2 ? "one plan"
                                          : "at most 12 plans");
}

/* Options of a simulation that affect a plot. */
static const ms_option *drawn_simulate_table(ms_ctx *cx)
{
    static const char *const kept[] = {"--engine", "--slow", "--jitter", "--seed"};
    enum {
        NUM_KEPT = sizeof kept / sizeof *kept
    };
    ms_option *table = MS_NEW_ARRAY(cx->arena, NUM_KEPT + 1, ms_option);
    int num = 0;
    for (const ms_option *o = ms_simulate_option_table; o->kind != MS_OPTION_END; o++)
        for (int k = 0; k < NUM_KEPT; k++)
            if (o->name != NULL && strcmp(o->name, kept[k]) == 0)
                table[num++] = *o;
    table[0].help =
        "longest path, or events with shared links, SMs and HBM (default replay)";
    return table;
}

/* Reads the options of one kind of plot; `kind` NULL: those of all kinds. */
static ms_status read_options(ms_plot_request *r, const plot_kind *kind)
{
    ms_ctx *cx = r->cx;
    ms_args *args = r->args;
    static const char *const kept[] = {"--plan",  "--model",        "--cluster",
                                       "--seq",   "--global-batch", "--precision",
                                       "--stack", "--profile",      NULL};
    const ms_option_set plot = {"plot", plot_table, &r->options},
                        memory = {"plot memory", memory_table, &r->options},
                        scaling = {"plot scaling", scaling_table, &r->options},
                        risk = {"plot scaling", ms_memory_option_table, &r->memory},
                        simulation = {"plot timeline, plot memory --over-time",
                                      r->simulate_table, &r->simulate},
                        plan = {"plan", ms_plan_option_table(), &r->plan},
                        base = {"plan", ms_searched_plan_table(cx, kept, NULL), &r->plan};
    const ms_option_set all[] = {plot, memory, scaling, risk, simulation, plan};
    const ms_option_set of_timeline[] = {plot, simulation, plan};
    const ms_option_set of_memory[] = {plot, memory, simulation, plan};
    const ms_option_set of_scaling[] = {plot, scaling, risk, base};
    if (kind == NULL)
        return ms_args_read(cx, args, all, 6);
    if (kind->run == ms_plot_timeline)
        return ms_args_read(cx, args, of_timeline, 3);
    if (kind->run == ms_plot_memory)
        return ms_args_read(cx, args, of_memory, 4);
    return ms_args_read(cx, args, of_scaling, 4);
}

/* Reads the kind of plot first, because it determines the options. */
ms_status ms_cmd_plot(ms_ctx *cx, ms_args *args)
{
    ms_plot_request r = {.cx = cx, .args = args};
    const char *word = args->argc > 0 && args->argv[0][0] != '-' ? args->argv[0] : NULL;
    const plot_kind *kind = NULL;
    for (const plot_kind *k = plot_kinds; k->name != NULL; k++)
        if (word != NULL && strcmp(k->name, word) == 0)
            kind = k;
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
