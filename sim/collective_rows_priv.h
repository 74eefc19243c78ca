/* Shared by the collective_*.c files: what the names of measured systems and sources stand for. */
#ifndef MS_SIM_COLLECTIVE_ROWS_PRIV_H
#define MS_SIM_COLLECTIVE_ROWS_PRIV_H

#include "sim/collective_rows.h"

/* What a system is priced as: a file in configs/clusters/, or NULL with a reason. */
const char *ms_collective_system_cluster(const char *system, long nodes,
                                         const char **reason);
/* Why a row of a known system says nothing about the collective; NULL: it does. */
const char *ms_collective_row_defect(const ms_collective_row *row);
/* Of a row with a cluster. */
ms_span ms_collective_row_span(const ms_collective_row *row);
/* Whether a coefficient of its law names its source. */
bool ms_collective_row_is_fitted(ms_arena *arena, const ms_collective_row *row);

#endif
