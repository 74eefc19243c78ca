/* MaxText: sizes of the mesh within and between slices, and the sharding over them. */
#include "costmodel/port/maxtext_priv.h"
#include "costmodel/port/script.h"

/* Axes of the mesh in the order of a plan's ranks, innermost first. */
typedef enum mesh_axis {
    TENSOR,
    SEQUENCE, /* tensor parallelism that splits sequences too, as Megatron's */
    CONTEXT,
    EXPERT,
    FSDP,
    TRANSPOSE, /* shards another dimension of parameters than `fsdp` does */
    DATA,
    PIPELINE,
    NUM_AXES
} mesh_axis;

/* Levels of the network: within a slice, between slices. */
enum {
    ICI,
    DCN,
    NUM_LEVELS
};

#define MAX_RANKS 16777216

#define KEYS_OF(axis)                                                                    \
    {                                                                                    \
        "ici_" axis "_parallelism", "dcn_" axis "_parallelism"                           \
    }
static const char *const axis_keys[NUM_AXES][NUM_LEVELS] = {
    [TENSOR] = KEYS_OF("tensor"),   [SEQUENCE] = KEYS_OF("tensor_sequence"),
    [CONTEXT] = KEYS_OF("context"), [EXPERT] = KEYS_OF("expert"),
    [FSDP] = KEYS_OF("fsdp"),       [TRANSPOSE] = KEYS_OF("fsdp_transpose"),
    [DATA] = KEYS_OF("data"),       [PIPELINE] = KEYS_OF("pipeline")};

/* Axes that no plan has: they must be 1. */
static const char *const other_keys[] = {"ici_diloco_parallelism",
                                         "dcn_diloco_parallelism",
                                         "ici_sequence_parallelism",
                                         "dcn_sequence_parallelism",
                                         "ici_context_autoregressive_parallelism",
                                         "dcn_context_autoregressive_parallelism",
                                         "ici_tensor_transpose_parallelism",
                                         "dcn_tensor_transpose_parallelism",
                                         "ici_autoregressive_parallelism",
                                         "dcn_autoregressive_parallelism",
                                         "ici_context_usp_ulysses_parallelism",
                                         "dcn_context_usp_ulysses_parallelism",
                                         NULL};

#define OVER_DATA "shard_optimizer_over_data"
#define ONCE      "pipeline_fsdp_ag_once"

const char *const ms_maxtext_mesh_keys[] = {"ici_fsdp_parallelism",
                                            "dcn_fsdp_parallelism",
                                            "ici_fsdp_transpose_parallelism",
                                            "ici_data_parallelism",
                                            "dcn_data_parallelism",
                                            "ici_tensor_parallelism",
                                            "dcn_tensor_parallelism",
                                            "ici_context_parallelism",
                                            "dcn_context_parallelism",
                                            "ici_pipeline_parallelism",
                                            "dcn_pipeline_parallelism",
                                            "ici_expert_parallelism",
                                            "dcn_expert_parallelism",
                                            "ici_tensor_sequence_parallelism",
                                            OVER_DATA,
                                            ONCE,
                                            NULL};
const int ms_maxtext_mesh_choices[] = {MS_CHOOSE_DP_REPLICATE,
                                       MS_CHOOSE_DP_SHARD,
                                       MS_CHOOSE_CP,
                                       MS_CHOOSE_TP,
                                       MS_CHOOSE_EP,
                                       MS_CHOOSE_ETP,
                                       MS_CHOOSE_ZERO,
                                       MS_CHOOSE_RESHARD,
                                       MS_CHOOSE_SEQUENCE_PARALLEL,
                                       -1};

/* ---- export ---- */

static long common_divisor(long a, long b)
{
    while (b != 0) {
        long rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Stage of ZeRO as it has effect: 0 with one rank that shares. */
static long stage_of(const ms_plan *plan)
{
    return plan->size[MS_DP_SHARD] * plan->size[MS_CP] > 1 ? plan->zero : 0;
}

/* States alone are sharded over data, where no other axis shards parameters; `context` and
 * `expert` shard them as `fsdp` does. */
static void leave_sharding(ms_port *port)
{
    const ms_plan *plan = port->plan;
    long zero = stage_of(plan);
    bool others = plan->size[MS_CP] > 1 || plan->ep > 1;
    if (zero == 2 || (zero < 3 && others))
        ms_port_leave_choice(port, MS_CHOOSE_ZERO);
    if (zero == 1 && plan->size[MS_DP_REPLICATE] > 1)
        ms_port_leave_choice(port, MS_CHOOSE_DP_REPLICATE);
    if (zero == 3 && !plan->reshard_after_forward && plan->size[MS_PP] == 1)
        ms_port_leave_choice(port, MS_CHOOSE_RESHARD);
    if (port->moe && plan->size[MS_TP] > 1 && plan->etp != plan->size[MS_TP])
        ms_port_leave_choice(port, MS_CHOOSE_ETP);
}

static void sizes_of(ms_port *port, long sizes[NUM_AXES])
{
    const ms_plan *plan = port->plan;
    long shard = plan->size[MS_DP_SHARD], ep = common_divisor(plan->ep, shard);
    bool shards = stage_of(plan) >= 2 || ep > 1;
    if (ep != plan->ep)
        ms_port_leave_choice(port, MS_CHOOSE_EP);
    for (int axis = 0; axis < NUM_AXES; axis++)
        sizes[axis] = 1;
    sizes[plan->sequence_parallel ? SEQUENCE : TENSOR] = plan->size[MS_TP];
    sizes[CONTEXT] = plan->size[MS_CP];
    sizes[EXPERT] = ep;
    sizes[FSDP] = shards ? shard / ep : 1;
    sizes[DATA] = plan->size[MS_DP_REPLICATE] * (shards ? 1 : shard);
    sizes[PIPELINE] = plan->size[MS_PP];
}

/* Fills slices with the innermost axes. An axis that neither fits in what is left of a
 * slice nor fills it would put ranks that are neighbours on other slices. */
static void put_levels(ms_port *port, const long sizes[NUM_AXES])
{
    long gpus = port->plan->gpus, left = port->gpus_per_node;
    bool crosses = left > 0 && left < gpus && gpus % left != 0;
    if (left <= 0 || left > gpus || crosses)
        left = gpus;
    long ici[NUM_AXES];
    for (int axis = 0; axis < NUM_AXES; axis++) {
        ici[axis] = common_divisor(sizes[axis], left);
        crosses = crosses || (ici[axis] != sizes[axis] && ici[axis] != left);
        left /= ici[axis];
    }
    if (crosses || left > 1)
        ms_port_leave_out(port, "ranks in this order on nodes of %ld GPUs",
                          port->gpus_per_node);
    for (int level = 0; level < NUM_LEVELS; level++) {
        for (int axis = NUM_AXES - 1; axis >= 0; axis--) {
            long size = level == ICI ? ici[axis] : sizes[axis] / ici[axis];
            bool is_rest = axis == (level == ICI ? FSDP : DATA);
            if (size > 1 || is_rest)
                ms_port_put_whole(port, axis_keys[axis][level], size);
        }
    }
}

void ms_maxtext_put_mesh(ms_port *port)
{
    const ms_plan *plan = port->plan;
    long sizes[NUM_AXES];
    leave_sharding(port);
    sizes_of(port, sizes);
    put_levels(port, sizes);
    if (stage_of(plan) == 1)
        ms_port_put(port, OVER_DATA, "true");
    if (stage_of(plan) == 3 && !plan->reshard_after_forward && plan->size[MS_PP] > 1)
        ms_port_put(port, ONCE, "true");
}

/* ---- import ---- */

typedef struct mesh {
    long size[NUM_LEVELS][NUM_AXES]; /* 0: takes the rest */
    int rest[NUM_LEVELS];            /* axis that takes the rest; -1: none */
    long product[NUM_LEVELS];        /* the other sizes multiplied */
} mesh;

/* One of two axes takes the rest by default, or both in the file. */
static ms_status fail_rests(ms_port *port, const char *key, const char *other)
{
    const ms_port_setting *setting = ms_port_find(port, key);
    if (setting == NULL)
        return ms_port_fail(port, ms_port_find(port, other), "%s takes the rest, too",
                            key);
    return ms_port_fail(port, setting, "%s takes the rest, too", other);
}

static ms_status take_level(ms_port *port, int level, mesh *m)
{
    m->rest[level] = -1;
    m->product[level] = 1;
    for (int axis = 0; axis < NUM_AXES; axis++) {
        const char *key = axis_keys[axis][level];
        long size = axis == (level == ICI ? FSDP : DATA) ? -1 : 1;
        MS_TRY(ms_port_take_whole(port, key, -1, MAX_RANKS, &size));
        if (size == 0)
            return ms_port_fail(port, ms_port_find(port, key), "0 ranks");
        if (size < 0 && m->rest[level] >= 0)
            return fail_rests(port, axis_keys[m->rest[level]][level], key);
        if (size < 0)
            m->rest[level] = axis;
        m->size[level][axis] = size < 0 ? 0 : size;
        m->product[level] *= size < 0 ? 1 : size;
        if (m->product[level] > MAX_RANKS)
            return ms_port_fail(port, ms_port_find(port, key), "more than %d ranks",
                                MAX_RANKS);
    }
    return MS_OK;
}

static ms_status refuse_others(ms_port *port)
{
    static const char *const off_keys[] = {"pipeline_delay_activation_forwarding",
                                           "pipeline_fsdp_ag_per_repeat",
                                           "parameter_memory_host_offload", NULL};
    for (int i = 0; other_keys[i] != NULL; i++) {
        long size = 1;
        MS_TRY(ms_port_take_whole(port, other_keys[i], -1, MAX_RANKS, &size));
        if (size != 1)
            return ms_port_fail(port, ms_port_find(port, other_keys[i]),
                                "no plan has this axis");
    }
    for (int i = 0; off_keys[i] != NULL; i++) {
        bool on = false;
        MS_TRY(ms_port_take_on(port, off_keys[i], &on));
        if (on)
            return ms_port_fail(port, ms_port_find(port, off_keys[i]),
                                "no plan does this");
    }
    return MS_OK;
}

/* Nodes, and GPUs of one, that the launcher starts; 0: the file does not say. */
static ms_status take_launched(ms_port *port, long *nodes, long *per_node)
{
    static const char *const gpu_keys[] = {"--gpus-per-node", NULL};
    static const char *const task_keys[] = {"--ntasks-per-node", NULL};
    static const char *const node_keys[] = {"--nodes", "-N", "--num-nodes", NULL};
    MS_TRY(ms_script_take_first(port, node_keys, nodes));
    MS_TRY(ms_script_take_first(port, gpu_keys, per_node));
    return *per_node > 0 ? MS_OK : ms_script_take_first(port, task_keys, per_node);
}

/* Slices of a job of `gpus`, some of whose axes take the rest; 0: not known. */
static long slices_of(ms_port *port, const mesh *m, long gpus, long nodes)
{
    if (m->rest[DCN] < 0)
        return m->product[DCN];
    if (m->rest[ICI] < 0)
        return gpus / m->product[ICI];
    if (nodes == 0 && !ms_port_is_given(port, MS_CHOOSE_DP_REPLICATE))
        ms_port_assume(port, "one slice of %ld devices: the file does not say how many",
                       gpus);
    return nodes > 0 ? nodes : 1;
}

/* GPUs of the job: the user's, or those of the mesh, or those that the launcher starts. */
static ms_status take_gpus(ms_port *port, const mesh *m, long *gpus, long *nodes)
{
    long per_node;
    MS_TRY(take_launched(port, nodes, &per_node));
    bool rests = m->rest[ICI] >= 0 || m->rest[DCN] >= 0;
    *gpus = port->gpus;
    if (*gpus > 0 && (rests || !port->overrides))
        return MS_OK;
    *gpus = m->product[ICI] * m->product[DCN];
    if (m->rest[ICI] >= 0)
        *gpus = *nodes * per_node;
    else if (m->rest[DCN] >= 0 && *nodes > 0 && per_node > 0)
        *gpus = *nodes * per_node;
    else if (m->rest[DCN] >= 0)
        ms_port_assume(port, "one slice: the file does not say how many");
    if (*gpus > MAX_RANKS)
        return ms_fail(port->cx, MS_EINPUT, port->settings->rows[0].loc,
                       "%ld GPUs are more than %d", *gpus, MAX_RANKS);
    if (*gpus == 0)
        return ms_port_fail_missing(port, "the number of GPUs",
                                    "--gpus N: ici_fsdp_parallelism or another axis "
                                    "takes the rest");
    return MS_OK;
}

/* Replaces the rests by sizes. */
static ms_status fill_rests(ms_port *port, mesh *m)
{
    long gpus, nodes;
    MS_TRY(take_gpus(port, m, &gpus, &nodes));
    long slices = slices_of(port, m, gpus, nodes);
    const char *file = port->settings->rows[0].loc.file;
    long of_level[NUM_LEVELS] = {slices > 0 ? gpus / slices : 0, slices};
    for (int level = 0; level < NUM_LEVELS; level++) {
        long rest = of_level[level] / m->product[level];
        bool fits = m->rest[level] >= 0 ? rest * m->product[level] == of_level[level]
                                        : m->product[level] == of_level[level];
        if (rest == 0 || !fits || of_level[ICI] * of_level[DCN] != gpus) {
            return ms_fail(port->cx, MS_EINPUT, (ms_loc){.file = file},
                           "axes of %ld ranks within slices and %ld between them do not "
                           "make %ld GPUs",
                           m->product[ICI], m->product[DCN], gpus);
        }
        if (m->rest[level] >= 0)
            m->size[level][m->rest[level]] = rest;
    }
    return MS_OK;
}

/* Whether ranks of a slice are neighbours in the plan: inside of the one axis that is both
 * within and between slices nothing is between, outside nothing within. */
static bool has_order_of_plan(const mesh *m)
{
    bool within = false;
    for (int axis = NUM_AXES - 1; axis >= 0; axis--) {
        if (within && m->size[DCN][axis] > 1)
            return false;
        within = within || m->size[ICI][axis] > 1;
    }
    return true;
}

/* Parameters are sharded over some axes, or states over data, or nothing. */
static ms_status take_sharding(ms_port *port, long data, long shards)
{
    ms_plan *plan = port->plan;
    bool over_data = false, once = false;
    MS_TRY(ms_port_take_on(port, OVER_DATA, &over_data));
    MS_TRY(ms_port_take_on(port, ONCE, &once));
    bool sharded = shards * plan->size[MS_CP] > 1;
    if (over_data && sharded && data > 1)
        return ms_port_fail(port, ms_port_find(port, OVER_DATA),
                            "parameters are sharded over some axes and states over "
                            "others: no plan has that");
    over_data = over_data && !sharded;
    plan->zero = sharded ? 3 : over_data && data > 1 ? 1 : 0;
    plan->size[MS_DP_SHARD] = over_data ? data : shards;
    plan->size[MS_DP_REPLICATE] = over_data ? 1 : data;
    plan->reshard_after_forward = !once || plan->zero < 3 || plan->size[MS_PP] == 1;
    return MS_OK;
}

/* Experts split over tensors, and over ranks of an axis that holds other data for all
 * other layers. */
static void take_experts(ms_port *port, long expert)
{
    ms_plan *plan = port->plan;
    plan->ep = port->moe ? expert : 1;
    plan->etp = port->moe ? plan->size[MS_TP] : 1;
    if (!port->moe && expert > 1)
        ms_port_assume(port, "ici_expert_parallelism as fsdp: the model has no experts");
}

ms_status ms_maxtext_take_mesh(ms_port *port)
{
    ms_plan *plan = port->plan;
    mesh m = {0};
    long size[NUM_AXES];
    MS_TRY(take_level(port, ICI, &m));
    MS_TRY(take_level(port, DCN, &m));
    MS_TRY(refuse_others(port));
    MS_TRY(fill_rests(port, &m));
    plan->gpus = 1;
    for (int axis = 0; axis < NUM_AXES; axis++) {
        size[axis] = m.size[ICI][axis] * m.size[DCN][axis];
        plan->gpus *= size[axis];
    }
    if (size[TENSOR] > 1 && size[SEQUENCE] > 1)
        return ms_fail(
            port->cx, MS_EINPUT, port->settings->rows[0].loc,
            "tensor and tensor_sequence parallelism at once: no plan has both");
    plan->size[MS_PP] = size[PIPELINE];
    plan->size[MS_CP] = size[CONTEXT];
    plan->size[MS_TP] = size[TENSOR] * size[SEQUENCE];
    plan->sequence_parallel = size[SEQUENCE] > 1;
    take_experts(port, size[EXPERT]);
    MS_TRY(take_sharding(port, size[DATA], size[FSDP] * size[TRANSPOSE] * size[EXPERT]));
    if (!has_order_of_plan(&m))
        ms_port_assume(port,
                       "ranks of a node are neighbours in the order pipeline, data, "
                       "fsdp, expert, context, tensor, unlike ici_ and dcn_ sizes");
    if (port->gpus > 0 && plan->gpus != port->gpus)
        return ms_port_fit_ranks(port, port->gpus);
    return MS_OK;
}
