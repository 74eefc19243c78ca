#include "sim/request/advise_options.h"

#include "base/note.h"

#define DEFAULT_ROWS 10
#define MAX_ROWS     10000

const ms_option ms_advise_option_table[] = {
    MS_OPT_FLAG(ms_advise_options, advise, "--advise",
                "what to change: every single change with its effect on step and memory, "
                "the best pair, and the measurement that could turn the choice"),
    MS_OPT_INTEGER(ms_advise_options, top, "--top", "N", 1, MAX_ROWS,
                   "changes that the table lists (default 10); JSON has all"),
    MS_OPT_NUMBER(ms_advise_options, memory.min_fit, "--min-fit", "P", 1,
                  "a change counts as fitting if its measured peak memory will fit with "
                  "probability P; 0: if its predicted peak fits (default 0.95)"),
    MS_OPT_TEXT(ms_advise_options, memory.headroom, "--headroom", "SHARE%|SIZE",
                "memory of a GPU that a change must leave free: 8%, 6GiB (default none)"),
    {0},
};

static ms_status refuse_alone(ms_ctx *cx, const ms_advise_options *options)
{
    const char *name = ms_options_given_in(ms_advise_option_table, options, "--advise");
    if (name == NULL)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s is about advice, and --advise is not given",
            name);
    return ms_hint(cx, "add --advise, or leave out %s", name);
}

ms_status ms_advise_options_apply(ms_ctx *cx, const ms_advise_options *options,
                                  ms_workload *workload, const ms_plan *plan,
                                  const ms_advice **out)
{
    *out = NULL;
    if (!options->advise)
        return refuse_alone(cx, options);
    ms_memory_rule rule;
    MS_TRY(ms_memory_options_rule(cx, &options->memory, &rule));
    MS_TRY(ms_memory_options_check(cx, &rule, workload->cluster));
    if (!options->top.given)
        ms_note_default(cx, "--top %d", DEFAULT_ROWS);
    ms_advice *advice = MS_NEW(cx->arena, ms_advice);
    MS_TRY(ms_advise(cx, workload, plan, &rule, advice));
    *out = advice;
    return MS_OK;
}

int ms_advise_options_rows(const ms_advise_options *options)
{
    return options->top.given ? (int)options->top.value : DEFAULT_ROWS;
}
