/* Memory of a process that is used again: a block that was given back serves the next of
 * about its size, so that the system does not clear its pages for every tensor. Small
 * blocks are the heap's. Threads may share a pool. */
#ifndef MS_EXEC_BACKEND_POOL_H
#define MS_EXEC_BACKEND_POOL_H

#include <stddef.h>

typedef struct ms_pool ms_pool;

/* NULL: no memory. */
ms_pool *ms_pool_open(void);
/* All blocks have been given back. NULL: nothing. */
void ms_pool_close(ms_pool *pool);
/* 64-byte aligned, of any content. NULL: `bytes` is 0, or no memory is left. Blocks in
 * use and idle ones come to at most 1.25 times the most that was in use at a time. */
void *ms_pool_take(ms_pool *pool, size_t bytes);
/* `bytes` as they were asked for. NULL: nothing. */
void ms_pool_give(ms_pool *pool, void *memory, size_t bytes);

/* Of blocks in use and idle, but for small ones. */
size_t ms_pool_held_bytes(ms_pool *pool);

#endif
