/* meshsim schedule: actions, times, bubbles and micro-batches alive of a pipeline
 * schedule. */
#include "cli/options/commands.h"
#include "cli/options/output.h"
#include "cli/report/schedule_report.h"
#include "costmodel/schedule/schedule_csv.h"
#include "sim/request/plan_flags.h"

#include <string.h>

#define DEFAULT_WIDTH 120
#define MAX_TIME      1e12

typedef enum format {
    FORMAT_TEXT,
    FORMAT_TORCH_CSV
} format;

static const char *const format_names[] = {"text", "torch-csv", NULL};

typedef struct schedule_options {
    ms_opt_integer pp, microbatches, virtual_stages, group, width;
    ms_opt_quantity memory_limit, forward, backward_input, backward_weight, p2p;
    ms_opt_choice format;
    bool early_release;
} schedule_options;

#define TIME(member, option, text)                                                       \
    MS_OPT_NUMBER(schedule_options, member, option, "T", MAX_TIME, text)

static const ms_option schedule_table[] = {
    MS_OPT_INTEGER(schedule_options, pp, "--pp", "N", 1, 16383, "pipeline ranks"),
    MS_OPT_INTEGER(
        schedule_options, microbatches, "--microbatches", "N", 1, 4194304,
        "micro-batches of a step; for DualPipe those of both directions together"),
    MS_OPT_INTEGER(
        schedule_options, virtual_stages, "--virtual-stages", "N", 1, 16383,
        "virtual stages per rank (default 2 if the schedule allows several, else 1)"),
    MS_OPT_INTEGER(schedule_options, group, "--group", "N", 1, 4194304,
                   "micro-batches that pass a model chunk together (default as PyTorch: "
                   "equal rounds of at least --pp)"),
    MS_OPT_ROW(
        MS_OPTION_QUANTITY, schedule_options, memory_limit, "--memory-limit",
        .value = "X", .unit = MS_UNIT_COUNT, .high = 4194304, .above_low = true,
        .help =
            "zb-auto: micro-batches in flight, as a multiple of 1f1b's peak on rank 0 "
            "(default 2)"),
    TIME(forward, "--forward", "time of the forward of a stage, in any unit (default 1)"),
    TIME(backward_input, "--backward-input",
         "time of the gradients of inputs (default 1)"),
    TIME(backward_weight, "--backward-weight",
         "time of the gradients of weights (default 1)"),
    TIME(p2p, "--p2p", "time of a send to another rank (default 0)"),
    MS_OPT_FLAG(
        schedule_options, early_release, "--early-release",
        "the forward of an overlapped pair sends its output before the pair ends"),
    MS_OPT_CHOICE(schedule_options, format, "--format", format_names,
                  "text (default), or torch-csv: the actions alone, one row per rank"),
    MS_OPT_INTEGER(schedule_options, width, "--width", "COLUMNS", 40, 10000,
                   "width of the text (default 120)"),
    {0},
};

typedef struct request {
    ms_ctx *cx;
    const ms_args *args;
    const schedule_options *options;
    const char *word; /* schedule on the command line: its name, or a CSV file */
    ms_schedule_shape shape;
    ms_schedule_times times;
} request;

/* ---- which schedule ---- */

static bool is_file(const char *word)
{
    return strchr(word, '/') != NULL || strcmp(word, "-") == 0 ||
           ms_schedule_is_file(word);
}

static ms_status refuse_unknown(ms_ctx *cx, const char *word)
{
    ms_status status =
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "unknown schedule \"%s\"", word);
    const char *nearest = ms_nearest(word, ms_schedule_names, MS_CUSTOM);
    if (nearest != NULL)
        ms_hint(cx, "did you mean %s?", nearest);
    else
        ms_hint(cx, "one of %s, or a CSV file",
                ms_choice_text(cx->arena, ms_schedule_names, ", "));
    return status;
}

static ms_status read_named(request *r)
{
    const schedule_options *o = r->options;
    ms_status status = MS_OK;
    if (!o->pp.given) {
        status = ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                         "the number of pipeline ranks is not given");
        ms_hint(r->cx, "--pp 4");
    }
    if (!o->microbatches.given) {
        status = ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                         "the number of micro-batches is not given");
        ms_hint(r->cx, "--microbatches 8");
    }
    if (status != MS_OK)
        return status;
    ms_schedule_shape *shape = &r->shape;
    shape->num_ranks = (int)o->pp.value;
    shape->num_microbatches = (int)o->microbatches.value;
    shape->virtual_stages = ms_schedule_default_virtual(shape->kind, shape->num_ranks);
    if (o->virtual_stages.given)
        shape->virtual_stages = (int)o->virtual_stages.value;
    else
        ms_note_default(r->cx, "--virtual-stages %d", shape->virtual_stages);
    shape->group = (int)o->group.value;
    shape->memory_limit = o->memory_limit.value;
    return MS_OK;
}

static ms_status check_agrees(const request *r, const char *option, ms_opt_integer given,
                              int in_file)
{
    if (!given.given || given.value == in_file)
        return MS_OK;
    ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "%s is %ld, but %s has %d", option, given.value,
            r->word, in_file);
    return ms_hint(r->cx, "leave out %s: the file determines it", option);
}

static ms_status read_file(request *r)
{
    const schedule_options *o = r->options;
    if (o->group.given || o->memory_limit.given) {
        return ms_fail(
            r->cx, MS_EINPUT, MS_NOWHERE,
            "%s controls how a schedule is made, but %s is a finished schedule",
            o->group.given ? "--group" : "--memory-limit", r->word);
    }
    MS_TRY(ms_schedule_csv_load(r->cx, r->word, &r->shape));
    MS_TRY(check_agrees(r, "--pp", o->pp, r->shape.num_ranks));
    MS_TRY(check_agrees(r, "--microbatches", o->microbatches, r->shape.num_microbatches));
    return check_agrees(r, "--virtual-stages", o->virtual_stages,
                        r->shape.virtual_stages);
}

static ms_status read_times(request *r)
{
    const schedule_options *o = r->options;
    r->times = (ms_schedule_times){
        .forward = o->forward.given ? o->forward.value : 1,
        .backward_input = o->backward_input.given ? o->backward_input.value : 1,
        .backward_weight = o->backward_weight.given ? o->backward_weight.value : 1,
        .send = o->p2p.value};
    if (r->times.forward + r->times.backward_input + r->times.backward_weight <= 0) {
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "forward and backward take no time");
        return ms_hint(r->cx,
                       "one of --forward, --backward-input and --backward-weight must "
                       "be above 0");
    }
    return MS_OK;
}

static ms_status read_shape(request *r)
{
    bool named = ms_schedule_parse(r->word, &r->shape.kind);
    if (!named && !is_file(r->word))
        return refuse_unknown(r->cx, r->word);
    MS_TRY(read_times(r));
    MS_TRY(named ? read_named(r) : read_file(r));
    r->shape.times = r->times;
    r->shape.early_release = r->options->early_release;
    return MS_OK;
}

/* ---- result ---- */

/* Opens the schedule. One that deadlocks because of --group (micro-batches per group) is
 * opened too: this fails with a report of the actions that wait. */
static ms_status open_schedule(const request *r, const ms_schedule **out)
{
    ms_ctx *cx = r->cx;
    const char *why = NULL;
    bool allowed = ms_schedule_allows(&r->shape, &why);
    if (allowed && !ms_schedule_is_listed(&r->shape))
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s: %s", r->word, ms_too_many_actions);
    bool from_file = r->shape.kind == MS_CUSTOM;
    if (!allowed && !ms_schedule_group_deadlocks(&r->shape))
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s: %s", r->word, why);
    ms_loc loc = {.file = from_file ? r->word : NULL};
    ms_status status = ms_schedule_open(cx, cx->arena, &r->shape, loc, out);
    if (status != MS_OK && why != NULL)
        ms_hint(cx, "%s", why);
    return status;
}

static void note_group(const request *r)
{
    const ms_schedule_shape *shape = &r->shape;
    if (!ms_schedule_traits_of(shape->kind).groups || shape->virtual_stages == 1)
        return;
    int group = ms_schedule_group(shape), ragged = shape->num_microbatches % group;
    if (!r->options->group.given)
        ms_note_default(r->cx, "--group %d", group);
    if (group < shape->num_ranks) {
        ms_note(r->cx,
                "groups of %d micro-batches are smaller than the %d ranks: Megatron-LM "
                "refuses them",
                group, shape->num_ranks);
    } else if (ragged > 0) {
        ms_note(r->cx, "the last group has %d micro-batches instead of %d: %s", ragged,
                group,
                ragged < shape->num_ranks ? "Megatron-LM refuses it, as does PyTorch"
                                          : "PyTorch refuses it");
    }
}

static void note_copies(const request *r)
{
    int p = r->shape.num_ranks;
    if (ms_schedule_placement(r->shape.kind) == MS_PLACE_BOTH_WAYS) {
        ms_note(r->cx,
                "stages %d to %d are second copies of stages 0 to %d, which a CSV file "
                "cannot express",
                p, 2 * p - 1, p - 1);
    }
}

static ms_status write_result(const request *r, const ms_schedule *schedule)
{
    ms_ctx *cx = r->cx;
    const ms_args *args = r->args;
    bool csv = r->options->format.value == FORMAT_TORCH_CSV && !args->common.json;
    ms_schedule_timeline timeline = ms_schedule_run(cx->arena, schedule, &r->times);
    bool named = r->shape.kind != MS_CUSTOM;
    ms_schedule_report report = {
        .name = named ? ms_schedule_names[r->shape.kind] : r->word,
        .schedule = schedule,
        .times = &r->times,
        .timeline = &timeline,
        .width = r->options->width.given ? (int)r->options->width.value : DEFAULT_WIDTH,
        .colours = ms_output_takes_colours(args->common.output)};
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (csv) {
        note_copies(r);
        ms_schedule_csv_write(out.file, schedule);
    } else if (args->common.json)
        ms_schedule_report_write_json(&out.json, cx->arena, &report);
    else
        ms_schedule_report_print(out.file, cx->arena, &report);
    return ms_output_close(cx, &out, MS_OK);
}

ms_status ms_cmd_schedule(ms_ctx *cx, ms_args *args)
{
    schedule_options options = {0};
    const ms_option_set set = {"schedule", schedule_table, &options};
    MS_TRY(ms_args_read(cx, args, &set, 1));
    if (args->done)
        return MS_OK;
    if (args->words.num_words == 0) {
        MS_TRY(ms_args_check_listing(cx, args, &set));
        return ms_args_write_names(cx, args, "schedules", ms_schedule_names, MS_CUSTOM);
    }
    request r = {
        .cx = cx, .args = args, .options = &options, .word = args->words.words[0]};
    MS_TRY(read_shape(&r));
    if (r.shape.kind == MS_CUSTOM)
        MS_TRY(ms_output_check_differ(cx, r.word, args->common.output));
    if (args->common.json && options.format.given)
        ms_note(cx, "--format has no effect on JSON");
    const ms_schedule *schedule = NULL;
    MS_TRY(open_schedule(&r, &schedule));
    note_group(&r);
    return write_result(&r, schedule);
}
