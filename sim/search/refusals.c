#include "sim/search/refusals.h"

static const char *counts_text(ms_arena *arena, const ms_workload *workload,
                               const ms_counts *counts)
{
    const char *text = "";
    for (int i = MS_LEGAL + 1; i < MS_NUM_REFUSALS; i++) {
        const char *rules = i == MS_REFUSE_FRAMEWORK
                                ? ms_broken_counts_text(arena, counts, &workload->rules)
                                : "";
        if (counts->refused[i] > 0)
            text =
                ms_arena_printf(arena, "%s%s%s %ld%s", text, text[0] == '\0' ? "" : ", ",
                                ms_refusal_names[i], counts->refused[i], rules);
    }
    return text[0] == '\0' ? "no mesh obeys the limits" : text;
}

static int most_of(const long *counts, int num)
{
    int most = 0;
    for (int i = 1; i < num; i++)
        if (counts[i] > counts[most])
            most = i;
    return most;
}

/* The words of the framework's rule, or of the check of a plan, that refuses most; NULL: it
 * refuses no mesh as a whole. */
static const char *reason_of(ms_arena *arena, const ms_workload *workload,
                             const ms_space *space, const ms_counts *counts, int refusal)
{
    ms_plan plan;
    ms_ctx cx = {.arena = arena, .verbosity = -1};
    if (refusal == MS_REFUSE_FRAMEWORK) {
        const ms_rule *rule =
            &workload->rules.rules[most_of(counts->broken, workload->rules.num)];
        return ms_arena_printf(arena, "%s: %s", rule->name, rule->says);
    }
    if (!ms_space_refused(space, workload->model, arena, (ms_refusal)refusal, &plan) ||
        ms_plan_check(&cx, &plan, workload->model, MS_NOWHERE) == MS_OK)
        return NULL;
    return ms_arena_printf(arena, "%s: %s", ms_refusal_names[refusal], cx.first->message);
}

const char *ms_refusals_text(ms_arena *arena, const ms_workload *workload,
                             const ms_space *space, const ms_counts *counts)
{
    int most = most_of(counts->refused, MS_NUM_REFUSALS);
    const char *text = counts_text(arena, workload, counts);
    const char *reason = counts->refused[most] > 0
                             ? reason_of(arena, workload, space, counts, most)
                             : NULL;
    return reason == NULL ? text : ms_arena_printf(arena, "%s; %s", text, reason);
}
