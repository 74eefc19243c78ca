/* Cuts the program of a layer with experts into segments at its all-to-alls of tokens. */
#include "costmodel/cost/bill_priv.h"

#include "costmodel/cost/cast.h"

#include <assert.h>
#include <string.h>

typedef struct cut {
    const ms_program *program;
    ms_bill_cut *segments;
    int dispatch, combine; /* nodes of these exchanges in forward; -1: none */
} cut;

static void find_exchanges(cut *c)
{
    c->dispatch = c->combine = -1;
    for (int n = 0; n < c->program->num_forward_nodes; n++) {
        const ms_node *node = &c->program->nodes[n];
        if (node->op == MS_OP_EXCHANGE)
            *(node->inverse ? &c->combine : &c->dispatch) = n;
    }
}

static bool made_from(const ms_program *program, const ms_node *node, const bool *marked)
{
    for (int i = 0; i < node->num_in; i++) {
        int producer = program->tensors[node->in[i]].producer;
        if (producer >= 0 && marked[producer])
            return true;
    }
    return false;
}

static void mark_producers(const ms_program *program, const ms_node *node, bool *marked)
{
    for (int i = 0; i < node->num_in; i++) {
        int producer = program->tensors[node->in[i]].producer;
        if (producer >= 0)
            marked[producer] = true;
    }
}

/* Assigns forward nodes to segments: ATTENTION if the dispatch depends on the node,
 * RESULT if the node depends on the combine, else EXPERTS. */
static void cut_forward(cut *c)
{
    const ms_program *program = c->program;
    bool before[MS_MAX_BILL_NODES] = {false}, after[MS_MAX_BILL_NODES] = {false};
    before[c->dispatch] = after[c->combine] = true;
    for (int n = c->dispatch; n >= 0; n--) {
        if (before[n])
            mark_producers(program, &program->nodes[n], before);
    }
    for (int n = 0; n < program->num_forward_nodes; n++) {
        after[n] = after[n] || made_from(program, &program->nodes[n], after);
        c->segments->of[n] = before[n]  ? MS_SEGMENT_ATTENTION
                             : after[n] ? MS_SEGMENT_RESULT
                                        : MS_SEGMENT_EXPERTS;
    }
}

/* Segment of a backward node that has no forward node (sum, redistribution): of its
 * operands' segments the one that backward runs last. */
static unsigned char segment_of_operands(const cut *c, const ms_node *node)
{
    unsigned char segment = MS_SEGMENT_RESULT;
    for (int i = 0; i < node->num_in; i++) {
        int producer = c->program->tensors[node->in[i]].producer;
        if (producer >= c->program->num_forward_nodes &&
            c->segments->of[producer] < segment)
            segment = c->segments->of[producer];
    }
    return segment;
}

static void cut_backward(cut *c)
{
    for (int n = c->program->num_forward_nodes; n < c->program->num_nodes; n++) {
        const ms_node *node = &c->program->nodes[n];
        c->segments->of[n] = node->forward >= 0 ? c->segments->of[node->forward]
                                                : segment_of_operands(c, node);
    }
}

static void add_exchange(const ms_program *program, const ms_node *node,
                         const ms_pricer *pricer, ms_bill_segments *out)
{
    ms_node_comm comm;
    if (node->pass == MS_PASS_RECOMPUTE || !ms_node_sends(program, node, pricer, &comm))
        return;
    bool dispatch = !ms_node_combines(node);
    ms_bill_exchange which = dispatch ? MS_EXCHANGE_DISPATCH : MS_EXCHANGE_COMBINE;
    if (node->pass != MS_PASS_FORWARD)
        which = dispatch ? MS_EXCHANGE_DISPATCH_BACKWARD : MS_EXCHANGE_COMBINE_BACKWARD;
    out->exchange_bytes[which] = comm.size_bytes;
    out->exchange_beside_s[which] = ms_node_overlap_s(program, pricer, node, &comm);
    out->exchange_collective[which] = (unsigned char)comm.collective;
}

void ms_bill_cut_make(const ms_program *program, ms_bill_cut *out)
{
    cut c = {.program = program, .segments = out};
    assert(program->num_nodes <= MS_MAX_BILL_NODES);
    memset(out->of, MS_SEGMENT_ATTENTION, sizeof out->of);
    find_exchanges(&c);
    if (c.dispatch >= 0 && c.combine >= 0) {
        cut_forward(&c);
        cut_backward(&c);
    }
}

void ms_bill_add_exchanges(const ms_program *program, const ms_pricer *pricer,
                           ms_bill_segments *out)
{
    for (int n = 0; n < program->num_nodes; n++)
        if (program->nodes[n].op == MS_OP_EXCHANGE)
            add_exchange(program, &program->nodes[n], pricer, out);
}
