/* Messages of activations and gradients between pipeline stages: bytes, seconds, and how
 * long the sender waits. docs/formulas 3.7.4. */
#ifndef MS_SIM_STEP_MESSAGE_H
#define MS_SIM_STEP_MESSAGE_H

#include "sim/step/stage.h"

/* Fills send_s, send_bytes and wire_bytes of `out`. In a stack that scatters_sends,
 * tensor-parallel ranks with equal activations each send a share of them to the next
 * stage, which all-gathers them (Narayanan et al. 2021, arXiv 2104.04473 section 4.1). */
void ms_message_price(const ms_workload *workload, const ms_bill_set *bills,
                      const ms_links *links, ms_block_costs *out);

/* Seconds that a stage waits, after an action, for the message it sends: message_s times
 * the stack's send_hold (or interleaved_send_hold); 0: messages overlap with compute. */
double ms_message_hold_s(const ms_stack *stack, ms_schedule_kind kind, double message_s);

#endif
