#include "exec/core/scale_history.h"

#include <assert.h>

ms_scale_history *ms_scale_history_make(ms_arena *arena, int num_slots,
                                        const int *first_slot, long num_steps)
{
    ms_scale_history *history = MS_NEW(arena, ms_scale_history);
    *history = (ms_scale_history){.num_slots = num_slots,
                                  .first_slot = first_slot,
                                  .num_steps = num_steps < MS_SCALE_HISTORY_STEPS
                                                   ? num_steps
                                                   : MS_SCALE_HISTORY_STEPS,
                                  .step = -1};
    history->largest = MS_NEW_ARRAY(arena, num_slots * history->num_steps, float);
    history->earlier = MS_NEW_ARRAY(arena, num_slots, float);
    return history;
}

static float *of_step(const ms_scale_history *history, long step)
{
    return history->largest + step % history->num_steps * history->num_slots;
}

void ms_scale_history_begin_step(ms_scale_history *history)
{
    history->step++;
    float *own = of_step(history, history->step);
    for (int slot = 0; slot < history->num_slots; slot++) {
        float largest = 0.0F;
        for (long step = 0; step < history->num_steps; step++) {
            float there = of_step(history, step)[slot];
            largest = there > largest ? there : largest;
        }
        history->earlier[slot] = largest;
        own[slot] = 0.0F;
    }
}

float ms_scale_history_note(ms_scale_history *history, int tensor, long expert,
                            float largest)
{
    assert(history->step >= 0);
    int slot = history->first_slot[tensor] + (int)expert;
    float *own = &of_step(history, history->step)[slot];
    *own = largest > *own ? largest : *own;
    return history->earlier[slot];
}
