/* The memory of one GPU, which a rank takes and gives back in the order of its program:
 * large blocks from the driver, handed out in parts, so that no allocation waits for the
 * device. Best fit; free neighbours become one. Only the book-keeping is here: the memory
 * itself is never touched. */
#ifndef MS_EXEC_CUDA_MEMORY_H
#define MS_EXEC_CUDA_MEMORY_H

#include "base/arena.h"

#define MS_CUDA_ALIGNMENT 256

typedef struct ms_cuda_memory ms_cuda_memory;

/* Where blocks come from. */
typedef struct ms_cuda_memory_source {
    void *(*allocate)(void *state, size_t bytes); /* aligned; NULL: no memory */
    void (*release)(void *state, void *memory);
    void *state;
    size_t least_block_bytes; /* of a block, where the device has so much */
    size_t page_bytes;        /* blocks are whole pages */
} ms_cuda_memory_source;

typedef struct ms_cuda_memory_figures {
    double held_bytes, most_held_bytes; /* of blocks */
    double used_bytes, most_used_bytes; /* of them; sizes rounded up to the alignment */
    double largest_free_bytes;          /* in one piece */
    /* 1 - largest free piece / all free memory that is held; 0: nothing is free */
    double fragmentation;
    long num_blocks, num_parts; /* parts: in use */
} ms_cuda_memory_figures;

/* Book-keeping lives in the arena. */
ms_cuda_memory *ms_cuda_memory_open(ms_arena *arena, const ms_cuda_memory_source *source);
/* Gives all blocks back, whatever is in use. NULL: nothing. */
void ms_cuda_memory_close(ms_cuda_memory *memory);

/* Aligned to MS_CUDA_ALIGNMENT. NULL: `bytes` is 0, or the device has no more. */
void *ms_cuda_memory_take(ms_cuda_memory *memory, size_t bytes);
/* What was taken. NULL: nothing. */
void ms_cuda_memory_give(ms_cuda_memory *memory, void *part);

ms_cuda_memory_figures ms_cuda_memory_look(const ms_cuda_memory *memory);

#endif
