/* The runs whose step time is predicted worst, with what the prediction is made of. */
#ifndef MS_SIM_VALIDATION_WORST_H
#define MS_SIM_VALIDATION_WORST_H

#include "sim/validation.h"

/* Fills the at most `num` runs with the largest |step error| of a validation, the worst first. */
void ms_validation_find_worst(ms_arena *arena, int num, ms_validation *validation);

void ms_worst_write_json(ms_jout *out, const ms_validation *validation);
void ms_worst_print(FILE *out, ms_arena *arena, const ms_validation *validation);

#endif
