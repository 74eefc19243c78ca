/* Kinds of collectives: their names, and the bytes that one rank sends. */
#ifndef MS_COSTMODEL_TENSOR_COLLECTIVE_H
#define MS_COSTMODEL_TENSOR_COLLECTIVE_H

typedef enum ms_collective {
    MS_ALL_GATHER,
    MS_REDUCE_SCATTER,
    MS_ALL_REDUCE,
    MS_ALL_TO_ALL,
    MS_SEND,
    MS_NUM_COLLECTIVES
} ms_collective;
extern const char *const ms_collective_names[]; /* "all-gather" ..., NULL */

/* Bytes that one of n ranks sends in a collective of size S: (n-1)/n S (gather, scatter,
 * all-to-all), 2 (n-1)/n S (all-reduce), S (send). */
double ms_collective_wire_bytes(ms_collective collective, long group_size,
                                double size_bytes);

#endif
