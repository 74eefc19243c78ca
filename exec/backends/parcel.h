/* Copies of a transfer's data that a rank leaves for other ranks of its process. */
#ifndef MS_EXEC_BACKENDS_PARCEL_H
#define MS_EXEC_BACKENDS_PARCEL_H

#include "exec/core/backend.h"
#include "exec/cpu/pool.h"

typedef struct ms_parcel {
    ms_pool *pool; /* pool that owns the parcel's memory */
    size_t bytes;  /* size of the allocation: this struct, `counts` and `data` */
    ms_transfer transfer;
    long count;   /* number of elements in `data` */
    long *counts; /* all-to-all: elements for each group member; otherwise NULL */
    char *data;
} ms_parcel;

/* The part of a posted copy (ms_parcel) that is meant for one group member. */
typedef struct ms_portion {
    const char *data;
    long count;
    size_t bytes;
} ms_portion;

/* Copies what a member of a group of `size` ranks sends. NULL if no memory is left. */
ms_parcel *ms_parcel_pack(ms_pool *pool, const ms_transfer *transfer, int size);
/* Frees the parcel. Callable from any thread. */
void ms_parcel_drop(void *parcel);

/* The part of the parcel's data for group member number `member`. */
ms_portion ms_parcel_for(const ms_parcel *parcel, int member);
/* Whether transfers of two members match in kind, scalar type, reduction and count. */
bool ms_parcels_agree(const ms_parcel *a, const ms_parcel *b);
/* Sets to[i] to to[i] + from[i], or to the larger of both if like->transfer.maximum. */
void ms_parcel_fold(const ms_parcel *like, void *to, const void *from, long count);

#endif
