/* State and memory of one rank, shared by the runner's files. */
#ifndef MS_EXEC_CORE_RANK_H
#define MS_EXEC_CORE_RANK_H

#include "exec/core/backend.h"
#include "exec/core/ledger.h"

/* An allocation of a rank, freed at the end even if a run fails midway. */
typedef struct ms_held_memory {
    void *memory; /* NULL if the table entry is unused */
    double bytes;
} ms_held_memory;

typedef struct ms_rank {
    ms_ctx *cx; /* context of the rank; its arena lives as long as the run */
    const ms_world *world;
    const ms_place *place;
    const ms_planned *planned;
    const ms_backend *backend;
    ms_device_rank *device;
    ms_precision precision;
    ms_recipe recipe;  /* ms_op_call.recipe */
    ms_arena *scratch; /* temporary memory, freed after every schedule action */
    ms_ledger ledger;
    long num_held, table_size; /* entries in use; table size, a power of two */
    ms_held_memory *held; /* (table_size) hash table by address with linear probing */
    bool balanced_routing;
    const ms_capacity *capacity; /* ms_op_call.capacity */
    /* Shares of dense [0] and expert [1] matrices that Muon orthogonalizes apart, along
     * the letter that tp splits: a run on one rank may repeat what tp ranks do. 0: one */
    long orthogonal_shares[2];
    void *tokens_buffer; /* ms_gathered_tokens_bytes; NULL: each rank sends its tokens, or
                          * the backend only simulates */
    bool weights_in_bf16; /* initial weights are rounded to bf16, whatever their type */
} ms_rank;

/* Allocates memory of the backend and counts it under a category. MS_EIO, naming the
 * bytes, if none is left. Backends that only simulate count bytes, but *out is NULL. */
ms_status ms_rank_allocate(ms_rank *rank, ms_memory_category part, double bytes,
                           void **out);
void ms_rank_release(ms_rank *rank, ms_memory_category part, double bytes, void *memory);
/* Allocates memory that no category counts, such as packing buffers. */
ms_status ms_rank_workspace(ms_rank *rank, double bytes, void **out);
void ms_rank_release_workspace(ms_rank *rank, double bytes, void *memory);

/* Allocates host memory for what the plan offloads (ms_ledger.host_bytes). On CPU
 * backends, the only ones that offload, it is memory as the device's. */
ms_status ms_rank_allocate_on_host(ms_rank *rank, double bytes, void **out);
void ms_rank_release_on_host(ms_rank *rank, double bytes, void *memory);
/* Copies bytes between the rank's arrays, in device or host memory; nothing on backends
 * that only simulate. */
void ms_rank_copy(const ms_rank *rank, void *to, const void *from, double bytes);

/* Type in which a tensor of a program is stored. */
ms_scalar ms_rank_scalar(const ms_rank *rank, const ms_program *program, int tensor);

/* Frees all allocations that the rank still holds. */
void ms_rank_release_all(ms_rank *rank);

#endif
