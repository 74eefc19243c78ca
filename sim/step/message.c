#include "sim/step/message.h"

#include "sim/step/host_time.h"

void ms_message_price(const ms_workload *workload, const ms_bill_set *bills,
                      const ms_links *links, ms_block_costs *out)
{
    double ranks = (double)links->span[MS_BILL_TP].size;
    bool is_whole = !bills->key.sequence_parallel && ranks > 1.0;
    bool scatters = is_whole && workload->stack->scatters_sends;
    out->send_bytes = bills->embed.output_bytes;
    out->wire_bytes = scatters ? out->send_bytes / ranks : out->send_bytes;
    out->send_s = ms_collective_s(&links->send, out->wire_bytes) +
                  ms_stall_s(workload->stack, links);
    if (scatters)
        out->send_s +=
            ms_collective_s(&links->law[MS_BILL_TP][MS_ALL_GATHER], out->send_bytes);
}

double ms_message_hold_s(const ms_stack *stack, ms_schedule_kind kind, double message_s)
{
    int wait = ms_schedule_traits_of(kind).message_wait;
    double messages = wait == MS_WAIT_PLAIN         ? stack->send_hold.value
                      : wait == MS_WAIT_INTERLEAVED ? stack->interleaved_send_hold.value
                                                    : 0.0;
    return messages * message_s;
}
