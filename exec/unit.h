/* Parameters of one part of the model (embedding, a layer, the head) on one rank: where they lie, how they are sharded, gathered, reduced and updated.
 *
 * A unit is up to two segments of dense parameters (a tied matrix alone, then the rest) and one of expert parameters. A segment is the rank's tensors one after
 * the other, padded to a multiple of its shards; with S shards rank i of the group has the i-th S-th of it. ZeRO 0: nothing is sharded; 1: moments; 2: gradients too;
 * 3: parameters too (Rajbhandari et al. 2020; PyTorch FSDP). */
#ifndef MS_EXEC_UNIT_H
#define MS_EXEC_UNIT_H

#include "exec/names.h"
#include "exec/rank.h"

typedef struct ms_param_unit ms_param_unit;

typedef struct ms_unit_options {
    const ms_program *program;
    const ms_part_ops *ops; /* predicted seconds of its moves */
    long layer;             /* of the model; -1: embedding or head */
    ms_param_unit
        *tied; /* the unit on this rank whose matrix this head uses; NULL: none */
} ms_unit_options;

/* Memory is allocated and counted: params, grads, optimizer. */
ms_status ms_unit_make(ms_rank *rank, const ms_unit_options *options,
                       ms_param_unit **out);
ms_status ms_unit_initialise(ms_rank *rank, ms_param_unit *unit,
                             const ms_initial *initial);

/* Points cells[tensor].data of all weights (and of their gradients) at their memory, as it is now. */
void ms_unit_bind(const ms_param_unit *unit, ms_local *cells);

/* ---- parameters ---- */
/* Room for whole parameters, counted as gathered, and their gather. `done` is an event of compute to wait for. Without shards: nothing happens. */
ms_status ms_unit_gather(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                         int num_after, ms_event *done);
/* The whole parameters are not needed any more (ZeRO 3). */
void ms_unit_release(ms_rank *rank, ms_param_unit *unit);

/* ---- gradients ---- */
void ms_unit_clear_gradients(ms_rank *rank,
                             ms_param_unit *unit); /* at the start of a step */
/* Room for whole gradients of one micro-batch, where only shards are kept (ZeRO 2 and 3), zeroed. */
ms_status ms_unit_begin_gradients(ms_rank *rank, ms_param_unit *unit);
/* Starts their reduction over the shards, after `after`; ms_unit_end_reduction adds the result to the shards and frees the room, after `wait`ing. */
ms_status ms_unit_reduce(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                         int num_after, ms_event *done);
ms_status ms_unit_end_reduction(ms_rank *rank, ms_param_unit *unit);
/* Once a step, in this order; each starts after `after`, and is done in place when its event has happened:
 * all-reduce over all data-parallel ranks (ZeRO 0); reduce-scatter of whole gradients (ZeRO 1, ZeRO 3 kept): the rank's shard of them is then complete;
 * all-reduce of the shard over dp_replicate; all-reduce over tp of what is partial there (norms under sequence parallelism). */
ms_status ms_unit_reduce_last(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                              int num_after, ms_event *done);
ms_status ms_unit_replicate(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                            int num_after, ms_event *done);
ms_status ms_unit_reduce_over_tp(ms_rank *rank, ms_param_unit *unit,
                                 const ms_event *after, int num_after, ms_event *done);
/* Exchange of gradient shards with the copy of the unit on another rank, which adds them: tied matrices of the first and last stage, twins of DualPipe. */
ms_status ms_unit_exchange_tied(ms_rank *rank, ms_param_unit *unit, long peer, int tag);
ms_status ms_unit_exchange_twin(ms_rank *rank, ms_param_unit *unit, long peer, int tag);

/* ---- optimizer ---- */
/* Sum of squares of the gradients that this rank answers for: each parameter of the model is counted once over all ranks (replicas, tp copies, tied copies and
 * twins are not counted again). */
double ms_unit_sum_of_squares(ms_rank *rank, const ms_param_unit *unit);
ms_status ms_unit_update(ms_rank *rank, ms_param_unit *unit, const ms_adamw *how);

/* ---- whole tensors, for files and checks ---- */
typedef enum ms_unit_content {
    MS_UNIT_WEIGHTS,
    MS_UNIT_GRADIENTS
} ms_unit_content;
/* Called with pieces of Hugging Face tensors that this rank answers for: `count` elements of `name` at the given flat places. */
typedef ms_status ms_unit_visitor(void *state, const ms_weight_name *name, long expert,
                                  const long *places, const double *values, long count);
/* Every element of the model is visited by exactly one rank; gradients after the last reduction (shards complete). */
ms_status ms_unit_visit(ms_rank *rank, const ms_param_unit *unit, ms_unit_content content,
                        ms_unit_visitor *visit, void *state);
/* The other way: sets this rank's elements from whole tensors. Returns MS_EINPUT with the first name that is missing or of another shape. */
typedef const double *ms_tensor_finder(void *state, const char *name, int num_dims,
                                       const long *shape);
ms_status ms_unit_load(ms_rank *rank, ms_param_unit *unit, ms_tensor_finder *find,
                       void *state);

#endif
