/* Folder costmodel/tensor: words that programs and planners share: placements, SPMD
 * types, einsum rules, kinds of operations and collectives, shapes of kernels; no
 * prices.
 *
 * Kinds of operations in layer programs, with operands (in), results (out) and
 * attributes; letters in brackets name dims, g... a gradient. */
#ifndef MS_COSTMODEL_TENSOR_OP_H
#define MS_COSTMODEL_TENSOR_OP_H

#include <stdbool.h>

typedef enum ms_op {
    /* out = einsum(in0, in1), attribute `einsum`. Backward: two einsums with the index
     * sets swapped. */
    MS_OP_EINSUM,
    /* out = in0 + in1, in1 a bias whose dims are the last dims of in0. Backward of the
     * bias: MS_OP_SUM_TO. */
    MS_OP_BIAS,
    /* out = in0 summed over leading dims; out keeps in0's last dims, as of a bias. */
    MS_OP_SUM_TO,
    /* out = in0 + in1, same dims. A second out is the dropout mask of in1, which is in
     * cost programs only: dropout is never executed. */
    MS_OP_ADD,
    /* Gradient of ADD with a mask: in gout, mask; out gin1 = gout through the mask. */
    MS_OP_DROPOUT_GRAD,
    /* Normalisation over the last dim with epsilon 1e-6. RMS: in x, weight; layer norm:
     * in x, weight, bias. */
    MS_OP_NORM,
    /* Gradient of NORM: in x, weight, gout; out gx, gweight [, gbias]. */
    MS_OP_NORM_GRAD,
    /* Rotary positions on the last `rotary_width` entries of the last dim of in0 ([.., s,
     * .., d]), halves rotated against each other (Hugging Face convention), angle =
     * position / 10000^(2i/width). attribute inverse: the transpose (backward). */
    MS_OP_ROTARY,
    /* in q[bsnd] k[bsgd] v[bsgw]; out o[bsnw], lse[bsn] (log-sum-exp, fp32 in practice)
     * [, scores[bnst] when unfused]. softmax(q k / sqrt(d)), causal by position, each kv
     * head serves n/g consecutive query heads; `window_tokens` > 0 limits to keys with
     * position > q position - window. A fourth operand, sinks[n], has one more score per
     * query head, of a key whose value is 0; lse includes it. */
    MS_OP_ATTENTION,
    /* Gradient of ATTENTION: in q k v o lse go [scores]; out gq gk gv. */
    MS_OP_ATTENTION_GRAD,
    /* Gradient of ATTENTION's sinks: in o lse go, sinks[n]; out gsinks[n]: minus the sums,
     * over tokens, of exp(sink - lse) times the product of o and go. */
    MS_OP_SINK_GRAD,
    /* MLA: in up[bsnu] (nope keys, then values, per head), rope[bso]; out k[bsnd] =
     * (nope, rope repeated over heads), v[bsnw]. */
    MS_OP_MLA_KEYS,
    /* Gradient of MLA_KEYS: in gk gv; out gup, grope, a sum over a rank's heads and so a
     * partial sum if tp splits heads. */
    MS_OP_MLA_KEYS_GRAD,
    /* out = act(in0) * in1 (gated) or act(in0); attribute activation. */
    MS_OP_ACTIVATION,
    /* Gradient of ACTIVATION: in its inputs, then gout; out their gradients. */
    MS_OP_ACTIVATION_GRAD,
    /* Embedding: in table[vh] (rows by token) or [ph] (rows by position, attribute
     * by_position); out x[bsh]. A sharded table gives partial sums. Attribute ahead: the
     * row of the token so many positions later, or of token 0 after the sequence's end. */
    MS_OP_EMBED,
    /* Gradient of EMBED: in gout; out gtable. */
    MS_OP_EMBED_GRAD,
    /* Cross entropy in three parts, so that a sharded vocabulary needs three small
     * reductions per token: in logits[bsv]; out max[bs] (partial max when the vocabulary
     * is sharded). */
    MS_OP_LOSS_MAX,
    /* Second part of cross entropy: in logits, max; out sum[bs] of exp(logit - max),
     * target[bs]: the target's logit (0 where another rank owns it). Attribute ahead: the
     * target of the token so many positions later; where there is none, sum and target are
     * such that the loss is 0. */
    MS_OP_LOSS_SUM,
    /* Cross entropy: in max, sum, target; out loss[bs] = max + log(sum) - target. */
    MS_OP_LOSS,
    /* Gradient of the loss: in logits, max, sum; out glogits = (softmax - onehot) /
     * tokens of the global batch (program->size b * s), times ms_node_loss_weight; 0 for
     * tokens without a target. */
    MS_OP_LOSS_GRAD,
    /* Routing to experts: in logits[bse] [, bias[e]]; out weight[bsk], choice[bsk]
     * (expert ids, as numbers). Attribute router. */
    MS_OP_ROUTE,
    /* Gradient of ROUTE: in logits, weight, choice, gweight; out glogits. */
    MS_OP_ROUTE_GRAD,
    /* out[ri] or [rh] = in0 + the bias in1[ei] or [eh] of each row's expert; in2: choice, as
     * of GROUPED. */
    MS_OP_EXPERT_BIAS,
    /* Gradient of that bias: in gout, choice; out gbias. */
    MS_OP_EXPERT_BIAS_GRAD,
    /* Copies tokens to experts' rows: in x[bsh], choice[bsk]; out rows[rh]: each token k
     * times, ordered by expert (stable). Dense mesh. */
    MS_OP_PERMUTE,
    /* Gradient of PERMUTE: in grows[rh], choice; out gx[bsh]: the k copies summed. */
    MS_OP_PERMUTE_GRAD,
    /* All-to-all of experts' rows from one mesh to the other: in rows[r?], choice; out
     * rows[r?]. Dispatch (dense to sparse): rows go to the ep rank that owns their expert
     * (expert / (e / ep)), ordered by (expert, source ep rank, source row). Attribute
     * inverse: combine (sparse to dense). */
    MS_OP_EXCHANGE,
    /* Grouped GEMM: each row of `r` is multiplied by the matrix of its expert. `einsum`
     * is "rh,ehi->ri" or "ri,eih->rh"; for gradients of rows "ri,ehi->rh" or
     * "rh,eih->ri", for those of weights "rh,ri->ehi". The last operand, `choice` (dense
     * mesh), gives the number of rows per expert. */
    MS_OP_GROUPED,
    /* Sums each token's expert results: in rows[rh], weight[bsk], choice; out y[bsh] =
     * sum over k of weight * row. Linear in rows: partial rows give partial y. */
    MS_OP_UNPERMUTE,
    /* Gradient of UNPERMUTE: in gy, rows, weight, choice; out grows, gweight. */
    MS_OP_UNPERMUTE_GRAD,
    /* out = in0 * sigmoid(in1), in1[bs1] broadcast over the last dim. */
    MS_OP_GATE,
    /* Gradient of GATE: in x, gate, gout; out gx, ggate (summed over the last dim). */
    MS_OP_GATE_GRAD,
    /* A Mamba-2 mixer between its projections, in chunks (Dao and Gu 2024, section 6): in
     * projected[bsI], taps[XK] and bias[X] of the convolution, log of the decay[M],
     * skip[M], bias of the step[M]; out y[bsD], gated, and y before the gate, which the
     * fused kernel saves for its backward. A group of heads is contiguous in I and X (CPU
     * kernel: exec/cpu/cpu_scan.c). */
    MS_OP_SCAN,
    /* Gradient of SCAN: in its inputs, its y before the gate, gy; out their gradients, or
     * that of `projected` alone if weights are frozen. */
    MS_OP_SCAN_GRAD,
    /* An RMS norm of each group of Mamba-2 heads: in y[bsD], weight[D]. */
    MS_OP_GROUP_NORM,
    /* Gradient of GROUP_NORM: in y, weight, gout; out gy, gweight unless it is frozen. */
    MS_OP_GROUP_NORM_GRAD,
    /* Concatenation: out[bsH] = in0[bsh], then in1[bsh]. */
    MS_OP_CONCAT,
    /* Gradient of CONCAT: in gout[bsH]; out gin0[bsh], gin1[bsh]. */
    MS_OP_CONCAT_GRAD,
    /* Changes the placement of in0 on one mesh axis: attributes axis, from, to.
     * Shard->Replicate all-gather, partial->Replicate all-reduce, partial->Shard
     * reduce-scatter, Replicate->Shard a local slice, Shard->Shard all-to-all. */
    MS_OP_REDISTRIBUTE,
    /* One step of AdamW without weight decay (Loshchilov and Hutter 2019): in weight,
     * gradient (reduced), first and second moment; out the three after the step: m' = 0.9
     * m + 0.1 g, v' = 0.95 v + 0.05 g^2, w' = w - 0.001 m' / (sqrt(v') + 1e-8). */
    MS_OP_ADAM,
    MS_NUM_OPS
} ms_op;
extern const char *const ms_op_names[]; /* [ms_op] names of operations, ended by NULL */

/* Whether an operation is neither GEMM, attention, scan nor a move between ranks. */
bool ms_op_is_pointwise(ms_op op);

#endif
