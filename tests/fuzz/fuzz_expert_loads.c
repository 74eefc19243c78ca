/* Fuzzes the reader of experts' loads: no crash, every refusal has a message, and the
 * fullest rank never has less than the mean, nor more than all copies. */
#include "costmodel/plan/expert_loads.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const long num_experts = 8;
    ms_arena *arena = ms_arena_open();
    ms_ctx cx = {.arena = arena};
    ms_expert_fill fill = {.imbalance = 1.0};
    ms_csv csv = ms_csv_open((const char *)data, size);
    bool read = ms_expert_loads_read(&cx, "fuzz", csv, num_experts, &fill.loads) == MS_OK;
    require(read == (cx.num_errors == 0));
    for (long ep = 1; read && ep <= num_experts; ep *= 2) {
        double excess_frac = ms_expert_excess_frac(&fill, ep);
        require(excess_frac > -1e-9 && excess_frac < (double)ep - 1.0 + 1e-9);
    }
    ms_arena_close(arena);
    return 0;
}
