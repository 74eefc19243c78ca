/* meshsim plot: pictures through gnuplot. One row of a table per kind of picture. */
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/plan_command.h"
#include "cli/plan_flags.h"
#include "cli/plan_options.h"
#include "cli/plot_files.h"
#include "cli/simulate_options.h"
#include "plots/caption.h"
#include "plots/memory.h"
#include "plots/memory_curve.h"
#include "plots/scaling.h"
#include "plots/sizes.h"
#include "plots/timeline.h"

#include <string.h>
#include <unistd.h>

typedef struct plot_options {
    ms_opt_choice format;
    bool keep;
    const char *gpus; /* of scaling */
    ms_opt_list limit;
    bool over_time; /* of memory */
    ms_opt_integer rank;
} plot_options;

static const ms_option plot_table[] = {
    MS_OPT_CHOICE(plot_options, format, "--format", ms_picture_format_names,
                  "of the picture (default: by the ending of -o FILE, else png)"),
    MS_OPT_FLAG(plot_options, keep, "--keep",
                "keep data and script beside the picture: NAME.dat, NAME.gp"),
    {0},
};

static const ms_option scaling_table[] = {
    MS_OPT_TEXT(plot_options, gpus, "--gpus", "A..B|A,B,...",
                "numbers of GPUs: 64..4096 doubles from 64, 64,96,128 is a list"),
    MS_OPT_LIST(plot_options, limit, "--limit", "CHOICE<=VALUE,...",
                "narrow the searches: tp<=8, pp=4, recompute=none"),
    {0},
};

static const ms_option memory_table[] = {
    MS_OPT_FLAG(plot_options, over_time, "--over-time",
                "what one rank keeps over the step, instead of the peaks of all"),
    MS_OPT_INTEGER(plot_options, rank, "--rank", "R", 0, MS_MAX_GPUS - 1,
                   "of --over-time (default: the one with the highest peak)"),
    {0},
};

/* A call of the command. */
typedef struct request {
    ms_ctx *cx;
    ms_args *args;
    const char *kind;
    plot_options options;
    ms_plan_options plan;
    ms_simulate_flags simulate;
    const ms_option *simulate_table;
    ms_plot_target target;
} request;

/* A kind of plot that has been made. */
typedef struct plotted {
    ms_plot_writer writer;
    void (*write_json)(ms_jout *out, const void *plot);
    void (*print)(FILE *out, ms_arena *arena, const void *plot);
} plotted;

/* ---- results ---- */

static ms_status write_json(const request *r, const plotted *p)
{
    ms_output out;
    MS_TRY(ms_output_open(r->cx, r->args->common.output, &out));
    ms_jout json = ms_jout_open(out.file);
    ms_jout_begin_object(&json);
    ms_jout_text_field(&json, "schema", "meshsim.plot/1");
    ms_jout_text_field(&json, "kind", r->kind);
    p->write_json(&json, p->writer.plot);
    ms_jout_end_object(&json);
    ms_jout_close(&json);
    return ms_output_close(r->cx, &out, MS_OK);
}

static ms_status draw(const request *r, const plotted *p)
{
    const ms_plot_target *target = &r->target;
    ms_output picture;
    MS_TRY(ms_output_open(r->cx, target->path, &picture));
    bool rendered;
    MS_TRY(ms_plot_render(r->cx, target, &p->writer, &picture, &rendered));
    if (strcmp(target->path, "-") == 0)
        return MS_OK;
    ms_output out;
    MS_TRY(ms_output_open(r->cx, NULL, &out));
    p->print(out.file, r->cx->arena, p->writer.plot);
    if (rendered)
        fprintf(out.file, "picture   %s\n", target->path);
    if (rendered && target->keep)
        fprintf(out.file, "data      %s\nscript    %s\n", target->data, target->script);
    return ms_output_close(r->cx, &out, MS_OK);
}

static ms_status show(const request *r, const plotted *p)
{
    return r->args->common.json ? write_json(r, p) : draw(r, p);
}

static ms_status read_target(request *r)
{
    if (r->args->common.json)
        return MS_OK;
    int format = r->options.format.given ? r->options.format.value : -1;
    return ms_plot_target_read(r->cx, r->kind, r->args->common.output, format,
                               r->options.keep, &r->target);
}

/* Nothing that is written may be what the plan is read from. */
static ms_status check_outputs(const request *r, const ms_plan_options *opts,
                               const ms_plan *plan)
{
    if (r->args->common.json)
        return ms_plan_options_check_output(r->cx, opts, plan, r->args->common.output);
    const char *const paths[] = {r->target.path, r->target.data, r->target.script};
    for (int i = 0; i < 3; i++)
        MS_TRY(ms_plan_options_check_output(r->cx, opts, plan, paths[i]));
    return MS_OK;
}

static void note_fit(const request *r, const ms_prediction *prediction, const char *what)
{
    if (!prediction->fits)
        ms_note(r->cx, "%s does not fit: %.1f GiB are needed, %.1f GiB are there", what,
                prediction->peak_bytes / 0x1p30, prediction->capacity_bytes / 0x1p30);
}

/* ---- timeline ---- */

static void timeline_data(FILE *out, const void *plot)
{
    ms_timeline_write_data(out, plot);
}

static ms_status timeline_script(ms_ctx *cx, FILE *out, const void *plot,
                                 const char *name, ms_picture_format format)
{
    return ms_timeline_write_script(cx, out, plot, name, format);
}

static void timeline_json(ms_jout *out, const void *plot)
{
    ms_timeline_write_json(out, plot);
}

static void timeline_print(FILE *out, ms_arena *arena, const void *plot)
{
    ms_timeline_print(out, arena, plot);
}

/* Of a simulation: by replay unless an engine is named. */
static ms_status simulate_options(const request *r, ms_simulate_options *out)
{
    const ms_simulate_flags *flags = &r->simulate;
    if (flags->seed.given && flags->jitter_frac.value == 0.0)
        ms_note(r->cx, "--seed has no effect without --jitter");
    MS_TRY(ms_simulate_flags_options(r->cx, flags, out));
    if (!flags->engine.given)
        out->engine = MS_ENGINE_REPLAY;
    out->detail = MS_DETAIL_ACTION; /* boxes are actions */
    return MS_OK;
}

static ms_status draw_timeline(request *r, const ms_plan *plan, ms_workload *workload)
{
    ms_planned planned;
    ms_timeline timeline;
    ms_simulate_options options;
    MS_TRY(simulate_options(r, &options));
    ms_planned_open(r->cx, workload, plan, &planned);
    MS_TRY(ms_timeline_make(r->cx, &planned, &options, &timeline));
    ms_simulate_note_links(r->cx, &timeline.simulation);
    note_fit(r, &timeline.prediction, "the plan");
    plotted p = {
        {&timeline, timeline_data, timeline_script}, timeline_json, timeline_print};
    return show(r, &p);
}

/* Opens the one plan that is given, and draws it. */
static ms_status draw_plan(request *r,
                           ms_status (*draw_it)(request *r, const ms_plan *plan,
                                                ms_workload *workload))
{
    const ms_words *words = &r->args->words;
    ms_plan plan;
    MS_TRY(ms_plan_options_word(r->cx, &r->plan,
                                words->num_words > 1 ? words->words[1] : NULL));
    MS_TRY(ms_plan_from_options(r->cx, &r->plan, &plan));
    MS_TRY(check_outputs(r, &r->plan, &plan));
    ms_workload *workload;
    MS_TRY(ms_plan_open_workload(r->cx, &plan, &workload));
    ms_status status = ms_plan_fit_recompute(r->cx, workload, &plan);
    if (status == MS_OK)
        status = draw_it(r, &plan, workload);
    ms_workload_close(workload);
    return status;
}

static ms_status plot_timeline(request *r)
{
    return draw_plan(r, draw_timeline);
}

/* ---- memory ---- */

static void memory_data(FILE *out, const void *plot)
{
    ms_memory_plot_write_data(out, plot);
}

static ms_status memory_script(ms_ctx *cx, FILE *out, const void *plot, const char *name,
                               ms_picture_format format)
{
    return ms_memory_plot_write_script(cx, out, plot, name, format);
}

static void memory_json(ms_jout *out, const void *plot)
{
    ms_memory_plot_write_json(out, plot);
}

static void memory_print(FILE *out, ms_arena *arena, const void *plot)
{
    (void)arena;
    ms_memory_plot_print(out, plot);
}

/* Flags apply to every plan. `word` NULL: the flags alone. */
static ms_status predict_plan(const request *r, const char *word, ms_memory_plan *out)
{
    ms_ctx *cx = r->cx;
    ms_plan_options opts = r->plan;
    ms_plan *plan = MS_NEW(cx->arena, ms_plan);
    MS_TRY(ms_plan_options_word(cx, &opts, word));
    MS_TRY(ms_plan_from_options(cx, &opts, plan));
    MS_TRY(check_outputs(r, &opts, plan));
    ms_workload *workload;
    MS_TRY(ms_plan_open_workload(cx, plan, &workload));
    *out = (ms_memory_plan){.plan = plan, .workload = workload};
    if (opts.plan_file != NULL && strcmp(opts.plan_file, "-") != 0)
        out->name = ms_caption_name(cx->arena, opts.plan_file);
    ms_status status = ms_plan_fit_recompute(cx, workload, plan);
    if (status == MS_OK)
        status = ms_predict(cx, workload, plan, &out->prediction);
    if (status == MS_OK)
        note_fit(r, &out->prediction, out->name != NULL ? out->name : "the plan");
    ms_workload_close(workload); /* model and cluster stay: they live in the arena */
    return status;
}

/* ---- memory over time ---- */

static void curve_data(FILE *out, const void *plot)
{
    ms_memory_curve_write_data(out, plot);
}

static ms_status curve_script(ms_ctx *cx, FILE *out, const void *plot, const char *name,
                              ms_picture_format format)
{
    return ms_memory_curve_write_script(cx, out, plot, name, format);
}

static void curve_json(ms_jout *out, const void *plot)
{
    ms_memory_curve_write_json(out, plot);
}

static void curve_print(FILE *out, ms_arena *arena, const void *plot)
{
    (void)arena;
    ms_memory_curve_print(out, plot);
}

static ms_status draw_curve(request *r, const ms_plan *plan, ms_workload *workload)
{
    ms_planned planned;
    ms_memory_curve curve;
    ms_simulate_options options;
    MS_TRY(simulate_options(r, &options));
    ms_planned_open(r->cx, workload, plan, &planned);
    long rank = r->options.rank.given ? r->options.rank.value : -1;
    MS_TRY(ms_memory_curve_make(r->cx, &planned, &options, rank, &curve));
    ms_simulate_note_links(r->cx, &curve.simulation);
    note_fit(r, &curve.prediction, "the plan");
    plotted p = {{&curve, curve_data, curve_script}, curve_json, curve_print};
    return show(r, &p);
}

/* Options that only a simulation has. */
static ms_status check_over_time(request *r)
{
    const ms_option_set simulation = {"simulate", r->simulate_table, &r->simulate};
    const char *idle = r->options.rank.given ? "--rank" : NULL;
    if (idle == NULL)
        idle = ms_options_given(&simulation, "");
    if (!r->options.over_time && idle != NULL) {
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "%s has no meaning for peaks of memory",
                idle);
        ms_hint(r->cx, "with --over-time one rank is drawn over a step");
        return MS_EINPUT;
    }
    if (r->options.over_time && r->args->words.num_words > 2) {
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "unexpected argument \"%s\"",
                r->args->words.words[2]);
        ms_hint(r->cx, "--over-time takes one plan at a time");
        return MS_EINPUT;
    }
    return MS_OK;
}

static ms_status plot_memory(request *r)
{
    MS_TRY(check_over_time(r));
    if (r->options.over_time)
        return draw_plan(r, draw_curve);
    const ms_words *words = &r->args->words;
    int num = words->num_words > 1 ? words->num_words - 1 : 1;
    ms_memory_plan *plans = MS_NEW_ARRAY(r->cx->arena, num, ms_memory_plan);
    for (int i = 0; i < num; i++)
        MS_TRY(predict_plan(r, words->num_words > 1 ? words->words[i + 1] : NULL,
                            &plans[i]));
    ms_memory_plot plot = {r->cx->arena, num, plans};
    plotted p = {{&plot, memory_data, memory_script}, memory_json, memory_print};
    return show(r, &p);
}

/* ---- scaling ---- */

static void scaling_data(FILE *out, const void *plot)
{
    ms_scaling_write_data(out, plot);
}

static ms_status scaling_script(ms_ctx *cx, FILE *out, const void *plot, const char *name,
                                ms_picture_format format)
{
    return ms_scaling_write_script(cx, out, plot, name, format);
}

static void scaling_json(ms_jout *out, const void *plot)
{
    ms_scaling_write_json(out, plot);
}

static void scaling_print(FILE *out, ms_arena *arena, const void *plot)
{
    (void)arena;
    ms_scaling_print(out, plot);
}

/* "tp<=8,pp=4" twice given is one list. */
static const char *const *split_limits(const request *r, int *num)
{
    const ms_opt_list *list = &r->options.limit;
    int capacity = 0;
    for (int i = 0; i < list->num_texts; i++)
        for (const char *c = list->texts[i]; c != NULL; c = strchr(c + 1, ','))
            capacity++;
    const char **limits = MS_NEW_ARRAY(r->cx->arena, capacity, const char *);
    *num = 0;
    for (int i = 0; i < list->num_texts; i++) {
        for (const char *rest = list->texts[i]; rest != NULL;) {
            size_t length = strcspn(rest, ",");
            limits[(*num)++] = ms_arena_strndup(r->cx->arena, rest, length);
            rest = rest[length] == ',' ? rest + length + 1 : NULL;
        }
    }
    return limits;
}

static ms_status search_size(const request *r, long gpus, ms_scaling *scaling,
                             ms_scaling_point *point)
{
    ms_ctx *cx = r->cx;
    ms_plan_options opts = r->plan;
    opts.gpus = (ms_opt_integer){true, gpus};
    ms_plan base;
    MS_TRY(ms_plan_base_from_options(cx, &opts, &base));
    MS_TRY(check_outputs(r, &opts, &base));
    const ms_model *model;
    const ms_cluster *cluster;
    MS_TRY(ms_model_load(cx, base.model, &model));
    MS_TRY(ms_cluster_load(cx, base.cluster, &cluster));
    MS_TRY(ms_plan_check_cluster(cx, &base, cluster));
    scaling->model = model->name;
    scaling->device = cluster->device.name;
    scaling->sequence_length = base.sequence_length;
    int num_limits;
    const char *const *limits = split_limits(r, &num_limits);
    ms_search_options options = {.num_best = 1,
                                 .num_threads = ms_args_threads(r->args),
                                 .interrupted = &ms_interrupted};
    return ms_scaling_search(cx, &base, limits, num_limits, &options, point);
}

/* Searches of large clusters take seconds; a terminal is told which one runs. */
static void show_progress(const request *r, const ms_sizes *sizes, int next)
{
    if (r->cx->verbosity < 0 || !isatty(STDERR_FILENO))
        return;
    if (next < sizes->num)
        fprintf(stderr, "\rsearching plans for %ld GPUs (%d of %d)\033[K",
                sizes->sizes[next], next + 1, sizes->num);
    else
        fputs("\r\033[K", stderr);
}

static const char *limits_text(const request *r)
{
    const ms_opt_list *list = &r->options.limit;
    const char *text = "";
    for (int i = 0; i < list->num_texts; i++)
        text = ms_arena_printf(r->cx->arena, "%s%s%s", text, i == 0 ? "" : ", ",
                               list->texts[i]);
    return text;
}

static ms_status show_scaling(const request *r, const ms_scaling *scaling)
{
    plotted p = {{scaling, scaling_data, scaling_script}, scaling_json, scaling_print};
    if (ms_scaling_first(scaling) != NULL)
        return show(r, &p);
    ms_fail(r->cx, MS_ENOFIT, MS_NOWHERE, "no plan fits on any of these numbers of GPUs");
    if (r->args->common.json)
        MS_TRY(write_json(r, &p));
    else
        scaling_print(stdout, r->cx->arena, scaling);
    return MS_ENOFIT;
}

static ms_status plot_scaling(request *r)
{
    ms_ctx *cx = r->cx;
    ms_sizes sizes;
    if (r->options.gpus == NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the numbers of GPUs are not given");
        ms_hint(cx, "for example --gpus 64..4096");
        return MS_EINPUT;
    }
    MS_TRY(ms_sizes_parse(cx, "--gpus", r->options.gpus, MS_MAX_GPUS, &sizes));
    ms_scaling scaling = {.arena = cx->arena,
                          .limits = limits_text(r),
                          .num_points = sizes.num,
                          .points = MS_NEW_ARRAY(cx->arena, sizes.num, ms_scaling_point)};
    ms_status status = MS_OK;
    for (int i = 0; i < sizes.num && status == MS_OK; i++) {
        show_progress(r, &sizes, i);
        status = search_size(r, sizes.sizes[i], &scaling, &scaling.points[i]);
    }
    show_progress(r, &sizes, sizes.num);
    MS_TRY(status);
    return show_scaling(r, &scaling);
}

/* ---- the command ---- */

typedef struct plot_kind {
    const char *name;
    ms_status (*run)(request *r);
    int max_words; /* the kind included */
} plot_kind;

static const plot_kind plot_kinds[] = {
    {"timeline", plot_timeline, 2},
    {"memory", plot_memory, 1 + MS_MAX_MEMORY_PLANS},
    {"scaling", plot_scaling, 1},
    {NULL, NULL, 0},
};

static const plot_kind *kind_of(const char *word)
{
    for (const plot_kind *k = plot_kinds; k->name != NULL; k++)
        if (strcmp(k->name, word) == 0)
            return k;
    return NULL;
}

static ms_status refuse_kind(ms_ctx *cx, const char *word)
{
    static const char *const names[] = {"timeline", "memory", "scaling"};
    const char *nearest = NULL;
    if (word == NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "what to plot is not given");
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
    ms_hint(cx, "meshsim plot %s takes %s", kind->name,
            kind->max_words == 1   ? "options only"
            : kind->max_words == 2 ? "one plan"
                                   : "at most 12 plans");
    return MS_EINPUT;
}

/* The flags of a plan that a search starts from; the others are what it chooses. */
static const ms_option *searched_plan_table(ms_ctx *cx)
{
    static const char *const kept[] = {"--plan",  "--model",        "--cluster",
                                       "--seq",   "--global-batch", "--precision",
                                       "--stack", "--profile"};
    int num = 0;
    while (ms_plan_option_table[num].kind != MS_OPTION_END)
        num++;
    ms_option *table = MS_NEW_ARRAY(cx->arena, num + 1, ms_option);
    for (int i = 0; i < num; i++) {
        table[i] = ms_plan_option_table[i];
        bool keep = table[i].kind == MS_OPTION_MISTAKE;
        for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
            keep = keep || strcmp(table[i].name, kept[k]) == 0;
        if (!keep)
            table[i] = (ms_option)MS_OPT_MISTAKE(
                table[i].name,
                "the searches choose it; --limit narrows them: --limit tp=8");
    }
    return table;
}

/* The flags of a simulation that change what is drawn. */
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

/* What is plotted comes first, and decides which options there are. */
ms_status ms_cmd_plot(ms_ctx *cx, ms_args *args)
{
    request r = {.cx = cx, .args = args};
    const char *word = args->argc > 0 && args->argv[0][0] != '-' ? args->argv[0] : NULL;
    const plot_kind *kind = word == NULL ? NULL : kind_of(word);
    r.simulate_table = drawn_simulate_table(cx);
    const ms_option_set plot = {"plot", plot_table, &r.options},
                        memory = {"plot memory", memory_table, &r.options},
                        scaling = {"plot scaling", scaling_table, &r.options},
                        simulation = {"plot timeline, plot memory --over-time",
                                      r.simulate_table, &r.simulate},
                        plan = {"plan", ms_plan_option_table, &r.plan},
                        base = {"plan", searched_plan_table(cx), &r.plan};
    const ms_option_set all[] = {plot, memory, scaling, simulation, plan};
    const ms_option_set of_timeline[] = {plot, simulation, plan};
    const ms_option_set of_memory[] = {plot, memory, simulation, plan};
    const ms_option_set of_scaling[] = {plot, scaling, base};
    if (kind == NULL)
        MS_TRY(ms_args_read(cx, args, all, 5));
    else if (kind->run == plot_timeline)
        MS_TRY(ms_args_read(cx, args, of_timeline, 3));
    else if (kind->run == plot_memory)
        MS_TRY(ms_args_read(cx, args, of_memory, 4));
    else
        MS_TRY(ms_args_read(cx, args, of_scaling, 3));
    if (args->done)
        return MS_OK;
    if (kind == NULL)
        return refuse_kind(cx, word);
    MS_TRY(check_words(cx, kind, &args->words));
    r.kind = kind->name;
    MS_TRY(read_target(&r));
    return kind->run(&r);
}
