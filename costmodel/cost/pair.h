/* A forward and a backward of two layers run side by side: the exchanges of one hide
 * behind the compute of the other. */
#ifndef MS_COSTMODEL_COST_PAIR_H
#define MS_COSTMODEL_COST_PAIR_H

/* One layer of the pair in one direction. Compute by the segments of costmodel/cost/bill.h,
 * exchanges alone, and `exposed_s`: all other communication that compute waits for, which
 * stays exposed. The layer alone takes the sum of all. Exchanges of 0 s: no experts. */
typedef struct ms_pair_forward {
    double attention_s, experts_s, result_s;
    double dispatch_s, combine_s;
    double exposed_s;
} ms_pair_forward;

typedef struct ms_pair_backward {
    double result_s;  /* inputs and weights */
    double experts_s; /* inputs */
    /* of the experts: gradients of weights, after the dispatch has started back */
    double weight_s;
    double attention_s; /* inputs and weights */
    double combine_s, dispatch_s;
    double exposed_s;
} ms_pair_backward;

/* Seconds of both: the longest path through two streams that run in order
 * (NVIDIA/Megatron-LM, megatron/core/models/common/ model_chunk_schedule_plan.py,
 * TransformerLayerSchedulePlan.run; the pairs of DeepSeek's DualPipe run alike).
 *   communication: combine backward, dispatch forward, dispatch backward, combine forward
 *   compute: result backward, attention forward, experts backward, their weights, experts
 *   forward, attention backward, result forward
 * `interference_frac` of the time saved is lost to what both streams share. At most the
 * sum of both alone, at least the longer of the two streams, and the sum itself when
 * neither has exchanges. Megatron-LM sums over pairs of layers; so may callers. */
double ms_pair_s(const ms_pair_forward *forward, const ms_pair_backward *backward,
                 double interference_frac);

#endif
