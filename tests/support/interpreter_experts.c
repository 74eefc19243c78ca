/* Mixture of experts in the reference interpreter: routing, permutation and exchange of
 * token rows. A rank of the dense mesh orders its (token, slot) pairs by expert, equal
 * ones by pair. */
#include "tests/support/interpreter_priv.h"

#include <math.h>

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Chooses the k experts of largest preference, in descending order; ties are won by the
 * lower index. */
static void choose_largest(const double *preference, long num_experts, long k,
                           double *choice)
{
    for (long slot = 0; slot < k; slot++) {
        long best = -1;
        for (long e = 0; e < num_experts; e++) {
            bool is_taken = false;
            for (long i = 0; i < slot; i++)
                is_taken = is_taken || (long)choice[i] == e;
            if (!is_taken && (best < 0 || preference[e] > preference[best]))
                best = e;
        }
        choice[slot] = (double)best;
    }
}

/* Unnormalised routing score of an expert: sigmoid, or exp relative to the largest
 * logit. */
static double raw_score(const ms_model *model, double logit, double largest)
{
    return model->moe.router == MS_ROUTER_SIGMOID ? sigmoid(logit) : exp(logit - largest);
}

static bool is_renormalised(const ms_model *model)
{
    return model->moe.router != MS_ROUTER_SOFTMAX_TOPK || model->moe.norm_topk;
}

/* Computes the scores of all experts; returns the divisor that turns scores into routing
 * weights. */
static double score_experts(const ms_model *model, const double *logits, long num_experts,
                            const double *choice, double *scores)
{
    double largest = -HUGE_VAL, total = 0;
    for (long e = 0; e < num_experts; e++)
        largest = fmax(largest, logits[e]);
    for (long e = 0; e < num_experts; e++)
        scores[e] = raw_score(model, logits[e], largest);
    if (is_renormalised(model))
        for (long slot = 0; slot < model->moe.top_k; slot++)
            total += scores[(long)choice[slot]];
    else
        for (long e = 0; e < num_experts; e++)
            total += scores[e];
    return total;
}

static void prefer(const ms_interp *run, const double *logits, const double *bias,
                   long num_experts, double *preference)
{
    bool is_sigmoid = run->program->model->moe.router == MS_ROUTER_SIGMOID;
    for (long e = 0; e < num_experts; e++)
        preference[e] =
            (is_sigmoid ? sigmoid(logits[e]) : logits[e]) + (bias != NULL ? bias[e] : 0);
}

void ms_interp_route(ms_interp *run, const ms_node *node, int rank)
{
    const ms_model *model = run->program->model;
    const ms_cell *logits = ms_interp_in(run, node, 0, rank);
    const double *bias =
        node->num_in > 1 ? ms_interp_in(run, node, 1, rank)->values : NULL;
    ms_cell *weight = ms_interp_out(run, node, 0, rank),
            *choice = ms_interp_out(run, node, 1, rank);
    long num_experts = ms_interp_size(run, MS_DIM_EXPERTS),
         k = ms_interp_size(run, MS_DIM_CHOICES);
    long num_tokens = logits->count / num_experts;
    if (!ms_interp_expect(run, node, logits, num_tokens * num_experts) ||
        !ms_interp_expect(run, node, weight, num_tokens * k) ||
        !ms_interp_expect(run, node, choice, num_tokens * k))
        return;
    ms_box box = ms_interp_box(run, node->in[0], rank);
    double *scratch = MS_NEW_ARRAY(run->arena, num_experts, double);
    for (long row = 0; row < num_tokens; row++) {
        const double *from = logits->values + row * num_experts;
        double *chosen = choice->values + row * k;
        prefer(run, from, bias, num_experts, scratch);
        choose_largest(scratch, num_experts, k, chosen);
        long token =
            (box.start[0] + row / box.len[1]) * ms_interp_size(run, MS_DIM_SEQUENCE) +
            box.start[1] + row % box.len[1];
        for (long slot = 0; slot < k && run->options.balanced_routing; slot++)
            chosen[slot] = (double)((token * k + slot) % num_experts);
        double total = score_experts(model, from, num_experts, chosen, scratch);
        for (long slot = 0; slot < k; slot++)
            weight->values[row * k + slot] = scratch[(long)chosen[slot]] / total;
    }
}

static bool all_are_experts(ms_interp *run, const ms_node *node, const ms_cell *choice)
{
    double num_experts = (double)ms_interp_size(run, MS_DIM_EXPERTS);
    for (long i = 0; i < choice->count; i++) {
        if (choice->values[i] >= 0 && choice->values[i] < num_experts)
            continue;
        ms_interp_fail(run, node, "a choice, %g, is no expert", choice->values[i]);
        return false;
    }
    return true;
}

/* Gradient of routing weights (score / total) with respect to the logits; a score's own
 * derivative is the score (exp) or score (1 - score) (sigmoid). */
void ms_interp_route_grad(ms_interp *run, const ms_node *node, int rank)
{
    const ms_model *model = run->program->model;
    const ms_cell *logits = ms_interp_in(run, node, 0, rank);
    const ms_cell *weight = ms_interp_in(run, node, 1, rank);
    const ms_cell *choice = ms_interp_in(run, node, 2, rank);
    const ms_cell *gweight = ms_interp_in(run, node, 3, rank);
    ms_cell *glogits = ms_interp_out(run, node, 0, rank);
    long num_experts = ms_interp_size(run, MS_DIM_EXPERTS),
         k = ms_interp_size(run, MS_DIM_CHOICES);
    long num_tokens = logits->count / num_experts;
    if (!ms_interp_expect(run, node, weight, num_tokens * k) ||
        !ms_interp_expect(run, node, choice, num_tokens * k) ||
        !ms_interp_expect(run, node, gweight, num_tokens * k) ||
        !ms_interp_expect(run, node, glogits, logits->count) ||
        !all_are_experts(run, node, choice))
        return;
    double *scores = MS_NEW_ARRAY(run->arena, num_experts, double);
    for (long row = 0; row < num_tokens; row++) {
        const double *chosen = choice->values + row * k, *g = gweight->values + row * k;
        double *to = glogits->values + row * num_experts;
        double total = score_experts(model, logits->values + row * num_experts,
                                     num_experts, chosen, scores);
        double mean = 0; /* gradient of the divisor `total`, times -total */
        for (long slot = 0; slot < k; slot++)
            mean += g[slot] * weight->values[row * k + slot];
        for (long slot = 0; slot < k; slot++)
            to[(long)chosen[slot]] +=
                (g[slot] - (is_renormalised(model) ? mean : 0)) / total;
        for (long e = 0; e < num_experts; e++) {
            if (!is_renormalised(model))
                to[e] -= mean / total;
            to[e] *= model->moe.router == MS_ROUTER_SIGMOID ? scores[e] * (1 - scores[e])
                                                            : scores[e];
        }
    }
}

/* Returns the (token, slot) pair of each row in expert order; starts[e] gets the first
 * row of expert e (experts + 1 entries). NULL, with the failure recorded: a choice is no
 * expert's index. */
static const long *order_rows(ms_interp *run, const ms_node *node, const ms_cell *choice,
                              long *starts)
{
    long num_experts = ms_interp_size(run, MS_DIM_EXPERTS), at = 0;
    long *order = MS_NEW_ARRAY(run->arena, choice->count, long);
    for (long e = 0; e < num_experts; e++) {
        starts[e] = at;
        for (long i = 0; i < choice->count; i++)
            if ((long)choice->values[i] == e)
                order[at++] = i;
    }
    starts[num_experts] = at;
    if (at == choice->count)
        return order;
    ms_interp_fail(run, node, "%ld of %ld choices are no expert", choice->count - at,
                   choice->count);
    return NULL;
}

static long *new_starts(ms_interp *run)
{
    return MS_NEW_ARRAY(run->arena, ms_interp_size(run, MS_DIM_EXPERTS) + 1, long);
}

void ms_interp_permute(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *x = ms_interp_in(run, node, 0, rank),
                  *choice = ms_interp_in(run, node, 1, rank);
    long k = ms_interp_size(run, MS_DIM_CHOICES), width = ms_cell_last(x);
    const long *order = order_rows(run, node, choice, new_starts(run));
    ms_cell *rows = ms_interp_out_rows(run, node, 0, rank, -1);
    if (order == NULL || !ms_interp_expect(run, node, choice, ms_cell_leading(x) * k) ||
        !ms_interp_expect(run, node, rows, x->count * k))
        return;
    for (long row = 0; row < choice->count; row++)
        for (long i = 0; i < width; i++)
            rows->values[row * width + i] = x->values[order[row] / k * width + i];
}

void ms_interp_permute_grad(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *grows = ms_interp_in(run, node, 0, rank),
                  *choice = ms_interp_in(run, node, 1, rank);
    ms_cell *gx = ms_interp_out(run, node, 0, rank);
    long k = ms_interp_size(run, MS_DIM_CHOICES), width = ms_cell_last(gx);
    const long *order = order_rows(run, node, choice, new_starts(run));
    if (order == NULL || !ms_interp_expect(run, node, grows, choice->count * width) ||
        !ms_interp_expect(run, node, gx, choice->count / k * width))
        return;
    for (long row = 0; row < choice->count; row++)
        for (long i = 0; i < width; i++)
            gx->values[order[row] / k * width + i] += grows->values[row * width + i];
}

void ms_interp_unpermute(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *rows = ms_interp_in(run, node, 0, rank),
                  *weight = ms_interp_in(run, node, 1, rank);
    const ms_cell *choice = ms_interp_in(run, node, 2, rank);
    ms_cell *y = ms_interp_out(run, node, 0, rank);
    long k = ms_interp_size(run, MS_DIM_CHOICES), width = ms_cell_last(y);
    const long *order = order_rows(run, node, choice, new_starts(run));
    if (order == NULL || !ms_interp_expect(run, node, rows, choice->count * width) ||
        !ms_interp_expect(run, node, weight, choice->count) ||
        !ms_interp_expect(run, node, y, choice->count / k * width))
        return;
    for (long row = 0; row < choice->count; row++)
        for (long i = 0; i < width; i++)
            y->values[order[row] / k * width + i] +=
                weight->values[order[row]] * rows->values[row * width + i];
}

void ms_interp_unpermute_grad(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *gy = ms_interp_in(run, node, 0, rank),
                  *rows = ms_interp_in(run, node, 1, rank);
    const ms_cell *weight = ms_interp_in(run, node, 2, rank);
    const ms_cell *choice = ms_interp_in(run, node, 3, rank);
    ms_cell *grows = ms_interp_out(run, node, 0, rank),
            *gweight = ms_interp_out(run, node, 1, rank);
    long k = ms_interp_size(run, MS_DIM_CHOICES), width = ms_cell_last(gy);
    const long *order = order_rows(run, node, choice, new_starts(run));
    if (order == NULL || !ms_interp_expect(run, node, rows, choice->count * width) ||
        !ms_interp_expect(run, node, gy, choice->count / k * width) ||
        !ms_interp_expect(run, node, weight, choice->count) ||
        !ms_interp_expect(run, node, grows, rows->count) ||
        !ms_interp_expect(run, node, gweight, choice->count))
        return;
    for (long row = 0; row < choice->count; row++) {
        for (long i = 0; i < width; i++) {
            double g = gy->values[order[row] / k * width + i];
            grows->values[row * width + i] = weight->values[order[row]] * g;
            gweight->values[order[row]] += rows->values[row * width + i] * g;
        }
    }
}

/* Counts the rows that a rank receives for each of its experts; returns their sum. -1: a
 * choice is no expert's index. */
static long received_rows(ms_interp *run, const ms_node *node, int choice, int rank,
                          long *counts)
{
    long ep = run->program->mesh_size[MS_SPARSE_MESH][1], total = 0;
    long num_local = ms_interp_size(run, MS_DIM_EXPERTS) / ep;
    long first = num_local * ms_interp_coordinate(run, MS_SPARSE_MESH, 1, rank);
    long *starts = new_starts(run);
    for (long e = 0; e < num_local; e++)
        counts[e] = 0;
    for (long source = 0; source < ep; source++) {
        int peer = ms_interp_peer(run, MS_SPARSE_MESH, 1, rank, source);
        if (order_rows(run, node, ms_interp_cell(run, choice, peer), starts) == NULL)
            return -1;
        for (long e = 0; e < num_local; e++)
            counts[e] += starts[first + e + 1] - starts[first + e];
    }
    for (long e = 0; e < num_local; e++)
        total += counts[e];
    return total;
}

long ms_interp_expert_rows(ms_interp *run, const ms_node *node, int choice, int rank,
                           long *counts)
{
    long etp = run->program->mesh_size[MS_SPARSE_MESH][2], total = 0;
    long num_local =
        ms_interp_size(run, MS_DIM_EXPERTS) / run->program->mesh_size[MS_SPARSE_MESH][1];
    long *own = MS_NEW_ARRAY(run->arena, num_local, long);
    for (long e = 0; e < num_local; e++)
        counts[e] = 0;
    for (long i = 0; i < etp; i++) {
        int peer = ms_interp_peer(run, MS_SPARSE_MESH, 2, rank, i);
        if (received_rows(run, node, choice, peer, own) < 0)
            return -1;
        for (long e = 0; e < num_local; e++) {
            counts[e] += own[e];
            total += own[e];
        }
    }
    return total;
}

/* ---- experts that ranks share ---- */

static void copy_rows(double *to, const double *from, long count)
{
    for (long i = 0; i < count; i++)
        to[i] = from[i];
}

bool ms_interp_shares_rows(const ms_node *node)
{
    return (node->from.kind == MS_SHARD && node->from.dim == MS_DIM_ROWS) ||
           (node->to.kind == MS_SHARD && node->to.dim == MS_DIM_ROWS);
}

static int find_choice(const ms_program *program)
{
    for (int n = 0; n < program->num_nodes; n++)
        if (program->nodes[n].op == MS_OP_EXCHANGE)
            return program->nodes[n].in[1];
    return -1;
}

/* Number of rows of each rank of an etp group for each of its experts, [etp][local
 * experts]; NULL, with the failure recorded: the program has no routing. */
static long *sharers_rows(ms_interp *run, const ms_node *node, int rank, long num_local)
{
    int choice = find_choice(run->program);
    long etp = run->program->mesh_size[MS_SPARSE_MESH][2];
    long *rows = MS_NEW_ARRAY(run->arena, etp * num_local, long);
    for (long i = 0; i < etp; i++) {
        int peer = ms_interp_peer(run, MS_SPARSE_MESH, 2, rank, i);
        if (choice < 0 ||
            received_rows(run, node, choice, peer, rows + i * num_local) < 0) {
            ms_interp_fail(run, node, "rows are shared that no exchange brought");
            return NULL;
        }
    }
    return rows;
}

/* Row `row` of a node's input on a rank; NULL, with the failure recorded, if the input is
 * shorter (an unsound program). */
static const double *shared_row(ms_interp *run, const ms_node *node, int rank, long row,
                                long width)
{
    const ms_cell *in = ms_interp_in(run, node, 0, rank);
    if (in != NULL && (row + 1) * width <= in->count)
        return in->values + row * width;
    ms_interp_fail(run, node, "rows are shared that are not there");
    return NULL;
}

/* Gathers row `own` of etp rank `sharer` into row `at` of the shared rows, or scatters a
 * sum the other way. */
static void share_row(ms_interp *run, const ms_node *node, int rank, long sharer,
                      long own, long at)
{
    long etp = run->program->mesh_size[MS_SPARSE_MESH][2];
    ms_cell *out = ms_interp_cell(run, node->out[0], rank);
    long width = ms_cell_last(out);
    bool gathers = node->from.kind == MS_SHARD;
    if (gathers) {
        int peer = ms_interp_peer(run, MS_SPARSE_MESH, 2, rank, sharer);
        const double *from = shared_row(run, node, peer, own, width);
        if (from != NULL)
            copy_rows(out->values + at * width, from, width);
    } else if (sharer == ms_interp_coordinate(run, MS_SPARSE_MESH, 2, rank)) {
        for (long i = 0; i < etp; i++) {
            int peer = ms_interp_peer(run, MS_SPARSE_MESH, 2, rank, i);
            const double *from = shared_row(run, node, peer, at, width);
            for (long j = 0; from != NULL && j < width; j++)
                out->values[own * width + j] += from[j];
        }
    }
}

/* All-gathers expert rows over the etp group, or reduce-scatters them: shared rows are
 * ordered by expert, then by etp rank, then as on that rank. */
void ms_interp_share_rows(ms_interp *run, const ms_node *node, int rank)
{
    long etp = run->program->mesh_size[MS_SPARSE_MESH][2], at = 0, total = 0, mine = 0;
    long num_local =
        ms_interp_size(run, MS_DIM_EXPERTS) / run->program->mesh_size[MS_SPARSE_MESH][1];
    const long *rows = sharers_rows(run, node, rank, num_local);
    if (rows == NULL)
        return;
    long me = ms_interp_coordinate(run, MS_SPARSE_MESH, 2, rank);
    long *own = MS_NEW_ARRAY(run->arena, etp, long);
    for (long i = 0; i < etp * num_local; i++) {
        total += rows[i];
        mine += i / num_local == me ? rows[i] : 0;
    }
    bool gathers = node->from.kind == MS_SHARD;
    ms_cell *out = ms_interp_out_rows(run, node, 0, rank, gathers ? total : mine);
    for (long e = 0; e < num_local; e++)
        for (long i = 0; i < etp; i++)
            for (long r = 0; r < rows[i * num_local + e]; r++)
                share_row(run, node, rank, i, own[i]++, at++);
    /* wire bytes as with equal parts: a rank sends each other rank 1/etp of all rows */
    run->node_wire_bytes[(node - run->program->nodes) * run->num_ranks + rank] =
        (double)(etp - 1) / (double)etp * (double)(total * ms_cell_last(out)) *
        run->program->tensors[node->in[0]].element_bytes;
}

/* Consecutive rows that a source rank (dense order) sends to the rank that owns their
 * expert (sparse order). */
typedef struct row_block {
    int source;
    long source_row, owner_row, num_rows;
} row_block;

/* Lists the row blocks that an expert owner receives, by expert, then by source. Returns
 * their number. */
static long list_blocks(ms_interp *run, const ms_node *node, int owner, row_block *blocks)
{
    long ep = run->program->mesh_size[MS_SPARSE_MESH][1], num_blocks = 0, row = 0;
    long num_local = ms_interp_size(run, MS_DIM_EXPERTS) / ep;
    long first = num_local * ms_interp_coordinate(run, MS_SPARSE_MESH, 1, owner);
    long **starts = MS_NEW_ARRAY(run->arena, ep, long *);
    for (long source = 0; source < ep; source++) {
        int peer = ms_interp_peer(run, MS_SPARSE_MESH, 1, owner, source);
        starts[source] = new_starts(run);
        if (order_rows(run, node, ms_interp_in(run, node, 1, peer), starts[source]) ==
            NULL)
            return -1;
    }
    for (long e = first; e < first + num_local; e++) {
        for (long source = 0; source < ep; source++) {
            long num_rows = starts[source][e + 1] - starts[source][e];
            blocks[num_blocks++] = (row_block){
                .source = ms_interp_peer(run, MS_SPARSE_MESH, 1, owner, source),
                .source_row = starts[source][e],
                .owner_row = row,
                .num_rows = num_rows};
            row += num_rows;
        }
    }
    return num_blocks;
}

/* Copies the rows of a rank's experts from their source ranks. */
static void dispatch(ms_interp *run, const ms_node *node, int rank, row_block *blocks)
{
    long num_blocks = list_blocks(run, node, rank, blocks), num_rows = 0;
    for (long i = 0; i < num_blocks; i++)
        num_rows += blocks[i].num_rows;
    ms_cell *out = ms_interp_out_rows(run, node, 0, rank, num_rows);
    long width = ms_cell_last(out), node_idx = node - run->program->nodes;
    double element_bytes = run->program->tensors[node->in[0]].element_bytes;
    for (long i = 0; i < num_blocks; i++) {
        const ms_cell *rows = ms_interp_in(run, node, 0, blocks[i].source);
        const ms_cell *choice = ms_interp_in(run, node, 1, blocks[i].source);
        if (!ms_interp_expect(run, node, rows, choice->count * width))
            return;
        long count = blocks[i].num_rows * width;
        copy_rows(out->values + blocks[i].owner_row * width,
                  rows->values + blocks[i].source_row * width, count);
        if (blocks[i].source != rank)
            run->node_wire_bytes[node_idx * run->num_ranks + blocks[i].source] +=
                (double)count * element_bytes;
    }
}

/* Copies a rank's own rows back from the ranks that own their experts. */
static void combine(ms_interp *run, const ms_node *node, int rank, row_block *blocks)
{
    long ep = run->program->mesh_size[MS_SPARSE_MESH][1],
         node_idx = node - run->program->nodes;
    const ms_cell *choice = ms_interp_in(run, node, 1, rank);
    ms_cell *out = ms_interp_out_rows(run, node, 0, rank, choice->count);
    long width = ms_cell_last(out);
    double element_bytes = run->program->tensors[node->in[0]].element_bytes;
    for (long j = 0; j < ep; j++) {
        int owner = ms_interp_peer(run, MS_SPARSE_MESH, 1, rank, j);
        const ms_cell *rows = ms_interp_in(run, node, 0, owner);
        long num_blocks = list_blocks(run, node, owner, blocks), num_rows = 0;
        for (long i = 0; i < num_blocks; i++)
            num_rows += blocks[i].num_rows;
        if (!ms_interp_expect(run, node, rows, num_rows * width))
            return;
        for (long i = 0; i < num_blocks; i++) {
            long count = blocks[i].num_rows * width;
            if (blocks[i].source != rank)
                continue;
            copy_rows(out->values + blocks[i].source_row * width,
                      rows->values + blocks[i].owner_row * width, count);
            if (owner != rank)
                run->node_wire_bytes[node_idx * run->num_ranks + owner] +=
                    (double)count * element_bytes;
        }
    }
}

void ms_interp_exchange(ms_interp *run, const ms_node *node, int rank)
{
    const ms_tensor *tensors = run->program->tensors;
    ms_mesh_kind from = node->inverse ? MS_SPARSE_MESH : MS_DENSE_MESH;
    ms_mesh_kind to = node->inverse ? MS_DENSE_MESH : MS_SPARSE_MESH;
    if (tensors[node->in[0]].mesh != from || tensors[node->out[0]].mesh != to) {
        ms_interp_fail(run, node, "an exchange on the wrong mesh");
        return;
    }
    row_block *blocks =
        MS_NEW_ARRAY(run->arena, ms_interp_size(run, MS_DIM_EXPERTS), row_block);
    if (node->inverse)
        combine(run, node, rank, blocks);
    else
        dispatch(run, node, rank, blocks);
}
