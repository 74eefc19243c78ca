/* Derives axes by layout algebra. Flattening joins modes. The innermost k of an axis's n
 * ranks are axis o k:1 (composition); what remains of it is axis o (n/k):k. */
#include "topo/mesh_derive.h"

#include <assert.h>

#define BIT(role) (1u << (role))

static const unsigned sharded = BIT(MS_AXIS_DP) | BIT(MS_AXIS_DP_SHARD) |
                                BIT(MS_AXIS_DP_SHARD_MOD_EP) |
                                BIT(MS_AXIS_DP_SHARD_IN_EP);
static const unsigned context = BIT(MS_AXIS_CP) | BIT(MS_AXIS_SP);

typedef struct deriving {
    ms_ctx *cx;
    const ms_mesh *mesh;
    const ms_axis_role *roles;
    const ms_zoo_choices *choices;
    ms_derived *out;
} deriving;

static bool in_mask(unsigned mask, ms_axis_role role)
{
    return (mask & BIT(role)) != 0 && role != MS_AXIS_OTHER;
}

static bool mesh_has(const deriving *d, unsigned mask)
{
    for (int i = 0; i < d->mesh->num_axes; i++)
        if (in_mask(mask, d->roles[i]))
            return true;
    return false;
}

static long size_of(const deriving *d, unsigned mask)
{
    long size = 1;
    for (int i = 0; i < d->mesh->num_axes; i++)
        if (in_mask(mask, d->roles[i]))
            size *= d->mesh->axes[i].size;
    return size;
}

/* The axes in a mask as text: "dp_shard x cp", with sizes "dp_shard 2 x cp 4". */
static const char *names_of(const deriving *d, unsigned mask, bool sizes)
{
    const char *text = "";
    ms_arena *arena = d->cx->arena;
    for (int i = 0; i < d->mesh->num_axes; i++) {
        if (!in_mask(mask, d->roles[i]))
            continue;
        const ms_mesh_axis *axis = &d->mesh->axes[i];
        text = ms_arena_printf(arena, "%s%s%s", text, text[0] == '\0' ? "" : " x ",
                               axis->name);
        if (sizes)
            text = ms_arena_printf(arena, "%s %ld", text, axis->size);
    }
    return text;
}

static ms_layout join(ms_ctx *cx, const ms_layout *modes, int num_modes)
{
    ms_layout whole = ms_layout_make(MS_LEXICOGRAPHIC, 1, 0);
    if (num_modes == 1)
        return modes[0];
    if (num_modes > 1)
        /* cannot fail: the ranks of a mesh fit a long */
        (void)ms_layout_join(cx, modes, num_modes, &whole);
    return whole;
}

ms_layout ms_mesh_layout(ms_ctx *cx, const ms_mesh *mesh, const ms_axis_role *roles,
                         unsigned mask)
{
    ms_layout modes[MS_MAX_AXES];
    int num_modes = 0;
    for (int i = 0; i < mesh->num_axes; i++) {
        const ms_mesh_axis *axis = &mesh->axes[i];
        if (in_mask(mask, roles[i]) && axis->size > 1)
            modes[num_modes++] =
                ms_layout_make(MS_LEXICOGRAPHIC, axis->size, axis->stride);
    }
    return join(cx, modes, num_modes);
}

static ms_layout layout_of(const deriving *d, unsigned mask)
{
    return ms_mesh_layout(d->cx, d->mesh, d->roles, mask);
}

static ms_derived_axis *add_axis(const deriving *d, const char *name,
                                 const char *used_for, ms_layout layout)
{
    ms_derived_axis *axis = &d->out->axes[d->out->num++];
    *axis = (ms_derived_axis){
        .name = name, .made_of = "", .used_for = used_for, .layout = layout};
    return axis;
}

static void add_flat(const deriving *d, const char *name, const char *old_name,
                     const char *used_for, unsigned mask)
{
    ms_derived_axis *axis = add_axis(d, name, used_for, layout_of(d, mask));
    axis->old_name = old_name;
    axis->made_of = names_of(d, mask, false);
}

/* Collectives along fsdp or efsdp: [ZeRO stage 0..3][0: fsdp, 1: efsdp] */
static const char *const sharded_uses[][2] = {
    {"all-reduce of gradients, as nothing is sharded",
     "all-reduce of expert gradients, as nothing is sharded"},
    {"reduce-scatter of gradients, all-gather of the updated parameters",
     "reduce-scatter of expert gradients, all-gather of the updated parameters"},
    {"reduce-scatter of gradients, all-gather of the updated parameters",
     "reduce-scatter of expert gradients, all-gather of the updated parameters"},
    {"all-gather of parameters, reduce-scatter of gradients",
     "all-gather of expert parameters, reduce-scatter of their gradients"},
};

static const char *sharded_use(const deriving *d, bool of_experts)
{
    return sharded_uses[ms_mesh_zero(d->mesh, d->roles, d->choices)][of_experts];
}

static void add_data_parallel(const deriving *d)
{
    const unsigned batch = sharded | BIT(MS_AXIS_DP_REPLICATE);
    if (mesh_has(d, batch))
        add_flat(d, "batch", "dp", "different sequences of the batch; no traffic", batch);
    if (mesh_has(d, batch | context))
        add_flat(d, "loss", "dp_cp",
                 "all-reduce of the loss, and of gradients that are not sharded",
                 batch | context);
    bool shards = mesh_has(d, sharded & ~BIT(MS_AXIS_DP)) ||
                  ms_mesh_zero(d->mesh, d->roles, d->choices) > 0;
    if (shards && mesh_has(d, sharded | context))
        add_flat(d, "fsdp", "dp_shard_cp", sharded_use(d, false), sharded | context);
}

/* ---- experts ---- */

/* Splits an axis into its innermost `size` ranks and the rest; false if not possible. */
static bool split_axis(const deriving *d, ms_layout flat, long size, ms_layout *inner,
                       ms_layout *outer)
{
    ms_ctx scratch = {.arena = d->cx->arena};
    ms_layout whole = ms_layout_coalesce(d->cx->arena, flat);
    return ms_layout_compose(&scratch, whole, ms_layout_make(MS_LEXICOGRAPHIC, size, 1),
                             inner) == MS_OK &&
           ms_layout_compose(&scratch, whole,
                             ms_layout_make(MS_LEXICOGRAPHIC, flat.size / size, size),
                             outer) == MS_OK;
}

/* Divisors of `number` that are multiples of `step`, as text "1 2 4 8". */
static const char *divisors_text(ms_arena *arena, long number, long step)
{
    const char *text = "";
    for (long i = step; i <= number && i <= 1024; i += step)
        if (number % i == 0)
            text = ms_arena_printf(arena, "%s%s%ld", text, text[0] == '\0' ? "" : " ", i);
    return text;
}

static ms_status refuse_division(const deriving *d, unsigned mask, long step)
{
    long ep = d->choices->ep;
    if (!mesh_has(d, mask)) {
        return ms_fail(d->cx, MS_EINPUT, MS_NOWHERE,
                       "ep %ld needs an axis dp_shard, cp or tp to take its ranks from",
                       ep);
    }
    if (ep % step != 0) {
        ms_fail(d->cx, MS_EINPUT, MS_NOWHERE,
                "ep %ld is no multiple of %ld, the ranks of cp%s that it takes whole in "
                "generation %d",
                ep, step, d->choices->ep_generation == 2 ? " and tp" : "",
                d->choices->ep_generation);
    } else {
        ms_fail(d->cx, MS_EINPUT, MS_NOWHERE, "ep %ld does not divide %s = %ld ranks", ep,
                names_of(d, mask, true), size_of(d, mask));
    }
    ms_hint(d->cx, "ep may be one of %s",
            divisors_text(d->cx->arena, size_of(d, mask), step));
    return MS_EINPUT;
}

/* Adds edp, the replicas of experts: dp_replicate and efsdp, outer axis first. */
static void add_expert_replicas(const deriving *d, ms_layout efsdp)
{
    int replicate = ms_mesh_find_role(d->mesh, d->roles, MS_AXIS_DP_REPLICATE);
    if (replicate < 0 || d->mesh->axes[replicate].size == 1)
        return;
    ms_layout pair[2] = {layout_of(d, BIT(MS_AXIS_DP_REPLICATE)), efsdp};
    int num_modes = efsdp.size > 1 ? 2 : 1;
    if (num_modes == 2 && ms_layout_cosize(pair[1]) > ms_layout_cosize(pair[0])) {
        pair[0] = efsdp;
        pair[1] = layout_of(d, BIT(MS_AXIS_DP_REPLICATE));
    }
    ms_derived_axis *axis =
        add_axis(d, "edp", "all-reduce of expert gradients that are not sharded",
                 join(d->cx, pair, num_modes));
    axis->made_of =
        ms_arena_printf(d->cx->arena, "%s x efsdp", d->mesh->axes[replicate].name);
}

/* Adds etp, tensor parallelism inside experts, unless ep takes the ranks of tp. */
static void add_expert_width(const deriving *d, unsigned mask)
{
    if ((mask & BIT(MS_AXIS_TP)) != 0 || size_of(d, BIT(MS_AXIS_TP)) == 1)
        return;
    add_flat(d, "etp", NULL, "the width of each expert: traffic as tp", BIT(MS_AXIS_TP));
    d->out->axes[d->out->num - 1].role = MS_AXIS_ETP;
}

static void add_expert_axes(const deriving *d, unsigned mask, ms_layout ep,
                            ms_layout efsdp)
{
    ms_arena *arena = d->cx->arena;
    ms_derived_axis *axis =
        add_axis(d, "ep", "all-to-all of tokens, to their experts and back", ep);
    axis->made_of = ms_arena_printf(arena, "the innermost %ld of %s", ep.size,
                                    names_of(d, mask, false));
    axis->role = MS_AXIS_EP;
    axis = add_axis(d, "efsdp", sharded_use(d, true), efsdp);
    axis->made_of = ms_arena_printf(arena, "the other %ld of %s", efsdp.size,
                                    names_of(d, mask, false));
    axis->role = MS_AXIS_EFSDP;
    if (d->choices->ep_generation < 3)
        axis->old_name = "dp_shard_mod_ep";
    add_expert_replicas(d, efsdp);
    add_expert_width(d, mask);
}

/* Whether `mask` has dp_shard, cp, tp in this order, as generations 1 and 2 require. */
static bool axes_nest(const deriving *d, unsigned mask)
{
    static const ms_axis_role order[] = {MS_AXIS_DP, MS_AXIS_DP_SHARD, MS_AXIS_CP,
                                         MS_AXIS_SP, MS_AXIS_TP};
    int last = 0;
    for (int i = 0; i < d->mesh->num_axes; i++) {
        if (!in_mask(mask, d->roles[i]) || d->mesh->axes[i].size == 1)
            continue;
        int place = 0;
        while (order[place] != d->roles[i])
            place++;
        if (place < last)
            return false;
        last = place;
    }
    return true;
}

static ms_status refuse_split(const deriving *d, unsigned mask)
{
    ms_fail(d->cx, MS_EINPUT, MS_NOWHERE,
            "ep %ld cuts the ranks of %s unevenly in this order of axes", d->choices->ep,
            names_of(d, mask, true));
    return ms_hint(d->cx, "dp_shard, cp, tp innermost and in this order always work");
}

/* Adds dp_shard_in_ep: those inner ranks of dp_shard that ep has besides cp and tp. */
static void add_dp_shard_in_ep(const deriving *d, long step)
{
    ms_layout inner, outer, shard = layout_of(d, sharded);
    long size = d->choices->ep / step;
    if (d->choices->ep_generation == 3 || !split_axis(d, shard, size, &inner, &outer))
        return;
    ms_derived_axis *axis =
        add_axis(d, "dp_shard_in_ep", "the part of dp_shard that experts take", inner);
    axis->made_of = ms_arena_printf(d->cx->arena, "the innermost %ld of %s", size,
                                    names_of(d, sharded, false));
}

static ms_status derive_experts(const deriving *d, unsigned mask, long step)
{
    long ep = d->choices->ep;
    assert(ep >= 1 && step >= 1);
    ms_layout inner, outer, flat = layout_of(d, mask);
    if (!mesh_has(d, mask) || ep % step != 0 || flat.size % ep != 0)
        return refuse_division(d, mask, step);
    if (d->choices->ep_generation < 3 && !axes_nest(d, mask))
        return refuse_split(d, mask);
    if (!split_axis(d, flat, ep, &inner, &outer))
        return refuse_split(d, mask);
    add_expert_axes(d, mask, inner, outer);
    add_dp_shard_in_ep(d, step);
    return MS_OK;
}

static ms_status check_etp(const deriving *d)
{
    long tp = size_of(d, BIT(MS_AXIS_TP)), etp = d->choices->etp;
    if (etp != 0 && etp != 1 && etp != tp)
        return ms_fail(d->cx, MS_EINPUT, MS_NOWHERE, "etp is %ld, must be 1 or tp (%ld)",
                       etp, tp);
    if (d->choices->ep_generation == 1 && etp == 1 && tp > 1) {
        return ms_fail(
            d->cx, MS_EINPUT, MS_NOWHERE,
            "generation 1 keeps tensor parallelism inside experts: etp must be tp "
            "(%ld), not 1",
            tp);
    }
    return MS_OK;
}

/* Derives expert axes of a mesh that has dp_shard_in_ep: ep is dp_shard_in_ep x cp, also
 * x tp if experts are not split over tp. */
static ms_status derive_one_mesh(const deriving *d)
{
    unsigned mask = BIT(MS_AXIS_DP_SHARD_IN_EP) | context;
    long ep = size_of(d, mask), tp = size_of(d, BIT(MS_AXIS_TP));
    bool whole = d->choices->ep > 1 ? d->choices->ep == ep * tp : d->choices->etp == 1;
    if (d->choices->ep > 1 && d->choices->ep != ep && !whole) {
        ms_fail(d->cx, MS_EINPUT, MS_NOWHERE, "ep is %ld, but %s = %ld ranks",
                d->choices->ep, names_of(d, mask, true), ep);
        return ms_hint(d->cx, "leave out --ep: these axes determine it");
    }
    mask |= whole ? BIT(MS_AXIS_TP) : 0;
    ms_derived_axis *axis = add_axis(
        d, "ep", "all-to-all of tokens, to their experts and back", layout_of(d, mask));
    axis->made_of = names_of(d, mask, false);
    axis->role = MS_AXIS_EP;
    add_flat(d, "efsdp", NULL, sharded_use(d, true), BIT(MS_AXIS_DP_SHARD_MOD_EP));
    add_expert_replicas(d, layout_of(d, BIT(MS_AXIS_DP_SHARD_MOD_EP)));
    add_expert_width(d, mask);
    d->out->ep_generation = whole && tp > 1 ? 2 : 1;
    return MS_OK;
}

static ms_status derive_two_meshes(const deriving *d)
{
    MS_TRY(check_etp(d));
    long etp = d->choices->etp, tp = size_of(d, BIT(MS_AXIS_TP));
    bool keeps_tp = d->choices->ep_generation == 1 || (etp == tp && tp > 1);
    unsigned mask = sharded | context | (keeps_tp ? 0 : BIT(MS_AXIS_TP));
    long step = 1;
    if (d->choices->ep_generation < 3)
        step = size_of(d, context) * (keeps_tp ? 1 : tp);
    d->out->ep_generation = d->choices->ep_generation;
    return derive_experts(d, mask, step);
}

/* Derives edp in a mesh of experts alone; dense layers have a mesh of their own. */
static ms_status derive_beside_experts(const deriving *d, int ep)
{
    if (ep >= 0 && d->choices->ep > 1 && d->choices->ep != d->mesh->axes[ep].size) {
        ms_fail(d->cx, MS_EINPUT, MS_NOWHERE,
                "ep is %ld, but the mesh has an axis %s of size %ld", d->choices->ep,
                d->mesh->axes[ep].name, d->mesh->axes[ep].size);
        return ms_hint(d->cx, "leave out one of them");
    }
    if (mesh_has(d, BIT(MS_AXIS_EFSDP)))
        add_expert_replicas(d, layout_of(d, BIT(MS_AXIS_EFSDP)));
    return MS_OK;
}

ms_status ms_mesh_derive(ms_ctx *cx, const ms_mesh *mesh, const ms_axis_role *roles,
                         const ms_zoo_choices *choices, ms_derived *out)
{
    const unsigned experts = BIT(MS_AXIS_EP) | BIT(MS_AXIS_EFSDP) | BIT(MS_AXIS_ETP);
    const unsigned parts = BIT(MS_AXIS_DP_SHARD_IN_EP) | BIT(MS_AXIS_DP_SHARD_MOD_EP);
    deriving d = {cx, mesh, roles, choices, out};
    *out = (ms_derived){0};
    if (mesh_has(&d, experts))
        return derive_beside_experts(&d, ms_mesh_find_role(mesh, roles, MS_AXIS_EP));
    add_data_parallel(&d);
    if (mesh_has(&d, parts))
        return derive_one_mesh(&d);
    return choices->ep > 1 || choices->etp > 1 ? derive_two_meshes(&d) : MS_OK;
}
