/* What stays the same over a whole search: model, cluster, coefficients, sequence and batch; and the bills of
 * layer programs, each propagated and priced once and shared by all threads. */
#ifndef MS_SIM_WORKLOAD_H
#define MS_SIM_WORKLOAD_H

#include "costmodel/bill.h"

#include <pthread.h>

/* Bills of all parts of the model for one choice of (tp, cp, ep, etp, sequence parallelism, micro-batch). */
typedef struct ms_bill_key {
    short tp, cp, ep, etp;
    int microbatch;
    bool sequence_parallel, loss_parallel;
} ms_bill_key;

typedef struct ms_bill_set {
    ms_bill_key key;
    ms_bill embed, head;
    ms_bill layer[MS_MAX_LAYER_KINDS][MS_NUM_RECOMPUTE];
    bool has_layer[MS_NUM_RECOMPUTE];
    struct ms_bill_set *next; /* in its bucket */
} ms_bill_set;

#define MS_BILL_BUCKETS 4096

typedef struct ms_workload {
    const ms_model *model;
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_stack *stack;
    ms_pricer pricer;
    long sequence_length, global_batch;
    ms_dtype compute;
    /* layers of each kind before layer i: layers_before[kind][i], i = 0 .. num_layers */
    int *layers_before[MS_MAX_LAYER_KINDS];
    /* shared cache */
    pthread_mutex_t lock;
    ms_arena *arena;
    ms_bill_set *buckets[MS_BILL_BUCKETS];
    long num_bill_sets;
} ms_workload;

/* Loads everything a plan names. The workload lives in cx->arena; close it to release the cache. */
ms_status ms_workload_open(ms_ctx *cx, const ms_plan *plan, ms_workload **out);
void ms_workload_close(ms_workload *workload);

/* The bills of a key, with layers in the recompute modes of `modes` (bit i: mode i). Thread-safe; the set stays where it is. */
const ms_bill_set *ms_workload_bills(ms_workload *workload, const ms_bill_key *key, unsigned modes);

#endif
