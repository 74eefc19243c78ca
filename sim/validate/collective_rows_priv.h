/* Internals of collective_rows.c and collective_coefficients.c. */
#ifndef MS_SIM_VALIDATE_COLLECTIVE_ROWS_PRIV_H
#define MS_SIM_VALIDATE_COLLECTIVE_ROWS_PRIV_H

#include "sim/validate/collective_rows.h"

/* How the ranks of a measured collective map to the network levels of its cluster. */
ms_span ms_collective_row_span(const ms_collective_row *row);
/* Whether a coefficient of the measured row's cost law was fitted to the row's source. */
bool ms_collective_row_is_fitted(ms_arena *arena, const ms_collective_row *row);

#endif
