/* One layer's forward overlapped with another's backward: compute hides all-to-alls. */
#ifndef MS_COSTMODEL_COST_OVERLAPPED_PAIR_H
#define MS_COSTMODEL_COST_OVERLAPPED_PAIR_H

/* Seconds of a layer's forward by part: compute by segment (ms_bill_segment), all-to-alls
 * of tokens (0 without experts), and other communication that compute waits for
 * (`exposed_s`). Without overlap the layer takes their sum, or host_s if that is more. */
typedef struct ms_pair_forward {
    double attention_s, experts_s, result_s;
    double dispatch_s, combine_s;
    double exposed_s;
    double host_s; /* seconds in which the host launches it */
} ms_pair_forward;

typedef struct ms_pair_backward {
    double result_s;    /* all gradients of the result segment */
    double experts_s;   /* input gradients of experts */
    double weight_s;    /* weight gradients of experts */
    double attention_s; /* all gradients of the attention segment */
    double combine_s, dispatch_s;
    double exposed_s;
    double host_s;
} ms_pair_backward;

/* Seconds of an overlapped pair: the longest path through a compute stream and a
 * communication stream, each in a fixed order (NVIDIA/Megatron-LM,
 * megatron/core/models/common/model_chunk_schedule_plan.py,
 * TransformerLayerSchedulePlan.run; DeepSeek's DualPipe alike). Communication: combine
 * backward, dispatch forward, dispatch backward, combine forward. Compute: result
 * backward, attention forward, experts' input gradients, experts' weight gradients,
 * experts forward, attention backward, result forward. `interference_frac` of the time
 * saved is lost again. At least the longer stream, and what both layers would take one
 * after the other without exchanges, launches included; at most the sum of both layers
 * alone. */
double ms_pair_s(const ms_pair_forward *forward, const ms_pair_backward *backward,
                 double interference_frac);
/* The part of ms_pair_s in which the device waits for the host. */
double ms_pair_host_s(const ms_pair_forward *forward, const ms_pair_backward *backward,
                      double interference_frac);

#endif
