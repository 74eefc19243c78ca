/* Folder exec/params: weights, their names and files, and tokens; no kernels, no
 * schedule.
 *
 * A unit: parameters of one block of the model (embedding, layer or head) on one rank,
 * with memory, sharding, gathers, reductions and updates. It has up to two segments of
 * dense parameters (a tied matrix alone, then the rest) and one of expert parameters
 * (vectors apart, if the optimizer treats matrices as a whole), and
 * beside adapters one of frozen dense and of frozen expert ones, sharded by ZeRO-3 alone;
 * matrices in NF4 (ms_weight_is_coded) apart, quantized by rank: blocks are 64 consecutive
 * elements of a matrix (of an expert's) in the rank's shard. A
 * segment concatenates the rank's tensors, padded to a multiple of its S shards; rank i
 * of the shard group owns the i-th of S equal shards. ZeRO-0 shards nothing, ZeRO-1
 * moments, ZeRO-2 also gradients, ZeRO-3 also parameters (Rajbhandari et al. 2020;
 * PyTorch FSDP). Padding counts as memory. A head that shares a matrix with the embedding
 * on the rank (ms_tensor_is_tied) borrows the embedding's segment (`tied`). Both gradients
 * accumulate there; the matrix is reduced, updated and visited with the embedding, after
 * the head's last backward. With ZeRO-2 and ZeRO-3 the head gathers it and reduces its
 * gradients too. In simulation, transfers predicted to take no time are not started. The
 * first of an operation's transfers carries the whole prediction. */
#ifndef MS_EXEC_PARAMS_UNIT_H
#define MS_EXEC_PARAMS_UNIT_H

#include "exec/core/rank.h"
#include "exec/params/names.h"

typedef struct ms_param_unit ms_param_unit;

typedef struct ms_unit_options {
    const ms_program *program;
    const ms_block_ops *ops; /* predicted seconds of gathers and reductions */
    long layer;              /* layer of the model; -1 for embedding and head */
    ms_param_unit *tied;     /* unit whose matrix a tied head shares; NULL if none */
    bool is_copy; /* second copy of a stage placed twice: left out of norms, files */
} ms_unit_options;

/* Makes the parameters of a block with zeroed memory until ms_unit_close, counted as
 * params, grads and optimizer. MS_EIO if memory does not suffice. */
ms_status ms_unit_make(ms_rank *rank, const ms_unit_options *options,
                       ms_param_unit **out);
void ms_unit_close(ms_rank *rank, ms_param_unit *unit);
/* Sets the rank's shard of weights; with ZeRO-1 and ZeRO-2 a gather brings the others. */
ms_status ms_unit_initialise(ms_rank *rank, ms_param_unit *unit,
                             const ms_initial *initial);

/* Buffers for unsharded parameters and gradients, which a rank's units share; memory
 * category: gathered parameters. ZeRO-2: gradients of one unit. ZeRO-3: also parameters
 * of two units (current and next); each buffer fits the largest unit. ZeRO-3 without
 * reshard after forward: gradients of one unit, parameters of every unit. Shard groups of
 * one rank need none. ms_unit_buffers_make is called once, after all units are made. */
typedef struct ms_unit_buffers ms_unit_buffers;
ms_status ms_unit_buffers_make(ms_rank *rank, ms_param_unit *const *units, int num_units,
                               ms_unit_buffers **out);
void ms_unit_buffers_close(ms_rank *rank, ms_unit_buffers *buffers);

/* The layer of the model of a unit; -1 for embedding and head. */
long ms_unit_layer(const ms_param_unit *unit);
/* Sets types of cells[tensor] of weights and gradients, and points their data at memory
 * (NULL if none). */
void ms_unit_bind(const ms_param_unit *unit, ms_local *cells);

/* ---- parameters ---- */
/* Starts to gather a unit's parameters. Compute must wait for event *done (0: nothing to
 * gather). ZeRO-1, ZeRO-2, ZeRO-3 without reshard: called once per step. ZeRO-3: called
 * before each use; takes a free buffer, so `after` must include the buffer's earlier
 * uses. If the unit is gathered already, only its users are counted. While a forward and
 * a backward pass need more than two units at once, further buffers are allocated. */
ms_status ms_unit_gather(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                         int num_after, ms_event *done);
/* Restores parameters that were gathered in 8 or 4 bits, once their gather has ended; else
 * does nothing. On CPUs alone. */
ms_status ms_unit_restore(const ms_rank *rank, ms_param_unit *unit);
/* Ends one use of parameters gathered with ZeRO-3; the last use frees the buffer. */
void ms_unit_release(ms_rank *rank, ms_param_unit *unit);

/* Writes a weight in NF4, whose cell ms_unit_bind leaves NULL, to `to` as kernels read it:
 * the rank's whole part of it, which is gathered. On CPUs alone. */
ms_status ms_unit_decode(const ms_rank *rank, const ms_param_unit *unit, int weight,
                         void *to);

/* ---- gradients ---- */
/* Forgets the gradients of the step before. A tied matrix's, to which two units add, and
 * padding are zeroed; other gradients are written by who comes first. */
void ms_unit_clear_gradients(ms_rank *rank, ms_param_unit *unit);
/* Takes the shared gradient buffer for a micro-batch (ZeRO-2, ZeRO-3); it holds nothing. */
ms_status ms_unit_begin_gradients(ms_rank *rank, ms_param_unit *unit);
/* Whether a gradient's memory holds nothing of this step, or of this micro-batch if it is
 * in a shared buffer: the caller, which asks before each addition, writes it instead. */
bool ms_unit_is_first(ms_param_unit *unit, int gradient);
/* Starts the reduce-scatter of a micro-batch's gradients. After event `done`,
 * ms_unit_end_reduction adds the result to the rank's shards and frees the buffer. */
ms_status ms_unit_reduce(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                         int num_after, ms_event *done);
ms_status ms_unit_end_reduction(ms_rank *rank, ms_param_unit *unit);
/* Reductions of gradients once per step, called in this order, in the type of messages;
 * where sums have another type, these are cast and the call waits for the result. Each starts after the
 * events `after` (at most 16) and the previous one; *done is its end (0: nothing to do).
 * ms_unit_reduce_last: all-reduce over all data-parallel ranks (ZeRO-0), or
 * reduce-scatter (ZeRO-1, ZeRO-3 without reshard) into workspace that lives until
 * gradients are cleared. ms_unit_replicate: all-reduce of the shard over dp_replicate.
 * ms_unit_reduce_over_tp: all-reduce of gradients that are partial over tp (norms under
 * sequence parallelism). */
ms_status ms_unit_reduce_last(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                              int num_after, ms_event *done);
ms_status ms_unit_replicate(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                            int num_after, ms_event *done);
ms_status ms_unit_reduce_over_tp(ms_rank *rank, ms_param_unit *unit,
                                 const ms_event *after, int num_after, ms_event *done);
/* Adds up the gradients of key-value heads that several tp ranks hold, on all of them in
 * one order, so that copies stay equal; after all other reductions. */
ms_status ms_unit_sum_copies(ms_rank *rank, ms_param_unit *unit);
/* Makes compute wait for the unit's reductions of complete gradients. */
ms_status ms_unit_wait(ms_rank *rank, const ms_param_unit *unit);
/* Exchanges complete gradient shards with rank `peer`, which holds the same parameters,
 * and adds them: of the matrix tied between first and last stage, or of a whole copied
 * stage. Backends that only simulate do nothing here. */
ms_status ms_unit_exchange_tied(ms_rank *rank, ms_param_unit *unit, long peer, int tag);
ms_status ms_unit_exchange_replica(ms_rank *rank, ms_param_unit *unit, long peer,
                                   int tag);

/* ---- optimizer ---- */
/* Adds the sum of squares of gradients to fp64 sum number `slot` of the device. Over all
 * ranks each parameter counts once, though replicas, tp and tied copies exist. */
void ms_unit_add_squares(ms_rank *rank, const ms_param_unit *unit, int slot);
/* Updates the rank's shard by the plan's optimizer (exec/params/optimizer.h), of which
 * `how` has the constants. Every weight decays, as in PyTorch over model.parameters();
 * weights without gradient (a router's correction bias) do not change. Adafactor and Muon
 * treat matrices (ms_matrices_of) as a whole, in segments of their own: ranks add up sums
 * of squares, and gather the directions of Muon; other weights have second moments, or
 * are AdamW's. Backends without ms_array_ops.orthogonalize have AdamW alone. With ZeRO-1 and ZeRO-2 the next gather brings the other shards. */
ms_status ms_unit_update(ms_rank *rank, ms_param_unit *unit, const ms_adamw *how);

/* ---- whole tensors, for files and checks ---- */
typedef enum ms_unit_content {
    MS_UNIT_WEIGHTS,
    MS_UNIT_GRADIENTS
} ms_unit_content;
/* Receives `count` elements of the tensor named by `name` (and `expert`; -1: no
 * expert's): values[i] is the element with flat index places[i]. */
typedef ms_status ms_unit_visitor(void *state, const ms_weight_name *name, long expert,
                                  const long *places, const double *values, long count);
/* Calls `call` for each parameter once over all ranks; gradients must be reduced. */
ms_status ms_unit_visit(ms_rank *rank, const ms_param_unit *unit, ms_unit_content content,
                        ms_unit_visitor *call, void *state);
/* Returns a whole tensor's values; NULL (then MS_EINPUT) if there is no such tensor. */
typedef const double *ms_tensor_finder(void *state, const char *name, int num_dims,
                                       const long *shape);
ms_status ms_unit_load(ms_rank *rank, ms_param_unit *unit, ms_tensor_finder *find,
                       void *state);

#endif
