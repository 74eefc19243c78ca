/* Simulations made by hand, to test what is written about them without an engine. */
#ifndef MS_TESTS_SUPPORT_HAND_SIMULATION_H
#define MS_TESTS_SUPPORT_HAND_SIMULATION_H

#include "sim/simulate/simulation.h"

/* 1F1B of two micro-batches on two pipeline ranks, of which the first stands for 64 ranks
 * and the second for 63; rank 127 is alone and computes 1.5 times as long. Forwards take
 * 1 s, backwards 2 s, sends 0.1 s, the optimizer 0.25 s. No plan behind it. `stretch`
 * multiplies every time. Lives in the arena. */
ms_simulation *ms_hand_simulation(ms_arena *arena, double stretch);

#endif
