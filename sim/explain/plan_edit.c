#include "sim/explain/plan_edit.h"

#include "sim/search/mesh_orders.h"
#include "sim/step/framework_rules.h"

#include <string.h>

/* ---- the list of edits ---- */

typedef struct edit_list {
    ms_arena *arena;
    const ms_workload *workload;
    const ms_plan *plan;
    ms_plan_edit *edits;
    int num, capacity;
} edit_list;

static ms_plan_edit *add(edit_list *list, ms_choice choice, long value, long second)
{
    MS_MAKE_ROOM(list->arena, list->edits, list->num, list->capacity, 128);
    ms_plan_edit *edit = &list->edits[list->num++];
    *edit = (ms_plan_edit){.choice = choice, .value = value, .second = second};
    return edit;
}

static void add_axes(edit_list *list)
{
    for (int from = 0; from < MS_NUM_PLAN_AXES; from++) {
        for (long factor = 2; factor <= list->plan->size[from]; factor++)
            for (int to = 0; to < MS_NUM_PLAN_AXES; to++)
                if (list->plan->size[from] % factor == 0 && to != from)
                    add(list, (ms_choice)(MS_CHOOSE_PP + from), factor, to);
    }
}

static void add_experts(edit_list *list)
{
    long experts = list->workload->model->moe.num_experts;
    for (long ep = 1; ep <= experts; ep++)
        if (experts % ep == 0)
            add(list, MS_CHOOSE_EP, ep, 0);
    if (experts > 0) {
        add(list, MS_CHOOSE_ETP, 1, 0);
        add(list, MS_CHOOSE_ETP, list->plan->size[MS_TP], 0);
    }
}

static void add_orders(edit_list *list)
{
    ms_order_list *orders = MS_NEW(list->arena, ms_order_list);
    ms_space_list_orders(list->plan, list->workload, orders);
    int own = -1; /* first of the orders that cost the same as the plan's */
    for (int i = 0; i < orders->num; i++)
        if (ms_space_same_order(list->plan, orders->orders[i].order))
            own = orders->orders[i].alike;
    for (int i = 0; i < orders->num; i++) {
        if (orders->orders[i].alike != i || i == own)
            continue;
        ms_plan_edit *edit = add(list, MS_CHOOSE_ORDER, 0, 0);
        memcpy(edit->order, orders->orders[i].order, sizeof edit->order);
    }
}

static void add_schedules(edit_list *list, const ms_space *space)
{
    for (long kind = 0; kind < MS_CUSTOM; kind++)
        for (long v = 1; v <= space->max_virtual_stages; v++)
            add(list, MS_CHOOSE_SCHEDULE, kind, v);
}

static void add_sharding(edit_list *list)
{
    for (long zero = 0; zero <= 2; zero++)
        add(list, MS_CHOOSE_ZERO, zero, 0);
    add(list, MS_CHOOSE_ZERO, 3, true);
    add(list, MS_CHOOSE_ZERO, 3, false);
}

static void add_words(edit_list *list)
{
    static const ms_choice choices[] = {MS_CHOOSE_SEQUENCE_PARALLEL, MS_CHOOSE_ASYNC_TP,
                                        MS_CHOOSE_CP_METHOD, MS_CHOOSE_RECOMPUTE};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        for (long value = 0; value <= ms_choice_last(choices[i]); value++)
            add(list, choices[i], value, 0);
}

/* Full recomputation of the first 1, 2, 4 ... layers of each chunk, or of all (0) where
 * the plan has some. */
static void add_recompute_layers(edit_list *list)
{
    const ms_plan *plan = list->plan;
    long chunk =
        list->workload->model->num_layers / (plan->size[MS_PP] * plan->virtual_stages);
    if (plan->recompute_layers > 0)
        add(list, MS_CHOOSE_RECOMPUTE_LAYERS, 0, 0);
    for (long layers = 1; layers < chunk; layers *= 2)
        add(list, MS_CHOOSE_RECOMPUTE_LAYERS, layers, 0);
}

int ms_plan_edits(ms_arena *arena, const ms_workload *workload, const ms_plan *plan,
                  ms_plan_edit **out)
{
    edit_list list = {.arena = arena, .workload = workload, .plan = plan};
    ms_space space = ms_space_all(plan, workload->stack);
    add_axes(&list);
    add_experts(&list);
    add_orders(&list);
    for (long size = 1; size <= space.max_microbatch; size++)
        add(&list, MS_CHOOSE_MICROBATCH, size, 0);
    add_schedules(&list, &space);
    add_sharding(&list);
    add_words(&list);
    add_recompute_layers(&list);
    *out = list.edits;
    return list.num;
}

/* ---- consequences of an edit ---- */

/* Whether ranks share parameters or optimizer states of dense or expert weights. */
static bool has_shards(const ms_plan *plan)
{
    long ranks = plan->size[MS_DP_SHARD] * plan->size[MS_CP];
    return ranks > 1 || ranks * plan->size[MS_TP] > plan->ep * plan->etp;
}

/* Adapts choices whose effect comes or goes with an edit of `from`. */
static void adapt_effects(const ms_stack *stack, const ms_plan *from, ms_plan *plan)
{
    for (ms_choice i = 0; i < MS_NUM_CHOICES; i++) {
        const ms_plan_field *field = &ms_plan_fields[i];
        bool mattered = ms_plan_matters(from, i), matters = ms_plan_matters(plan, i);
        if (mattered && !matters && field->search == MS_SEARCH_TRIES)
            ms_plan_reset(plan, i);
        bool opens = field->renewed || i == MS_CHOOSE_CP_METHOD;
        if (!mattered && matters && opens)
            ms_plan_set(plan, i, ms_plan_usual(plan, stack, i));
    }
    if (!plan->sequence_parallel)
        plan->async_tp = false;
    if (plan->etp > 1)
        plan->etp = plan->size[MS_TP];
}

static void adapt_stages(const ms_plan *from, ms_plan *plan)
{
    if (plan->size[MS_PP] == 1)
        plan->virtual_stages = 1;
    if (plan->size[MS_PP] == from->size[MS_PP] && plan->schedule == from->schedule &&
        plan->virtual_stages == from->virtual_stages)
        return;
    plan->microbatch_group = 0;
    plan->num_stage_layers = 0;
    plan->layers_per_stage = NULL;
}

static void adapt_states(const ms_stack *stack, const ms_plan *from, ms_plan *plan)
{
    if (!has_shards(plan))
        plan->zero = 0;
    if (plan->zero < 3 && from->zero < 3)
        plan->reshard_after_forward = from->reshard_after_forward;
    if (plan->zero == 3 && (plan->size[MS_PP] == 1) != (from->size[MS_PP] == 1))
        ms_plan_set(plan, MS_CHOOSE_RESHARD,
                    ms_plan_usual(plan, stack, MS_CHOOSE_RESHARD));
    if (plan->recompute == from->recompute)
        return;
    if (plan->recompute != MS_RECOMPUTE_FULL)
        plan->recompute_layers = 0;
    ms_plan_reset(plan, MS_CHOOSE_RECOMPUTE_BUDGET);
}

static bool set(const ms_plan_edit *edit, ms_plan *plan)
{
    if (edit->choice >= MS_CHOOSE_PP && edit->choice <= MS_CHOOSE_TP) {
        long *size = &plan->size[edit->choice - MS_CHOOSE_PP];
        bool divides = *size % edit->value == 0;
        *size /= edit->value;
        plan->size[edit->second] *= edit->value;
        return divides;
    }
    if (edit->choice == MS_CHOOSE_ORDER)
        memcpy(plan->order, edit->order, sizeof plan->order);
    else
        ms_plan_set(plan, edit->choice, edit->value);
    if (edit->choice == MS_CHOOSE_SCHEDULE)
        plan->virtual_stages = edit->second;
    if (edit->choice == MS_CHOOSE_RECOMPUTE_LAYERS)
        plan->recompute = MS_RECOMPUTE_FULL;
    if (edit->choice == MS_CHOOSE_ZERO && edit->value == 3)
        plan->reshard_after_forward = edit->second;
    return true;
}

/* ---- legality ---- */

static bool can_schedule(const ms_space *space, const ms_model *model,
                         const ms_plan *from, const ms_plan *plan)
{
    return (plan->schedule == from->schedule &&
            plan->virtual_stages == from->virtual_stages &&
            plan->size[MS_PP] == from->size[MS_PP]) ||
           ms_space_tries_schedule(space, model, plan->size[MS_PP], plan->schedule,
                                   plan->virtual_stages);
}

static bool can_shard(const ms_space *space, const ms_plan *from, const ms_plan *plan)
{
    return (plan->zero == from->zero &&
            plan->reshard_after_forward == from->reshard_after_forward) ||
           ms_space_tries_sharding(space, has_shards(plan), plan->zero,
                                   plan->reshard_after_forward);
}

/* Whether the stack can run `plan`, a change of the plan `from`, and accepts it. */
static bool is_legal(ms_workload *workload, const ms_plan *from, const ms_plan *plan)
{
    ms_space space = ms_space_all(plan, workload->stack);
    if (ms_plan_refusal(plan, workload->model) != MS_LEGAL ||
        !can_schedule(&space, workload->model, from, plan) ||
        !can_shard(&space, from, plan))
        return false;
    if (plan->size[MS_TP] != from->size[MS_TP] &&
        ms_plan_copies_kv_heads(plan, workload->model))
        return false;
    for (ms_choice i = 0; i < MS_NUM_CHOICES; i++) {
        const ms_plan_field *field = &ms_plan_fields[i];
        if (field->search != MS_SEARCH_TRIES || ms_plan_same(from, plan, i))
            continue;
        long value = ms_plan_get(plan, i);
        bool can = field->can == NULL || field->can(workload->stack, value);
        if (ms_plan_matters(plan, i) ? !can : value != (long)field->plain)
            return false;
    }
    return ms_workload_broken_rule(workload, plan) == NULL;
}

bool ms_plan_edit_apply(ms_workload *workload, const ms_plan *plan,
                        const ms_plan_edit *edit, ms_plan *out)
{
    *out = *plan;
    if (!set(edit, out) || !ms_plan_matters(out, edit->choice))
        return false;
    adapt_effects(workload->stack, plan, out);
    adapt_stages(plan, out);
    adapt_states(workload->stack, plan, out);
    return is_legal(workload, plan, out);
}

/* ---- text ---- */

/* A choice whose value differs: "tp 8 -> 4", "schedule gpipe", "order tp,pp". */
static const char *choice_text(ms_arena *arena, const ms_plan *from, const ms_plan *to,
                               ms_choice choice)
{
    const ms_plan_field *field = &ms_plan_fields[choice];
    const char *name = field->text_on != NULL      ? field->text_on
                       : field->short_name != NULL ? field->short_name
                                                   : field->name;
    if (choice == MS_CHOOSE_ORDER)
        return ms_arena_printf(arena, "order %s", ms_order_text(arena, to, to->order));
    const char *value = ms_plan_value_text(arena, to, choice);
    if (choice == MS_CHOOSE_RECOMPUTE && to->recompute_layers > 0)
        return ms_arena_printf(arena, "%s %s, %ld a stage", name, value,
                               to->recompute_layers);
    if (field->kind != MS_CHOICE_WHOLE)
        return ms_arena_printf(arena, "%s %s", name, value);
    return ms_arena_printf(arena, "%s %s -> %s", name,
                           ms_plan_value_text(arena, from, choice), value);
}

static bool is_shown(const ms_plan *from, const ms_plan *to, ms_choice choice)
{
    if (choice == MS_CHOOSE_ORDER)
        return !ms_space_same_order(to, from->order);
    if (choice == MS_CHOOSE_VIRTUAL_STAGES && to->size[MS_PP] == 1)
        return false;
    if (choice == MS_CHOOSE_RECOMPUTE_LAYERS && to->recompute == from->recompute)
        return to->recompute_layers != from->recompute_layers;
    bool searched = ms_plan_fields[choice].search == MS_SEARCH_TRIES;
    return (searched || choice == MS_CHOOSE_RECOMPUTE_BUDGET) &&
           ms_plan_matters(to, choice) && !ms_plan_same(from, to, choice);
}

const char *ms_plan_edit_text(ms_arena *arena, const ms_plan *from, const ms_plan *to)
{
    const char *text = "";
    for (ms_choice i = 0; i < MS_NUM_CHOICES; i++)
        if (is_shown(from, to, i))
            text = ms_arena_printf(arena, "%s%s%s", text, text[0] == '\0' ? "" : ", ",
                                   choice_text(arena, from, to, i));
    return text;
}
