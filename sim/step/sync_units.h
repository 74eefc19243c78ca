/* Units of parameters and gradients: how many layers one gather or reduction moves, and
 * into how many collectives it is cut (docs/formulas 5.2). */
#ifndef MS_SIM_STEP_SYNC_UNITS_H
#define MS_SIM_STEP_SYNC_UNITS_H

#include "costmodel/cost/collective_cost.h"
#include "sim/step/workload.h"

/* Number of adjacent layers of `kind`, with the given priced program, that move together:
 * the stack's unit_layers, or as many as fill a bucket, at most those of the longest run
 * of equal layers; 1 without either. */
double ms_unit_layers(const ms_workload *workload, const ms_bill *bill, int kind);

/* Collectives of a unit; a layer's share of them is a fraction if several layers share
 * one. */
typedef struct ms_sync_split {
    double size_bytes; /* bytes of one collective */
    double per_block;  /* number of collectives per block: size x number = its bytes */
} ms_sync_split;

/* Splits `bytes` of a block's dense (`expert` false) or expert states, of which `layers`
 * blocks make a unit: equal collectives of at most the stack's sync_bucket_bytes, but no
 * more than the unit has matrices, which are not cut (PyTorch DistributedDataParallel,
 * bucket_cap_mb; Megatron-LM, param_and_grad_buffer.py; DeepSpeed, reduce_bucket_size). */
ms_sync_split ms_sync_split_of(const ms_stack *stack, const ms_bill *bill, bool expert,
                               double layers, double bytes);

/* A block's share, in seconds, of the collectives of its unit. */
double ms_sync_s(const ms_collective_law *law, ms_sync_split split);

#endif
