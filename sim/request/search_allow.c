#include "sim/request/search_allow.h"

#include "base/units.h"
#include "sim/search/gains.h"
#include "sim/step/prediction_text.h"

#include <math.h>
#include <string.h>

/* Names of --allow in the order of the table, and for each the allowance that is taken. */
typedef struct combination {
    int num;
    bool is_possible[MS_NUM_ALLOWANCES]; /* whether some plan with it was found */
    int first[MS_NUM_ALLOWANCES];        /* the first allowance of each name */
    int taken[MS_NUM_ALLOWANCES]; /* 0: none; else 1 + the number after the first */
} combination;

static const char *name_of(int allowance)
{
    return ms_allowances[allowance].name;
}

/* Lists each name once, with the first of its allowances; NULL ends the names. */
static void list_names(const char *names[MS_NUM_ALLOWANCES + 1],
                       int first[MS_NUM_ALLOWANCES])
{
    int num = 0;
    for (int i = 0; i < MS_NUM_ALLOWANCES; i++) {
        if (num > 0 && strcmp(names[num - 1], name_of(i)) == 0)
            continue;
        first[num] = i;
        names[num++] = name_of(i);
    }
    names[num] = NULL;
}

static ms_status fail_name(ms_ctx *cx, const char *text, bool repeated,
                           const char *const *names)
{
    const char *known = "";
    for (int i = 0; names[i] != NULL; i++)
        known = ms_arena_printf(cx->arena, "%s%s%s", known, i == 0 ? "" : ", ", names[i]);
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--allow: \"%s\" is %s", text,
            repeated ? "listed twice" : "not known");
    return ms_hint(cx, "known are %s", known);
}

static ms_status read_list(ms_ctx *cx, const char *list, combination *out)
{
    const char *names[MS_NUM_ALLOWANCES + 1], *text;
    int first[MS_NUM_ALLOWANCES];
    list_names(names, first);
    *out = (combination){0};
    while ((text = ms_list_next(cx->arena, &list)) != NULL) {
        int at = ms_choice_find(text, names);
        bool repeated = false;
        for (int i = 0; i < out->num && at >= 0; i++)
            repeated = repeated || out->first[i] == first[at];
        if (at < 0 || repeated)
            return fail_name(cx, text, repeated, names);
        out->first[out->num++] = first[at];
    }
    return out->num > 0 ? MS_OK
                        : ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--allow names nothing");
}

/* Goes to the next combination; false after the last. */
static bool next(combination *c)
{
    for (int i = 0; i < c->num; i++) {
        int at = c->first[i] + c->taken[i]++;
        if (at < MS_NUM_ALLOWANCES && strcmp(name_of(at), name_of(c->first[i])) == 0)
            return true;
        c->taken[i] = 0;
    }
    return false;
}

/* The flag that name i of the combination takes; NULL: none. */
static char *flag_of(ms_arena *arena, const combination *c, int i)
{
    int at = c->first[i] + c->taken[i] - 1;
    return c->taken[i] == 0 ? NULL : ms_allowance_flag(arena, &ms_allowances[at]);
}

/* Refuses names that allow a choice which a flag has made. */
static ms_status refuse_given(ms_ctx *cx, const combination *c,
                              const ms_plan_options *plan)
{
    for (int i = 0; i < c->num; i++)
        for (int at = c->first[i]; at < MS_NUM_ALLOWANCES; at++) {
            ms_choice choice = ms_allowances[at].choice;
            const char *flag = ms_plan_fields[choice].flag;
            if (strcmp(name_of(at), name_of(c->first[i])) != 0 ||
                !ms_plan_is_given(plan, choice))
                continue;
            ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--allow %s is about %s, which is given",
                    name_of(at), flag);
            return ms_hint(cx, "leave out one of them");
        }
    return MS_OK;
}

static ms_status set_flags(ms_ctx *cx, const combination *c, ms_plan_options *plan)
{
    const ms_option_set set = {"plan", ms_plan_option_table(), plan};
    for (int i = 0; i < c->num; i++) {
        char *flag = flag_of(cx->arena, c, i);
        ms_words words;
        if (flag != NULL)
            MS_TRY(ms_options_parse(cx, &set, 1, 1, &flag, &words));
    }
    return MS_OK;
}

static ms_status search_in(ms_search_request *r, const ms_search_options *options,
                           ms_workload *workload, const ms_plan *base, double *step_s)
{
    ms_space *space = MS_NEW(r->cx->arena, ms_space);
    *space = ms_space_all(base, workload->stack);
    ms_search_result result;
    r->space = space;
    MS_TRY(ms_plan_check_cluster(r->cx, base, workload->cluster));
    MS_TRY(ms_search_request_space(r));
    MS_TRY(ms_search_request_memory(r, workload));
    ms_status status = ms_search(r->cx, workload, space, options, &result);
    if (status == MS_OK && result.num_found > 0)
        *step_s = result.found[0].step_s;
    return status == MS_ENOFIT ? MS_OK : status;
}

/* The step time of the fastest plan with these options; infinite if none fits, or if the
 * device or the framework lacks a choice. */
static ms_status step_of(const ms_search_request *r, const ms_search_options *options,
                         const ms_plan_options *plan, double *step_s)
{
    ms_ctx cx = ms_ctx_quiet(r->cx, r->cx->arena);
    ms_search_request one = *r;
    ms_plan base;
    ms_workload *workload;
    one.cx = &cx;
    one.plan = plan;
    one.limits = "";
    *step_s = INFINITY;
    ms_status status = ms_plan_base_from_options(&cx, plan, &base);
    if (status == MS_OK)
        status = ms_workload_open(&cx, &base, &workload);
    if (status == MS_OK) {
        status = search_in(&one, options, workload, &base, step_s);
        ms_workload_close(workload);
    }
    if (ms_is_interrupted(cx.interrupted))
        return ms_fail(r->cx, MS_EINTERRUPTED, MS_NOWHERE,
                       "interrupted while allowed choices were compared");
    return status == MS_EINPUT ? MS_OK : status;
}

/* Text of all names, or of those that no plan can have: "fp8, offload" */
static const char *names_of(ms_arena *arena, const combination *c, bool impossible)
{
    const char *text = "";
    for (int i = 0; i < c->num; i++)
        if (!impossible || !c->is_possible[i])
            text = ms_arena_printf(arena, "%s%s%s", text, text[0] == '\0' ? "" : ", ",
                                   name_of(c->first[i]));
    return text;
}

static bool takes_none(const combination *c)
{
    for (int i = 0; i < c->num; i++)
        if (c->taken[i] > 0)
            return false;
    return true;
}

/* "--precision=fp8 --offload-optimizer=states", or "none of them" */
static const char *taken_text(ms_arena *arena, const combination *c)
{
    const char *text = "";
    for (int i = 0; i < c->num; i++)
        if (c->taken[i] > 0)
            text = ms_arena_printf(arena, "%s%s%s", text, text[0] == '\0' ? "" : " ",
                                   flag_of(arena, c, i));
    return takes_none(c) ? "none of them" : text;
}

ms_status ms_search_allow(ms_search_request *r, const char *list, ms_plan_options *plan)
{
    ms_search_options options = {.num_best = 1,
                                 .num_threads = ms_ctx_threads(r->cx),
                                 .interrupted = r->cx->interrupted};
    combination at, best;
    double step_s, without_s = INFINITY, best_s = INFINITY;
    MS_TRY(read_list(r->cx, list, &at));
    MS_TRY(refuse_given(r->cx, &at, plan));
    best = at;
    do {
        ms_plan_options changed = *plan;
        MS_TRY(set_flags(r->cx, &at, &changed));
        MS_TRY(step_of(r, &options, &changed, &step_s));
        for (int i = 0; i < at.num; i++)
            at.is_possible[i] |= at.taken[i] > 0 && isfinite(step_s);
        if (takes_none(&at))
            without_s = step_s;
        if (step_s < best_s * (1.0 - MS_LEAST_GAIN_FRAC)) {
            best_s = step_s;
            best = at;
        }
    } while (next(&at));
    const char *without =
        isfinite(without_s)
            ? ms_arena_printf(r->cx->arena, "%.*f s", ms_decimals(without_s), without_s)
            : "no plan";
    const char *impossible = names_of(r->cx->arena, &at, true);
    r->limits = ms_arena_printf(r->cx->arena, "allowed %s, taken %s (without: %s%s%s%s)",
                                names_of(r->cx->arena, &at, false),
                                taken_text(r->cx->arena, &best), without,
                                impossible[0] == '\0' ? "" : "; with ", impossible,
                                impossible[0] == '\0' ? "" : ": no plan");
    return set_flags(r->cx, &best, plan);
}
