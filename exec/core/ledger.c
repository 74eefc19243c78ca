#include "exec/core/ledger.h"

#include <string.h>

void ms_ledger_add(ms_ledger *ledger, ms_memory_category part, double bytes)
{
    ledger->now_bytes[part] += bytes;
    ledger->now_total_bytes += bytes;
    if (ledger->now_total_bytes > ledger->peak_bytes) {
        ledger->peak_bytes = ledger->now_total_bytes;
        memcpy(ledger->peak_parts, ledger->now_bytes, sizeof ledger->peak_parts);
    }
    if (ledger->now_total_bytes > ledger->action_peak_bytes) {
        ledger->action_peak_bytes = ledger->now_total_bytes;
        memcpy(ledger->action_peak_parts, ledger->now_bytes,
               sizeof ledger->action_peak_parts);
    }
}

void ms_ledger_add_workspace(ms_ledger *ledger, double bytes)
{
    ledger->workspace_bytes += bytes;
    if (ledger->workspace_bytes > ledger->workspace_peak_bytes)
        ledger->workspace_peak_bytes = ledger->workspace_bytes;
}

void ms_ledger_add_host(ms_ledger *ledger, double bytes)
{
    ledger->host_bytes += bytes;
    if (ledger->host_bytes > ledger->host_peak_bytes)
        ledger->host_peak_bytes = ledger->host_bytes;
}

void ms_ledger_begin_action(ms_ledger *ledger)
{
    ledger->action_peak_bytes = ledger->now_total_bytes;
    memcpy(ledger->action_peak_parts, ledger->now_bytes,
           sizeof ledger->action_peak_parts);
}
