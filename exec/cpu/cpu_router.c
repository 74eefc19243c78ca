/* CPU kernels of the MoE router: choice of experts by logits, and its gradient. */
#include "exec/cpu/cpu.h"

#include <math.h>

size_t MS_TYPED(ms_cpu_experts_bytes)(const ms_program *program, const ms_node *node)
{
    (void)node;
    return (size_t)program->size[MS_DIM_EXPERTS - '0'] * sizeof(double);
}

/* Router over logits (batch, sequence, experts); scratch has one number per expert. */
typedef struct router {
    const ms_model *model;
    long num_experts, num_chosen, num_tokens;
    double *scratch;
} router;

static router read_router(const ms_op_call *call)
{
    const ms_local *logits = call->in[0];
    return (router){.model = call->program->model,
                    .num_experts = ms_local_last(logits),
                    .num_chosen = (long)call->program->size[MS_DIM_CHOICES - '0'],
                    .num_tokens = ms_local_leading(logits),
                    .scratch = call->workspace};
}

static double sigmoid_fp64(double x)
{
    return 1 / (1 + exp(-x));
}

/* Scores that select experts: logits, or sigmoids plus bias (DeepSeek-V3, 2.1.2). */
static void fill_selection_scores(const router *r, const ms_real *logits,
                                  const ms_real *bias)
{
    bool is_sigmoid = r->model->moe.router == MS_ROUTER_SIGMOID;
    for (long e = 0; e < r->num_experts; e++) {
        double logit = (double)logits[e];
        r->scratch[e] = (is_sigmoid ? sigmoid_fp64(logit) : logit) +
                        (bias != NULL ? (double)bias[e] : 0);
    }
}

/* Score of a group of experts (DeepSeek-V2, V3): its best, for sigmoids its best two. */
static double score_of_group(const router *r, long group, long size)
{
    double best = -HUGE_VAL, second = -HUGE_VAL;
    for (long e = group * size; e < (group + 1) * size; e++) {
        if (r->scratch[e] > best) {
            second = best;
            best = r->scratch[e];
        } else if (r->scratch[e] > second) {
            second = r->scratch[e];
        }
    }
    bool adds = r->model->moe.router == MS_ROUTER_SIGMOID && size > 1;
    return adds ? best + second : best;
}

/* Sets scores to minus infinity except in the best groups; the lower index if equal. A
 * group without scores is no better than one that is left out before it, so that scores
 * may be cleared in turn. */
static void leave_best_groups(const router *r)
{
    long num = r->model->moe.num_groups, size = num > 1 ? r->num_experts / num : 0;
    for (long g = 0; g < num && num > 1; g++) {
        double score = score_of_group(r, g, size);
        long num_better = 0;
        for (long other = 0; other < num; other++) {
            double its = score_of_group(r, other, size);
            num_better += its > score || (its == score && other < g);
        }
        for (long e = g * size;
             num_better >= r->model->moe.top_groups && e < (g + 1) * size; e++)
            r->scratch[e] = -HUGE_VAL;
    }
}

static bool is_chosen(const ms_real *choice, long slots, long expert)
{
    for (long i = 0; i < slots; i++)
        if ((long)choice[i] == expert)
            return true;
    return false;
}

/* Chooses the experts with the largest scores, descending; the lower index if equal. */
static void choose_experts(const router *r, ms_real *choice)
{
    for (long slot = 0; slot < r->num_chosen; slot++) {
        long best = -1;
        for (long e = 0; e < r->num_experts; e++)
            if ((best < 0 || r->scratch[e] > r->scratch[best]) &&
                !is_chosen(choice, slot, e))
                best = e;
        choice[slot] = (ms_real)best;
    }
}

static void choose_round_robin(const router *r, const ms_op_call *call, long row,
                               ms_real *choice)
{
    const ms_local *logits = call->in[0];
    long length = (long)call->program->size[MS_DIM_SEQUENCE - '0'];
    long token = (logits->start[0] + row / logits->shape[1]) * length + logits->start[1] +
                 row % logits->shape[1];
    for (long slot = 0; slot < r->num_chosen; slot++)
        choice[slot] = (ms_real)((token * r->num_chosen + slot) % r->num_experts);
}

static bool is_renormalised(const ms_model *model)
{
    return model->moe.router == MS_ROUTER_TOPK_SOFTMAX || model->moe.norm_topk;
}

static double scaling_of(const ms_model *model)
{
    return model->moe.routed_scaling > 0 ? model->moe.routed_scaling : 1;
}

/* The expert that a copy was routed to, also if it is dropped (ms_op_call.capacity). */
static long expert_of(ms_real choice)
{
    return choice < 0 ? -1 - (long)choice : (long)choice;
}

/* Sets r->scratch[e] to the score of expert e: sigmoid, or for softmax exp(logit -
 * largest). Returns the sum by which scores are divided to get weights; 1 for sigmoids
 * that are not renormalised. */
static double fill_scores(const router *r, const ms_real *logits, const ms_real *choice)
{
    double largest = -HUGE_VAL, total = 0;
    for (long e = 0; e < r->num_experts; e++)
        largest = fmax(largest, (double)logits[e]);
    for (long e = 0; e < r->num_experts; e++)
        r->scratch[e] = r->model->moe.router == MS_ROUTER_SIGMOID
                            ? sigmoid_fp64((double)logits[e])
                            : exp((double)logits[e] - largest);
    if (is_renormalised(r->model))
        for (long slot = 0; slot < r->num_chosen; slot++)
            total += r->scratch[expert_of(choice[slot])];
    else if (r->model->moe.router == MS_ROUTER_SIGMOID)
        total = 1;
    else
        for (long e = 0; e < r->num_experts; e++)
            total += r->scratch[e];
    return total;
}

/* ---- capacity ---- */

static int group_of(const ms_op_call *call, long copy)
{
    const ms_local *logits = call->in[0];
    long row = copy / ms_local_last(call->out[1]);
    return call->capacity->group[logits->start[1] + row % logits->shape[1]];
}

/* Drops the last copies from experts that have too many of a group's tokens. */
static void drop_copies(const router *r, const ms_op_call *call)
{
    const ms_capacity *capacity = call->capacity;
    ms_real *choice = ms_cpu_out(call, 1);
    long length = (long)call->program->size[MS_DIM_SEQUENCE - '0'];
    long copies = call->in[0]->shape[0] * length / capacity->num_groups * r->num_chosen,
         most = ms_capacity_rows(capacity, copies, r->num_experts);
    for (int group = 0; group < capacity->num_groups; group++) {
        for (long e = 0; e < r->num_experts; e++)
            r->scratch[e] = 0;
        for (long i = 0; i < call->out[1]->count; i++)
            if (group_of(call, i) == group &&
                ++r->scratch[(long)choice[i]] > (double)most)
                choice[i] = -1 - choice[i];
    }
}

void MS_TYPED(ms_cpu_route)(const ms_op_call *call)
{
    router r = read_router(call);
    const ms_real *logits = ms_cpu_in(call, 0);
    const ms_real *bias = call->node->num_in > 1 ? ms_cpu_in(call, 1) : NULL;
    ms_real *weight = ms_cpu_out(call, 0), *choice = ms_cpu_out(call, 1);
    for (long row = 0; row < r.num_tokens; row++) {
        const ms_real *from = logits + row * r.num_experts;
        ms_real *chosen = choice + row * r.num_chosen;
        if (call->balanced_routing) {
            choose_round_robin(&r, call, row, chosen);
        } else {
            fill_selection_scores(&r, from, bias);
            leave_best_groups(&r);
            choose_experts(&r, chosen);
        }
        double total = fill_scores(&r, from, chosen);
        for (long slot = 0; slot < r.num_chosen; slot++)
            weight[row * r.num_chosen + slot] =
                (ms_real)(scaling_of(r.model) * r.scratch[(long)chosen[slot]] / total);
    }
    if (call->capacity != NULL)
        drop_copies(&r, call);
}

/* Sets `to` to the gradient of a token's logits. weight = scaling x score / total; d score / d
 * logit is score for softmax, score (1 - score) for sigmoids; `choice` is constant. */
static void route_grad(const router *r, const ms_real *weight, const ms_real *choice,
                       const ms_real *g, double total, ms_real *to)
{
    bool renormalised = is_renormalised(r->model),
         is_sigmoid = r->model->moe.router == MS_ROUTER_SIGMOID;
    double scaling = scaling_of(r->model);
    double mean = 0; /* sum of g x weight, which is -total x gradient of total */
    for (long slot = 0; slot < r->num_chosen; slot++)
        mean += (double)g[slot] * (double)weight[slot];
    for (long e = 0; e < r->num_experts; e++) {
        double sum = renormalised || is_sigmoid ? 0 : -mean / total;
        for (long slot = 0; slot < r->num_chosen; slot++)
            if (expert_of(choice[slot]) == e)
                sum += (scaling * (double)g[slot] - (renormalised ? mean : 0)) / total;
        double score = r->scratch[e];
        to[e] = (ms_real)(sum * (is_sigmoid ? score * (1 - score) : score));
    }
}

void MS_TYPED(ms_cpu_route_grad)(const ms_op_call *call)
{
    router r = read_router(call);
    const ms_real *logits = ms_cpu_in(call, 0), *weight = ms_cpu_in(call, 1),
                  *choice = ms_cpu_in(call, 2), *gweight = ms_cpu_in(call, 3);
    ms_real *glogits = ms_cpu_out(call, 0);
    for (long row = 0; row < r.num_tokens; row++) {
        long at = row * r.num_chosen;
        const ms_real *from = logits + row * r.num_experts;
        double total = fill_scores(&r, from, choice + at);
        route_grad(&r, weight + at, choice + at, gweight + at, total,
                   glogits + row * r.num_experts);
    }
}
