/* Parts of ms_bill_make, which prices a layer program. */
#ifndef MS_COSTMODEL_COST_BILL_PRIV_H
#define MS_COSTMODEL_COST_BILL_PRIV_H

#include "costmodel/cost/bill.h"

/* Adds the live bytes of backward and its halves, buffers that the stack keeps included,
 * and the bytes of the block's output (activation_memory.c). */
void ms_bill_add_memory(const ms_program *program, const ms_pricer *pricer,
                        ms_bill *bill);

#define MS_MAX_BILL_NODES 384

typedef struct ms_bill_cut {
    unsigned char of[MS_MAX_BILL_NODES]; /* [node] its segment (ms_bill_segment) */
} ms_bill_cut;

/* Assigns every node to a segment of its layer (bill_segments.c). */
void ms_bill_cut_make(const ms_program *program, ms_bill_cut *out);
/* Adds the bytes of the four token exchanges of a layer with experts. */
void ms_bill_add_exchanges(const ms_program *program, const ms_pricer *pricer,
                           ms_bill_segments *out);

#endif
