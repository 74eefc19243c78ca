/* Following the lifetimes of a program's tensors through its backward, whole or in two halves. */
#include "costmodel/bill_priv.h"

#include "costmodel/ring.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define MAX_TENSORS 512

/* What of the backward runs. */
typedef enum half {
    WHOLE,
    INPUT_HALF,
    WEIGHT_HALF
} half;

typedef struct lifetimes {
    const ms_program *program;
    bool delayed[MAX_TENSORS]; /* read by gradients of weights and made before them */
} lifetimes;

static bool is_logits(const ms_tensor *tensor)
{
    return tensor->role != MS_ROLE_WEIGHT && tensor->role != MS_ROLE_WEIGHT_GRADIENT &&
           strchr(tensor->dims, MS_DIM_VOCAB) != NULL;
}

static bool is_kept_role(const ms_tensor *tensor)
{
    return tensor->role == MS_ROLE_ACTIVATION || tensor->role == MS_ROLE_GRADIENT;
}

/* Bytes of activations and gradients of them; weights, their gradients and logits are accounted elsewhere. */
static double living_bytes(const ms_program *program, int t)
{
    const ms_tensor *tensor = &program->tensors[t];
    return is_kept_role(tensor) && !is_logits(tensor) ? ms_tensor_local_bytes(program, t)
                                                      : 0.0;
}

static bool is_weight_node(const ms_node *node)
{
    return node->pass == MS_PASS_BACKWARD_WEIGHT;
}

static bool runs_in(half part, const ms_node *node)
{
    switch (part) {
    case INPUT_HALF:
        return node->pass == MS_PASS_RECOMPUTE || node->pass == MS_PASS_BACKWARD_INPUT;
    case WEIGHT_HALF:
        return is_weight_node(node);
    case WHOLE:
        break;
    }
    return true;
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

static void find_last_uses(const ms_program *program, half part, short *last_use)
{
    for (int t = 0; t < program->num_tensors; t++)
        last_use[t] = -1;
    for (int n = program->num_forward_nodes; n < program->num_nodes; n++)
        for (int i = 0; runs_in(part, &program->nodes[n]) && i < program->nodes[n].num_in;
             i++)
            last_use[program->nodes[n].in[i]] = (short)n;
}

/* Whether a tensor goes after its last use: what came from outside does not, nor what the second half still reads. */
static bool may_die(const lifetimes *l, half part, int t)
{
    const ms_tensor *tensor = &l->program->tensors[t];
    if (part != WHOLE && l->delayed[t])
        return part == WEIGHT_HALF;
    return tensor->saved || tensor->producer >= l->program->num_forward_nodes;
}

/* Walks the backward nodes: results come to life when they are made and die after their last use; saved tensors are alive
 * from the start. A gradient that nothing uses any more (the input's) lives on. */
static double peak_bytes(const lifetimes *l, half part, double live)
{
    const ms_program *program = l->program;
    short last_use[MAX_TENSORS];
    find_last_uses(program, part, last_use);
    double peak = live;
    for (int n = program->num_forward_nodes; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        if (!runs_in(part, node))
            continue;
        for (int i = 0; i < node->num_out; i++)
            live += living_bytes(program, node->out[i]);
        peak = fmax(peak, live + ms_ring_buffer_bytes(program, node));
        for (int i = 0; i < node->num_in; i++) {
            int t = node->in[i];
            if (last_use[t] != n || !may_die(l, part, t))
                continue;
            live -= living_bytes(program, t);
            last_use[t] = -1; /* an operand used twice dies once */
        }
    }
    return peak;
}

/* The output's gradient comes from outside: it counts where it has to stay for the second half. */
static double delayed_from_outside_bytes(const lifetimes *l)
{
    int seed = l->program->output_gradient;
    return seed >= 0 && l->delayed[seed] ? living_bytes(l->program, seed) : 0.0;
}

static void add_halves(lifetimes *l, double saved_bytes, ms_bill_halves *halves)
{
    find_delayed(l);
    for (int t = 0; t < l->program->num_tensors; t++) {
        const ms_tensor *tensor = &l->program->tensors[t];
        if (!l->delayed[t] || !is_kept_role(tensor))
            continue;
        halves->delayed_bytes += living_bytes(l->program, t);
        if (is_logits(tensor))
            halves->delayed_logit_bytes += ms_tensor_local_bytes(l->program, t);
    }
    halves->transient_input_bytes =
        peak_bytes(l, INPUT_HALF, saved_bytes + delayed_from_outside_bytes(l)) -
        saved_bytes;
    halves->transient_weight_bytes =
        peak_bytes(l, WEIGHT_HALF, halves->delayed_bytes) - halves->delayed_bytes;
}

void ms_bill_add_memory(const ms_program *program, ms_bill *bill)
{
    lifetimes l = {.program = program};
    assert(program->num_tensors <= MAX_TENSORS);
    for (int t = 0; t < program->num_tensors; t++) {
        const ms_tensor *tensor = &program->tensors[t];
        if (tensor->saved)
            bill->saved_bytes += living_bytes(program, t);
        if (strcmp(tensor->dims, "bsv") == 0 && tensor->role == MS_ROLE_ACTIVATION)
            bill->logits = fmax(bill->logits, ms_tensor_local_elements(program, t));
    }
    bill->transient_bytes = peak_bytes(&l, WHOLE, bill->saved_bytes) - bill->saved_bytes;
    add_halves(&l, bill->saved_bytes, &bill->halves);
    if (program->output >= 0)
        bill->output_bytes = ms_tensor_local_bytes(program, program->output);
}
