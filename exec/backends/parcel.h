/* Copies of the data of transfers that a rank leaves for others of its process. */
#ifndef MS_EXEC_BACKENDS_PARCEL_H
#define MS_EXEC_BACKENDS_PARCEL_H

#include "exec/core/backend.h"
#include "exec/cpu/pool.h"

typedef struct ms_parcel {
    ms_pool *pool; /* pool that owns the parcel's memory */
    size_t bytes;  /* bytes of the whole allocation */
    ms_transfer transfer;
    long count;   /* elements of `data` */
    long *counts; /* all-to-all: elements for each member; otherwise NULL */
    char *data;
} ms_parcel;

/* The portion of a parcel that is meant for one member. */
typedef struct ms_portion {
    const char *data;
    long count; /* elements */
    size_t bytes;
} ms_portion;

/* Copies the data of a transfer in a group of `size`. NULL if no memory is left. */
ms_parcel *ms_parcel_pack(ms_pool *pool, const ms_transfer *transfer, int size);
/* Returns the parcel's memory to its pool. Callable from any thread. */
void ms_parcel_drop(void *parcel);

/* The portion of the parcel for the group member with index `member`. */
ms_portion ms_parcel_for(const ms_parcel *parcel, int member);
/* Whether the transfers of two members match in kind, type, operation and count. */
bool ms_parcels_agree(const ms_parcel *a, const ms_parcel *b);
/* Adds `count` elements to `to`, or takes the maximum, as the parcel's transfer says. */
void ms_parcel_fold(const ms_parcel *like, void *to, const void *from, long count);

#endif
