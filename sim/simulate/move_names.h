/* Names of transfers that belong to no node of a layer program. Simulated and measured
 * times are matched by these names. */
#ifndef MS_SIM_SIMULATE_MOVE_NAMES_H
#define MS_SIM_SIMULATE_MOVE_NAMES_H

#define MS_MOVE_ACTIVATIONS "activations" /* activations sent to the next stage */
/* gradients of activations sent to the previous stage */
#define MS_MOVE_GRADIENTS "gradients"
#define MS_MOVE_GATHER    "gather parameters"
#define MS_MOVE_REDUCE    "reduce gradients"
#define MS_MOVE_REPLICATE "reduce over replicas"
#define MS_MOVE_TP_SYNC   "reduce over tp"
#define MS_MOVE_REPLICA   "exchange with the copy"
#define MS_MOVE_COPIES    "sum over copied heads"        /* only measured */
#define MS_MOVE_MATRICES  "sums and updates of matrices" /* only measured */
#define MS_MOVE_TIED      "exchange tied embedding"
#define MS_MOVE_NORM      "gradient norm"
#define MS_MOVE_ACCUMULATE                                                               \
    "accumulate gradients"            /* sum over micro-batches; no transfer */
#define MS_MOVE_OPTIMIZER "optimizer" /* update of the parameters; no transfer */

#endif
