/* A caching allocator for one GPU's memory: it splits large blocks from the driver into
 * parts, so that no allocation waits for the device. A freed part is reused at once,
 * since the rank's work runs in the order of its program. Best fit; free neighbours are
 * merged. The allocator never accesses device memory. */
#ifndef MS_EXEC_CUDA_CUDA_MEMORY_H
#define MS_EXEC_CUDA_CUDA_MEMORY_H

#include "base/arena.h"

#define MS_CUDA_ALIGNMENT 256

typedef struct ms_cuda_memory ms_cuda_memory;

/* The functions from which the allocator gets its blocks of device memory. */
typedef struct ms_cuda_memory_source {
    /* allocates a block, 256-byte aligned; NULL if out of memory */
    void *(*allocate)(void *state, size_t bytes);
    void (*release)(void *state, void *memory);
    void *state;
    size_t least_block_bytes; /* least block to request; less if that is refused */
    size_t page_bytes;        /* block sizes are multiples of this */
} ms_cuda_memory_source;

typedef struct ms_cuda_memory_figures {
    double held_bytes, most_held_bytes; /* sizes of all blocks, now and at most */
    /* sizes of parts in use, rounded up to MS_CUDA_ALIGNMENT, now and at most */
    double used_bytes, most_used_bytes;
    double largest_free_bytes; /* largest contiguous free memory */
    /* 1 - largest_free_bytes / (bytes of all free parts); 0 if nothing is free */
    double fragmentation;
    long num_blocks, num_parts; /* numbers of blocks, and of parts in use */
} ms_cuda_memory_figures;

/* An allocator without blocks yet; its book-keeping lives in the arena. */
ms_cuda_memory *ms_cuda_memory_open(ms_arena *arena, const ms_cuda_memory_source *source);
/* Releases all blocks, used or not. NULL is ignored. */
void ms_cuda_memory_close(ms_cuda_memory *memory);

/* Takes `bytes` of device memory; NULL if `bytes` is 0 or the device has none left. */
void *ms_cuda_memory_take(ms_cuda_memory *memory, size_t bytes);
/* Frees memory from ms_cuda_memory_take; NULL is ignored. */
void ms_cuda_memory_give(ms_cuda_memory *memory, void *part);

ms_cuda_memory_figures ms_cuda_memory_look(const ms_cuda_memory *memory);

#endif
