/* meshsim explain --einsum and --redistribute: communication of an einsum, or of a tensor
 * between two placements, on a mesh. */
#ifndef MS_CLI_CMD_EXPLAIN_EINSUM_H
#define MS_CLI_CMD_EXPLAIN_EINSUM_H

#include "cli/options/commands.h"

typedef struct ms_einsum_options {
    const char *einsum, *redistribute; /* --einsum and --redistribute; NULL: not given */
    const char *mesh, *out, *sizes;
    ms_opt_list in;
    ms_opt_choice dtype;
    bool strict;
    const char *cluster;   /* --cluster of the plan options; NULL: the default */
    long ranks_per_domain; /* --ranks-per-domain of the plan options; 0: the default */
} ms_einsum_options;

/* Options that fill a ms_einsum_options except those of its cluster. */
extern const ms_option ms_einsum_option_table[];

/* Explains an einsum as text or JSON (meshsim.explain/1). Errors: MS_EINPUT for bad
 * options, MS_ECHECK with --strict when the given placements need a redistribution. */
ms_status ms_explain_einsum(ms_ctx *cx, ms_args *args, const ms_einsum_options *options);
/* Writes the cheapest collectives that bring one tensor from --in to --out. Errors:
 * MS_EINPUT for bad options, and when no collectives do so. */
ms_status ms_explain_redistribution(ms_ctx *cx, ms_args *args,
                                    const ms_einsum_options *options);

#endif
