/* meshsim explain --types: the SPMD type of every value of the layer programs on each
 * axis, and whether the programs are legal. */
#ifndef MS_CLI_CMD_EXPLAIN_TYPES_H
#define MS_CLI_CMD_EXPLAIN_TYPES_H

#include "cli/options/output.h"
#include "sim/explain/explain.h"

/* Writes the local SPMD types (costmodel/tensor/spmd.h) of the tensors of one block
 * (NULL: of all), their changes, and the findings of the checker
 * (costmodel/program/program_check.h), as text or as meshsim.types/1. MS_ECHECK with an
 * error if there are findings. */
ms_status ms_explain_types(ms_ctx *cx, ms_output *out, const ms_explanation *e,
                           const char *block, bool json);

#endif
