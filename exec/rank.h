/* What the files of the runner share of one rank. */
#ifndef MS_EXEC_RANK_H
#define MS_EXEC_RANK_H

#include "exec/backend.h"
#include "exec/ledger.h"

/* Memory that a rank holds, so that all of it goes when a run fails half way. */
typedef struct ms_held_memory {
    void *memory; /* NULL: nothing is in this place */
    double bytes;
} ms_held_memory;

typedef struct ms_rank {
    ms_ctx *cx; /* of this rank: errors, and an arena that lasts as long as the run */
    const ms_world *world;
    const ms_place *place;
    const ms_planned *planned;
    const ms_backend *backend;
    ms_device_rank *device;
    ms_precision precision;
    ms_arena *scratch; /* rewound after every action */
    ms_ledger ledger;
    long num_held, room_held; /* a power of two */
    ms_held_memory *held;     /* (room_held): hashed by address, with linear probing */
    bool balanced_routing;
    bool weights_in_bf16; /* they begin as numbers of bf16 */
} ms_rank;

/* Memory of the backend, counted in the ledger under a category. MS_EIO: there is none
 * left (names rank and bytes). Without values data stays NULL, but bytes are counted. */
ms_status ms_rank_allocate(ms_rank *rank, ms_memory_part part, double bytes, void **out);
void ms_rank_release(ms_rank *rank, ms_memory_part part, double bytes, void *memory);
/* Uncategorised: packing buffers. */
ms_status ms_rank_workspace(ms_rank *rank, double bytes, void **out);
void ms_rank_release_workspace(ms_rank *rank, double bytes, void *memory);

/* How a tensor of a program is stored. */
ms_scalar ms_rank_scalar(const ms_rank *rank, const ms_program *program, int tensor);

/* Whatever is still held. */
void ms_rank_release_all(ms_rank *rank);

#endif
