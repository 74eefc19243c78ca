/* The runs with the largest errors of the step time, with the components of the
 * prediction. */
#ifndef MS_SIM_VALIDATE_VALIDATION_WORST_H
#define MS_SIM_VALIDATE_VALIDATION_WORST_H

#include "sim/validate/validation.h"

/* Sets the at most `num` runs with the largest |step error| of a validation, the worst
 * first. */
void ms_validation_find_worst(ms_arena *arena, int num, ms_validation *validation);

void ms_worst_write_json(ms_jout *out, const ms_validation *validation);
void ms_worst_print(FILE *out, ms_arena *arena, const ms_validation *validation);

#endif
