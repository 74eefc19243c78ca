/* The parts of ms_bill_make in files of their own. */
#ifndef MS_COSTMODEL_BILL_PRIV_H
#define MS_COSTMODEL_BILL_PRIV_H

#include "costmodel/bill.h"

/* Live bytes of the whole backward and of its halves, logits, output (bill_memory.c). */
void ms_bill_add_memory(const ms_program *program, ms_bill *bill);

#define MS_MAX_BILL_NODES 384

/* The ms_bill_segment of each node, into an array that is zero (bill_segments.c). */
void ms_bill_cut(const ms_program *program, unsigned char *segment);
/* Sizes of the four exchanges. */
void ms_bill_add_exchanges(const ms_program *program, ms_bill_segments *out);

#endif
