/* meshsim explain --types: what every value of a layer program is on each axis, and
 * whether the program is legal. */
#ifndef MS_CLI_REPORT_EXPLAIN_TYPES_H
#define MS_CLI_REPORT_EXPLAIN_TYPES_H

#include "base/diag.h"
#include "sim/explain/explain.h"

/* Writes the local SPMD types (costmodel/tensor/spmd.h) of the tensors of one part, or of all
 * for NULL, the changes of type, and what the checker of programs (costmodel/program/program_check.h)
 * finds: as text or as meshsim.types/1. MS_ECHECK with an error when it finds
 * anything. */
ms_status ms_explain_types(ms_ctx *cx, FILE *out, const ms_explanation *e,
                           const char *part, bool json);

#endif
