/* Techniques that plans choose and stacks support: recomputation and context parallelism. */
#ifndef MS_COSTMODEL_TENSOR_TECHNIQUE_H
#define MS_COSTMODEL_TENSOR_TECHNIQUE_H

#include <stdbool.h>

typedef enum ms_recompute {
    MS_RECOMPUTE_NONE, /* keep what backward needs */
    /* outputs of norms and activations (and unfused attention scores) are computed
     * again */
    MS_RECOMPUTE_SELECTIVE,
    /* TorchTitan's selective policy: keep attention, every second matrix product,
     * communication results */
    MS_RECOMPUTE_PER_OP,
    /* keep the layer's input only; on the first `recompute_layers` layers of each stage
     * chunk */
    MS_RECOMPUTE_FULL,
    /* keep what saves most time within a budget of bytes: costmodel/cost/saved_activations.h */
    MS_RECOMPUTE_AUTO,
    MS_NUM_RECOMPUTE
} ms_recompute;
/* "none" "selective" "per-op" "full" "auto", NULL */
extern const char *const ms_recompute_names[];

typedef enum ms_cp_method {
    MS_CP_ALL_GATHER, /* keys and values are gathered before attention */
    /* blocks of keys and values travel around the ranks beside attention:
     * costmodel/program/ring.h */
    MS_CP_RING,
    /* all-to-alls split heads instead of the sequence for attention (Jacobs et al. 2023,
     * "DeepSpeed Ulysses") */
    MS_CP_ULYSSES,
    MS_NUM_CP_METHODS
} ms_cp_method;
extern const char *const ms_cp_method_names[]; /* "all-gather" "ring" "ulysses", NULL */
/* By name, or as Megatron-Core, PyTorch and the papers call it ("p2p", "a2a", "zig-zag",
 * ...); letter case is ignored. */
bool ms_cp_method_parse(const char *text, ms_cp_method *out);
typedef enum ms_cp_balance {
    MS_CP_HEAD_TAIL,
    MS_CP_NONE
} ms_cp_balance;
extern const char *const ms_cp_balance_names[]; /* "head-tail" "none", NULL */

#endif
