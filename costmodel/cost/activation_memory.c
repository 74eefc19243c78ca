/* Live activation bytes in backward, as a whole or in two halves (ms_bill_half). */
#include "costmodel/cost/bill_priv.h"

#include "base/number.h"
#include "costmodel/cost/cast.h"
#include "costmodel/cost/saved_choice.h"
#include "costmodel/program/ring.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define MAX_TENSORS 512

typedef struct lifetimes {
    const ms_program *program;
    const ms_stack *stack;
    double beside_bytes[MAX_TENSORS]; /* [tensor] other results' bytes, kept as long */
    double kept_frac[MAX_TENSORS];    /* [tensor] bytes kept in backward / its bytes */
    bool delayed[MAX_TENSORS]; /* [tensor] read, not made, by weight-gradient nodes */
} lifetimes;

static bool is_logits(const ms_tensor *tensor)
{
    return ms_tensor_has(tensor, MS_DIM_VOCAB);
}

static bool is_in_place(const ms_node *node)
{
    return node->op == MS_OP_LOSS_GRAD;
}

static bool is_made_in_place(const ms_program *program, const ms_tensor *tensor)
{
    return tensor->producer >= 0 && is_in_place(&program->nodes[tensor->producer]);
}

static double logit_bytes(const lifetimes *l)
{
    bool sharded =
        l->program->key.loss_parallel && l->program->mesh_size[MS_DENSE_MESH][2] > 1;
    double bytes = l->stack->sharded_logit_bytes.value;
    return sharded && bytes > 0.0 ? bytes : l->stack->logit_bytes.value;
}

/* Live bytes of one tensor; 0 for weights and their gradients, which are counted
 * elsewhere. Logits and their whole gradient take the stack's bytes per logit; partial
 * sums of that gradient, and logits in the weight half, bytes as stored. */
static ms_tensor_bytes bytes_of(const lifetimes *l, ms_bill_half half, int t)
{
    const ms_tensor *tensor = &l->program->tensors[t];
    if (tensor->role != MS_ROLE_ACTIVATION && tensor->role != MS_ROLE_GRADIENT)
        return (ms_tensor_bytes){0};
    double stored_bytes = ms_tensor_local_bytes(l->program, t);
    if (!is_logits(tensor))
        return (ms_tensor_bytes){.activation_bytes =
                                     l->kept_frac[t] * stored_bytes + l->beside_bytes[t]};
    bool whole =
        tensor->role == MS_ROLE_ACTIVATION || is_made_in_place(l->program, tensor);
    if (half == MS_BILL_WEIGHT_HALF || !whole)
        return (ms_tensor_bytes){.logits_bytes = stored_bytes};
    return (ms_tensor_bytes){.logits_bytes = logit_bytes(l) *
                                             ms_tensor_local_elements(l->program, t)};
}

static ms_tensor_bytes sum_of(ms_tensor_bytes x, ms_tensor_bytes y, double sign)
{
    return (ms_tensor_bytes){x.activation_bytes + sign * y.activation_bytes,
                             x.logits_bytes + sign * y.logits_bytes};
}

static bool is_weight_node(const ms_node *node)
{
    return node->pass == MS_PASS_BACKWARD_WEIGHT;
}

static bool runs_in(ms_bill_half half, const ms_node *node)
{
    if (node->pass == MS_PASS_OPTIMIZER)
        return false;
    return half == MS_BILL_WHOLE || is_weight_node(node) == (half == MS_BILL_WEIGHT_HALF);
}

static bool runs_again(const ms_program *program, int forward)
{
    for (int n = program->num_forward_nodes; n < program->num_nodes; n++)
        if (program->nodes[n].pass == MS_PASS_RECOMPUTE &&
            program->nodes[n].forward == forward)
            return true;
    return false;
}

/* Whether a result of attention is saved once more with the sequence first: FlashAttention
 * reads and writes sequences one after another, and the projection's input is a copy
 * (Transformer Engine, FlashAttention.forward: transpose(0, 1).contiguous(); Megatron-LM's
 * FlashSelfAttention likewise; from memory). One sequence needs none. */
static bool is_transposed(const ms_program *program, const ms_pricer *pricer, int n)
{
    return pricer->stack->sequence_first && pricer->attention_batch_first &&
           program->key.microbatch > 1 && program->nodes[n].op == MS_OP_ATTENTION &&
           program->nodes[n].pass == MS_PASS_FORWARD && !runs_again(program, n);
}

/* Finds beside_bytes. If the stack keeps_unrotated: heads before rotary embedding live as
 * long as the rotated ones. If it keeps_gate: the activated gate lives as long as the
 * gate or, if recomputed, as the product that it enters. If the program holds_gathers: a
 * gathered tensor lives in place of its shard. */
static void find_beside(lifetimes *l, const ms_pricer *pricer)
{
    const ms_program *program = l->program;
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        bool again = node->pass == MS_PASS_RECOMPUTE;
        if (node->pass != MS_PASS_FORWARD && !again)
            continue;
        int with = -1;
        if (l->stack->keeps_unrotated && node->op == MS_OP_ROTARY)
            with = node->out[0];
        if (l->stack->keeps_gate && node->op == MS_OP_ACTIVATION && node->num_in == 2 &&
            (again || !runs_again(program, n)))
            with = again ? node->out[0] : node->in[0];
        if (is_transposed(program, pricer, n))
            with = node->out[0];
        /* 4 + 2 bytes an element in place of the 2 of the norm's input */
        if (l->stack->keeps_eager_norms && node->op == MS_OP_NORM &&
            (again || !runs_again(program, n)))
            l->beside_bytes[node->out[0]] +=
                2.0 * ms_tensor_local_bytes(program, node->out[0]);
        if (with >= 0)
            l->beside_bytes[with] += ms_tensor_local_bytes(program, with);
        if (program->key.holds_gathers && !again &&
            ms_node_is_gathered_again(program, node))
            l->beside_bytes[node->in[0]] += ms_tensor_local_bytes(program, node->out[0]) -
                                            ms_tensor_local_bytes(program, node->in[0]);
    }
}

static void find_delayed(lifetimes *l)
{
    const ms_program *program = l->program;
    for (int n = program->num_forward_nodes; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        for (int i = 0; is_weight_node(node) && i < node->num_in; i++) {
            int producer = program->tensors[node->in[i]].producer;
            if (producer < 0 || !is_weight_node(&program->nodes[producer]))
                l->delayed[node->in[i]] = true;
        }
    }
}

static void find_kept(lifetimes *l, const ms_pricer *pricer)
{
    const ms_program *program = l->program;
    for (int t = 0; t < program->num_tensors; t++) {
        int producer = program->tensors[t].producer;
        bool waits = l->delayed[t] && producer >= 0 &&
                     program->nodes[producer].pass == MS_PASS_RECOMPUTE;
        l->kept_frac[t] =
            program->tensors[t].saved || waits ? ms_saved_frac(program, t, pricer) : 1.0;
    }
}

static void find_last_uses(const ms_program *program, ms_bill_half half, short *last_use)
{
    for (int t = 0; t < program->num_tensors; t++)
        last_use[t] = -1;
    for (int n = program->num_forward_nodes; n < program->num_nodes; n++)
        for (int i = 0; runs_in(half, &program->nodes[n]) && i < program->nodes[n].num_in;
             i++)
            last_use[program->nodes[n].in[i]] = (short)n;
}

/* Whether `half` of backward may free tensor t: no weight, not read by a later half. */
static bool may_die(const lifetimes *l, ms_bill_half half, int t)
{
    const ms_program *program = l->program;
    if (half != MS_BILL_WHOLE && l->delayed[t])
        return half == MS_BILL_WEIGHT_HALF;
    return program->tensors[t].saved || t == program->output_gradient ||
           program->tensors[t].producer >= program->num_forward_nodes;
}

typedef struct walk {
    const lifetimes *lifetimes;
    ms_bill_half half;
    short last_use[MAX_TENSORS]; /* [tensor] last node that reads it; -1: none, freed */
    ms_tensor_bytes live, most;
} walk;

static void add(walk *w, int t, double sign)
{
    w->live = sum_of(w->live, bytes_of(w->lifetimes, w->half, t), sign);
}

static void note_most(walk *w, double buffer_bytes)
{
    ms_tensor_bytes now = w->live;
    now.activation_bytes += buffer_bytes;
    if (now.activation_bytes + now.logits_bytes >
        w->most.activation_bytes + w->most.logits_bytes)
        w->most = now;
}

static double scan_buffer_bytes(const ms_program *program, const ms_node *node)
{
    bool scans = node->op == MS_OP_SCAN || node->op == MS_OP_SCAN_GRAD;
    return scans ? ms_scan_buffer_bytes(ms_node_scan(program, node)) : 0.0;
}

static void run_node(walk *w, int n)
{
    const ms_program *program = w->lifetimes->program;
    const ms_node *node = &program->nodes[n];
    if (is_in_place(node)) {
        add(w, node->in[0], -1.0);
        w->last_use[node->in[0]] = -1;
    }
    for (int i = 0; i < node->num_out; i++)
        add(w, node->out[i], 1.0);
    note_most(w, ms_ring_buffer_bytes(program, node) + scan_buffer_bytes(program, node) +
                     ms_node_decoded_bytes(program, node));
    for (int i = 0; i < node->num_in; i++) {
        int t = node->in[i];
        if (w->last_use[t] != n || !may_die(w->lifetimes, w->half, t))
            continue;
        add(w, t, -1.0);
        w->last_use[t] = -1; /* an operand used twice is freed once */
    }
}

/* Peak live bytes of a half of backward, less `kept`, the bytes alive at its start. */
static ms_tensor_bytes transient_of(const lifetimes *l, ms_bill_half half,
                                    ms_tensor_bytes kept)
{
    const ms_program *program = l->program;
    walk w = {.lifetimes = l, .half = half, .live = kept};
    find_last_uses(program, half, w.last_use);
    if (half != MS_BILL_WEIGHT_HALF && program->output_gradient >= 0)
        add(&w, program->output_gradient, 1.0);
    w.most = w.live;
    for (int n = program->num_forward_nodes; n < program->num_nodes; n++)
        if (runs_in(half, &program->nodes[n]))
            run_node(&w, n);
    return sum_of(w.most, kept, -1.0);
}

int ms_bill_host_input(const ms_program *program, const ms_stack *stack)
{
    int input = program->input_part >= 0 ? program->input_part : program->input;
    bool moves = stack->host_layer_inputs && input >= 0 && program->tensors[input].saved;
    return moves ? input : -1;
}

double ms_bill_host_bytes(const ms_stack *stack, double saved_bytes, double input_bytes)
{
    return input_bytes +
           floor(stack->host_activation_frac.value * (saved_bytes - input_bytes));
}

/* Takes saved activations that are in host memory off the device until the block's own
 * backward, which needs all of them: a share of all, or the block's input. */
static void move_to_host(const lifetimes *l, ms_bill_memory *memory)
{
    int input = ms_bill_host_input(l->program, l->stack);
    double input_bytes =
        input >= 0 ? bytes_of(l, MS_BILL_WHOLE, input).activation_bytes : 0.0;
    double moved_bytes =
        ms_bill_host_bytes(l->stack, memory->saved.activation_bytes, input_bytes);
    memory->host_bytes = moved_bytes;
    memory->saved.activation_bytes -= moved_bytes;
    memory->transient[MS_BILL_WHOLE].activation_bytes += moved_bytes;
    memory->transient[MS_BILL_INPUT_HALF].activation_bytes += moved_bytes;
}

void ms_bill_add_memory(const ms_program *program, const ms_pricer *pricer, ms_bill *bill)
{
    lifetimes l = {.program = program, .stack = pricer->stack};
    ms_bill_memory *memory = &bill->memory;
    assert(program->num_tensors <= MAX_TENSORS);
    find_beside(&l, pricer);
    find_delayed(&l);
    find_kept(&l, pricer);
    for (int t = 0; t < program->num_tensors; t++) {
        if (program->tensors[t].saved)
            memory->saved = sum_of(memory->saved, bytes_of(&l, MS_BILL_WHOLE, t), 1.0);
        if (l.delayed[t])
            memory->delayed =
                sum_of(memory->delayed, bytes_of(&l, MS_BILL_WEIGHT_HALF, t), 1.0);
    }
    for (int half = 0; half < MS_NUM_BILL_HALVES; half++)
        memory->transient[half] =
            transient_of(&l, (ms_bill_half)half,
                         half == MS_BILL_WEIGHT_HALF ? memory->delayed : memory->saved);
    move_to_host(&l, memory);
    if (program->output >= 0)
        bill->output_bytes = ms_tensor_local_bytes(program, program->output);
}
