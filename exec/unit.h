/* Parameters of one part of the model (embedding, a layer, the head) on one rank: where
 * they lie, how they are sharded, gathered, reduced and updated.
 *
 * A unit is up to two segments of dense parameters (a tied matrix alone, then the rest)
 * and one of expert parameters. A segment is the rank's tensors one after the other,
 * padded to a multiple of its shards; with S shards rank i of the group has the i-th S-th
 * of it. ZeRO 0: nothing is sharded; 1: moments; 2: gradients too; 3: parameters too
 * (Rajbhandari et al. 2020; PyTorch FSDP). Padding is memory that is counted.
 *
 * A head whose matrix is the embedding's on the same rank has no matrix of its own: it
 * borrows the segment of the embedding's unit (`tied`). Gradients of both add up there,
 * and it is reduced, updated and visited with the embedding, which must come after the
 * head's last backward. With ZeRO 2 and 3 it is gathered, and its gradients are reduced,
 * for the head as well.
 *
 * In a run without values moves whose prediction takes no time are not started. Of a move
 * of several transfers the first carries the prediction. */
#ifndef MS_EXEC_UNIT_H
#define MS_EXEC_UNIT_H

#include "exec/names.h"
#include "exec/rank.h"

typedef struct ms_param_unit ms_param_unit;

typedef struct ms_unit_options {
    const ms_program *program;
    const ms_part_ops *ops; /* predicted seconds of its moves */
    long layer;             /* of the model; -1: embedding or head */
    /* the unit on this rank whose matrix this head uses; NULL: none */
    ms_param_unit *tied;
    /* the second copy of a stage that is placed twice: not counted, not visited */
    bool is_copy;
} ms_unit_options;

/* Memory is allocated, zeroed and counted: params, grads, optimizer. rank->precision says
 * how elements are stored, in runs without values too. The unit lives in the rank's
 * arena, its memory until it is closed. MS_EIO: no memory. */
ms_status ms_unit_make(ms_rank *rank, const ms_unit_options *options,
                       ms_param_unit **out);
void ms_unit_close(ms_rank *rank, ms_param_unit *unit);
/* Sets the rank's shard; with ZeRO 1 and 2 the others' come with the first gather. */
ms_status ms_unit_initialise(ms_rank *rank, ms_param_unit *unit,
                             const ms_initial *initial);

/* Room for whole parameters and gradients, shared by all units of a rank, counted as
 * gathered parameters: with ZeRO 2 the gradients of one unit, with ZeRO 3 those and the
 * parameters of two (the one at work and the one ahead), each as large as the largest
 * unit; kept: all parameters of every unit. What is not sharded (groups of one rank) is
 * whole already and takes none. Once, when all units of the rank are made. */
typedef struct ms_unit_rooms ms_unit_rooms;
ms_status ms_unit_rooms_make(ms_rank *rank, ms_param_unit *const *units, int num_units,
                             ms_unit_rooms **out);
void ms_unit_rooms_close(ms_rank *rank, ms_unit_rooms *rooms);

/* Points cells[tensor].data of all weights (and of their gradients) at their memory, as
 * it is now: NULL what is not there. */
void ms_unit_bind(const ms_param_unit *unit, ms_local *cells);

/* ---- parameters ---- */
/* Gathers whole parameters; compute waits for `done` (0: nothing was to be done) before
 * it uses them. ZeRO 1, 2 and 3 kept: once a step. ZeRO 3: for each use, into a free
 * room; `after` must hold what compute did with the room before. A unit that is gathered
 * already gets another user, and with values nothing moves. Where more than two units are
 * gathered at once (pairs of a forward and a backward), further rooms are allocated, and
 * counted, for that time. */
ms_status ms_unit_gather(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                         int num_after, ms_event *done);
/* ZeRO 3: one use of the gathered parameters has ended; with the last one the room is free. */
void ms_unit_release(ms_rank *rank, ms_param_unit *unit);

/* ---- gradients ---- */
void ms_unit_clear_gradients(ms_rank *rank,
                             ms_param_unit *unit); /* at the start of a step */
/* Takes the room for whole gradients of one micro-batch, where only shards are kept (ZeRO
 * 2 and 3), zeroed. One unit at a time (asserted). */
ms_status ms_unit_begin_gradients(ms_rank *rank, ms_param_unit *unit);
/* Starts their reduction over the shards, after `after`. ms_unit_end_reduction adds the
 * result to the shards and frees the room: the caller has waited for `done`. */
ms_status ms_unit_reduce(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                         int num_after, ms_event *done);
ms_status ms_unit_end_reduction(ms_rank *rank, ms_param_unit *unit);
/* Once a step, in this order; each starts after `after` (at most 16) and after the one
 * before, and is done when its event has happened (0: nothing to do): all-reduce over all
 * data-parallel ranks (ZeRO 0); reduce-scatter of whole gradients (ZeRO 1, ZeRO 3 kept;
 * the shard is workspace until the gradients are cleared); all-reduce of the shard over
 * dp_replicate; all-reduce over tp of what is partial there (norms under sequence
 * parallelism). */
ms_status ms_unit_reduce_last(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                              int num_after, ms_event *done);
ms_status ms_unit_replicate(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                            int num_after, ms_event *done);
ms_status ms_unit_reduce_over_tp(ms_rank *rank, ms_param_unit *unit,
                                 const ms_event *after, int num_after, ms_event *done);
/* Compute waits for all moves of the unit that were started once a step. */
ms_status ms_unit_wait(ms_rank *rank, const ms_param_unit *unit);
/* Exchange of gradient shards with the copy of the unit on another rank, which does the
 * same; each adds what it gets, and compute has waited for it. The shards are complete.
 * Tied: the matrix of the first and last stage only; twin: everything. Without values
 * nothing happens: predictions have them elsewhere. */
ms_status ms_unit_exchange_tied(ms_rank *rank, ms_param_unit *unit, long peer, int tag);
ms_status ms_unit_exchange_twin(ms_rank *rank, ms_param_unit *unit, long peer, int tag);

/* ---- optimizer ---- */
/* Adds to a sum of the device the squares of the gradients that this rank answers for:
 * each parameter of the model is counted once over all ranks (replicas, tp copies, tied
 * copies and twins are not counted again). */
void ms_unit_add_squares(ms_rank *rank, const ms_param_unit *unit, int slot);
/* AdamW on the rank's shard. Every weight decays, norms and biases too, as with PyTorch's
 * AdamW over model.parameters(); weights without gradient (the correction bias of a
 * router) stay as they are. With ZeRO 1 and 2 the others' shards come with the next gather. */
ms_status ms_unit_update(ms_rank *rank, ms_param_unit *unit, const ms_adamw *how);

/* ---- whole tensors, for files and checks ---- */
typedef enum ms_unit_content {
    MS_UNIT_WEIGHTS,
    MS_UNIT_GRADIENTS
} ms_unit_content;
/* Called with pieces of Hugging Face tensors that this rank answers for: `count` elements
 * of `name` at the given flat places; `expert` is -1 without. */
typedef ms_status ms_unit_visitor(void *state, const ms_weight_name *name, long expert,
                                  const long *places, const double *values, long count);
/* Every element of the model is visited by exactly one rank; gradients, of weights that
 * have one, after the last reduction (shards complete). Without values: nothing. */
ms_status ms_unit_visit(ms_rank *rank, const ms_param_unit *unit, ms_unit_content content,
                        ms_unit_visitor *call, void *state);
/* The other way: sets this rank's shard from whole tensors. `find` returns the values of
 * the tensor, NULL if there is none of this name and shape: MS_EINPUT. */
typedef const double *ms_tensor_finder(void *state, const char *name, int num_dims,
                                       const long *shape);
ms_status ms_unit_load(ms_rank *rank, ms_param_unit *unit, ms_tensor_finder *find,
                       void *state);

#endif
