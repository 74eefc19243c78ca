/* Messages between pipeline stages: their size, their duration, and how long the
 * sender waits for them. docs/formulas 3.7.4. */
#ifndef MS_SIM_STEP_MESSAGE_H
#define MS_SIM_STEP_MESSAGE_H

#include "sim/step/stage.h"

/* Fills send_s, send_bytes and wire_bytes of the block costs. Where the stack
 * scatters_sends and every tensor-parallel rank has all activations, each rank sends a
 * share to its peer, and the receiving ranks all-gather them over tp (Narayanan et al.
 * 2021, arXiv 2104.04473 section 4.1). */
void ms_message_price(const ms_workload *workload, const ms_bill_set *bills,
                      const ms_links *links, ms_block_costs *out);

/* Seconds that a stage waits for its sent message before its next action: the stack's
 * send_hold in messages; 0 if it states none, so that messages overlap with compute. */
double ms_message_hold_s(const ms_stack *stack, ms_schedule_kind kind, double message_s);

#endif
