/* The data of a transfer as a rank leaves it for the other ranks of its process, and what
 * each of them gets of it. */
#ifndef MS_EXEC_BACKEND_PARCEL_H
#define MS_EXEC_BACKEND_PARCEL_H

#include "exec/backend.h"
#include "exec/backend_pool.h"

typedef struct ms_parcel {
    ms_pool *pool; /* whose memory it is, */
    size_t bytes;  /* all of it */
    ms_transfer transfer;
    long count;   /* elements of `data` */
    long *counts; /* of an all-to-all: elements for each member */
    char *data;
} ms_parcel;

/* What a member gets of a parcel. */
typedef struct ms_portion {
    const char *data;
    long count;   /* elements */
    size_t bytes; /* all of them */
} ms_portion;

/* A copy of what is sent, in a group of `size`. NULL: no memory is left. */
ms_parcel *ms_parcel_pack(ms_pool *pool, const ms_transfer *transfer, int size);
/* Gives the memory back. From any thread. */
void ms_parcel_drop(void *parcel);

ms_portion ms_parcel_for(const ms_parcel *parcel, int member);
/* Whether two members do the same. */
bool ms_parcels_agree(const ms_parcel *a, const ms_parcel *b);
/* Adds `count` elements to others, or takes the larger ones, as the parcel's transfer says. */
void ms_parcel_fold(const ms_parcel *like, void *to, const void *from, long count);

#endif
