/* Adds what tasks compute and move to the step graph, for traces. */
#include "sim/simulate/step_graph_priv.h"

int ms_step_add_work(ms_step_builder *s, ms_task_work work)
{
    /* not in s->scratch, which is rewound after each action */
    MS_MAKE_ROOM(s->cx->arena, s->work, s->num_work, s->work_capacity, 64);
    s->work[s->num_work] = work;
    return s->num_work++;
}

static int kernel_work(ms_step_builder *s, const ms_block_op *op,
                       const ms_program *program)
{
    return ms_step_add_work(
        s,
        (ms_task_work){.kind = MS_WORK_KERNEL,
                       .flop = op->node != NULL ? ms_node_flop(program, op->node) : 0.0,
                       .bytes = ms_step_kernel_bytes(s, op, program, op->compute_s)});
}

int ms_step_op_work(ms_step_builder *s, const ms_block_op *op, const ms_program *program,
                    bool hidden)
{
    if (!op->moves)
        return kernel_work(s, op, program);
    double part_s = hidden ? op->hidden_s : op->exposed_s;
    double frac = op->all_s > 0.0 ? part_s / op->all_s : 0.0;
    double element_bytes = op->node != NULL
                               ? program->tensors[op->node->in[0]].element_bytes
                               : program->compute_bytes;
    return ms_step_add_work(
        s, (ms_task_work){.kind = op->ring ? MS_WORK_RING : MS_WORK_COLLECTIVE,
                          .group = op->group,
                          .collective = op->collective,
                          .bytes = frac * op->all_bytes,
                          .element_bytes = element_bytes});
}

static void set_move_work(ms_step_builder *s, ms_state_move *move, double element_bytes)
{
    move->work = ms_step_add_work(s, (ms_task_work){.kind = MS_WORK_COLLECTIVE,
                                                    .group = move->group,
                                                    .collective = move->collective,
                                                    .bytes = move->size_bytes,
                                                    .element_bytes = element_bytes});
}

void ms_step_state_work(ms_step_builder *s, ms_block_ops *block)
{
    const ms_stack *stack = s->planned->workload->stack;
    double grad_bytes = stack->grad_comm_bytes.value;
    for (int i = 0; i < 2; i++) {
        set_move_work(s, &block->gather[i], stack->param_comm_bytes.value);
        set_move_work(s, &block->regather[i], stack->param_comm_bytes.value);
        set_move_work(s, &block->reduce[i], grad_bytes);
        set_move_work(s, &block->all_reduce[i], grad_bytes);
    }
    set_move_work(s, &block->replicate, grad_bytes);
    set_move_work(s, &block->tp_sync, grad_bytes);
}

/* ---- messages between pipeline ranks ---- */

int ms_step_send_work(ms_step_builder *s, int from, int to)
{
    int *known = &s->send_work[(long)from * s->actors->num_pipeline_ranks + to];
    if (*known == 0) {
        *known = ms_step_add_work(
            s, (ms_task_work){.kind = MS_WORK_SEND,
                              .group = MS_TRAFFIC_PP,
                              .collective = MS_SEND,
                              .bytes = s->planned->blocks.wire_bytes,
                              .element_bytes = ms_dtype_bytes(s->planned->plan->compute),
                              .peer = to});
    }
    return *known;
}

static int exchange_work(ms_step_builder *s, double bytes, int peer, int stage)
{
    double grad_bytes = s->planned->workload->stack->grad_comm_bytes.value;
    return ms_step_add_work(s, (ms_task_work){.kind = MS_WORK_EXCHANGE,
                                              .group = MS_TRAFFIC_PP,
                                              .collective = MS_SEND,
                                              .bytes = bytes,
                                              .element_bytes = grad_bytes,
                                              .peer = peer,
                                              .stage = stage});
}

int ms_step_replica_work(ms_step_builder *s, int rank, int model_stage)
{
    const ms_planned *p = s->planned;
    double bytes =
        ms_replica_bytes(&p->pipeline, ms_planned_stage(p, model_stage), p->sharding);
    return exchange_work(s, bytes, s->actors->num_pipeline_ranks - 1 - rank, model_stage);
}

int ms_step_tied_work(ms_step_builder *s, int rank)
{
    const ms_planned *p = s->planned;
    const ms_split *split = p->pipeline.split;
    int peer = 0;
    for (int r = 0; r < s->actors->num_pipeline_ranks; r++)
        if (r != rank && (ms_split_holds(split, r, 0) ||
                          ms_split_holds(split, r, split->num_stages - 1)))
            peer = r;
    double grad_bytes = p->workload->stack->grad_comm_bytes.value;
    return exchange_work(s, grad_bytes * p->blocks.head_params, peer, -1);
}
