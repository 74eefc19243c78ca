/* What calibrate prints: the fits with their intervals, and how well they hold. */
#ifndef MS_CLI_REPORT_CALIBRATE_REPORT_H
#define MS_CLI_REPORT_CALIBRATE_REPORT_H

#include "costmodel/calibrate/calibration.h"

#include <stdio.h>

void ms_calibration_print(FILE *out, ms_arena *arena, const ms_calibration *calibration,
                          double elapsed_s);
/* meshsim.calibration/1 */
void ms_calibration_write_json(ms_jout *out, const ms_calibration *calibration,
                               double elapsed_s);

#endif
