/* What transfers that belong to no node of a program are called, in simulations and in
 * real runs: traces and kinds of nodes are joined by these names. */
#ifndef MS_SIM_MOVE_NAMES_H
#define MS_SIM_MOVE_NAMES_H

#define MS_MOVE_ACTIVATIONS "activations" /* to the next stage */
#define MS_MOVE_GRADIENTS   "gradients"   /* of activations, to the stage before */
#define MS_MOVE_GATHER      "gather parameters"
#define MS_MOVE_REDUCE      "reduce gradients"
#define MS_MOVE_REPLICATE   "reduce over replicas"
#define MS_MOVE_TP_SYNC     "reduce over tp"
#define MS_MOVE_TWIN        "exchange with the copy"
#define MS_MOVE_TIED        "exchange tied embedding"
#define MS_MOVE_NORM        "gradient norm"
#define MS_MOVE_ACCUMULATE                                                               \
    "accumulate gradients"            /* of micro-batches: no transfer either */
#define MS_MOVE_OPTIMIZER "optimizer" /* moves nothing: the update */

#endif
