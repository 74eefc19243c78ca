/* Messages between pipeline stages: what they carry, how long they take and who waits for
 * them. docs/formulas 3.7.4. */
#ifndef MS_SIM_MESSAGE_H
#define MS_SIM_MESSAGE_H

#include "sim/stage.h"

/* Fills the send_* and wire_bytes of the parts. Where the stack scatters_sends and every
 * rank of tp has all activations, each sends its own part to its peer, and the ranks that
 * receive gather it over tp (Narayanan et al. 2021, arXiv 2104.04473 section 4.1). */
void ms_message_price(const ms_workload *workload, const ms_bill_set *bills,
                      const ms_links *links, ms_parts *out);

/* How long a stage waits for messages after an action that has a result to send on,
 * before its next action starts: send_hold messages of the stack. 0 in schedules for
 * which it states none: messages travel beside compute. */
double ms_message_hold_s(const ms_stack *stack, ms_schedule_kind kind, double message_s);

#endif
