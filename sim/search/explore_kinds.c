/* Exploration of a mesh on a mixed cluster: arrangements, which decide the kinds of devices
 * of each stage, and the costs of blocks on them. */
#include "sim/search/explore_priv.h"

#include "sim/step/bill_key.h"

#include <string.h>

/* ---- arrangements ---- */

static bool reversal_matters(const ms_explore_level *l)
{
    const ms_explorer *explorer = l->explorer;
    ms_arena_mark mark = ms_arena_save(explorer->scratch);
    ms_plan plan = l->plan;
    plan.device_order = MS_DEVICES_LISTED;
    const unsigned char *listed =
        ms_plan_kinds(explorer->scratch, &plan, explorer->workload);
    plan.device_order = MS_DEVICES_REVERSED;
    const unsigned char *reversed =
        ms_plan_kinds(explorer->scratch, &plan, explorer->workload);
    bool differ = memcmp(listed, reversed, (size_t)plan.size[MS_PP]) != 0;
    ms_arena_rewind(explorer->scratch, mark);
    return differ;
}

/* Whether the search tries the chosen order of devices: the reversed one only where it
 * changes the devices of a stage, or where the listed one is not tried. */
static bool tries_devices(const ms_explore_level *l)
{
    const ms_space *space = l->explorer->space;
    if (!ms_space_allows(space, MS_CHOOSE_DEVICE_ORDER, l->plan.device_order))
        return false;
    return l->plan.device_order == MS_DEVICES_LISTED || reversal_matters(l) ||
           !ms_space_allows(space, MS_CHOOSE_DEVICE_ORDER, MS_DEVICES_LISTED);
}

bool ms_explore_is_mixed(const ms_explorer *explorer)
{
    return explorer->workload->cluster->num_kinds > 0;
}

const ms_orders *ms_explore_next_arrangement(ms_explore_level *l, ms_arrangements *a)
{
    if (!ms_explore_is_mixed(l->explorer))
        return a->num_passed++ == 0 ? a->orders : NULL;
    while (a->num_passed < 2 * a->orders->num) {
        int order = a->num_passed / 2;
        l->plan.device_order =
            a->num_passed % 2 == 0 ? MS_DEVICES_LISTED : MS_DEVICES_REVERSED;
        memcpy(l->plan.order, a->orders->order[order], sizeof l->plan.order);
        a->num_passed++;
        if (!tries_devices(l))
            continue;
        a->one.num = 1;
        memcpy(a->one.order[0], l->plan.order, sizeof l->plan.order);
        return &a->one;
    }
    return NULL;
}

ms_workload *ms_explore_all_kinds(const ms_explore_level *l)
{
    ms_workload *workload = l->explorer->workload;
    if (!ms_explore_is_mixed(l->explorer))
        return workload;
    ms_arena_mark mark = ms_arena_save(l->explorer->scratch);
    const unsigned char *kinds = ms_plan_kinds(l->explorer->scratch, &l->plan, workload);
    ms_kind_set all = ms_all_kinds(kinds, (int)l->plan.size[MS_PP]);
    ms_arena_rewind(l->explorer->scratch, mark);
    return ms_workload_of_kinds(workload, all);
}

/* ---- costs of blocks ---- */

void ms_explore_open_priced(ms_explorer *explorer, ms_priced_blocks *priced, bool ideal,
                            ms_known_stages *known)
{
    priced->modes = 0;
    priced->known = known;
    priced->mixed = NULL;
    if (!ms_explore_is_mixed(explorer))
        return;
    priced->known = NULL; /* the cache does not tell devices apart */
    priced->mixed = MS_NEW(explorer->scratch, ms_mixed_blocks);
    priced->mixed->ideal = ideal;
    priced->mixed->num_sets = 1 << explorer->workload->cluster->num_kinds;
    /* not cleared: they are large */
    priced->mixed->of = ms_arena_take(explorer->scratch, (size_t)priced->mixed->num_sets *
                                                             sizeof(ms_kind_blocks));
    for (int i = 0; i < priced->mixed->num_sets; i++) {
        priced->mixed->of[i].workload = NULL;
        priced->mixed->of[i].modes = 0;
    }
}

void ms_explore_forget_prices(ms_priced_blocks *priced)
{
    priced->modes = 0;
    if (priced->known != NULL)
        ms_known_stages_forget(priced->known);
    for (int i = 0; priced->mixed != NULL && i < priced->mixed->num_sets; i++)
        priced->mixed->of[i].modes = 0;
}

/* Adds missing modes to the costs on one set of kinds. */
static void price_set(ms_explore_level *l, ms_kind_set kinds, unsigned modes)
{
    ms_mixed_blocks *mixed = l->priced->mixed;
    ms_kind_blocks *own = &mixed->of[kinds];
    if (own->workload == NULL) {
        own->workload = ms_workload_of_kinds(l->explorer->workload, kinds);
        own->links = mixed->ideal ? ms_links_ideal(own->workload, &l->plan)
                                  : ms_links_make(own->workload, &l->plan);
    }
    modes &= ~own->modes;
    if (modes == 0)
        return;
    ms_bill_key key = ms_plan_bill_key(own->workload, &l->plan);
    ms_bill_set *bills = ms_workload_bills(own->workload, &key);
    ms_workload_add_modes(own->workload, bills, modes);
    ms_block_costs_price(own->workload, bills, &own->links, &l->plan, modes,
                         &own->blocks);
    own->modes |= modes;
    mixed->prices[kinds] = (ms_prices){own->workload, bills, &own->links, &own->blocks};
}

void ms_explore_price(ms_explore_level *l, unsigned modes)
{
    for (int i = 0; l->priced->mixed != NULL && i < l->split->num_ranks; i++)
        price_set(l, l->split->kinds[i], modes);
    modes &= ~l->priced->modes;
    if (modes == 0)
        return;
    ms_workload *workload = ms_explore_all_kinds(l);
    ms_bill_set *bills = l->bills;
    if (workload != l->explorer->workload) {
        ms_bill_key key = ms_plan_bill_key(workload, &l->plan);
        bills = ms_workload_bills(workload, &key);
    }
    ms_workload_add_modes(workload, bills, modes);
    ms_block_costs_price(workload, bills, l->links, &l->plan, modes, &l->priced->blocks);
    l->priced->modes |= modes;
}
