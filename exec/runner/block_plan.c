#include "exec/runner/block_plan.h"

#include <string.h>

/* ---- properties of tensors ---- */

bool ms_block_allocates(const ms_program *program, int tensor)
{
    int role = program->tensors[tensor].role;
    return role == MS_ROLE_ACTIVATION || role == MS_ROLE_GRADIENT;
}

ms_memory_category ms_block_category(const ms_program *program, int tensor)
{
    return strchr(program->tensors[tensor].dims, MS_DIM_VOCAB) != NULL
               ? MS_MEMORY_LOGITS
               : MS_MEMORY_ACTIVATIONS;
}

/* ---- entries ---- */

static bool is_weight_node(const ms_node *node)
{
    return node->pass == MS_PASS_BACKWARD_WEIGHT;
}

/* Appends to `out` an entry for the node and one per transfer of its ring attention. */
static int add_node(const ms_block_ops *ops, int pass, int node, int *at,
                    ms_block_entry *out)
{
    const ms_node *n = &ops->program->nodes[node];
    const ms_block_op *list = ops->ops[pass];
    int num = 0;
    out[num++] = (ms_block_entry){node, NULL, is_weight_node(n)};
    if (*at < ops->num_ops[pass] && list[*at].node == n)
        out[0].op = &list[(*at)++];
    while (out[0].op != NULL && *at < ops->num_ops[pass] && list[*at].ring &&
           list[*at].node == NULL)
        out[num++] = (ms_block_entry){-1, &list[(*at)++], is_weight_node(n)};
    return num;
}

static void list_entries(ms_arena *arena, ms_block_plan *plan, int pass)
{
    const ms_block_ops *ops = plan->ops;
    const ms_program *program = plan->program;
    bool forward = pass == MS_BILL_FORWARD;
    int first = forward ? 0 : program->num_forward_nodes;
    int last = forward ? program->num_forward_nodes : program->num_nodes;
    int num = 0, at = 0;
    ms_block_entry *entries =
        MS_NEW_ARRAY(arena, last - first + ops->num_ops[pass] + 1, ms_block_entry);
    for (int node = first; node < last; node++)
        if (program->nodes[node].pass != MS_PASS_OPTIMIZER)
            num += add_node(ops, pass, node, &at, entries + num);
    for (; at < ops->num_ops[pass]; at++)
        entries[num++] =
            (ms_block_entry){-1, &ops->ops[pass][at], ops->ops[pass][at].weight};
    plan->entries[pass] = entries;
    plan->num_entries[pass] = num;
}

bool ms_block_pass_runs(ms_block_pass pass, const ms_block_entry *entry)
{
    if (pass == MS_BLOCK_PASS_BACKWARD_INPUT)
        return !entry->weight;
    return pass != MS_BLOCK_PASS_BACKWARD_WEIGHT || entry->weight;
}

/* ---- lifetimes ---- */

static bool runs_in(ms_block_pass pass, int num_forward, int index, const ms_node *node)
{
    if (node->pass == MS_PASS_OPTIMIZER ||
        (pass == MS_BLOCK_PASS_FORWARD) != (index < num_forward))
        return false;
    if (pass == MS_BLOCK_PASS_BACKWARD_INPUT)
        return !is_weight_node(node);
    return pass != MS_BLOCK_PASS_BACKWARD_WEIGHT || is_weight_node(node);
}

static short *find_last_uses(ms_arena *arena, const ms_program *program,
                             ms_block_pass pass)
{
    short *last_use = MS_NEW_ARRAY(arena, program->num_tensors, short);
    for (int t = 0; t < program->num_tensors; t++)
        last_use[t] = -1;
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        for (int i = 0;
             runs_in(pass, program->num_forward_nodes, n, node) && i < node->num_in; i++)
            last_use[node->in[i]] = (short)n;
    }
    return last_use;
}

static bool *find_delayed(ms_arena *arena, const ms_program *program)
{
    bool *delayed = MS_NEW_ARRAY(arena, program->num_tensors, bool);
    for (int n = program->num_forward_nodes; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        for (int i = 0; is_weight_node(node) && i < node->num_in; i++) {
            int producer = program->tensors[node->in[i]].producer;
            if (producer < 0 || !is_weight_node(&program->nodes[producer]))
                delayed[node->in[i]] = true;
        }
    }
    return delayed;
}

bool ms_block_plan_frees(const ms_block_plan *plan, ms_block_pass pass, int tensor)
{
    const ms_program *program = plan->program;
    if (!ms_block_allocates(program, tensor) || tensor == program->input_gradient)
        return false;
    if (pass == MS_BLOCK_PASS_FORWARD)
        return !program->tensors[tensor].saved && tensor != program->output;
    return pass != MS_BLOCK_PASS_BACKWARD_INPUT || !plan->delayed[tensor];
}

static size_t largest_workspace(const ms_program *program, const ms_backend *backend,
                                ms_real_type type)
{
    size_t largest = 0;
    for (int n = 0; n < program->num_nodes; n++) {
        size_t bytes = backend->workspace_bytes(program, &program->nodes[n], type);
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

ms_block_plan *ms_block_plan_make(ms_arena *arena, const ms_block_ops *ops,
                                  const ms_backend *backend, ms_real_type type)
{
    ms_block_plan *plan = MS_NEW(arena, ms_block_plan);
    plan->ops = ops;
    plan->program = ops->program;
    for (int pass = 0; pass < MS_NUM_BILL_PASSES; pass++)
        list_entries(arena, plan, pass);
    for (int pass = 0; pass < MS_NUM_PART_PASSES; pass++)
        plan->last_use[pass] = find_last_uses(arena, plan->program, (ms_block_pass)pass);
    plan->delayed = find_delayed(arena, plan->program);
    if (backend->workspace_bytes != NULL)
        plan->workspace_bytes = largest_workspace(plan->program, backend, type);
    return plan;
}
