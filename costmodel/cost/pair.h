/* One layer's forward overlapped with another's backward: compute hides exchanges. */
#ifndef MS_COSTMODEL_COST_PAIR_H
#define MS_COSTMODEL_COST_PAIR_H

/* One layer of the pair in one direction: compute by segment (costmodel/cost/bill.h),
 * exchanges (0 s without experts), and all other communication that compute waits for
 * (`exposed_s`). Without overlap the layer takes the sum. */
typedef struct ms_pair_forward {
    double attention_s, experts_s, result_s;
    double dispatch_s, combine_s;
    double exposed_s;
} ms_pair_forward;

typedef struct ms_pair_backward {
    double result_s;    /* gradients of inputs and weights */
    double experts_s;   /* gradients of inputs */
    double weight_s;    /* gradients of experts' weights, once the dispatch began */
    double attention_s; /* gradients of inputs and weights */
    double combine_s, dispatch_s;
    double exposed_s;
} ms_pair_backward;

/* Seconds of an overlapped pair: the longest path through two streams that run in order
 * (NVIDIA/Megatron-LM, megatron/core/models/common/model_chunk_schedule_plan.py,
 * TransformerLayerSchedulePlan.run; the pairs of DeepSeek's DualPipe run alike).
 * Communication: combine backward, dispatch forward, dispatch backward, combine forward.
 * Compute: result backward, attention forward, experts backward, their weights, experts
 * forward, attention backward, result forward. `interference_frac` of the time saved is
 * lost to what both streams share. At most the sum of both alone, at least the longer of
 * the two streams, and the sum itself if neither has exchanges. Megatron-LM sums over
 * pairs of layers; callers may too. */
double ms_pair_s(const ms_pair_forward *forward, const ms_pair_backward *backward,
                 double interference_frac);

#endif
