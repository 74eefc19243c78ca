/* Shared by the collective_*.c files. */
#ifndef MS_SIM_COLLECTIVE_ROWS_PRIV_H
#define MS_SIM_COLLECTIVE_ROWS_PRIV_H

#include "sim/collective_rows.h"

/* The ranks of a row with a cluster, on its levels. */
ms_span ms_collective_row_span(const ms_collective_row *row);
/* Whether a coefficient of its law names its source. */
bool ms_collective_row_is_fitted(ms_arena *arena, const ms_collective_row *row);

#endif
