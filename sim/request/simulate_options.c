#include "sim/request/simulate_options.h"

#include "base/note.h"
#include "sim/simulate/simulated_timeline.h"

#include <math.h>
#include <string.h>

const char *const ms_trace_format_names[] = {"perfetto", "hta", "chakra", NULL};

static const char *const gantt_names[] = {
    [MS_SIMULATE_GANTT_COMPUTE] = "compute",
    [MS_SIMULATE_GANTT_STREAMS] = "streams",
    [MS_SIMULATE_GANTT_NONE] = "none",
    NULL,
};

#define ROW(row, member, ...) row(ms_simulate_flags, member, __VA_ARGS__)

const ms_option ms_simulate_option_table[] = {
    ROW(MS_OPT_CHOICE, engine, "--engine", ms_engine_names,
        "longest path, or events with shared links, SMs and HBM (default event)"),
    ROW(MS_OPT_CHOICE, detail, "--detail", ms_detail_names,
        "what a task is: an action of the schedule, or a node of a program (default: "
        "node with engine event, action with replay)"),
    ROW(MS_OPT_TEXT, trace, "--trace", "FILE",
        "write a trace for ui.perfetto.dev or chrome://tracing"),
    ROW(MS_OPT_CHOICE, trace_format, "--trace-format", ms_trace_format_names,
        "trace for viewers (default); a folder for HolisticTraceAnalysis; Chakra files "
        "FILE.RANK.et for ASTRA-sim"),
    ROW(MS_OPT_TEXT, ranks, "--ranks", "LIST",
        "ranks to show: 0,5, or all, or stages: one per pipeline rank (default)"),
    ROW(MS_OPT_LIST, slow, "--slow", "PART:FACTOR",
        "slow a rank or link by a factor: rank=5:1.3, \"link=nic 12:2\"; repeatable"),
    ROW(MS_OPT_NUMBER, jitter_frac, "--jitter", "FRACTION", 10.0,
        "random spread of durations: standard deviation of their logarithm, as 0.05"),
    ROW(MS_OPT_INTEGER, seed, "--seed", "N", 0, MS_OPT_MAX_SEED,
        "seed of --jitter (default 0)"),
    ROW(MS_OPT_FLAG, rendezvous, "--rendezvous",
        "sends wait until their receiver is ready"),
    ROW(MS_OPT_CHOICE, optimizer_sync, "--optimizer-sync", ms_optimizer_sync_names,
        "whether the update waits for the gradient norm (default: as the stack)"),
    ROW(MS_OPT_FLAG, first_step, "--first-step",
        "simulate the first step: whole weights exist, and it allocates the moments"),
    ROW(MS_OPT_FLAG, unfolded, "--unfolded",
        "simulate every rank, also ranks that behave alike"),
    ROW(MS_OPT_FLAG, unshared, "--unshared",
        "event engine without shared links, SMs and HBM, as a replay of the same tasks"),
    ROW(MS_OPT_CHOICE, gantt, "--gantt", gantt_names,
        "diagram: one line per rank, or one per stream (default compute)"),
    ROW(MS_OPT_FLAG, no_gantt, "--no-gantt", "no diagram: the same as --gantt none"),
    ROW(MS_OPT_INTEGER, width, "--width", "COLUMNS", 40, 10000,
        "width of the diagram (default: that of the terminal, or 100)"),
    ROW(MS_OPT_QUANTITY, from_s, "--from", "TIME", MS_UNIT_SECONDS,
        "start of the diagram: \"20 ms\""),
    ROW(MS_OPT_QUANTITY, to_s, "--to", "TIME", MS_UNIT_SECONDS, "end of the diagram"),
    {0},
};

static ms_engine engine_of(const ms_simulate_flags *flags)
{
    return flags->engine.given ? (ms_engine)flags->engine.value : MS_ENGINE_EVENT;
}

/* Default detail: actions; with engine event nodes, as only nodes load links, SMs,
 * HBM. */
static ms_detail detail_of(const ms_simulate_flags *flags)
{
    if (flags->detail.given)
        return (ms_detail)flags->detail.value;
    return engine_of(flags) == MS_ENGINE_EVENT ? MS_DETAIL_NODE : MS_DETAIL_ACTION;
}

bool ms_simulate_has_nodes(const ms_simulate_flags *flags)
{
    return detail_of(flags) == MS_DETAIL_NODE;
}

ms_status ms_simulate_flags_check(ms_ctx *cx, const ms_simulate_flags *flags)
{
    if (flags->to_s.given && flags->to_s.value <= flags->from_s.value)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "--to is %g ms, must be after --from, which is %g ms",
                       1e3 * flags->to_s.value, 1e3 * flags->from_s.value);
    if (flags->no_gantt && flags->gantt.given &&
        flags->gantt.value != MS_SIMULATE_GANTT_NONE) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--gantt %s and --no-gantt exclude each other",
                gantt_names[flags->gantt.value]);
        return ms_hint(cx, "drop one of them");
    }
    if (flags->unshared && engine_of(flags) == MS_ENGINE_REPLAY)
        ms_note(cx, "--unshared has no effect: a replay shares no links, SMs and HBM");
    if (flags->seed.given && flags->jitter_frac.value == 0.0)
        ms_note(cx, "--seed has no effect without --jitter");
    if (!flags->engine.given)
        ms_note_default(cx, "--engine event");
    if (!flags->detail.given)
        ms_note_default(cx, "--detail %s", ms_detail_names[detail_of(flags)]);
    return MS_OK;
}

const ms_stack *ms_simulate_flags_stack(ms_arena *arena, const ms_simulate_flags *flags,
                                        const ms_stack *stack)
{
    if (!flags->optimizer_sync.given)
        return stack;
    ms_stack *own = MS_NEW(arena, ms_stack);
    *own = *stack;
    own->optimizer_sync = (ms_optimizer_sync)flags->optimizer_sync.value;
    return own;
}

ms_status ms_simulate_flags_options(ms_ctx *cx, const ms_simulate_flags *flags,
                                    ms_simulate_options *out)
{
    *out = (ms_simulate_options){.engine = engine_of(flags),
                                 .detail = detail_of(flags),
                                 .unfolded = flags->unfolded,
                                 .unshared = flags->unshared,
                                 .rendezvous = flags->rendezvous,
                                 .first_step = flags->first_step,
                                 .jitter_frac = flags->jitter_frac.value,
                                 .seed = (unsigned long)flags->seed.value};
    if (flags->slow.num_texts > MS_MAX_SLOWDOWNS)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "--slow is given %d times, must be at most %d times",
                       flags->slow.num_texts, MS_MAX_SLOWDOWNS);
    ms_status status = MS_OK;
    for (int i = 0; i < flags->slow.num_texts; i++) {
        ms_status read = ms_slowdown_read(cx, flags->slow.texts[i], &out->slow[i]);
        status = read != MS_OK ? read : status;
    }
    out->num_slow = flags->slow.num_texts;
    return status;
}

void ms_simulate_note_links(const ms_ctx *cx, const ms_simulation *simulation)
{
    const ms_simulate_options *options = &simulation->options;
    if (simulation->graph->num_links > 0)
        return;
    for (int i = 0; i < options->num_slow; i++) {
        if (options->slow[i].is_link) {
            ms_note(cx,
                    "--slow link=%s has no effect: the tasks of engine %s and detail %s "
                    "carry no load on links",
                    options->slow[i].link, ms_engine_names[options->engine],
                    ms_detail_names[options->detail]);
        }
    }
}

/* ---- ranks ---- */

static ms_status refuse_rank(ms_ctx *cx, const char *text, long num_ranks)
{
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--ranks has \"%s\", the plan has ranks 0 to %ld",
            text, num_ranks - 1);
    return ms_hint(cx, "--ranks 0,%ld, --ranks stages or --ranks all", num_ranks - 1);
}

/* Adds the actor (simulated rank) that stands for a rank, unless it is listed already. */
static void add_rank(ms_ctx *cx, const ms_simulation *s, long rank,
                     ms_simulate_report *report, int *actors)
{
    int actor = s->fold.class_of[rank];
    if (s->actors[actor].rank != rank)
        ms_note(cx, "rank %ld behaves like rank %ld, which is shown", rank,
                s->actors[actor].rank);
    for (int i = 0; i < report->num_actors; i++)
        if (actors[i] == actor)
            return;
    actors[report->num_actors++] = actor;
}

static ms_status add_ranks(ms_ctx *cx, const char *list, const ms_simulation *s,
                           ms_simulate_report *report, int *actors)
{
    const char *text;
    double value;
    while ((text = ms_list_next(cx->arena, &list)) != NULL) {
        if (!ms_parse_quantity(text, MS_UNIT_COUNT, &value) || value != floor(value) ||
            value >= (double)s->fold.num_ranks)
            return refuse_rank(cx, text, s->fold.num_ranks);
        add_rank(cx, s, (long)value, report, actors);
    }
    return MS_OK;
}

/* Lists all actors in the order of pipeline ranks, then of ranks. */
static int add_all(const ms_simulation *s, int num_stages, int *actors)
{
    int num = 0;
    for (int stage = 0; stage < num_stages; stage++)
        for (int i = 0; i < s->num_actors; i++)
            if (s->actors[i].pipeline_rank == stage)
                actors[num++] = i;
    return num;
}

ms_status ms_simulate_flags_actors(ms_ctx *cx, const ms_simulate_flags *flags,
                                   const ms_simulation *s, int num_stages,
                                   ms_simulate_report *report)
{
    int *actors = MS_NEW_ARRAY(cx->arena, s->num_actors, int);
    report->actors = actors;
    report->num_actors = 0;
    if (flags->ranks == NULL || strcmp(flags->ranks, "stages") == 0)
        report->num_actors = ms_stage_actors(s, num_stages, actors);
    else if (strcmp(flags->ranks, "all") == 0)
        report->num_actors = add_all(s, num_stages, actors);
    else
        return add_ranks(cx, flags->ranks, s, report, actors);
    return MS_OK;
}
