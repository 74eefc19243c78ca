#include "sim/request/search_request.h"

#include "base/note.h"
#include "sim/request/plan_order.h"
#include "sim/request/search_why.h"
#include "sim/search/ties.h"
#include "sim/step/prediction_text.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

/* Applies one --limit (ms_space_limit) and adds its text to the report. */
static ms_status limit(ms_search_request *r, const char *text)
{
    MS_TRY(ms_space_limit(r->cx, r->space, text));
    r->limits = ms_arena_printf(r->cx->arena, "%s%s%s", r->limits,
                                r->limits[0] == '\0' ? "" : ", ", text);
    return MS_OK;
}

static ms_status fix_flags(ms_search_request *r, ms_choice_kind kind)
{
    for (ms_choice i = 0; i < MS_NUM_CHOICES; i++) {
        if (ms_plan_fields[i].kind == kind &&
            ms_plan_fields[i].search == MS_SEARCH_TRIES && ms_plan_is_given(r->plan, i))
            MS_TRY(limit(r, ms_space_choice_text(r->cx->arena, i,
                                                 ms_plan_given_or(r->plan, i, 0))));
    }
    return MS_OK;
}

/* Whether `text`, NAME=VALUE, begins with this name, whose "-" and "_" are alike. */
static bool begins_with(const char *text, const char *name)
{
    for (; *name != '\0'; text++, name++) {
        char a = *text == '-' ? '_' : (char)tolower((unsigned char)*text);
        if (a != (*name == '-' ? '_' : *name))
            return false;
    }
    return *text == '=';
}

/* The choice that a search keeps and `text`, NAME=VALUE, fixes, by its name or its flag;
 * MS_NUM_CHOICES: none. */
static ms_choice kept_choice(const char *text)
{
    for (ms_choice i = MS_CHOOSE_RECOMPUTE; i < MS_NUM_CHOICES; i++) {
        const ms_plan_field *field = &ms_plan_fields[i];
        bool is_apart = i == MS_CHOOSE_STACK || i == MS_CHOOSE_RANKS_PER_DOMAIN;
        if (field->search != MS_SEARCH_KEEPS || is_apart || field->flag == NULL)
            continue;
        if (begins_with(text, field->name) ||
            begins_with(text, field->flag + strlen("--")))
            return i;
    }
    return MS_NUM_CHOICES;
}

ms_status ms_search_fix_kept(ms_ctx *cx, const ms_opt_list *fix, ms_plan_options *plan)
{
    const ms_option_set set = {"plan", ms_plan_option_table(), plan};
    for (int i = 0; i < fix->num_texts; i++) {
        const char *rest = fix->texts[i], *text;
        while ((text = ms_list_next(cx->arena, &rest)) != NULL) {
            ms_choice choice = kept_choice(text);
            if (choice == MS_NUM_CHOICES)
                continue;
            char *flag = ms_arena_printf(cx->arena, "%s%s", ms_plan_fields[choice].flag,
                                         strchr(text, '='));
            ms_words words;
            MS_TRY(ms_options_parse(cx, &set, 1, 1, &flag, &words));
        }
    }
    return MS_OK;
}

static ms_status limit_each(ms_search_request *r, const ms_opt_list *list,
                            const char *option, bool only_equal)
{
    for (int i = 0; i < list->num_texts; i++) {
        const char *rest = list->texts[i], *text;
        while ((text = ms_list_next(r->cx->arena, &rest)) != NULL) {
            if (only_equal && strpbrk(text, "<>") != NULL) {
                ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                        "%s is \"%s\", must be CHOICE=VALUE", option, text);
                return ms_hint(r->cx, "--limit '%s'", text);
            }
            if (!only_equal || kept_choice(text) == MS_NUM_CHOICES)
                MS_TRY(limit(r, text));
        }
    }
    return MS_OK;
}

/* MS_EINPUT if a plan flag is given for a choice that searches do not support. */
static ms_status refuse_flags(const ms_search_request *r)
{
    const char *name = NULL;
    for (ms_choice i = 0; i < MS_NUM_CHOICES && name == NULL; i++) {
        bool is_switch = ms_plan_fields[i].kind == MS_CHOICE_SWITCH;
        if (ms_plan_fields[i].search == MS_SEARCH_REFUSES &&
            ms_plan_is_given(r->plan, i) &&
            !(is_switch && ms_plan_given_or(r->plan, i, 0)))
            name = is_switch
                       ? ms_arena_printf(r->cx->arena, "%s off", ms_plan_fields[i].flag)
                       : ms_plan_fields[i].flag;
    }
    if (ms_plan_given_or(r->plan, MS_CHOOSE_SCHEDULE, MS_1F1B) == MS_CUSTOM)
        name = "a schedule from a file";
    if (r->plan->ignore_rules)
        name = "--ignore-rules";
    if (name == NULL)
        return MS_OK;
    ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "search does not take %s", name);
    return ms_hint(r->cx, "\"meshsim predict\" takes it");
}

/* MS_EINPUT when the product of fixed axes does not divide the number of GPUs. */
static ms_status check_product(const ms_search_request *r)
{
    double product = 1.0;
    const char *text = "";
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++) {
        long low = r->space->low[MS_CHOOSE_PP + axis];
        if (low != r->space->high[MS_CHOOSE_PP + axis])
            continue;
        product *= (double)low;
        text =
            ms_arena_printf(r->cx->arena, "%s%s%s %ld", text,
                            text[0] == '\0' ? "" : " x ", ms_plan_axis_names[axis], low);
    }
    long gpus = r->space->base.gpus;
    if (product >= 1.0 && product <= (double)gpus && gpus % (long)product == 0)
        return MS_OK;
    ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "%s = %.0f ranks do not divide %ld GPUs", text,
            product, gpus);
    return ms_hint(r->cx, "leave out one of these axes, or change --gpus");
}

/* MS_EINPUT when limits leave no method of context parallelism that the stack has. */
static ms_status check_cp_method(const ms_search_request *r)
{
    const ms_space *space = r->space;
    bool only_one = space->low[MS_CHOOSE_CP_METHOD] == space->high[MS_CHOOSE_CP_METHOD];
    for (int i = 0; i < MS_NUM_CP_METHODS; i++)
        if (ms_space_tries_cp_method(space, 2, (ms_cp_method)i))
            return MS_OK;
    if (space->high[MS_CHOOSE_CP] == 1)
        return MS_OK;
    const char *what =
        only_one ? ms_arena_printf(r->cx->arena, "context parallelism by %s",
                                   ms_cp_method_names[space->low[MS_CHOOSE_CP_METHOD]])
                 : "context parallelism";
    if (space->low[MS_CHOOSE_CP] <= 1) {
        if (only_one)
            ms_note(r->cx, "stack \"%s\" has no %s: only plans with cp 1 are searched",
                    space->base.stack, what);
        return MS_OK;
    }
    ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
            "stack \"%s\" has no %s, and cp is at least %ld", space->base.stack, what,
            space->low[MS_CHOOSE_CP]);
    return ms_hint(r->cx, only_one ? "leave out cp_method, or --stack ideal"
                                   : "leave out cp, or --stack ideal");
}

static void widen(const ms_search_request *r, const char *name, long *most,
                  ms_opt_integer given, long low)
{
    if (given.given)
        *most = given.value;
    else if (low > *most)
        *most = low; /* --fix or --limit has a lower bound above the default maximum */
    else
        ms_note_default(r->cx, "%s %ld", name, *most);
}

static ms_status narrow_space(ms_search_request *r)
{
    MS_TRY(refuse_flags(r));
    MS_TRY(fix_flags(r, MS_CHOICE_WHOLE));
    MS_TRY(fix_flags(r, MS_CHOICE_SWITCH));
    MS_TRY(fix_flags(r, MS_CHOICE_WORD));
    MS_TRY(limit_each(r, &r->search->fix, "--fix", true));
    return limit_each(r, &r->search->limit, "--limit", false);
}

/* Says that choices which share out tp hold for plans with tp above 1 only. */
static void note_tensor_choices(const ms_search_request *r)
{
    static const ms_choice choices[] = {MS_CHOOSE_SEQUENCE_PARALLEL, MS_CHOOSE_ASYNC_TP};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (!ms_space_allows(r->space, choices[i], 0) &&
            ms_space_allows(r->space, MS_CHOOSE_TP, 1))
            ms_note(
                r->cx,
                "%s=on has no effect on plans with tp 1, which are listed without it; "
                "--limit 'tp>=2' leaves them out",
                ms_plan_fields[choices[i]].name);
}

ms_status ms_search_request_space(ms_search_request *r)
{
    MS_TRY(narrow_space(r));
    note_tensor_choices(r);
    widen(r, "--max-virtual-stages", &r->space->max_virtual_stages,
          r->search->max_virtual_stages, r->space->low[MS_CHOOSE_VIRTUAL_STAGES]);
    widen(r, "--max-microbatch", &r->space->max_microbatch, r->search->max_microbatch,
          r->space->low[MS_CHOOSE_MICROBATCH]);
    if (ms_plan_is_given(r->plan, MS_CHOOSE_ORDER))
        MS_TRY(
            ms_order_fix(r->cx, "--order", r->plan->of[MS_CHOOSE_ORDER].text, r->space));
    MS_TRY(check_cp_method(r));
    return check_product(r);
}

const ms_best_plan *ms_search_request_best(const ms_search_request *r)
{
    return r->objective == NULL ? NULL : &r->objective->jobs[r->objective->best].best;
}

ms_status ms_search_request_memory(const ms_search_request *r, ms_workload *workload)
{
    ms_memory_rule rule;
    MS_TRY(ms_memory_options_rule(r->cx, r->memory, &rule));
    MS_TRY(ms_memory_options_check(r->cx, &rule, workload->cluster));
    if (r->objective != NULL && r->objective->objective == MS_OBJECTIVE_MEMORY) {
        rule.headroom_frac = 0.0;
        rule.headroom_bytes = floor(workload->cluster->device.memory_bytes -
                                    ms_search_request_best(r)->needed_bytes);
    }
    ms_workload_set_memory_rule(workload, &rule);
    return MS_OK;
}

/* Sets the tie band: the user's, or where errors are known for such plans (as for their
 * intervals) the default; otherwise 0. */
static ms_status find_tie_band(const ms_search_request *r, const ms_workload *workload,
                               ms_search_report *report)
{
    const char *text = r->search->tie_band;
    if (workload->spread != NULL)
        MS_TRY(ms_ranking_spread_load(r->cx, MS_RANKING_SPREAD, &report->ranking));
    report->tie_band_is_given = text != NULL;
    if (text != NULL) {
        if (ms_parse_percentage(text, &report->tie_band_frac))
            return MS_OK;
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                "--tie-band is \"%s\", must be a share from 0 to below 100 %%", text);
        return ms_hint(r->cx, "--tie-band 2%%, or --tie-band 0");
    }
    report->tie_band_frac = ms_tie_band_frac(report->ranking, MS_TIE_PROBABILITY);
    return MS_OK;
}

ms_status ms_search_request_tie_band(const ms_search_request *r,
                                     const ms_workload *workload,
                                     ms_search_report *report)
{
    MS_TRY(find_tie_band(r, workload, report));
    const ms_best_plan *best = ms_search_request_best(r);
    if (best == NULL || !best->has_campaign)
        return MS_OK;
    double band_frac = report->tie_band_frac;
    report->tie_band_frac = ms_campaign_slack_frac(&best->campaign, band_frac);
    report->tie_band_is_limited = report->tie_band_frac < band_frac;
    return MS_OK;
}
