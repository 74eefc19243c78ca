#include "sim/step/host_use.h"

#include "sim/step/host_time.h"

static const ms_block_cost *cost_of(const ms_planned *p, const ms_held_block *held)
{
    return held->block == MS_BLOCK_LAYER   ? &p->blocks.layer[held->kind][held->mode]
           : held->block == MS_BLOCK_EMBED ? &p->blocks.embed
                                           : &p->blocks.head;
}

static void add_block(const ms_planned *p, const ms_held_block *held, double split_frac,
                      ms_host_use *out)
{
    double times =
        held->count * (double)ms_schedule_stage_microbatches(&p->pipeline.shape);
    const ms_block_cost *cost = cost_of(p, held);
    double *wait_s = out->wait_s[held->block];
    out->launch_s += times * (cost->forward_launch_s + cost->backward_launch_s);
    wait_s[MS_BILL_FORWARD] += times * cost->forward_host_s;
    wait_s[MS_BILL_BACKWARD] +=
        times * ((1.0 - split_frac) * cost->backward_host_s +
                 split_frac * (cost->input_host_s + cost->weight_host_s));
    for (int pass = 0; pass < MS_NUM_BILL_PASSES; pass++)
        out->launches += times * ms_host_launches(p->workload, held->bill, pass);
}

ms_host_use ms_host_use_of(const ms_planned *planned, int rank)
{
    const ms_plan *plan = planned->plan;
    ms_host_use out = {.is_chosen = plan->compile != MS_COMPILE_OF_STACK ||
                                    plan->cuda_graphs != MS_GRAPHS_NONE};
    ms_held_block held[MS_MAX_HELD_BLOCKS];
    double split_frac = ms_planned_split_frac(planned, rank);
    int num = ms_planned_held(planned, rank, held);
    for (int i = 0; i < num; i++)
        add_block(planned, &held[i], split_frac, &out);
    const ms_stack *stack = planned->workload->stack;
    if (stack->cuda_graphs == MS_GRAPHS_FULL) {
        out.launches += 1.0;
        out.launch_s += stack->graph_launch_s.value;
    }
    return out;
}
