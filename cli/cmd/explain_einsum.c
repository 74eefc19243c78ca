#include "cli/cmd/explain_einsum.h"

#include "cli/options/output.h"
#include "cli/options/plan_command.h"
#include "cli/report/explain_einsum_priv.h"
#include "sim/request/plan_flags.h"
#include "topo/allocation.h"
#include "topo/mesh_text.h"

#include <math.h>
#include <string.h>

#define DEFAULT_CLUSTER "hgx-h100"
#define STACK           "generic" /* times of GEMMs do not depend on the stack */
#define MAX_SIZE        1e9

const ms_option ms_einsum_option_table[] = {
    MS_OPT_TEXT(ms_einsum_options, einsum, "--einsum", "EINSUM",
                "letters of the operands and the result: \"bsh,hf->bsf\""),
    MS_OPT_TEXT(ms_einsum_options, redistribute, "--redistribute", "DIMS",
                "instead of an einsum: the cheapest collectives that bring a tensor with "
                "these letters from --in to --out"),
    MS_OPT_TEXT(ms_einsum_options, mesh, "--mesh", "AXES",
                "axes of the mesh, outer to inner: dp=2,tp=4"),
    MS_OPT_LIST(
        ms_einsum_options, in, "--in", "PLACEMENT",
        "placement of each operand, in order: \"S(b)@dp\", or P(\"dp\",None,None); "
        "the rest is replicated"),
    MS_OPT_TEXT(ms_einsum_options, out, "--out", "PLACEMENT",
                "required placement of the result (default: the cheapest)"),
    MS_OPT_TEXT(ms_einsum_options, sizes, "--sizes", "SIZES",
                "sizes of letters: b=4,s=8k (default: Llama 3.1 70B, 8 sequences of 8k)"),
    MS_OPT_CHOICE(ms_einsum_options, dtype, "--dtype", ms_dtype_names,
                  "data type of all operands (default bf16)"),
    MS_OPT_FLAG(ms_einsum_options, strict, "--strict",
                "exit with 4 when the given placements need a redistribution"),
    {0},
};

/* ---- sizes ---- */

/* Default sizes of an einsum's letters, which mean what they do in layer programs. Model
 * dims are those of Llama 3.1 70B (huggingface.co/meta-llama/Llama-3.1-70B config.json),
 * tokens 8 sequences of 8192; "i" and "o": input and output of a square projection. */
static const struct {
    const char *letters;
    long size;
} default_sizes[] = {{"b", 8}, {"sthio", 8192}, {"f", 28672}, {"n", 64},
                     {"g", 8}, {"d", 128},      {"v", 128256}};
#define OTHER_SIZE 1024

static long default_size(char letter)
{
    for (size_t i = 0; i < sizeof default_sizes / sizeof *default_sizes; i++)
        if (strchr(default_sizes[i].letters, letter) != NULL)
            return default_sizes[i].size;
    return OTHER_SIZE;
}

static ms_status refuse_size(ms_ctx *cx, const char *item, const char *what)
{
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--sizes: \"%s\" %s", item, what);
    return ms_hint(cx, "for example --sizes b=4,s=8k");
}

/* Reads the size of one letter of the einsum, "s=8k". */
static ms_status read_size(ms_ctx *cx, const char *item, const ms_einsum *einsum,
                           long *size)
{
    double value;
    if (item[0] == '\0' || item[1] != '=')
        return refuse_size(cx, item, "is not LETTER=SIZE");
    if (strchr(einsum->letters, item[0]) == NULL)
        return refuse_size(cx, item, "names a letter that the einsum does not have");
    if (size[(unsigned char)item[0]] != 0)
        return refuse_size(cx, item, "names a letter that has a size already");
    if (!ms_parse_quantity(item + 2, MS_UNIT_COUNT, &value) || value != floor(value) ||
        value < 1.0 || value > MAX_SIZE)
        return refuse_size(cx, item, "is no whole number from 1 to 1000000000");
    size[(unsigned char)item[0]] = (long)value;
    return MS_OK;
}

static ms_status read_sizes(ms_ctx *cx, const char *text, einsum_report *report)
{
    long *size = report->size;
    const ms_einsum *einsum = &report->problem.einsum;
    const char *item;
    while ((item = ms_list_next(cx->arena, &text)) != NULL)
        MS_TRY(read_size(cx, item, einsum, size));
    for (const char *c = einsum->letters; *c != '\0'; c++) {
        if (size[(unsigned char)*c] != 0)
            continue;
        size[(unsigned char)*c] = default_size(*c);
        report->is_default[(unsigned char)*c] = true;
        ms_note_default(cx, "--sizes %c=%ld", *c, default_size(*c));
    }
    return MS_OK;
}

/* ---- mesh and placements ---- */

static ms_status read_mesh(ms_ctx *cx, const ms_einsum_options *options,
                           einsum_report *report)
{
    if (options->mesh == NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s \"%s\" needs a mesh",
                options->einsum != NULL ? "--einsum" : "--redistribute",
                options->einsum != NULL ? options->einsum : options->redistribute);
        return ms_hint(cx, "for example --mesh dp=2,tp=4");
    }
    ms_mesh_limits limits = {.most_ranks = MS_MAX_GPUS, .takes_no_rest = true};
    MS_TRY(ms_mesh_parse(cx, options->mesh, &limits, &report->mesh));
    long most = report->cluster->max_gpus, num_ranks = report->mesh.num_ranks;
    if (most > 0 && num_ranks > most) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--mesh %s has %ld ranks, but %s has %ld GPUs",
                options->mesh, num_ranks, report->cluster->name, most);
        return ms_hint(cx, "make an axis smaller, or name another --cluster");
    }
    MS_TRY(ms_cluster_for_job(cx, report->cluster, num_ranks, options->ranks_per_domain,
                              &report->cluster));
    ms_note_allocation(cx, report->cluster, num_ranks);
    return MS_OK;
}

static ms_status read_inputs(ms_ctx *cx, const ms_einsum_options *options,
                             einsum_report *report)
{
    ms_einsum_problem *problem = &report->problem;
    int num_inputs = problem->einsum.num_inputs;
    report->num_given = options->in.num_texts;
    if (report->num_given > num_inputs) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--in is given %d times for %d operands",
                report->num_given, num_inputs);
        return ms_hint(
            cx, "one --in per operand, in their order; several axes of one operand "
                "stand in one: --in \"S(b)@dp S(h)@tp\"");
    }
    for (int i = 0; i < report->num_given; i++)
        MS_TRY(ms_spec_read(cx, options->in.texts[i], &report->mesh, &problem->inputs[i],
                            &problem->given[i]));
    for (int i = report->num_given; i < num_inputs; i++)
        ms_note_default(cx, "--in R (%s)", problem->inputs[i].name);
    if (options->out == NULL)
        return MS_OK;
    MS_TRY(
        ms_spec_read(cx, options->out, &report->mesh, &problem->output, &report->wanted));
    problem->wanted = &report->wanted;
    return MS_OK;
}

/* ---- costs ---- */

static ms_status load_costs(ms_ctx *cx, const ms_einsum_options *options,
                            einsum_report *report)
{
    const ms_stack *stack;
    const char *name = options->cluster;
    if (name == NULL) {
        name = DEFAULT_CLUSTER;
        ms_note_default(cx, "--cluster %s", name);
    }
    report->dtype = options->dtype.given ? (ms_dtype)options->dtype.value : MS_BF16;
    if (!options->dtype.given)
        ms_note_default(cx, "--dtype %s", ms_dtype_names[report->dtype]);
    MS_TRY(ms_cluster_load(cx, name, &report->cluster));
    MS_TRY(ms_profile_load_for(cx, report->cluster->device.profile, report->cluster,
                               &report->profile));
    MS_TRY(ms_stack_load(cx, STACK, &stack));
    ms_pricer *pricer = MS_NEW(cx->arena, ms_pricer);
    MS_TRY(ms_pricer_make(cx, report->cluster, report->profile, stack, report->dtype,
                          pricer));
    report->problem.pricer = pricer;
    return MS_OK;
}

/* ---- communication in order ---- */

static int count_steps(const einsum_report *report)
{
    const ms_einsum_choice *choice = &report->strategy.chosen;
    int num = choice->output.plan.num_steps + report->backward.output.plan.num_steps;
    for (int i = 0; i < report->problem.einsum.num_inputs; i++)
        num += choice->inputs[i].plan.num_steps +
               report->backward.inputs[i].move.plan.num_steps;
    return num;
}

static void add_events(einsum_report *report, bool backward, const char *tensor,
                       const ms_einsum_move *move)
{
    for (int i = 0; i < move->plan.num_steps; i++)
        report->events[report->num_events++] =
            (einsum_event){backward, tensor, &move->plan.steps[i]};
}

static void list_events(einsum_report *report)
{
    ms_arena *arena = report->arena;
    const ms_einsum_problem *problem = &report->problem;
    report->events = MS_NEW_ARRAY(arena, count_steps(report), einsum_event);
    for (int i = 0; i < problem->einsum.num_inputs; i++)
        add_events(report, false, problem->inputs[i].name,
                   &report->strategy.chosen.inputs[i]);
    add_events(report, false, problem->output.name, &report->strategy.chosen.output);
    add_events(report, true, "gradient of output", &report->backward.output);
    for (int i = 0; i < problem->einsum.num_inputs; i++)
        add_events(report, true,
                   ms_arena_printf(arena, "gradient of %s", problem->inputs[i].name),
                   &report->backward.inputs[i].move);
}

static einsum_total *total_of(einsum_report *report, ms_axis_set axes)
{
    for (int i = 0; i < report->num_totals; i++)
        if (report->totals[i].axes == axes)
            return &report->totals[i];
    einsum_total *made = &report->totals[report->num_totals++];
    made->axes = axes;
    return made;
}

static void sum_events(einsum_report *report)
{
    report->totals = MS_NEW_ARRAY(report->arena, report->num_events, einsum_total);
    for (int i = 0; i < report->num_events; i++) {
        const einsum_event *event = &report->events[i];
        if (ms_change_is_local(event->step->change))
            continue;
        einsum_total *total = total_of(report, event->step->axes);
        *(event->backward ? &total->backward_s : &total->forward_s) +=
            event->step->seconds;
        total->sent_bytes += ms_einsum_sent_bytes(report, event->step);
    }
}

static void count_compute(einsum_report *report)
{
    const ms_einsum_problem *problem = &report->problem;
    ms_letter_sizes sizes =
        ms_einsum_local_sizes(problem, report->strategy.chosen.spread);
    report->forward_flop = ms_einsum_flop(&problem->einsum, &sizes);
    for (int i = 0; i < problem->einsum.num_inputs; i++) {
        const ms_einsum_input_gradient *gradient = &report->backward.inputs[i];
        report->backward_flop += ms_einsum_flop(&gradient->einsum, &sizes);
        report->backward_compute_s += gradient->compute_s;
    }
}

/* ---- the command ---- */

static ms_status refuse_illegal(ms_ctx *cx, const einsum_report *report)
{
    ms_status status = MS_OK;
    for (int axis = 0; axis < report->mesh.num_axes; axis++) {
        ms_einsum_conflict conflict = report->strategy.conflict[axis];
        if (conflict == MS_CONFLICT_NONE)
            continue;
        status =
            ms_fail(cx, MS_ECHECK, MS_NOWHERE, "axis \"%s\": %s",
                    report->mesh.axes[axis].name, ms_einsum_conflict_texts[conflict]);
        ms_hint(cx, "without --strict the cheapest redistribution is shown");
    }
    return status;
}

static ms_status read_problem(ms_ctx *cx, const ms_einsum_options *options,
                              const char *einsum, einsum_report *report)
{
    ms_einsum_problem *problem = &report->problem;
    report->arena = cx->arena;
    MS_TRY(ms_einsum_parse(cx, einsum, &problem->einsum));
    MS_TRY(load_costs(cx, options, report));
    MS_TRY(read_mesh(cx, options, report));
    MS_TRY(read_sizes(cx, options->sizes, report));
    ms_einsum_set_tensors(cx->arena, problem, report->size,
                          ms_dtype_bytes(report->dtype));
    problem->mesh = &report->mesh;
    return read_inputs(cx, options, report);
}

static ms_status solve(ms_ctx *cx, const ms_einsum_options *options,
                       einsum_report *report)
{
    ms_einsum_problem *problem = &report->problem;
    MS_TRY(read_problem(cx, options, options->einsum, report));
    ms_collective_prices prices;
    MS_TRY(ms_collective_prices_make(cx, &report->mesh, report->cluster, report->profile,
                                     &prices));
    problem->prices = &prices;
    if (!ms_einsum_choose(cx->arena, problem, &report->strategy)) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "no sequence of collectives gives --out \"%s\"", options->out);
        return ms_hint(cx, "leave out --out to see the placement of the result");
    }
    if (options->strict)
        MS_TRY(refuse_illegal(cx, report));
    ms_einsum_derive_backward(cx->arena, problem, &report->strategy.chosen,
                              &report->backward);
    problem->prices = NULL; /* points to a local variable of this function */
    list_events(report);
    sum_events(report);
    count_compute(report);
    return MS_OK;
}

ms_status ms_explain_einsum(ms_ctx *cx, ms_args *args, const ms_einsum_options *options)
{
    einsum_report *report = MS_NEW(cx->arena, einsum_report);
    if (options->redistribute != NULL)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "--einsum and --redistribute exclude each other");
    MS_TRY(solve(cx, options, report));
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (args->common.json)
        ms_einsum_write_json(&out.json, report);
    else
        ms_einsum_print(out.file, report);
    return ms_output_close(cx, &out, MS_OK);
}

/* ---- redistribution of one tensor ---- */

static ms_status check_redistribution(ms_ctx *cx, const ms_einsum_options *options)
{
    const char *dims = options->redistribute;
    ms_status status = MS_OK;
    if (strspn(dims, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") !=
        strlen(dims))
        status = ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                         "--redistribute \"%s\" is not the letters of one tensor", dims);
    else if (options->in.num_texts != 1 || options->out == NULL)
        status = ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                         "--redistribute \"%s\" needs one --in and --out", dims);
    else if (options->strict)
        status = ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                         "--strict is for --einsum: a redistribution is always legal");
    if (status != MS_OK)
        ms_hint(cx, "for example --redistribute bsh --mesh dp=2,tp=4 --in "
                    "\"S(b)@dp P@tp\" --out \"S(b)@dp S(s)@tp\"");
    return status;
}

ms_status ms_explain_redistribution(ms_ctx *cx, ms_args *args,
                                    const ms_einsum_options *options)
{
    einsum_report *report = MS_NEW(cx->arena, einsum_report);
    ms_einsum_problem *problem = &report->problem;
    MS_TRY(check_redistribution(cx, options));
    MS_TRY(read_problem(cx, options,
                        ms_arena_printf(cx->arena, "%s->%s", options->redistribute,
                                        options->redistribute),
                        report));
    problem->output.name = "tensor";
    ms_collective_prices prices;
    MS_TRY(ms_collective_prices_make(cx, &report->mesh, report->cluster, report->profile,
                                     &prices));
    ms_redistribute_task task = {.mesh = &report->mesh,
                                 .tensor = &problem->output,
                                 .from = problem->given[0],
                                 .to = report->wanted,
                                 .prices = &prices};
    ms_einsum_move move = {.from = task.from, .to = task.to};
    const char *why;
    if (!ms_redistribute(cx->arena, &task, &move.plan, &why))
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--redistribute \"%s\": %s",
                       options->redistribute, why);
    report->events = MS_NEW_ARRAY(cx->arena, move.plan.num_steps, einsum_event);
    add_events(report, false, problem->output.name, &move);
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (args->common.json)
        ms_redistribution_report_write_json(&out.json, report, &move);
    else
        ms_redistribution_report_print(out.file, report, &move);
    return ms_output_close(cx, &out, MS_OK);
}
