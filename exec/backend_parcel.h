/* The data of a transfer as a rank leaves it for others, what each of them gets of it,
 * and what becomes of what all have left. Members are added in their order: results are
 * the same on all, and in every run. For backends on CPUs. */
#ifndef MS_EXEC_BACKEND_PARCEL_H
#define MS_EXEC_BACKEND_PARCEL_H

#include "exec/backend.h"
#include "exec/backend_pool.h"

#include <stdatomic.h>

#define MS_PARCEL_NAME 40

typedef struct ms_parcel {
    ms_pool *pool; /* whose memory it is, */
    size_t bytes;  /* all of it */
    atomic_int holders;
    ms_transfer transfer;
    bool is_part; /* what one member gets, and no more */
    long count;   /* elements of `data` */
    long *counts; /* of a whole all-to-all: what each member gets of it */
    char *data;
    char name[MS_PARCEL_NAME]; /* of a part, whose transfer was another process's */
} ms_parcel;

/* What a member gets of a parcel. */
typedef struct ms_portion {
    const char *data;
    long count;
} ms_portion;

/* A copy of what is sent, in a group of `size`. NULL: no memory is left. */
ms_parcel *ms_parcel_pack(ms_pool *pool, const ms_transfer *transfer, int size);
/* What one member gets: `count` elements, to be filled in. NULL: no memory is left. */
ms_parcel *ms_parcel_portion(ms_pool *pool, const ms_transfer *transfer, long count,
                             const char *name);
/* For one more, who drops it, too. From any thread. */
void ms_parcel_hold(ms_parcel *parcel);
void ms_parcel_drop(void *parcel);

ms_portion ms_parcel_for(const ms_parcel *parcel, int member);
/* Whether two members do the same. */
bool ms_parcels_agree(const ms_parcel *a, const ms_parcel *b);
/* Adds `count` elements to others, or takes the larger ones, as the parcel's transfer says. */
void ms_parcel_fold(const ms_parcel *like, void *to, const void *from, long count);

/* Into transfer->receive: `parts` (num) one after the other, or, where the transfer adds,
 * their sum. */
void ms_parcel_combine(const ms_transfer *transfer, const ms_portion *parts, int num);
/* The parcel of a message. MS_EIO: it is not what was asked for. */
ms_status ms_parcel_receive(ms_ctx *cx, const ms_world *world,
                            const ms_transfer *transfer, const ms_parcel *came);

#endif
