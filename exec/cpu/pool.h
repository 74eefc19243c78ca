/* A memory pool that threads may share: a returned block serves the next request of about
 * its size, so that the system need not clear pages for every tensor. */
#ifndef MS_EXEC_CPU_POOL_H
#define MS_EXEC_CPU_POOL_H

#include <stddef.h>

typedef struct ms_pool ms_pool;

/* Returns NULL if no memory is left. */
ms_pool *ms_pool_open(void);
/* Closes a pool to which all blocks have been returned; NULL is ignored. */
void ms_pool_close(ms_pool *pool);
/* A 64-byte aligned block; NULL for 0 bytes or without memory. May free idle blocks. */
void *ms_pool_take(ms_pool *pool, size_t bytes);
/* Returns a block; `bytes` must be the requested size. NULL is ignored. */
void ms_pool_give(ms_pool *pool, void *memory, size_t bytes);

/* Bytes of used and idle blocks, without small blocks, which come from the heap. */
size_t ms_pool_held_bytes(ms_pool *pool);

#endif
