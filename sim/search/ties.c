#include "sim/search/ties.h"

#include "base/clock.h"
#include "base/workers.h"
#include "sim/search/found_layers.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- simplicity ---- */

#define MOST_AXES (MS_NUM_PLAN_AXES + 2) /* axes of the mesh, ep and etp */

static long count_axes(const ms_plan *plan)
{
    long num = (plan->ep > 1) + (plan->etp > 1);
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++)
        num += plan->size[i] > 1;
    return num;
}

static long has_own_order(const ms_plan *plan)
{
    return !ms_plan_is_plain(plan, MS_CHOOSE_ORDER);
}

static bool use_plain_order(ms_space *space, long value)
{
    bool can = value == 0 && !space->fixed_order;
    space->fixed_order = space->fixed_order || can;
    return can;
}

static bool use_only(ms_space *space, ms_choice choice, long value)
{
    bool can = ms_space_allows(space, choice, value);
    if (can)
        space->low[choice] = space->high[choice] = value;
    return can;
}

static long count_virtual_stages(const ms_plan *plan)
{
    return plan->virtual_stages;
}

static bool use_virtual_stages(ms_space *space, long value)
{
    return value > 0 && use_only(space, MS_CHOOSE_VIRTUAL_STAGES, value);
}

/* 0 for 1F1B and its interleaved form, which every framework with pipelines has. */
static long has_own_schedule(const ms_plan *plan)
{
    return plan->schedule != MS_1F1B && plan->schedule != MS_INTERLEAVED;
}

static bool use_common_schedule(ms_space *space, long value)
{
    bool is_flat = space->high[MS_CHOOSE_VIRTUAL_STAGES] == 1;
    return value == 0 &&
           use_only(space, MS_CHOOSE_SCHEDULE, is_flat ? MS_1F1B : MS_INTERLEAVED);
}

/* The modes ascend by what they recompute, automatic ones by what they do not save. */
static long recompute_of(const ms_plan *plan)
{
    ms_layer_mode mode = ms_plan_layer_mode(plan);
    return ms_layer_mode_has_budget(mode)
               ? MS_RECOMPUTE_AUTO + MS_NUM_LAYER_MODES - 1 - mode
               : mode;
}

static bool use_recompute(ms_space *space, long value)
{
    long budget = MS_RECOMPUTE_AUTO + MS_NUM_BUDGETS - 1 - value;
    return value < MS_RECOMPUTE_AUTO
               ? use_only(space, MS_CHOOSE_RECOMPUTE, value)
               : use_only(space, MS_CHOOSE_RECOMPUTE_BUDGET, budget);
}

/* Criteria of simplicity, the most important first; smaller values are simpler. `narrow`
 * leaves the plans of a space that have the value, where the criteria before it
 * are narrowed already; false: there are none. NULL: all plans of a mesh are alike. */
static const struct criterion {
    long (*measure)(const ms_plan *plan);
    bool (*narrow)(ms_space *space, long value);
} criteria[] = {
    {count_axes, NULL},
    {has_own_order, use_plain_order},
    {count_virtual_stages, use_virtual_stages},
    {has_own_schedule, use_common_schedule},
    {recompute_of, use_recompute},
};
#define NUM_CRITERIA (int)(sizeof criteria / sizeof *criteria)

static int compare_longs(long a, long b)
{
    return (a > b) - (a < b);
}

static int compare_doubles(double a, double b)
{
    return (a > b) - (a < b);
}

static int compare_choices(const ms_plan *a, const ms_plan *b)
{
    int order = 0;
    for (ms_choice k = 0; k < MS_NUM_CHOICES && order == 0; k++)
        order = compare_longs(ms_plan_get(a, k), ms_plan_get(b, k));
    return order != 0 ? order : memcmp(a->order, b->order, sizeof a->order);
}

int ms_ties_compare(const ms_found *a, const ms_found *b, double device_bytes)
{
    const double step_bytes = device_bytes / 20.0;
    int order = 0;
    for (int i = 0; i < NUM_CRITERIA && order == 0; i++)
        order =
            compare_longs(criteria[i].measure(&a->plan), criteria[i].measure(&b->plan));
    if (order == 0)
        order = compare_doubles(floor(a->peak_bytes / step_bytes),
                                floor(b->peak_bytes / step_bytes));
    if (order == 0)
        order = compare_doubles(a->step_s, b->step_s);
    return order != 0 ? order : compare_choices(&a->plan, &b->plan);
}

/* ---- groups ---- */

/* Sorts `num` plans by step time, or by simplicity alone; equal ones stay in order. */
static void sort(ms_found *found, int num, bool by_time, bool by_simplicity,
                 double device_bytes)
{
    for (int i = 1; i < num; i++) {
        ms_found moved = found[i];
        int at = i;
        for (; at > 0; at--) {
            int order = by_time ? compare_doubles(found[at - 1].step_s, moved.step_s) : 0;
            if (order == 0 && by_simplicity)
                order = ms_ties_compare(&found[at - 1], &moved, device_bytes);
            if (order <= 0)
                break;
            found[at] = found[at - 1];
        }
        found[at] = moved;
    }
}

/* Number of plans, sorted by time, in the group that the first of them leads. */
static int count_group(const ms_found *found, int num, double band_frac)
{
    int end = 1;
    while (end < num && found[end].step_s < found[0].step_s * (1.0 + band_frac))
        end++;
    return end;
}

void ms_ties_order(ms_found *found, int num, double band_frac, double device_bytes,
                   ms_tie *ties)
{
    int group = 0;
    sort(found, num, true, band_frac > 0.0, device_bytes);
    if (num == 0)
        return;
    double best_s = found[0].step_s;
    const ms_plan fastest = found[0].plan;
    for (int first = 0, end; first < num; first = end, group++) {
        end = first + count_group(&found[first], num - first, band_frac);
        sort(&found[first], end - first, false, true, device_bytes);
        for (int i = first; i < end; i++)
            ties[i] = (ms_tie){.group = group,
                               .gap_frac = found[i].step_s / best_s - 1.0,
                               .fastest = ms_plan_equal(&found[i].plan, &fastest)};
    }
}

int ms_search_fastest(const ms_search_result *result)
{
    int at = result->num_found > 0 ? 0 : -1;
    for (int i = 0; i < result->num_found && result->ties != NULL; i++)
        at = result->ties[i].fastest ? i : at;
    return at;
}

/* ---- the simplest plan of each mesh ---- */

/* Search for the simplest plans of all meshes with the same number of axes. */
typedef struct tying {
    ms_workload *workload;
    const ms_space *space;
    const ms_search_options *options;
    const ms_search_result *result;
    double limit_s; /* step time below which a plan is in the band */
    long axes;
    atomic_long next;  /* index of the next mesh to take */
    ms_found *of_mesh; /* (result->num_meshes): the simplest plan; step_s NaN: none */
    int num, capacity;
    ms_found *found; /* (num): plans for the list */
} tying;

/* Finds the fastest plan of a mesh in `space`; false if none is in the band. */
static bool find_fastest(ms_explorer *x, const ms_space *space, const ms_bounded_mesh *m,
                         double limit_s, ms_found *out)
{
    x->space = space;
    x->known = m->schedules;
    ms_explore_mesh(x, &m->mesh, limit_s);
    bool found = x->num_found > 0 && x->found[0].step_s < limit_s;
    if (found)
        *out = x->found[0];
    return found;
}

/* Narrows the space to the simplest plans of a mesh in the band by one criterion; *best
 * is the fastest plan of the space, before and after. */
static void simplify(ms_explorer *x, const ms_bounded_mesh *m, double limit_s,
                     const struct criterion *criterion, ms_space *space, ms_found *best)
{
    long now = criterion->measure(&best->plan);
    for (long value = 0; value < now; value++) {
        ms_space narrow = *space;
        if (criterion->narrow(&narrow, value) &&
            find_fastest(x, &narrow, m, limit_s, best)) {
            *space = narrow;
            return;
        }
    }
    (void)criterion->narrow(space, now); /* where it cannot, `now` is the most */
}

static void find_simplest(const tying *t, ms_explorer *x, const ms_bounded_mesh *m,
                          ms_found *out)
{
    ms_space space = *t->space;
    /* first without other orders of axes, since they are most of the work */
    if (!use_plain_order(&space, 0) || !find_fastest(x, &space, m, t->limit_s, out)) {
        space = *t->space;
        if (!find_fastest(x, &space, m, t->limit_s, out))
            return;
    }
    for (int i = 0; i < NUM_CRITERIA; i++)
        if (criteria[i].narrow != NULL)
            simplify(x, m, t->limit_s, &criteria[i], &space, out);
}

static bool is_wanted(const tying *t, const ms_bounded_mesh *m)
{
    ms_plan plan = ms_space_plan(t->space, &m->mesh);
    return m->bound_s < t->limit_s && count_axes(&plan) == t->axes &&
           !ms_is_interrupted(t->options->interrupted);
}

static void tie_meshes(void *payload)
{
    tying *t = payload;
    ms_explorer x = ms_explorer_open(t->workload, t->space, 1);
    x.interrupted = t->options->interrupted;
    x.known_needed_bytes = t->result->least_needed_bytes;
    for (long i = t->next++; i < t->result->num_meshes; i = t->next++)
        if (is_wanted(t, &t->result->meshes[i]))
            find_simplest(t, &x, &t->result->meshes[i], &t->of_mesh[i]);
    ms_explorer_close(&x);
}

static void run_threads(tying *t)
{
    t->next = 0;
    ms_workers_run(t->options->num_threads, tie_meshes, t);
}

static void add(ms_arena *arena, tying *t, const ms_found *found)
{
    MS_MAKE_ROOM(arena, t->found, t->num, t->capacity, 32);
    t->found[t->num++] = *found;
}

/* Divides the layers of the simplest plans, as those of the fastest, and drops plans that
 * then are outside the band. */
static void divide_layers(ms_arena *arena, double band_frac, tying *t)
{
    double best_s = t->result->found[0].step_s;
    int kept = 0;
    ms_found_divide(t->workload, arena, t->found, t->num);
    for (int i = 0; i < t->num; i++)
        best_s = fmin(best_s, t->found[i].step_s);
    t->limit_s = best_s * (1.0 + band_frac);
    for (int i = 0; i < t->num; i++)
        if (t->found[i].step_s < t->limit_s)
            t->found[kept++] = t->found[i];
    t->num = kept;
}

/* Adds the simplest plan of each mesh in the band; meshes of more axes only as long as
 * the list has room, since their plans come after all others. */
static void add_simplest(ms_arena *arena, tying *t)
{
    long num_meshes = t->result->num_meshes;
    t->of_mesh = MS_NEW_ARRAY(arena, num_meshes, ms_found);
    for (long i = 0; i < num_meshes; i++)
        t->of_mesh[i].step_s = NAN;
    for (t->axes = 0; t->axes <= MOST_AXES && t->num < t->options->num_best; t->axes++) {
        run_threads(t);
        t->num = 0;
        for (long i = 0; i < num_meshes; i++)
            if (!isnan(t->of_mesh[i].step_s))
                add(arena, t, &t->of_mesh[i]);
    }
}

/* ---- the list ---- */

static bool same_mesh(const ms_plan *a, const ms_plan *b)
{
    return memcmp(a->size, b->size, sizeof a->size) == 0 && a->ep == b->ep &&
           a->etp == b->etp;
}

/* Whether a plan that the search found is listed beside the first num_simplest plans: the
 * fastest, those outside the band, and with `variants` all; none twice. */
static bool is_listed(const tying *t, int num_simplest, const ms_found *found,
                      bool is_fastest)
{
    bool any = is_fastest || t->options->variants || !(found->step_s < t->limit_s);
    for (int i = 0; i < num_simplest; i++) {
        const ms_plan *simple = &t->found[i].plan;
        if (ms_plan_equal(simple, &found->plan) ||
            (!any && same_mesh(simple, &found->plan)))
            return false;
    }
    return true;
}

static void add_fastest(ms_arena *arena, tying *t)
{
    int num_simplest = t->num;
    for (int i = 0; i < t->result->num_found; i++)
        if (is_listed(t, num_simplest, &t->result->found[i], i == 0))
            add(arena, t, &t->result->found[i]);
}

/* Cuts the list to num_best plans, the last of which is the fastest if it comes later. A
 * list of one has the fastest besides: the first plan is the one to take. */
static void cut(ms_search_result *result, ms_tie *ties, int num_best)
{
    int fastest = ms_search_fastest(result);
    if (num_best == 1 && fastest > 0)
        num_best = 2;
    if (result->num_found <= num_best)
        return;
    result->num_found = num_best;
    if (fastest < num_best)
        return;
    result->found[num_best - 1] = result->found[fastest];
    ties[num_best - 1] = ties[fastest];
}

void ms_search_tie(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                   const ms_search_options *options, double band_frac,
                   ms_search_result *result)
{
    double start_s = ms_clock_s();
    tying t = {
        .workload = workload, .space = space, .options = options, .result = result};
    if (result->num_found == 0)
        return;
    bool divides = ms_space_divides_layers(workload, space);
    t.limit_s =
        (1.0 + band_frac) * (divides ? result->balanced_step_s : result->found[0].step_s);
    if (result->optimal && band_frac > 0.0 && isfinite(t.limit_s))
        add_simplest(cx->arena, &t);
    if (divides)
        divide_layers(cx->arena, band_frac, &t);
    add_fastest(cx->arena, &t);
    assert(t.found != NULL); /* the fastest plan is in the list */
    ms_tie *ties = MS_NEW_ARRAY(cx->arena, t.num, ms_tie);
    ms_ties_order(t.found, t.num, band_frac, workload->cluster->device.memory_bytes,
                  ties);
    result->found = t.found;
    result->num_found = t.num;
    result->ties = ties;
    cut(result, ties, options->num_best);
    result->elapsed_s += ms_clock_s() - start_s;
}
