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

/* Bytes that a rank sends in a collective of size S over n ranks: S (n-1)/n for gather,
 * scatter and all-to-all, 2 S (n-1)/n for all-reduce, S for send. */
double ms_collective_wire_bytes(ms_collective collective, long group_size,
                                double size_bytes);

#endif
