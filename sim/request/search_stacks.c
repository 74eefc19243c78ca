#include "sim/request/search_stacks.h"

#include "base/options.h"
#include "base/paths.h"
#include "sim/search/ties.h"

#include <math.h>
#include <string.h>

#define ALL "all"

bool ms_stacks_are_several(const char *text)
{
    return text != NULL && (strchr(text, ',') != NULL || strcmp(text, ALL) == 0);
}

ms_status ms_stacks_check_request(const ms_search_request *r, const ms_sizes *sizes)
{
    const ms_search_flags *search = r->search;
    const struct {
        bool given;
        const char *option;
    } of_one[] = {{search->why != NULL, "--why"},
                  {search->top.given, "--top"},
                  {search->variants, "--variants"},
                  {search->objective.given, "--objective"},
                  {search->allow != NULL, "--allow"},
                  {sizes->num > 1, "--gpus A,B"},
                  {r->campaign->tokens.given, "--tokens"},
                  {r->campaign->chinchilla, "--chinchilla"},
                  {r->campaign->flop.given, "--flop"}};
    for (size_t i = 0; i < sizeof of_one / sizeof *of_one; i++) {
        if (!of_one[i].given)
            continue;
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                "%s is for one stack: of several the best plan of each is listed",
                of_one[i].option);
        return ms_hint(r->cx, "--stack megatron %s ...", of_one[i].option);
    }
    return MS_OK;
}

typedef struct name_list {
    const char **names;
    int num, capacity;
} name_list;

static void add(ms_ctx *cx, name_list *list, const char *name)
{
    for (int i = 0; i < list->num; i++)
        if (strcmp(list->names[i], name) == 0)
            return;
    MS_MAKE_ROOM(cx->arena, list->names, list->num, list->capacity, 8);
    list->names[list->num++] = name;
}

static ms_status add_frameworks(ms_ctx *cx, name_list *list)
{
    const char *const *names;
    int num;
    MS_TRY(ms_config_names(cx, "rules", &names, &num));
    for (int i = 0; i < num; i++)
        if (ms_config_file(cx, "stacks", names[i]) != NULL)
            add(cx, list, names[i]);
    return MS_OK;
}

ms_status ms_stacks_list(ms_ctx *cx, const char *text, const char *const **names,
                         int *num_names)
{
    name_list list = {0};
    const char *rest = text, *name;
    while ((name = ms_list_next(cx->arena, &rest)) != NULL) {
        if (name[0] == '\0') {
            ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--stack \"%s\" has an empty name", text);
            return ms_hint(cx, "--stack megatron,torchtitan, or --stack " ALL);
        }
        if (strcmp(name, ALL) == 0)
            MS_TRY(add_frameworks(cx, &list));
        else
            add(cx, &list, name);
    }
    *names = list.names;
    *num_names = list.num;
    return MS_OK;
}

/* Sets outcome and reason of a search that found no plan. */
static void explain(ms_ctx *cx, ms_workload *workload, const ms_search_report *report,
                    ms_stack_best *best)
{
    if (best->outcome == MS_STACK_INTERRUPTED) {
        best->reason = "no plan was found so far";
        return;
    }
    ms_shortfall shortfall;
    ms_shortfall_explain(cx, workload, report->space, report->result, &shortfall);
    best->outcome = isnan(shortfall.needed_bytes) ? MS_STACK_NOT_LEGAL : MS_STACK_NO_FIT;
    best->reason = shortfall.reason;
}

ms_stack_best ms_stacks_best(ms_ctx *cx, ms_workload *workload,
                             const ms_search_report *report, bool is_ceiling)
{
    const ms_search_result *result = report->result;
    ms_stack_best best = {.stack = report->space->base.stack,
                          .search = report,
                          .fastest_s = (double)NAN,
                          .outcome =
                              ms_is_interrupted(cx->interrupted) && !result->optimal
                                  ? MS_STACK_INTERRUPTED
                                  : MS_STACK_FOUND};
    if (result->num_found == 0) {
        explain(cx, workload, report, &best);
        return best;
    }
    int fastest = ms_search_fastest(result), chosen = is_ceiling ? fastest : 0;
    best.fastest_s = report->predictions[fastest].step_s;
    best.plan = &report->plans[chosen];
    best.prediction = &report->predictions[chosen];
    return best;
}

static bool comes_before(const ms_stack_best *a, const ms_stack_best *b)
{
    if (a->plan == NULL || b->plan == NULL)
        return a->plan != NULL && b->plan == NULL;
    return a->fastest_s < b->fastest_s;
}

void ms_stacks_order(ms_stacks_report *report)
{
    ms_stack_best *stacks = report->stacks;
    report->num_found = 0;
    for (int i = 0; i < report->num_stacks; i++) {
        ms_stack_best moved = stacks[i];
        int at = i;
        for (; at > 0 && comes_before(&moved, &stacks[at - 1]); at--)
            stacks[at] = stacks[at - 1];
        stacks[at] = moved;
        report->num_found += moved.plan != NULL;
    }
}

ms_status ms_stacks_judge(ms_ctx *cx, const ms_stacks_report *report)
{
    bool interrupted = report->ceiling.outcome == MS_STACK_INTERRUPTED;
    for (int i = 0; i < report->num_stacks; i++)
        interrupted = interrupted || report->stacks[i].outcome == MS_STACK_INTERRUPTED;
    const char *found = report->num_found > 0
                            ? "these are the best of the plans explored so far"
                            : "no plan was found so far";
    if (interrupted)
        return ms_fail(cx, MS_EINTERRUPTED, MS_NOWHERE, "interrupted: %s", found);
    if (report->num_found > 0)
        return MS_OK;
    const ms_stack_best *first = &report->stacks[0];
    ms_fail(cx, MS_ENOFIT, MS_NOWHERE, "none of %d stacks has a plan; %s: %s",
            report->num_stacks, first->stack, first->reason);
    return ms_hint(cx, "--stack %s alone looks for the nearest change that fits",
                   first->stack);
}
