/* Adds to a step's task graph the links, HBM and SMs that concurrent tasks share. */
#include "sim/simulate/step_graph_priv.h"

#include "base/number.h"
#include "sim/simulate/interference.h"

#include <math.h>

/* Bandwidth, bytes/s, of a link for all concurrent collectives: outside the scale-up
 * network the profile's fraction of the listed rate, as for a single collective. */
static double reached_bytes_per_s(const ms_workload *workload, const ms_link *link)
{
    const ms_network_profile *network =
        ms_profile_network(workload->profile, workload->cluster->network);
    if (network == NULL || link->level == 0)
        return link->bytes_per_s;
    return link->bytes_per_s * network->bandwidth_frac.value;
}

void ms_step_share(ms_step_builder *s, ms_link_uses *uses)
{
    const ms_workload *workload = s->planned->workload;
    int *class_link = MS_NEW_ARRAY(s->scratch, uses->num_classes, int);
    int *memory_link = MS_NEW_ARRAY(s->scratch, s->actors->num, int);
    int *pool = MS_NEW_ARRAY(s->scratch, s->actors->num, int);
    for (int i = 0; i < uses->num_classes; i++) {
        int link = uses->link_of_class[i];
        double bytes_per_s = reached_bytes_per_s(workload, &uses->fabric->links[link]);
        char *name = ms_fabric_link_name(s->scratch, uses->fabric, link);
        /* -1: a link without bandwidth leads to no GPU of the plan */
        class_link[i] =
            bytes_per_s > 0.0
                ? ms_graph_link(s->graph, name, bytes_per_s / uses->slow_factor[link])
                : -1;
    }
    for (int a = 0; a < s->actors->num; a++) {
        char *name = ms_arena_printf(s->scratch, "hbm %ld", s->actors->fold.member[a]);
        memory_link[a] = ms_graph_link(s->graph, name, workload->pricer.hbm_bytes_per_s);
        pool[a] = ms_graph_pool(s->graph, (int)workload->cluster->device.num_sms);
    }
    s->uses = uses;
    s->comm_sms = ms_comm_sms(workload);
    s->class_link = class_link;
    s->memory_link = memory_link;
    s->pool = pool;
}

/* ---- collectives ---- */

/* Lists the link uses of the collective `moved` that moves bytes_per_s of its size;
 * returns their number. No use exceeds the link's bandwidth without slowdowns, so that a
 * collective alone never contends. */
static int add_link_uses(const ms_step_builder *s, const ms_moved *moved, int actor,
                         double bytes_per_s, ms_link_use *out)
{
    const ms_link_uses *uses = s->uses;
    int meeting = moved->group == MS_TRAFFIC_PP
                      ? actor
                      : s->actors->meetings[moved->group].of_actor[actor];
    const int *first = uses->first[moved->use];
    int num = 0;
    for (int i = first[meeting]; i < first[meeting + 1]; i++) {
        const ms_class_use *use = &uses->uses[moved->use][i];
        int link = uses->link_of_class[use->link_class];
        if (s->class_link[use->link_class] < 0)
            continue;
        out[num++] =
            (ms_link_use){s->class_link[use->link_class],
                          ms_min(use->bytes_frac * bytes_per_s,
                                 reached_bytes_per_s(s->planned->workload,
                                                     &uses->fabric->links[link]))};
    }
    return num;
}

double ms_step_load_frac(const ms_step_builder *s, const int *members, int num, int actor)
{
    const long *multiplicity = s->actors->fold.multiplicity;
    double all = 0.0;
    for (int i = 0; i < num; i++)
        all += (double)multiplicity[members[i]];
    return (double)multiplicity[actor] / all;
}

int ms_step_moved_cost(ms_step_builder *s, const ms_moved *moved, double duration_s,
                       int actor, double load_frac)
{
    if (s->uses == NULL || duration_s <= 0.0)
        return ms_step_cost_of(s, duration_s);
    const ms_links *links = &s->planned->links;
    const ms_collective_law *law = ms_traffic_law(links, moved->group, moved->collective);
    double alpha_s = ms_min(
        moved->count * ms_collective_latency_s(law, moved->size_bytes), moved->seconds);
    double moving_s = moved->seconds - alpha_s;
    ms_task_cost cost = {.duration_s = duration_s,
                         .latency_s = alpha_s * duration_s / moved->seconds,
                         .pool = s->pool[actor],
                         .held_sms = s->comm_sms};
    cost.latency_s = ms_min(cost.latency_s, duration_s);
    if (moving_s <= 0.0)
        return ms_graph_cost(s->graph, &cost, NULL);
    ms_arena_mark mark = ms_arena_save(s->scratch);
    ms_link_use *uses = MS_NEW_ARRAY(s->scratch, s->uses->num_classes + 1, ms_link_use);
    int num = add_link_uses(s, moved, actor, moved->bytes / moving_s, uses);
    for (int i = 0; i < num; i++)
        uses[i].bytes_per_s *= load_frac;
    /* HBM traffic: each byte is read and written */
    double wire_bytes = ms_collective_wire_bytes(
        moved->collective, s->actors->meetings[moved->group].size, moved->bytes);
    uses[num++] = (ms_link_use){s->memory_link[actor],
                                ms_min(2.0 * wire_bytes / moving_s,
                                       s->planned->workload->pricer.hbm_bytes_per_s)};
    cost.num_uses = num;
    int index = ms_graph_cost(s->graph, &cost, uses);
    ms_arena_rewind(s->scratch, mark);
    return index;
}

/* ---- kernels ---- */

static double product_bytes(ms_gemm_shape shape)
{
    return shape.batch * (shape.element_bytes * shape.k * (shape.m + shape.n) +
                          shape.result_bytes * shape.m * shape.n);
}

static double product_tiles(const ms_profile *profile, ms_gemm_shape shape)
{
    return shape.batch * ceil(shape.m / profile->tile_m.value) *
           ceil(shape.n / profile->tile_n.value);
}

double ms_step_kernel_bytes(const ms_step_builder *s, const ms_block_op *op,
                            const ms_program *program, double seconds)
{
    const ms_pricer *pricer = &s->planned->workload->pricer;
    int kind = op->node != NULL ? op->node->op : MS_NUM_OPS;
    if (kind == MS_OP_EINSUM || kind == MS_OP_GROUPED)
        return product_bytes(ms_node_product(program, op->node, pricer->stack));
    if (kind == MS_OP_ATTENTION || kind == MS_OP_ATTENTION_GRAD)
        return ms_node_attention(program, op->node).traffic_bytes;
    return seconds * pricer->hbm_bytes_per_s; /* a kernel that only moves data */
}

int ms_step_kernel_cost(ms_step_builder *s, const ms_block_op *op,
                        const ms_program *program, int actor)
{
    double seconds = op->compute_s * s->actors->slow_factor[actor];
    if (s->uses == NULL || seconds <= 0.0)
        return ms_step_cost_of(s, seconds);
    const ms_pricer *pricer = &s->planned->workload->pricer;
    ms_task_cost cost = {.duration_s = seconds, .pool = s->pool[actor], .num_uses = 1};
    int kind = op->node != NULL ? op->node->op : MS_NUM_OPS;
    if (kind == MS_OP_EINSUM || kind == MS_OP_GROUPED) {
        cost.tiles = product_tiles(pricer->profile,
                                   ms_node_product(program, op->node, pricer->stack));
    } else if (kind == MS_OP_ATTENTION || kind == MS_OP_ATTENTION_GRAD) {
        cost.sm_frac = 1.0;
    }
    double bytes = ms_step_kernel_bytes(s, op, program, seconds);
    ms_link_use use = {s->memory_link[actor],
                       ms_min(bytes / seconds, pricer->hbm_bytes_per_s)};
    return ms_graph_cost(s->graph, &cost, &use);
}
