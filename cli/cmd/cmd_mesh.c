/* meshsim mesh: axes, groups, places and drawing of a mesh; costs of other orders of its
 * axes; with --layout, layouts (shape:stride) without a mesh. */
#include "cli/options/commands.h"
#include "cli/options/output.h"
#include "cli/options/plan_command.h"
#include "cli/report/mesh_draw.h"
#include "cli/report/mesh_layout.h"
#include "cli/report/mesh_report.h"
#include "cli/report/report.h"
#include "sim/request/plan_flags.h"
#include "sim/request/plan_options.h"
#include "sim/request/plan_order.h"
#include "topo/allocation.h"
#include "topo/mesh_text.h"

#include <string.h>

#define DEFAULT_WIDTH 120

typedef struct mesh_options {
    const char *mesh, *color, *groups, *layout;
    bool draw, orders, first_fastest;
    ms_opt_integer ep_generation, width;
} mesh_options;

static const ms_option mesh_table[] = {
    MS_OPT_TEXT(
        mesh_options, mesh, "--mesh", "AXIS=N,...",
        "axes with any names, outer to inner; one size may be -1: the rest of --gpus"),
    MS_OPT_INTEGER(
        mesh_options, ep_generation, "--ep-generation", "N", 1, 3,
        "ranks that --ep takes: 3 the innermost (default); 1, 2 as TorchTitan of "
        "July, August 2025"),
    MS_OPT_TEXT(mesh_options, groups, "--groups", "AXIS|all",
                "every group of one axis or derived axis"),
    MS_OPT_FLAG(mesh_options, draw, "--draw",
                "draw the ranks as a matrix of matrices; with -o FILE.svg as a picture"),
    MS_OPT_TEXT(mesh_options, color, "--color", "AXIS",
                "draw the mesh with the groups of this axis coloured"),
    MS_OPT_INTEGER(
        mesh_options, width, "--width", "COLUMNS", 20, 10000,
        "width of the drawing; wider meshes are cut into panels (default 120)"),
    MS_OPT_FLAG(
        mesh_options, orders, "--orders",
        "cost of every order of the axes, and why the best is best; --order without a "
        "value does the same"),
    MS_OPT_TEXT(mesh_options, layout, "--layout", "EXPR",
                "evaluate a layout, (4,8):(8,1); A o B, coalesce(A), complement(A,N), "
                "divide(A,B), inverse(A), product(A,B)"),
    MS_OPT_FLAG(mesh_options, first_fastest, "--first-fastest",
                "with --layout: indices step through the first mode fastest, as in CuTe "
                "(default: the last, as in PyTorch)"),
    {0},
};

typedef struct request {
    ms_ctx *cx;
    const ms_args *args;
    const mesh_options *options;
    ms_plan_options *plan_options;
    ms_plan plan; /* plan with the axes of the mesh; set if `has_plan` */
    bool has_plan;
    ms_mesh mesh;
    ms_zoo_choices choices;
    const ms_cluster *cluster;
    ms_mesh_view *view;
} request;

/* ---- the command line ---- */

/* Whether an argument behind --order is an order: neither a file nor an option. */
static bool is_order_value(const char *word)
{
    return word != NULL && word[0] != '-' && strpbrk(word, "./") == NULL;
}

/* Replaces --order without a value by --orders. */
static void read_bare_order(ms_ctx *cx, ms_args *args)
{
    char **argv = MS_NEW_ARRAY(cx->arena, args->argc + 1, char *);
    for (int i = 0; i < args->argc; i++)
        argv[i] = args->argv[i];
    for (int i = 0; i < args->argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--order") == 0 && !is_order_value(argv[i + 1]))
            argv[i] = ms_arena_strdup(cx->arena, "--orders");
    args->argv = argv;
}

static bool names_a_mesh(const request *r)
{
    const ms_plan_options *opts = r->plan_options;
    bool given = r->options->mesh != NULL || opts->plan_file != NULL ||
                 ms_plan_is_given(opts, MS_CHOOSE_MODEL) ||
                 ms_plan_is_given(opts, MS_CHOOSE_ORDER);
    for (ms_choice i = MS_CHOOSE_GPUS; i <= MS_CHOOSE_TP; i++)
        given = given || ms_plan_is_given(opts, i);
    return given;
}

/* ---- mesh of --mesh ---- */

static ms_status check_alone(const request *r)
{
    const char *other = NULL;
    if (r->plan_options->plan_file != NULL)
        other =
            ms_arena_printf(r->cx->arena, "the plan \"%s\"", r->plan_options->plan_file);
    else if (ms_plan_is_given(r->plan_options, MS_CHOOSE_ORDER))
        other = "--order";
    for (int axis = 0; axis < MS_NUM_PLAN_AXES && other == NULL; axis++)
        if (ms_plan_is_given(r->plan_options, MS_CHOOSE_PP + axis))
            other =
                ms_arena_printf(r->cx->arena, "the size of %s", ms_plan_axis_names[axis]);
    if (other == NULL)
        return MS_OK;
    ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "--mesh and %s exclude each other", other);
    return ms_hint(r->cx, "--mesh gives all axes, outer to inner, with their sizes");
}

/* Prints a note that a mesh of experts does not determine the mesh of dense layers. */
static void note_expert_axes(const request *r)
{
    for (int i = 0; i < r->mesh.num_axes; i++) {
        ms_axis_role role = ms_axis_role_find(r->mesh.axes[i].name);
        if (role == MS_AXIS_EP || role == MS_AXIS_EFSDP || role == MS_AXIS_ETP) {
            ms_note(
                r->cx,
                "axis %s is one of experts alone, but batch, loss and fsdp are derived "
                "from the mesh of dense layers: give that mesh, and --ep",
                r->mesh.axes[i].name);
            return;
        }
    }
}

static void note_other_names(const request *r)
{
    const char *names = "";
    int num = 0;
    for (int i = 0; i < r->mesh.num_axes; i++) {
        const char *name = r->mesh.axes[i].name;
        if (ms_axis_role_find(name) != MS_AXIS_OTHER)
            continue;
        const char *nearest = ms_axis_role_nearest(name);
        names =
            ms_arena_printf(r->cx->arena, "%s%s%s", names, num++ == 0 ? "" : ", ", name);
        if (nearest != NULL)
            names =
                ms_arena_printf(r->cx->arena, "%s (did you mean %s?)", names, nearest);
    }
    if (num > 0)
        ms_note(r->cx, "no axes are derived from names outside the mesh zoo: %s", names);
}

/* Prints a note on flags of a plan that have no effect on a mesh. */
static void note_idle_plan_flags(const request *r)
{
    ms_plan_options rest = *r->plan_options;
    static const ms_choice used[] = {MS_CHOOSE_CLUSTER,
                                     MS_CHOOSE_RANKS_PER_DOMAIN,
                                     MS_CHOOSE_GPUS,
                                     MS_CHOOSE_EP,
                                     MS_CHOOSE_ETP,
                                     MS_CHOOSE_ZERO,
                                     MS_CHOOSE_SEQUENCE_PARALLEL};
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        memset(&rest.of[used[i]], 0, sizeof rest.of[used[i]]);
    const char *idle = ms_options_given(
        &(ms_option_set){.options = ms_plan_option_table(), .out = &rest}, "");
    if (idle != NULL)
        ms_note(r->cx, "with --mesh, %s has an effect on --orders only", idle);
}

static ms_status read_mesh(request *r)
{
    const ms_plan_options *opts = r->plan_options;
    MS_TRY(check_alone(r));
    if (!r->options->orders)
        note_idle_plan_flags(r);
    ms_mesh_limits limits = {.num_ranks = ms_plan_given_or(opts, MS_CHOOSE_GPUS, 0),
                             .most_ranks = MS_MAX_GPUS};
    MS_TRY(ms_mesh_parse(r->cx, r->options->mesh, &limits, &r->mesh));
    note_other_names(r);
    note_expert_axes(r);
    r->choices = (ms_zoo_choices){
        .zero = ms_plan_given_or(opts, MS_CHOOSE_ZERO, -1),
        .sequence_parallel = ms_plan_given_or(opts, MS_CHOOSE_SEQUENCE_PARALLEL, false),
        .ep = ms_plan_given_or(opts, MS_CHOOSE_EP, 1),
        .etp = ms_plan_given_or(opts, MS_CHOOSE_ETP, 0),
    };
    const char *cluster = opts->of[MS_CHOOSE_CLUSTER].text;
    if (cluster == NULL) {
        cluster = ms_plan_default(1).cluster;
        ms_note_default(r->cx, "--cluster %s", cluster);
    }
    return ms_cluster_load_for_job(r->cx, cluster, r->mesh.num_ranks,
                                   ms_plan_given_or(opts, MS_CHOOSE_RANKS_PER_DOMAIN, 0),
                                   &r->cluster);
}

/* ---- mesh of a plan ---- */

static ms_status check_plan(const request *r)
{
    const ms_model *model;
    if (r->plan.model == NULL)
        return MS_OK;
    MS_TRY(ms_model_load(r->cx, r->plan.model, &model));
    if (r->options->orders && ms_plan_refusal(&r->plan, model) == MS_REFUSE_ORDER)
        return MS_OK; /* not refused: --orders lists illegal orders, too */
    return ms_plan_check(r->cx, &r->plan, model, MS_NOWHERE);
}

static ms_status read_plan(request *r)
{
    const ms_plan_options *opts = r->plan_options;
    MS_TRY(ms_plan_mesh_from_options(r->cx, opts, &r->plan));
    MS_TRY(ms_plan_options_check_output(r->cx, opts, &r->plan, r->args->common.output));
    MS_TRY(check_plan(r));
    r->has_plan = true;
    r->mesh = ms_plan_mesh(&r->plan);
    r->choices = (ms_zoo_choices){
        .zero = r->plan.zero,
        .sequence_parallel = r->plan.sequence_parallel && r->plan.size[MS_TP] > 1,
        .ep = r->plan.ep,
        .etp = ms_plan_is_given(opts, MS_CHOOSE_ETP) || opts->plan_file != NULL
                   ? r->plan.etp
                   : 0,
    };
    return ms_cluster_load_for_job(r->cx, r->plan.cluster, r->plan.gpus,
                                   r->plan.ranks_per_domain, &r->cluster);
}

/* ---- orders ---- */

static ms_status refuse_orders(ms_ctx *cx, const char *what)
{
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "comparing orders needs %s, to know what each axis sends", what);
    return ms_hint(
        cx, "for example meshsim mesh --model 8b --gpus 64 --pp 2 --tp 8 --orders");
}

static ms_status plan_of_mesh(request *r)
{
    ms_plan_options opts = *r->plan_options;
    const char *order = "";
    for (int i = 0; i < r->mesh.num_axes; i++) {
        int axis = ms_plan_axis_of_role(r->view->roles[i]);
        if (axis < 0)
            return refuse_orders(r->cx, ms_arena_printf(r->cx->arena,
                                                        "axes of a plan, and %s is none",
                                                        r->mesh.axes[i].name));
        ms_plan_give(&opts, MS_CHOOSE_PP + axis, r->mesh.axes[i].size);
        order = ms_arena_printf(r->cx->arena, "%s%s%s", order, i == 0 ? "" : ",",
                                ms_plan_axis_names[axis]);
        if (r->view->roles[i] == MS_AXIS_DP && !ms_plan_is_given(&opts, MS_CHOOSE_ZERO))
            ms_plan_give(&opts, MS_CHOOSE_ZERO, 0);
    }
    opts.of[MS_CHOOSE_ORDER].text = order;
    ms_plan_give(&opts, MS_CHOOSE_GPUS, r->mesh.num_ranks);
    ms_plan_give(&opts, MS_CHOOSE_DP_SHARD, /* 1 unless given */
                 ms_plan_given_or(&opts, MS_CHOOSE_DP_SHARD, 1));
    MS_TRY(ms_plan_from_options(r->cx, &opts, &r->plan));
    r->has_plan = true;
    return check_plan(r);
}

static ms_status compare_orders(request *r, ms_mesh_orders *orders)
{
    if (!ms_plan_is_given(r->plan_options, MS_CHOOSE_MODEL) &&
        (!r->has_plan || r->plan.model == NULL))
        return refuse_orders(r->cx, "a model (--model NAME, or a plan)");
    if (r->choices.ep > 1 && r->choices.ep_generation < 3) {
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                "orders are compared with experts on the innermost ranks, not those of "
                "--ep-generation %d",
                r->choices.ep_generation);
        return ms_hint(r->cx, "leave out --ep-generation, or --orders");
    }
    if (!r->has_plan)
        MS_TRY(plan_of_mesh(r));
    ms_workload *workload;
    MS_TRY(ms_workload_open(r->cx, &r->plan, &workload));
    ms_status status = ms_mesh_orders_compare(r->cx, workload, &r->plan, orders);
    ms_workload_close(workload);
    return status;
}

/* ---- drawing ---- */

static bool has_ending(const char *path, const char *ending)
{
    size_t length = path == NULL ? 0 : strlen(path), end = strlen(ending);
    return length > end && strcmp(path + length - end, ending) == 0;
}

static ms_status check_size(const request *r, long most, const char *how)
{
    if (r->mesh.num_ranks <= most)
        return MS_OK;
    ms_status status = ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                               "%ld ranks are too many for %s: at most %ld",
                               r->mesh.num_ranks, how, most);
    if (r->mesh.num_ranks <= MS_MAX_SVG_RANKS)
        ms_hint(r->cx, "-o mesh.svg draws them as a picture");
    else
        ms_hint(r->cx, "--groups AXIS lists them; --json has all");
    return status;
}

static ms_status prepare_drawing(const request *r, bool svg, ms_drawing *drawing)
{
    if (!r->args->common.json)
        MS_TRY(check_size(r, svg ? MS_MAX_SVG_RANKS : MS_MAX_TEXT_RANKS,
                          svg ? "a picture" : "a drawing in text"));
    *drawing = (ms_drawing){.grid = ms_grid_make(&r->mesh),
                            .node_ranks = r->view->node_ranks,
                            .width = r->options->width.given ? r->options->width.value
                                                             : DEFAULT_WIDTH};
    if (r->options->color == NULL)
        return MS_OK;
    const ms_axis_view *axis;
    MS_TRY(ms_mesh_view_find(r->cx, r->view, r->options->color, "--color", &axis));
    if (!svg && !ms_output_takes_colours(r->args->common.output)) {
        if (!r->args->common.json)
            ms_note(r->cx,
                    "drawn without colours, which need a terminal and no NO_COLOR; "
                    "-o FILE.svg has them");
        return MS_OK;
    }
    const long *ranks = ms_axis_view_ranks(r->cx, r->view, axis);
    long *groups = MS_NEW_ARRAY(r->cx->arena, r->mesh.num_ranks, long);
    for (long i = 0; i < r->mesh.num_ranks; i++)
        groups[ranks[i]] = i / axis->layout.size;
    drawing->group_of_rank = groups;
    drawing->coloured = axis->name;
    return MS_OK;
}

/* ---- output ---- */

/* Finds the axis of --groups; NULL: all axes. */
static ms_status find_groups(const request *r, const ms_axis_view **axis)
{
    *axis = NULL;
    if (r->options->groups == NULL || strcmp(r->options->groups, "all") == 0)
        return MS_OK;
    return ms_mesh_view_find(r->cx, r->view, r->options->groups, "--groups", axis);
}

static void print_groups(const request *r, FILE *out, const ms_axis_view *only)
{
    const ms_mesh_view *view = r->view;
    for (int i = 0; i < view->num_axes + view->num_derived; i++)
        if (only == NULL || only == &view->axes[i])
            ms_mesh_print_groups(out, r->cx, view, &view->axes[i]);
}

/* Output requested by --draw, --orders and --groups; NULL: not requested. */
typedef struct wanted {
    const ms_drawing *drawing;
    const ms_mesh_orders *orders;
    const ms_axis_view *groups; /* axis to list groups of; NULL with --groups all */
} wanted;

/* Prints the requested output, or the axes if nothing is requested. */
static void print_text(const request *r, FILE *out, const wanted *w)
{
    bool lists = r->options->groups != NULL;
    bool only_draws = w->drawing != NULL && w->orders == NULL && !lists;
    if (!only_draws)
        ms_mesh_print_head(out, r->cx->arena, r->view);
    if (w->drawing == NULL && w->orders == NULL && !lists)
        ms_mesh_print_axes(out, r->cx, r->view);
    if (lists)
        print_groups(r, out, w->groups);
    if (w->drawing != NULL) {
        fputs(only_draws ? "" : "\n", out);
        ms_mesh_draw(out, r->cx->arena, w->drawing);
    }
    if (w->orders != NULL)
        ms_mesh_orders_print(out, r->cx->arena, w->orders, &r->plan, r->cluster);
}

static void write_json(const request *r, ms_jout *json, const wanted *w)
{
    ms_jout_begin_object(json);
    ms_mesh_write_fields(json, r->cx, r->view);
    if (w->drawing != NULL) {
        ms_jout_key(json, "drawing");
        ms_grid_write_json(json, r->cx->arena, &w->drawing->grid);
    }
    if (w->orders != NULL)
        ms_mesh_orders_write_fields(json, r->cx->arena, w->orders, &r->plan, r->cluster);
    ms_jout_end_object(json);
}

static void note_idle_options(const request *r, bool draws_text)
{
    if (r->options->ep_generation.given && r->choices.ep <= 1)
        ms_note(r->cx, "--ep-generation has an effect with --ep only");
    if (r->options->width.given && !draws_text)
        ms_note(r->cx, "--width has an effect on a drawing in text only");
}

static ms_status write_result(request *r)
{
    const ms_common_options *common = &r->args->common;
    bool svg = has_ending(common->output, ".svg") && !common->json;
    bool draws = r->options->draw || r->options->color != NULL || svg;
    note_idle_options(r, draws && !svg && !common->json);
    ms_drawing drawing;
    ms_mesh_orders orders;
    if (draws &&
        (has_ending(common->output, ".png") || has_ending(common->output, ".pdf")))
        return ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                       "-o is \"%s\", but a mesh is drawn as text, or into FILE.svg",
                       common->output);
    if (svg && (r->options->orders || r->options->groups != NULL))
        return ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                       "-o \"%s\" is a picture, which holds no orders and no groups",
                       common->output);
    wanted w = {0};
    MS_TRY(find_groups(r, &w.groups));
    if (draws)
        MS_TRY(prepare_drawing(r, svg, &drawing));
    if (r->options->orders)
        MS_TRY(compare_orders(r, &orders));
    w.drawing = draws ? &drawing : NULL;
    w.orders = r->options->orders ? &orders : NULL;
    ms_output out;
    MS_TRY(ms_output_open(r->cx, common->output, &out));
    if (common->json)
        write_json(r, &out.json, &w);
    else if (svg)
        ms_mesh_draw_svg(out.file, r->cx->arena, w.drawing);
    else
        print_text(r, out.file, &w);
    return ms_output_close(r->cx, &out, MS_OK);
}

/* Evaluates --layout, which excludes every other option. */
static ms_status evaluate_layout(ms_ctx *cx, const ms_args *args,
                                 const mesh_options *options, const ms_option_set *plan)
{
    mesh_options rest = *options;
    rest.layout = NULL;
    rest.first_fastest = false;
    const ms_option_set others = {"", mesh_table, &rest};
    const char *given = ms_options_given(&others, "");
    if (given == NULL)
        given = ms_options_given(plan, "");
    if (given == NULL && args->words.num_words > 0)
        given = args->words.words[0];
    if (given != NULL)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--layout and %s exclude each other",
                       given);
    return ms_mesh_evaluate_layout(cx, args, options->layout, options->first_fastest);
}

static ms_status write_zoo(const request *r)
{
    ms_output out;
    MS_TRY(ms_output_open(r->cx, r->args->common.output, &out));
    if (r->args->common.json)
        ms_zoo_write_json(out.file);
    else
        ms_zoo_print(out.file, r->cx->arena);
    return ms_output_close(r->cx, &out, MS_OK);
}

ms_status ms_cmd_mesh(ms_ctx *cx, ms_args *args)
{
    mesh_options options = {0};
    ms_plan_options plan_options = {0};
    const ms_option_set sets[] = {{"mesh", mesh_table, &options},
                                  {"plan", ms_plan_option_table(), &plan_options}};
    read_bare_order(cx, args);
    MS_TRY(ms_args_read(cx, args, sets, 2));
    if (args->done)
        return MS_OK;
    if (options.layout != NULL)
        return evaluate_layout(cx, args, &options, &sets[1]);
    if (options.first_fastest)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "--first-fastest is given, and --layout is not");
    MS_TRY(ms_plan_options_word(cx, &plan_options, args->words.words[0]));
    request r = {
        .cx = cx, .args = args, .options = &options, .plan_options = &plan_options};
    if (!names_a_mesh(&r)) {
        const char *given = ms_options_given(&sets[0], "");
        if (given == NULL)
            given = ms_options_given(&sets[1], "");
        if (given == NULL)
            return write_zoo(&r);
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s is given, but no mesh", given);
        return ms_hint(cx, "--mesh dp=4,tp=8, a plan, or its flags: --gpus 32 --tp 8");
    }
    MS_TRY(options.mesh != NULL ? read_mesh(&r) : read_plan(&r));
    r.choices.ep_generation =
        options.ep_generation.given ? (int)options.ep_generation.value : 3;
    ms_note_allocation(cx, r.cluster, r.mesh.num_ranks);
    r.view = MS_NEW(cx->arena, ms_mesh_view);
    MS_TRY(ms_mesh_view_make(cx, &r.mesh, &r.choices, r.cluster, r.view));
    return write_result(&r);
}
