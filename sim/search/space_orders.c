/* Orders of axes that a search tries: legal ones that differ in the place of groups. */
#include "sim/search/space.h"

#include <string.h>

static void swap(unsigned char *a, unsigned char *b)
{
    unsigned char was = *a;
    *a = *b;
    *b = was;
}

static bool next_permutation(unsigned char *p, int n)
{
    int i = n - 2;
    while (i >= 0 && p[i] >= p[i + 1])
        i--;
    if (i < 0)
        return false;
    int j = n - 1;
    while (p[j] <= p[i])
        j--;
    swap(&p[i], &p[j]);
    for (int a = i + 1, b = n - 1; a < b; a++, b--)
        swap(&p[a], &p[b]);
    return true;
}

/* Properties of groups that determine costs: ranks per network domain, torus place. */
typedef struct signature {
    long per_domain[MS_NUM_SPANS][MS_MAX_LEVELS];
    long narrowest[MS_NUM_SPANS];
    int ring_tier[MS_NUM_SPANS];
    ms_torus_span torus[MS_NUM_SPANS];
} signature;

static void sign(const ms_plan *plan, const ms_cluster *cluster, signature *out)
{
    ms_span spans[MS_NUM_SPANS];
    memset(out, 0, sizeof *out);
    ms_links_spans(plan, cluster, spans);
    for (int i = 0; i < MS_NUM_SPANS; i++) {
        if (spans[i].size <= 1)
            continue;
        memcpy(out->per_domain[i], spans[i].per_domain, sizeof out->per_domain[i]);
        out->narrowest[i] = spans[i].narrowest;
        out->ring_tier[i] = spans[i].ring_tier;
        out->torus[i] = spans[i].torus;
    }
}

static bool same_signature(const signature *a, const signature *b)
{
    for (int i = 0; i < MS_NUM_SPANS; i++)
        if (!ms_torus_span_equal(&a->torus[i], &b->torus[i]))
            return false;
    return memcmp(a->per_domain, b->per_domain, sizeof a->per_domain) == 0 &&
           memcmp(a->narrowest, b->narrowest, sizeof a->narrowest) == 0 &&
           memcmp(a->ring_tier, b->ring_tier, sizeof a->ring_tier) == 0;
}

/* Sets plan->order: axes above size 1 as in `active`, the others in default places. */
static void place_active(ms_plan *plan, const unsigned char *active)
{
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        plan->order[axis] = plan->size[axis] > 1 ? *active++ : (unsigned char)axis;
}

/* The rule by which the stack's framework refuses the plan's order of axes, or NULL. */
static const ms_rule *order_rule(const ms_plan *plan, const ms_workload *workload)
{
    ms_variables axes = ms_rule_level_variables(MS_RULES_OF_ORDER);
    ms_variables known = axes | ms_rule_level_variables(MS_RULES_OF_MESH);
    if (workload->rules.num == 0)
        return NULL;
    ms_facts facts = ms_facts_of(plan, workload->model, workload->stack);
    return ms_rule_broken(&workload->rules, &facts, known, axes);
}

void ms_space_list_orders(const ms_plan *plan, const ms_workload *workload,
                          ms_order_list *out)
{
    unsigned char active[MS_NUM_PLAN_AXES];
    int num_active = 0, num_known = 0, first[MS_MAX_ORDERS];
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        if (plan->size[axis] > 1)
            active[num_active++] = (unsigned char)axis;
    static _Thread_local signature known[MS_MAX_ORDERS];
    ms_plan variant = *plan;
    out->num = 0;
    do {
        int i = out->num++;
        place_active(&variant, active);
        memcpy(out->orders[i].order, variant.order, sizeof variant.order);
        out->orders[i].refusal = !ms_plan_order_is_legal(&variant) ? MS_REFUSE_ORDER
                                 : order_rule(&variant, workload) != NULL
                                     ? MS_REFUSE_FRAMEWORK
                                     : MS_LEGAL;
        out->orders[i].alike = -1;
        if (out->orders[i].refusal != MS_LEGAL)
            continue;
        sign(&variant, workload->cluster, &known[num_known]);
        int found = 0;
        /* orders place stages on other devices of a mixed cluster */
        bool is_mixed = workload->cluster->num_kinds > 0;
        while (found < num_known &&
               (is_mixed || !same_signature(&known[found], &known[num_known])))
            found++;
        if (found == num_known)
            first[num_known++] = i;
        out->orders[i].alike = first[found];
    } while (next_permutation(active, num_active));
}

void ms_space_orders(const ms_space *space, const ms_plan *plan,
                     const ms_workload *workload, ms_orders *out)
{
    ms_plan first = *plan;
    if (space->fixed_order) {
        memcpy(first.order, space->base.order, sizeof first.order);
        memcpy(out->order[0], space->base.order, sizeof out->order[0]);
        out->broken = order_rule(&first, workload);
        out->num = out->broken == NULL;
        return;
    }
    ms_order_list list;
    ms_space_list_orders(plan, workload, &list);
    out->num = 0;
    for (int i = 0; i < list.num; i++)
        if (list.orders[i].alike == i)
            memcpy(out->order[out->num++], list.orders[i].order, sizeof out->order[0]);
    memcpy(first.order, list.orders[0].order, sizeof first.order);
    out->broken = out->num == 0 ? order_rule(&first, workload) : NULL;
}

void ms_space_plain_order(ms_plan *plan)
{
    unsigned char active[MS_NUM_PLAN_AXES];
    int num_active = 0;
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++)
        if (plan->size[plan->order[i]] > 1)
            active[num_active++] = plan->order[i];
    place_active(plan, active);
}

bool ms_space_same_order(const ms_plan *plan, const unsigned char order[MS_NUM_PLAN_AXES])
{
    ms_plan own = *plan, other = *plan;
    memcpy(other.order, order, sizeof other.order);
    ms_space_plain_order(&own);
    ms_space_plain_order(&other);
    return memcmp(own.order, other.order, sizeof own.order) == 0;
}

bool ms_space_order_like(const ms_space *space, const ms_plan *plan,
                         const ms_workload *workload,
                         unsigned char like[MS_NUM_PLAN_AXES])
{
    signature asked, tried;
    ms_plan variant = *plan;
    ms_orders orders;
    sign(plan, workload->cluster, &asked);
    ms_space_orders(space, plan, workload, &orders);
    for (int i = 0; i < orders.num; i++) {
        memcpy(variant.order, orders.order[i], sizeof variant.order);
        sign(&variant, workload->cluster, &tried);
        if (!same_signature(&asked, &tried))
            continue;
        memcpy(like, orders.order[i], sizeof variant.order);
        return true;
    }
    return false;
}
