/* Segments of a block's parameters and their tensors, shared by exec/params/unit*.c. */
#ifndef MS_EXEC_PARAMS_UNIT_PRIV_H
#define MS_EXEC_PARAMS_UNIT_PRIV_H

#include "exec/params/optimizer.h"
#include "exec/params/unit.h"

#define MS_MAX_SEGMENTS 9

/* Elements first .. end - 1 of a segment. */
typedef struct ms_range {
    long first, end;
} ms_range;
ms_range ms_range_overlap(ms_range a, ms_range b); /* first == end if there is none */
long ms_range_length(ms_range range);

/* A weight in a segment (of one expert), which an optimizer updates as a whole: a matrix,
 * or in a segment of vectors any other weight, with one column. */
typedef struct ms_unit_matrix {
    long first;         /* index of its first element in the segment */
    long rows, columns; /* sizes of the rank's part */
    long sums; /* index of its rows' sums in those of the segment; its columns' follow */
    bool splits_rows, splits_columns; /* tp ranks hold parts of its rows, or columns */
    bool can_split_rows;              /* tp, if there is any, splits its rows */
    int num_copies;     /* neighbouring tp ranks with this part; 1: only this one */
    double whole_count; /* elements of the whole weight, without padding */
    /* the rank's part is `num_shares` matrices one after the other: along its columns if
     * splits_columns, else along its rows (ms_rank.orthogonal_shares) */
    long num_shares;
} ms_unit_matrix;

/* Elements of a segment that are quantized apart, in one shard. */
typedef struct ms_code_run {
    ms_range of;
    long byte; /* index of their first byte among those of all shards */
} ms_code_run;

/* Concatenated tensors of a block by gradient: complete, partial over tp, then none. */
typedef struct ms_segment {
    bool is_expert;
    bool is_vector; /* holds no matrices, where the optimizer treats these otherwise */
    bool is_frozen; /* no gradients and moments; shards with ZeRO-3 alone */
    bool is_coded;  /* frozen, and stored in NF4: `params` and `whole` are bytes */
    ms_traffic_group shard_group;
    int num_shards;
    long count;       /* elements, including padding */
    ms_range own;     /* the rank's shard; everything if not sharded */
    ms_range partial; /* elements whose gradients are partial over tp */
    long num_updated; /* elements with a gradient, which come first */
    /* elements stored between steps: all, or the rank's shard */
    ms_range kept_params, kept_grads;
    void *params, *grads, *master;
    long shard_bytes; /* bytes of each shard, if it is coded or gathered in 8 or 4 bits */
    int num_runs;
    ms_code_run *runs; /* (num_runs), in ascending order of elements */
    int num_moments;
    void *moments[2], *scales[2]; /* scales of moments that are codes, fp32 */
    int num_matrices;             /* 0 if the optimizer updates element by element */
    ms_unit_matrix *matrices;
    /* Adafactor: sums of squares of rows and columns, of which the rank keeps num_sums /
     * num_shards, in type `sum` */
    long num_sums;
    ms_scalar sum;
    void *sums;
    void *whole; /* gathered parameters (ZeRO-3 without reshard) */
    bool has_reduced;
    bool is_shard_empty; /* `grads`, a shard, holds nothing of this step yet */
    void *reduced; /* workspace: the rank's shard of reduced gradients; NULL if none */
} ms_segment;

typedef struct ms_unit_tensor {
    int weight, gradient; /* tensor indices; gradient is -1 without one */
    int segment;
    long first; /* index of the tensor's first element in the segment */
    /* index of the unit's earlier tensor with this name, whose memory it shares; -1: none */
    int same_as;
    ms_local local;
    ms_weight_name name;
    /* whether the gradient's memory holds nothing yet of this step, or of this micro-batch
     * in the shared buffer */
    bool is_empty;
    bool is_partial; /* whether the gradient is partial over tp */
    bool is_counted; /* whether this rank counts the tensor in gradient norms */
    int num_copies; /* neighbouring tp ranks with this key-value head; 1: only this one */
} ms_unit_tensor;

struct ms_param_unit {
    ms_unit_options options;
    ms_sharding sharding;
    ms_precision precision;
    int num_segments;
    ms_segment *segments[MS_MAX_SEGMENTS]; /* index 0: a borrowed one, if any */
    int num_borrowed;
    int matrix; /* index of the segment of the unit's own tied matrix; -1 if none */
    int num_tensors;
    ms_unit_tensor *tensors;
    ms_unit_buffers *buffers; /* shared buffers; NULL before they are made */
    /* [segment] index of its first element in the shared buffers of gradients (dense or
     * expert), and of its first byte in those of parameters */
    long buffer_first[MS_MAX_SEGMENTS], buffer_byte[MS_MAX_SEGMENTS];
    /* [segment] index of its first byte in buffers of quantized parameters */
    long message_byte[MS_MAX_SEGMENTS];
    bool is_quantized; /* the gathered parameters are not restored yet */
    int num_users;     /* current uses of the gathered parameters (ZeRO-3) */
    int buffer;        /* index of the buffer with the gathered parameters */
    ms_event gathered;
    ms_event last; /* end of the last reduction of complete gradients */
};

/* Numbers of buffers for gathered parameters: MS_FIXED_BUFFERS exist always, more (up to
 * MS_MAX_BUFFERS in all) only while a forward and a backward pass interleave. */
#define MS_FIXED_BUFFERS 2
#define MS_MAX_BUFFERS   4

/* Buffers that units use in turn; index [2] is 0 for dense, 1 for expert parameters. */
struct ms_unit_buffers {
    int num_units;
    ms_param_unit **units; /* (num_units): all that share the buffers */
    /* bytes of the largest unit; elements of its gradients, and of one shard of these */
    long buffer_bytes[2], gradient_count[2], shard_count[2];
    long message_bytes[2]; /* bytes of the largest unit in 8 or 4 bits */
    void *params[MS_MAX_BUFFERS]
                [2]; /* buffers from MS_FIXED_BUFFERS on exist only while used */
    void *messages[MS_MAX_BUFFERS][2]; /* quantized parameters beside each buffer */
    /* unit whose parameters are in the buffer; NULL if it is free */
    const ms_param_unit *holder[MS_MAX_BUFFERS];
    void *grads[2];
    long sent_bytes[2]; /* bytes of the largest unit's gradients in 8 or 4 bits */
    void *sent[2];      /* quantized gradients beside `grads` */
    /* workspace in which reduced shards, or all ranks' quantized ones, arrive */
    void *reduced[2];
    const ms_param_unit *gradient_holder;
};

/* Memory of a segment, counted under a category. */
typedef struct ms_segment_array {
    ms_memory_category part;
    ms_scalar scalar;
    long count; /* elements; 0 if there are none */
    void **memory;
} ms_segment_array;
#define MS_SEGMENT_ARRAYS 8
/* Lists a segment's parameters, gradients and states; returns their number. */
int ms_segment_arrays(const ms_precision *precision, ms_segment *segment,
                      ms_segment_array out[MS_SEGMENT_ARRAYS]);

/* Allocates zeroed memory for `count` elements and counts it under a category, or as host
 * memory if the plan keeps optimizer states there. */
ms_status ms_unit_allocate(ms_rank *rank, ms_memory_category part, ms_scalar scalar,
                           long count, void **out);
void ms_unit_free(ms_rank *rank, ms_memory_category part, ms_scalar scalar, long count,
                  void **memory);
/* Allocates buffer number `buffer` for gathered parameters. */
ms_status ms_unit_buffer_open(ms_rank *rank, ms_unit_buffers *buffers, int buffer);
void ms_unit_buffer_close(ms_rank *rank, ms_unit_buffers *buffers, int buffer);

/* Types of a segment's weights between steps, and as they are gathered. */
ms_scalar ms_segment_param_type(const ms_param_unit *unit, const ms_segment *segment);
ms_scalar ms_segment_gather_type(const ms_param_unit *unit, const ms_segment *segment);
/* Whether a segment's whole gradients are in the buffer that units share, in type `comm`;
 * if not, they are in `gradient`. */
bool ms_segment_shares_gradients(const ms_param_unit *unit, const ms_segment *segment);
/* Sets elements to those of an array of perhaps another type, or adds them. */
void ms_unit_convert(const ms_rank *rank, const ms_conversion *conversion);

/* Address of element number `element` of an array; NULL if `base` is NULL. */
void *ms_unit_at(ms_scalar scalar, void *base, long element);
void *ms_segment_param(const ms_param_unit *unit, const ms_segment *segment,
                       long element);
/* Address of the master weight of an element of the rank's shard. */
void *ms_segment_master(const ms_param_unit *unit, const ms_segment *segment,
                        long element);
/* Address of a gradient element of the rank's shard: of the reduced one, if any. */
void *ms_segment_gradient(const ms_param_unit *unit, const ms_segment *segment,
                          long element);

/* Bytes of a segment's gathered parameters. */
long ms_segment_whole_bytes(const ms_param_unit *unit, const ms_segment *segment);
/* Address of a segment's whole parameters; NULL if they are not gathered. */
void *ms_unit_whole_params(const ms_param_unit *unit, int segment);

/* ---- weights in NF4 (unit_codes.c) ---- */

/* Sets the runs of a coded segment whose tensors and shards are set. */
void ms_segment_set_codes(const ms_rank *rank, const ms_param_unit *unit, int segment);
/* Quantizes, and reads back, elements of the rank's shard that begin a group of their run
 * (exec/params/nf4.h) and end one, or the run. */
void ms_segment_write_codes(const ms_segment *segment, long first, const double *values,
                            long count);
void ms_segment_read_codes(const ms_segment *segment, long first, double *values,
                           long count);

/* ---- quantized gathers and reductions (unit_quantized.c) ---- */

/* Whether a segment's parameters are gathered in 8 or 4 bits (ZeRO++). */
bool ms_segment_is_quantized(const ms_segment *segment);
/* Sets a segment's shard_bytes if the plan quantizes gathers. */
void ms_segment_set_messages(const ms_rank *rank, const ms_param_unit *unit,
                             ms_segment *segment);
/* Quantizes the rank's shard into its place in the unit's buffer, and makes `transfer`
 * gather all shards there. */
ms_status ms_unit_quantize(const ms_rank *rank, const ms_param_unit *unit, int segment,
                           ms_transfer *transfer);

/* Whether a segment has gradients, in shards. */
bool ms_segment_has_gradient_shards(const ms_segment *segment);
/* Bytes of a segment's gradients in 8 or 4 bits, all shards; 0 if they are reduced as they
 * are. */
long ms_segment_sent_bytes(const ms_rank *rank, const ms_segment *segment);
/* Quantizes a segment's whole gradients, each shard apart, and makes `transfer` exchange
 * the shards. Without values does nothing: predictions time a reduce-scatter. */
ms_status ms_unit_quantize_gradients(const ms_rank *rank, const ms_param_unit *unit,
                                     int segment, ms_transfer *transfer);
/* Restores the shards that arrived and adds their sum, in double precision, to the rank's
 * gradients of the segment, or writes it if these are empty. */
ms_status ms_unit_add_quantized(const ms_rank *rank, const ms_param_unit *unit,
                                int segment);

/* ---- optimizers ---- */

/* Sets what the plan's optimizer keeps for a segment whose tensors are in their places:
 * moments, matrices, sums. unit_layout.c allocates it. */
void ms_segment_set_states(const ms_rank *rank, ms_param_unit *unit, int segment);

/* A weight's kind to the plan's optimizer: no matrix, and so in a segment of vectors. */
bool ms_weight_is_vector(const ms_rank *rank, const ms_program *program, int weight);

/* Elements updated at once on the host, a multiple of MS_STATE_BLOCK. */
#define MS_UPDATE_CHUNK 4096

/* Host copies of elements first .. first + count - 1 of a segment's shard. */
typedef struct ms_chunk {
    ms_rank *rank;
    const ms_param_unit *unit;
    const ms_segment *segment;
    const ms_adamw *how;
    int num_moments; /* that are read and written */
    long first;
    ms_elements of;
} ms_chunk;
/* Makes a chunk of no elements, with room for MS_UPDATE_CHUNK. */
ms_chunk ms_chunk_make(ms_arena *arena, ms_rank *rank, const ms_param_unit *unit,
                       const ms_segment *segment, const ms_adamw *how);
/* Reads the elements from `first` on, up to `end`, with gradients clipped. */
ms_status ms_chunk_read(ms_chunk *chunk, long first, long end);
/* Writes weights and moments back. */
ms_status ms_chunk_write(const ms_chunk *chunk);
/* The rank's elements that have a gradient. */
ms_range ms_segment_updated(const ms_segment *segment);

/* A collective of the host's doubles, which is done on return. */
ms_status ms_unit_collect(ms_rank *rank, ms_transfer_kind kind, ms_traffic_group group,
                          const double *send, double *receive, long count);

ms_status ms_segment_update_adafactor(ms_rank *rank, const ms_param_unit *unit,
                                      ms_segment *segment, const ms_adamw *how);
ms_status ms_segment_update_muon(ms_rank *rank, const ms_param_unit *unit,
                                 ms_segment *segment, const ms_adamw *how);

/* Updates the rank's shard of a segment. */
typedef ms_status ms_segment_update(ms_rank *rank, const ms_param_unit *unit,
                                    ms_segment *segment, const ms_adamw *how);
/* Updates a segment with states in host memory (unit_host.c): on the device, to which
 * they are copied and from which they return, or on the host, to which gradients and
 * weights are copied, and weights return. What is copied is workspace. Elsewhere just
 * calls `update`. */
ms_status ms_segment_update_offloaded(ms_rank *rank, const ms_param_unit *unit,
                                      ms_segment *segment, const ms_adamw *how,
                                      ms_segment_update *update);

/* A gather or reduction of a unit's parameters, with one transfer per segment. */
typedef struct ms_unit_move {
    ms_rank *rank;
    ms_param_unit *unit;
    double predicted_s[2]; /* [is_expert]: seconds, all given to the first transfer */
    const ms_event *after;
    int num_after;
    ms_event *done;
} ms_unit_move;

/* Starts a segment's transfer of transfer.scalar and sets *move->done to its end; a
 * simulated transfer of 0 s is left out, and *move->done unchanged. */
ms_status ms_unit_start(ms_unit_move *move, const ms_segment *segment,
                        ms_transfer transfer);

#endif
