/* Copies of a transfer's data that a rank leaves for other ranks of its process. */
#ifndef MS_EXEC_BACKENDS_TRANSFER_COPY_H
#define MS_EXEC_BACKENDS_TRANSFER_COPY_H

#include "exec/core/backend.h"
#include "exec/cpu/pool.h"

typedef struct ms_transfer_copy {
    ms_pool *pool; /* pool that owns this copy's memory */
    size_t bytes;  /* size of the allocation: this struct, `counts` and `data` */
    ms_transfer transfer;
    long count;   /* number of elements in `data` */
    long *counts; /* all-to-all: elements for each group member; otherwise NULL */
    char *data;
} ms_transfer_copy;

/* The part of a posted copy (ms_transfer_copy) that is meant for one group member. */
typedef struct ms_portion {
    const char *data;
    long count;
    size_t bytes;
} ms_portion;

/* Copies what a member of a group of `size` ranks sends. NULL if no memory is left. */
ms_transfer_copy *ms_transfer_copy_pack(ms_pool *pool, const ms_transfer *transfer,
                                        int size);
/* Frees a copy. Callable from any thread. */
void ms_transfer_copy_drop(void *copy);

/* The part of the data for group member number `member`. */
ms_portion ms_transfer_copy_for(const ms_transfer_copy *copy, int member);
/* Whether transfers of two members match in kind, scalar type, reduction and count. */
bool ms_transfer_copies_agree(const ms_transfer_copy *a, const ms_transfer_copy *b);
/* Sets to[i] to to[i] + from[i], or to the larger of both if like->transfer.maximum. */
void ms_transfer_copy_fold(const ms_transfer_copy *like, void *to, const void *from,
                           long count);

#endif
