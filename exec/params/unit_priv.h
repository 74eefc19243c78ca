/* Segments of parameters and the tensors in them, shared by exec/params/unit*.c. */
#ifndef MS_EXEC_PARAMS_UNIT_PRIV_H
#define MS_EXEC_PARAMS_UNIT_PRIV_H

#include "exec/params/unit.h"

#define MS_MAX_SEGMENTS 3

/* Elements first .. end - 1. */
typedef struct ms_range {
    long first, end;
} ms_range;
ms_range ms_range_overlap(ms_range a, ms_range b); /* empty if end == first */
long ms_range_length(ms_range range);

/* A segment. Tensors are ordered: gradients complete, partial over tp, none. */
typedef struct ms_segment {
    bool is_expert;
    ms_traffic_group shard_group;
    int num_shards;
    long count;       /* elements, including padding */
    ms_range own;     /* the rank's shard; the whole segment if nothing is sharded */
    ms_range partial; /* elements whose gradients are partial over tp */
    long num_updated; /* elements with a gradient; they come first */
    /* elements stored between steps: all, or the own shard */
    ms_range kept_params, kept_grads;
    void *params, *grads, *moments[2], *master;
    void *whole; /* gathered parameters (ZeRO-3 without reshard) */
    bool has_reduced;
    void *reduced; /* workspace: own shard of reduced gradients; NULL if none */
} ms_segment;

typedef struct ms_unit_tensor {
    int weight, gradient; /* tensors of the program; gradient is -1 if there is none */
    int segment;
    long first; /* index of its first element in the segment */
    ms_local local;
    ms_weight_name name;
    bool is_partial; /* the gradient is partial over tp */
    bool is_counted; /* the rank accounts for it in norms and visits */
} ms_unit_tensor;

struct ms_param_unit {
    ms_unit_options options;
    ms_sharding sharding;
    ms_precision precision;
    int num_segments;
    ms_segment *segments[MS_MAX_SEGMENTS]; /* a borrowed segment comes first */
    int num_borrowed;
    int matrix; /* segment of the unit's own tied matrix; -1 if none */
    int num_tensors;
    ms_unit_tensor *tensors;
    ms_unit_buffers *rooms; /* NULL before they are made */
    /* index of the segment's first element in the shared dense or expert buffers */
    long room_first[MS_MAX_SEGMENTS];
    int num_users; /* current users of the gathered parameters (ZeRO-3) */
    int room;      /* buffer that holds them */
    ms_event gathered;
    ms_event last; /* done event of the last reduction of complete gradients */
};

/* Permanent buffers (current and next unit), and with a forward and backward in turn. */
#define MS_FIXED_BUFFERS 2
#define MS_MAX_BUFFERS   4

/* Buffers that units use in turn; index [2] is 0 for dense and 1 for expert elements. */
struct ms_unit_buffers {
    int num_units;
    ms_param_unit **units; /* (num_units) */
    long room_count[2],
        shard_count[2]; /* elements of the largest unit: whole, and one shard */
    void *params[MS_MAX_BUFFERS]
                [2]; /* buffers from MS_FIXED_BUFFERS on exist only while used */
    /* unit that uses the buffer; NULL if free */
    const ms_param_unit *holder[MS_MAX_BUFFERS];
    void *grads[2];
    void *reduced[2]; /* workspace: shards received from the reduction */
    const ms_param_unit *gradient_holder;
};

/* Allocates zeroed memory for `count` elements and counts it. */
ms_status ms_unit_allocate(ms_rank *rank, ms_memory_category part, ms_scalar scalar,
                           long count, void **out);
void ms_unit_free(ms_rank *rank, ms_memory_category part, ms_scalar scalar, long count,
                  void **memory);
/* Allocates one parameter buffer. */
ms_status ms_unit_buffer_open(ms_rank *rank, ms_unit_buffers *rooms, int room);
void ms_unit_buffer_close(ms_rank *rank, ms_unit_buffers *rooms, int room);

/* Address of an element; NULL without values. */
void *ms_unit_at(ms_scalar scalar, void *base, long element);
void *ms_segment_param(const ms_param_unit *unit, const ms_segment *segment,
                       long element);
/* Master weight of an element of the own shard. */
void *ms_segment_master(const ms_param_unit *unit, const ms_segment *segment,
                        long element);
/* Gradient of an element of the own shard, in the reduced shard if there is one. */
void *ms_segment_gradient(const ms_param_unit *unit, const ms_segment *segment,
                          long element);

/* A gather or reduction of a unit, with one transfer per segment. */
typedef struct ms_unit_move {
    ms_rank *rank;
    ms_param_unit *unit;
    double predicted_s[2]; /* dense, expert: carried by the first transfer, then 0 */
    const ms_event *after;
    int num_after;
    ms_event *done;
} ms_unit_move;

/* Starts a segment's transfer; without values and predicted time *done is unchanged. */
ms_status ms_unit_start(ms_unit_move *move, const ms_segment *segment,
                        ms_transfer transfer);

#endif
