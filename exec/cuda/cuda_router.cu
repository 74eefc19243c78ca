/* Choice of experts for MoE: one warp per token, its scores in shared memory. */
#include "exec/cuda/cuda_router.h"

#include "exec/cuda/cuda_device.cuh"

#include <assert.h>
#include <math.h>

#define MOST_WARPS 8 /* largest number of warps in a thread block */
/* largest shared memory of a thread block */
#define SCORES_BYTES (MS_CUDA_ROUTER_EXPERTS * sizeof(double))

namespace
{

__device__ double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* ---- one token ---- */

template <class T> struct token {
    const ms_cuda_router_args *args;
    int lane;
    long row;
    double *score; /* (num_experts) the token's scores, in shared memory */
    const T *logits;
    T *choice;
};

__device__ double bias_of(const ms_cuda_router_args &args, long expert)
{
    if (args.bias_scalar == MS_SCALAR_FP64)
        return ((const double *)args.bias)[expert];
    if (args.bias_scalar == MS_SCALAR_FP32)
        return (double)((const float *)args.bias)[expert];
    return (double)value(((const bf16 *)args.bias)[expert]);
}

/* Sets t.score to the scores that choose experts: logits or sigmoids, plus bias. */
template <class T> __device__ void make_choice_scores(const token<T> &t)
{
    for (long e = t.lane; e < t.args->num_experts; e += MS_WARP) {
        double logit = (double)t.logits[e];
        t.score[e] = (t.args->is_sigmoid ? sigmoid(logit) : logit) +
                     (t.args->bias != nullptr ? bias_of(*t.args, e) : 0);
    }
    __syncwarp();
}

/* Score of a group of experts: its best, for sigmoids the sum of its best two. */
template <class T> __device__ double score_of_group(const token<T> &t, long group)
{
    long size = t.args->num_experts / t.args->num_groups;
    double best = -HUGE_VAL, second = -HUGE_VAL;
    for (long e = group * size; e < (group + 1) * size; e++) {
        second = fmax(second, fmin(best, t.score[e]));
        best = fmax(best, t.score[e]);
    }
    return t.args->is_sigmoid && size > 1 ? best + second : best;
}

/* Sets scores to minus infinity except in the best groups; the lower index if equal. A
 * lane decides on a group. Groups without scores are no better than those decided later,
 * as the best groups keep theirs. */
template <class T> __device__ void leave_best_groups(const token<T> &t)
{
    long num = t.args->num_groups;
    for (long first = 0; first < num && num > 1; first += MS_WARP) {
        long group = first + t.lane, size = t.args->num_experts / num, num_better = 0;
        double score = group < num ? score_of_group(t, group) : 0;
        for (long other = 0; other < num && group < num; other++) {
            double its = score_of_group(t, other);
            num_better += its > score || (its == score && other < group);
        }
        __syncwarp(); /* all lanes have read the scores */
        for (long i = 0; i < size && num_better >= t.args->top_groups; i++)
            t.score[group * size + i] = -HUGE_VAL;
        __syncwarp();
    }
}

template <class T> __device__ bool is_taken(const T *choice, long slots, long expert)
{
    for (long i = 0; i < slots; i++)
        if ((long)choice[i] == expert)
            return true;
    return false;
}

__device__ bool is_better(double x, int expert, double other_score, int other_expert)
{
    return expert >= 0 && (other_expert < 0 || x > other_score ||
                           (x == other_score && expert < other_expert));
}

/* Returns the best expert not in choice[0 .. slots - 1]; if equal, the lowest index. */
template <class T> __device__ int best_of(const token<T> &t, long slots)
{
    int best = -1;
    double most = 0;
    for (long e = t.lane; e < t.args->num_experts; e += MS_WARP) {
        if ((best < 0 || t.score[e] > most) && !is_taken(t.choice, slots, e)) {
            best = (int)e;
            most = t.score[e];
        }
    }
    for (int distance = MS_WARP / 2; distance > 0; distance /= 2) {
        int other_expert = __shfl_xor_sync(MS_ALL_LANES, best, distance);
        double x = __shfl_xor_sync(MS_ALL_LANES, most, distance);
        if (is_better(x, other_expert, most, best)) {
            best = other_expert;
            most = x;
        }
    }
    return __shfl_sync(MS_ALL_LANES, best, 0); /* if NaN made lanes disagree, lane 0's */
}

template <class T> __device__ void choose(const token<T> &t)
{
    for (long slot = 0; slot < t.args->num_chosen; slot++) {
        int best = best_of(t, slot);
        if (t.lane == 0)
            t.choice[slot] = (T)best;
        __syncwarp(); /* all lanes see the chosen expert */
    }
}

template <class T> __device__ void choose_in_turn(const token<T> &t)
{
    const ms_cuda_router_args *a = t.args;
    long number = (a->first_sequence + t.row / a->length) * a->sequence_length +
                  a->first_stored + t.row % a->length;
    for (long slot = t.lane; slot < a->num_chosen; slot += MS_WARP)
        t.choice[slot] = (T)((number * a->num_chosen + slot) % a->num_experts);
    __syncwarp();
}

/* Sets t.score to scores without bias; returns the divisor that makes them weights. */
template <class T> __device__ double make_scores(const token<T> &t)
{
    const ms_cuda_router_args *a = t.args;
    double largest = -HUGE_VAL, total = 0;
    for (long e = t.lane; e < a->num_experts; e += MS_WARP)
        largest = fmax(largest, (double)t.logits[e]);
    largest = warp_max(largest);
    for (long e = t.lane; e < a->num_experts; e += MS_WARP) {
        double logit = (double)t.logits[e];
        t.score[e] = a->is_sigmoid ? sigmoid(logit) : exp(logit - largest);
        total += t.score[e];
    }
    __syncwarp();
    if (!a->renormalised)
        return a->is_sigmoid ? 1 : warp_sum(total);
    total = 0;
    for (long slot = 0; slot < a->num_chosen; slot++)
        total += t.score[(long)t.choice[slot]];
    return total;
}

/* ---- kernels ---- */

/* The warp's token; false beyond the last token, for all lanes of the warp. */
template <class T>
__device__ bool find_token(const ms_cuda_router_args &args, double *scores, token<T> *out)
{
    long warp = threadIdx.x / MS_WARP, num_warps = blockDim.x / MS_WARP;
    long row = blockIdx.x * num_warps + warp;
    out->args = &args;
    out->lane = (int)threadIdx.x % MS_WARP;
    out->row = row;
    out->score = scores + warp * args.num_experts;
    out->logits = (const T *)args.logits + row * args.num_experts;
    out->choice = (T *)args.choice + row * args.num_chosen;
    return row < args.num_tokens;
}

template <class T> __global__ void route(ms_cuda_router_args args)
{
    MS_DYNAMIC_SHARED(double, scores);
    token<T> t;
    if (!find_token(args, scores, &t))
        return;
    if (args.is_balanced) {
        choose_in_turn(t);
    } else {
        make_choice_scores(t);
        leave_best_groups(t);
        choose(t);
    }
    double total = make_scores(t);
    for (long slot = t.lane; slot < args.num_chosen; slot += MS_WARP)
        ((T *)args.weight)[t.row * args.num_chosen + slot] =
            (T)(args.scaling * t.score[(long)t.choice[slot]] / total);
}

/* Gradient of logits. weight = scaling x score / total; d score / d logit = score (softmax) or
 * score (1 - score) (sigmoid). The choice of experts counts as constant. */
template <class T> __global__ void route_grad(ms_cuda_router_args args)
{
    MS_DYNAMIC_SHARED(double, scores);
    token<T> t;
    if (!find_token(args, scores, &t))
        return;
    const T *g = (const T *)args.gweight + t.row * args.num_chosen,
            *weight = (const T *)args.weight + t.row * args.num_chosen;
    double total = make_scores(t), mean = 0; /* mean: sum of gweight x weight */
    for (long slot = 0; slot < args.num_chosen; slot++)
        mean += (double)g[slot] * (double)weight[slot];
    for (long e = t.lane; e < args.num_experts; e += MS_WARP) {
        double sum = args.renormalised || args.is_sigmoid ? 0 : -mean / total,
               score = t.score[e];
        for (long slot = 0; slot < args.num_chosen; slot++)
            if ((long)t.choice[slot] == e)
                sum += (args.scaling * (double)g[slot] - (args.renormalised ? mean : 0)) /
                       total;
        ((T *)args.glogits)[t.row * args.num_experts + e] =
            (T)(sum * (args.is_sigmoid ? score * (1 - score) : score));
    }
}

/* ---- launches ---- */

void launch(ms_cuda_stream *stream, void (*kernel)(ms_cuda_router_args),
            const ms_cuda_router_args *args)
{
    long bytes = args->num_experts * (long)sizeof(double);
    long warps = (long)SCORES_BYTES / bytes;
    warps = warps < MOST_WARPS ? warps : MOST_WARPS;
    MS_LAUNCH(kernel, ms_blocks(args->num_tokens, warps, 0x7fffffff),
              (unsigned)warps * MS_WARP, (size_t)(warps * bytes), stream, *args);
}

} // namespace

void ms_cuda_router_choose(ms_cuda_stream *stream, const ms_cuda_router_args *args)
{
    assert(args->num_experts <= MS_CUDA_ROUTER_EXPERTS);
    if (args->num_tokens <= 0)
        return;
    if (args->scalar == MS_SCALAR_FP64)
        launch(stream, route<double>, args);
    else
        launch(stream, route<float>, args);
}

void ms_cuda_router_gradient(ms_cuda_stream *stream, const ms_cuda_router_args *args)
{
    assert(args->num_experts <= MS_CUDA_ROUTER_EXPERTS);
    if (args->num_tokens <= 0)
        return;
    if (args->scalar == MS_SCALAR_FP64)
        launch(stream, route_grad<double>, args);
    else
        launch(stream, route_grad<float>, args);
}
