/* A simulation result made by hand, to test reports of simulations without a
 * simulator. */
#ifndef MS_TESTS_SUPPORT_HAND_SIMULATION_H
#define MS_TESTS_SUPPORT_HAND_SIMULATION_H

#include "sim/simulate/simulation.h"

/* Makes a simulated step of 1F1B with two micro-batches on two pipeline ranks; the first
 * stands for 64 ranks, the second for 63, and rank 127, simulated apart, computes 1.5
 * times as long. Forwards take 1 s, backwards 2 s, sends 0.1 s, the optimizer 0.25 s, all
 * times `stretch`. Has no plan. Lives in the arena. */
ms_simulation *ms_hand_simulation(ms_arena *arena, double stretch);

#endif
