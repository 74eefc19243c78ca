/* A layer program reduced to what a step is made of: seconds of compute per pass, FLOP, live bytes, parameters, and a
 * short list of collectives with their sizes. Collectives are priced later, since they depend on where the mesh lies. */
#ifndef MS_COSTMODEL_BILL_H
#define MS_COSTMODEL_BILL_H

#include "costmodel/kernel_cost.h"
#include "costmodel/program.h"

/* Groups along which a program communicates. etp ranks are tp ranks. */
typedef enum ms_bill_axis {
    MS_BILL_TP,
    MS_BILL_CP,
    MS_BILL_EP,
    MS_NUM_BILL_AXES
} ms_bill_axis;

typedef enum ms_bill_pass {
    MS_BILL_FORWARD,
    MS_BILL_BACKWARD,
    MS_NUM_BILL_PASSES
} ms_bill_pass;

typedef struct ms_bill_comm {
    unsigned char axis;       /* ms_bill_axis */
    unsigned char collective; /* ms_collective */
    bool ring; /* sends of ring attention, which run beside it on a stream of their own */
    int count;
    double size_bytes; /* of one, as ms_collective_s takes it */
    double
        window_s; /* what all of them can hide behind: the matrix products next to them (TP), their share of the attention (CP); all-to-alls over cp or ep behind nothing */
} ms_bill_comm;

#define MS_MAX_BILL_COMMS 16

typedef struct ms_bill {
    double compute_s[MS_NUM_BILL_PASSES]; /* backward includes recomputation */
    double flop[MS_NUM_BILL_PASSES];      /* executed */
    double weight_s; /* of the backward: gradients of weights, which may be delayed */
    double recompute_flop;
    int kernels[MS_NUM_BILL_PASSES];
    int num_comms[MS_NUM_BILL_PASSES];
    ms_bill_comm comms[MS_NUM_BILL_PASSES][MS_MAX_BILL_COMMS];
    double dense_params,
        expert_params; /* on this rank, before sharding over data-parallel ranks */
    double
        tp_partial_params; /* weights whose gradients are partial over tp (norms with sequence parallelism) */
    double
        saved_bytes; /* kept from forward to backward, per micro-batch; logits excluded */
    double
        transient_bytes; /* the most that is alive beyond saved_bytes while the backward runs; logits excluded */
    double logits;       /* local logits, elements; head only */
    double head_params;  /* of the head's matrix; head only */
    double output_bytes; /* what a pipeline sends on */
} ms_bill;

/* The bill of a program priced by `pricer`. */
ms_bill ms_bill_make(const ms_program *program, const ms_pricer *pricer);

/* The group along which a node communicates. */
ms_bill_axis ms_node_bill_axis(const ms_node_comm *comm);

/* Seconds of one node that does not communicate; 0 for placement changes. */
double ms_node_compute_s(const ms_program *program, const ms_node *node,
                         const ms_pricer *pricer);

#endif
