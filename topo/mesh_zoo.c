/* Tables of axis names, of combinations of axes larger than 1, and of uses of axes. */
#include "topo/mesh_zoo.h"

#include <string.h>

/* ---- names ---- */

#define MAX_NAMES 4

/* Names of roles: the canonical one, then aliases. */
static const char *const role_names[MS_NUM_AXIS_ROLES][MAX_NAMES] = {
    [MS_AXIS_PP] = {"pp", "pipe", "pipeline", "stage"},
    [MS_AXIS_DP] = {"dp", "ddp", "batch", "data"},
    [MS_AXIS_DP_REPLICATE] = {"dp_replicate", "replicate"},
    [MS_AXIS_DP_SHARD] = {"dp_shard", "fsdp", "shard"},
    [MS_AXIS_DP_SHARD_MOD_EP] = {"dp_shard_mod_ep"},
    [MS_AXIS_DP_SHARD_IN_EP] = {"dp_shard_in_ep"},
    [MS_AXIS_CP] = {"cp", "context"},
    [MS_AXIS_SP] = {"sp", "ulysses"},
    [MS_AXIS_TP] = {"tp", "model", "tensor"},
    [MS_AXIS_EFSDP] = {"efsdp"},
    [MS_AXIS_EP] = {"ep", "expert"},
    [MS_AXIS_ETP] = {"etp"},
};

const char *ms_axis_role_name(ms_axis_role role)
{
    return role_names[role][0];
}

static bool same_name(const char *a, const char *b)
{
    for (; *a != '\0' && *b != '\0'; a++, b++)
        if ((*a == '-' ? '_' : *a) != *b)
            return false;
    return *a == *b;
}

ms_axis_role ms_axis_role_find(const char *name)
{
    for (int role = 0; role < MS_NUM_AXIS_ROLES; role++)
        for (int i = 0; i < MAX_NAMES && role_names[role][i] != NULL; i++)
            if (same_name(name, role_names[role][i]))
                return (ms_axis_role)role;
    return MS_AXIS_OTHER;
}

const char *ms_axis_role_nearest(const char *name)
{
    const char *names[MS_NUM_AXIS_ROLES * MAX_NAMES];
    int num = 0;
    for (int role = 0; role < MS_NUM_AXIS_ROLES; role++)
        for (int i = 0; i < MAX_NAMES && role_names[role][i] != NULL; i++)
            names[num++] = role_names[role][i];
    return ms_nearest(name, names, num);
}

/* ---- roles of a mesh ---- */

int ms_mesh_find_role(const ms_mesh *mesh, const ms_axis_role *roles, ms_axis_role role)
{
    for (int i = 0; i < mesh->num_axes; i++)
        if (roles[i] == role)
            return i;
    return -1;
}

/* Sets the role of an axis "dp": replicas in [dp, fsdp], shards in [replicate, dp]. */
static void resolve_dp(const ms_mesh *mesh, ms_axis_role *roles)
{
    int dp = ms_mesh_find_role(mesh, roles, MS_AXIS_DP);
    if (dp < 0)
        return;
    if (ms_mesh_find_role(mesh, roles, MS_AXIS_DP_SHARD) >= 0 ||
        ms_mesh_find_role(mesh, roles, MS_AXIS_DP_SHARD_IN_EP) >= 0 ||
        ms_mesh_find_role(mesh, roles, MS_AXIS_DP_SHARD_MOD_EP) >= 0)
        roles[dp] = MS_AXIS_DP_REPLICATE;
    else if (ms_mesh_find_role(mesh, roles, MS_AXIS_DP_REPLICATE) >= 0)
        roles[dp] = MS_AXIS_DP_SHARD;
}

static ms_status refuse_twice(ms_ctx *cx, const ms_mesh *mesh, int first, int second,
                              ms_axis_role role)
{
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the axes %s and %s are both %s",
            mesh->axes[first].name, mesh->axes[second].name, ms_axis_role_name(role));
    return ms_hint(cx, "keep one of them; a name outside the zoo may stand for anything");
}

static ms_status check_roles(ms_ctx *cx, const ms_mesh *mesh, const ms_axis_role *roles)
{
    for (int i = 0; i < mesh->num_axes; i++)
        for (int k = 0; k < i; k++)
            if (roles[i] == roles[k] && roles[i] != MS_AXIS_OTHER)
                return refuse_twice(cx, mesh, k, i, roles[i]);
    int whole = ms_mesh_find_role(mesh, roles, MS_AXIS_DP_SHARD);
    int part = ms_mesh_find_role(mesh, roles, MS_AXIS_DP_SHARD_IN_EP);
    if (part < 0)
        part = ms_mesh_find_role(mesh, roles, MS_AXIS_DP_SHARD_MOD_EP);
    if (whole < 0 || part < 0)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the axis %s stands beside %s, a part of it",
            mesh->axes[whole].name, mesh->axes[part].name);
    return ms_hint(cx, "either dp_shard, or dp_shard_mod_ep and dp_shard_in_ep");
}

ms_status ms_mesh_roles(ms_ctx *cx, const ms_mesh *mesh, ms_axis_role roles[MS_MAX_AXES])
{
    for (int i = 0; i < mesh->num_axes; i++)
        roles[i] = ms_axis_role_find(mesh->axes[i].name);
    resolve_dp(mesh, roles);
    return check_roles(cx, mesh, roles);
}

/* ---- compositions ---- */

const ms_zoo_row ms_zoo_rows[MS_NUM_ZOO_ROWS] = {
    {1, "DDP", "[dp]", "any"},
    {2, "ZeRO-1", "[dp]", "any"},
    {3, "ZeRO-2", "[dp]", "any"},
    {4, "FSDP (ZeRO-3)", "[dp_shard]", "any"},
    {5, "HSDP", "[dp_replicate, dp_shard]",
     "shards inside, where links are fast; replicas bound the rings and may drop out"},
    {6, "DP + TP", "[dp, tp]",
     "computation waits for tensor-parallel traffic: tp innermost"},
    {7, "DP + TP with sequence parallelism", "[dp, tp]", "as row 6: no axis is added"},
    {8, "FSDP or HSDP + TP", "[dp_replicate, dp_shard, tp]",
     "weights are cut over tp first; FSDP shards what each tp rank holds"},
    {9, "DP + Ulysses", "[dp, sp]", "sp takes heads as tp would: instead of tp, inside"},
    {10, "DP + CP", "[dp, cp]", "inside data parallelism, outside tp"},
    {11, "DP + CP + TP", "[dp, cp, tp]", "cp cuts the sequence, tp the width"},
    {12, "PP + DP + ...", "[pp, dp, ...] or [dp, pp, ...]",
     "few bytes between stages, so pp may take the slowest links"},
    {13, "all, dense", "[pp, dp_replicate, dp_shard, cp, tp]",
     "the more bytes, the further in"},
    {14, "all, with experts on one mesh",
     "[pp, dp_replicate, dp_shard_mod_ep, dp_shard_in_ep, cp, tp]",
     "experts take cp and the inner part of dp_shard"},
    {15, "all, with experts on a mesh of their own",
     "[pp, dp_replicate, dp_shard, cp, tp] and [pp, dp_replicate, efsdp, ep]",
     "experts take the innermost ranks, whatever they do elsewhere"},
};

/* Which roles axes of size > 1 have in a mesh, and what follows for its strategy name. */
typedef struct composition {
    bool has[MS_NUM_AXIS_ROLES];
    bool dp;     /* true if any axis is data-parallel */
    bool hybrid; /* true for replicas of shards (HSDP) */
    long zero;   /* ZeRO stage 0..3 */
} composition;

static composition composition_of(const ms_mesh *mesh, const ms_axis_role *roles,
                                  const ms_zoo_choices *choices)
{
    composition m = {0};
    for (int i = 0; i < mesh->num_axes; i++)
        if (mesh->axes[i].size > 1)
            m.has[roles[i]] = true;
    bool shards = m.has[MS_AXIS_DP_SHARD] || m.has[MS_AXIS_DP_SHARD_MOD_EP] ||
                  m.has[MS_AXIS_DP_SHARD_IN_EP] || m.has[MS_AXIS_EFSDP];
    m.dp = shards || m.has[MS_AXIS_DP] || m.has[MS_AXIS_DP_REPLICATE];
    m.zero = choices->zero >= 0 ? choices->zero : shards ? 3 : 0;
    bool shards_over_context = m.has[MS_AXIS_CP] || m.has[MS_AXIS_SP];
    if (m.has[MS_AXIS_DP_REPLICATE] && !shards && !shards_over_context)
        m.zero = 0; /* replicas alone: no axis to shard over */
    m.hybrid = m.has[MS_AXIS_DP_REPLICATE] && m.zero > 0;
    m.has[MS_AXIS_EP] =
        m.has[MS_AXIS_EP] || m.has[MS_AXIS_DP_SHARD_IN_EP] || choices->ep > 1;
    return m;
}

long ms_mesh_zero(const ms_mesh *mesh, const ms_axis_role *roles,
                  const ms_zoo_choices *choices)
{
    return composition_of(mesh, roles, choices).zero;
}

static const char *data_parallel_name(ms_arena *arena, const composition *m)
{
    static const char *const names[] = {"DDP", "ZeRO-1", "ZeRO-2", "FSDP"};
    if (!m->hybrid)
        return names[m->zero];
    return m->zero == 3 ? "HSDP"
                        : ms_arena_printf(arena, "replicas of ZeRO-%ld", m->zero);
}

static const char *joined(ms_arena *arena, const char *text, const char *part)
{
    return text[0] == '\0' ? part : ms_arena_printf(arena, "%s + %s", text, part);
}

static const char *strategy_name(ms_arena *arena, const composition *m,
                                 const ms_zoo_choices *choices)
{
    const char *text = m->has[MS_AXIS_PP] ? "PP" : "";
    if (m->dp)
        text = joined(arena, text, data_parallel_name(arena, m));
    if (m->has[MS_AXIS_CP])
        text = joined(arena, text, "CP");
    if (m->has[MS_AXIS_SP])
        text = joined(arena, text, "Ulysses");
    if (m->has[MS_AXIS_TP])
        text = joined(arena, text,
                      choices->sequence_parallel ? "TP with sequence parallelism" : "TP");
    if (m->has[MS_AXIS_EP])
        text = joined(arena, text, "EP");
    if (m->has[MS_AXIS_EFSDP] || m->has[MS_AXIS_ETP])
        text = joined(arena, text, "sharded experts");
    if (m->has[MS_AXIS_OTHER])
        text = joined(arena, text, "axes of other names");
    return text[0] == '\0' ? "one rank" : text;
}

static int expert_row(const composition *m, const ms_zoo_choices *choices)
{
    bool one_mesh = m->has[MS_AXIS_DP_SHARD_IN_EP] || m->has[MS_AXIS_DP_SHARD_MOD_EP] ||
                    choices->ep_generation < 3;
    return one_mesh ? 14 : 15;
}

static int inner_row(const composition *m, const ms_zoo_choices *choices)
{
    bool cp = m->has[MS_AXIS_CP], tp = m->has[MS_AXIS_TP], sp = m->has[MS_AXIS_SP];
    if (sp)
        return cp || tp ? 0 : 9;
    if (cp)
        return tp ? 11 : 10;
    if (tp && m->zero == 3)
        return 8;
    if (tp)
        return choices->sequence_parallel ? 7 : 6;
    return m->hybrid && m->zero == 3 ? 5 : 1 + (int)m->zero;
}

static int row_of(const composition *m, const ms_zoo_choices *choices)
{
    if (m->has[MS_AXIS_OTHER])
        return 0;
    if (m->has[MS_AXIS_EP])
        return expert_row(m, choices);
    if (!m->dp || m->has[MS_AXIS_EFSDP] || m->has[MS_AXIS_ETP])
        return 0;
    if (m->has[MS_AXIS_PP]) {
        bool all = m->has[MS_AXIS_CP] && m->has[MS_AXIS_TP];
        return all ? 13 : 12;
    }
    return inner_row(m, choices);
}

ms_zoo_row ms_mesh_strategy(ms_arena *arena, const ms_mesh *mesh,
                            const ms_axis_role *roles, const ms_zoo_choices *choices)
{
    composition m = composition_of(mesh, roles, choices);
    int row = row_of(&m, choices);
    ms_zoo_row found = row > 0 ? ms_zoo_rows[row - 1] : (ms_zoo_row){0};
    found.name = strategy_name(arena, &m, choices);
    return found;
}

/* ---- uses of an axis ---- */

static const ms_axis_use data_parallel_uses[] = {
    {"the batch", "",
     "all-reduce of gradients, bucket by bucket, overlapped with the last backward", "",
     "outside tp and cp: its traffic hides behind the backward pass"},
    {"the batch; optimizer states", "",
     "reduce-scatter of gradients, overlapped with the last backward",
     "all-gather of the updated parameters",
     "outside tp and cp: its traffic hides behind the backward pass"},
    {"the batch; optimizer states and gradients", "",
     "reduce-scatter of gradients, in every backward",
     "all-gather of the updated parameters",
     "outside tp and cp: its traffic hides behind the backward pass"},
    {"the batch; parameters, gradients and optimizer states",
     "all-gather of parameters, unit by unit, ahead of their use",
     "all-gather of parameters again; reduce-scatter of gradients", "",
     "outside tp and cp: parameters are gathered ahead of their use"},
};

static const ms_axis_use uses[MS_NUM_AXIS_ROLES] = {
    [MS_AXIS_OTHER] = {"unknown: the name is not in the mesh zoo", "", "", "", ""},
    [MS_AXIS_PP] = {"layers, into stages", "sends activations to the next stage",
                    "sends their gradients to the previous stage", "",
                    "outermost: few bytes, between neighbours only"},
    [MS_AXIS_CP] = {"the sequence, for everything",
                    "all-gather of keys and values (or a ring of sends)",
                    "reduce-scatter of their gradients (or the ring again)",
                    "gradients of parameters are reduced over it too",
                    "inside data parallelism, outside tp"},
    [MS_AXIS_SP] = {"the sequence; heads inside attention",
                    "all-to-all before attention (sequence to heads) and after (back)",
                    "the same two all-to-alls, in the other direction",
                    "gradients of parameters are reduced over it too",
                    "innermost, instead of tp: both take heads"},
    [MS_AXIS_TP] = {"heads and widths of each layer",
                    "all-reduce after attention and after the MLP",
                    "all-reduce of the gradients that enter attention and MLP", "",
                    "innermost: computation waits for its traffic"},
    [MS_AXIS_DP_SHARD_MOD_EP] = {"the batch; dense and expert parameters", "as dp_shard",
                                 "as dp_shard; alone it shards experts", "",
                                 "the part of dp_shard that experts leave"},
    [MS_AXIS_DP_SHARD_IN_EP] = {"the batch; dense parameters; experts", "as dp_shard",
                                "as dp_shard; part of the expert group", "",
                                "the part of dp_shard that experts take"},
    [MS_AXIS_EP] = {"experts", "all-to-all of tokens to their experts, and back",
                    "the same two all-to-alls for the gradients", "",
                    "innermost: computation waits for its traffic"},
    [MS_AXIS_ETP] = {"the width of each expert",
                     "gather of tokens; reduce-scatter of results",
                     "the conjugate collectives", "", "innermost, inside ep"},
};

static const ms_axis_use expert_replica_uses[] = {
    {"the tokens of an expert", "", "all-reduce of expert gradients", "",
     "outside ep, on the ranks that experts leave"},
    {"the tokens of an expert; its optimizer states", "",
     "reduce-scatter of expert gradients", "all-gather of the updated expert parameters",
     "outside ep, on the ranks that experts leave"},
    {"the tokens of an expert; its optimizer states and gradients", "",
     "reduce-scatter of expert gradients, in every backward",
     "all-gather of the updated expert parameters",
     "outside ep, on the ranks that experts leave"},
    {"expert parameters, gradients and optimizer states",
     "all-gather of expert parameters",
     "all-gather again; reduce-scatter of their gradients", "",
     "outside ep, on the ranks that experts leave"},
};

static const ms_axis_use sequence_parallel_use = {
    "heads and widths of each layer; the sequence between them",
    "all-gather before, reduce-scatter after attention and MLP",
    "their conjugates, and the gather once more", "all-reduce of the gradients of norms",
    "innermost: computation waits for its traffic"};

static const ms_axis_use replica_use = {
    "the batch", "", "all-reduce of the shards of gradients, after their reduce-scatter",
    "", "outside dp_shard: the fewest bytes over the slowest links"};

ms_axis_use ms_axis_use_of(const ms_mesh *mesh, const ms_axis_role *roles,
                           ms_axis_role role, const ms_zoo_choices *choices)
{
    composition m = composition_of(mesh, roles, choices);
    if (role == MS_AXIS_TP && choices->sequence_parallel)
        return sequence_parallel_use;
    if (role == MS_AXIS_DP_REPLICATE)
        return m.hybrid ? replica_use : data_parallel_uses[0];
    if (role == MS_AXIS_DP || role == MS_AXIS_DP_SHARD)
        return data_parallel_uses[m.zero];
    if (role == MS_AXIS_EFSDP)
        return expert_replica_uses[m.zero];
    return uses[role];
}
