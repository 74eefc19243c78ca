/* Largest elements of the operands of a block's products in earlier steps, from which
 * delayed scaling takes its scales. */
#ifndef MS_EXEC_CORE_SCALE_HISTORY_H
#define MS_EXEC_CORE_SCALE_HISTORY_H

#include "base/arena.h"

/* Steps that a history covers (NVIDIA, Transformer Engine documentation, DelayedScaling:
 * default of amax_history_len; the default of margin is 0). */
#define MS_SCALE_HISTORY_STEPS 1024

/* Maxima have slots: one per operand, in products of experts one per expert. */
typedef struct ms_scale_history {
    int num_slots;
    const int *first_slot; /* [tensor of the program] slot, or of its first expert */
    long num_steps;        /* steps that are kept */
    long step;             /* number of the current step, from 0; -1 before the first */
    float *largest;        /* [step mod num_steps, slot] */
    float
        *earlier; /* [slot] largest of the kept steps before this one; 0: there is none */
} ms_scale_history;

/* A history in the arena, before its first step. `num_steps`: of the run. */
ms_scale_history *ms_scale_history_make(ms_arena *arena, int num_slots,
                                        const int *first_slot, long num_steps);
void ms_scale_history_begin_step(ms_scale_history *history);
/* Notes an operand's largest element; returns that of the steps before this one (0: there
 * is none), so that all micro-batches of a step, and recomputations, have one scale. */
float ms_scale_history_note(ms_scale_history *history, int tensor, long expert,
                            float largest);

#endif
