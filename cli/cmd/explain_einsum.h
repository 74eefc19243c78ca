/* meshsim explain --einsum and --redistribute: how an einsum goes over a mesh, how a
 * tensor changes its placement. */
#ifndef MS_CLI_CMD_EXPLAIN_EINSUM_H
#define MS_CLI_CMD_EXPLAIN_EINSUM_H

#include "cli/options/commands.h"

typedef struct ms_einsum_options {
    const char *einsum, *redistribute; /* NULL: not asked for */
    const char *mesh, *out, *sizes;
    ms_opt_list in;
    ms_opt_choice dtype;
    bool strict;
    /* filled by the command from its own --cluster; NULL: the default */
    const char *cluster;
} ms_einsum_options;

/* Fills a ms_einsum_options, but for its cluster. */
extern const ms_option ms_einsum_option_table[];

/* Writes the explanation as text or JSON (meshsim.explain/1). Errors: MS_EINPUT for bad
 * options, MS_ECHECK with --strict when the given placements are not legal as they
 * are. */
ms_status ms_explain_einsum(ms_ctx *cx, ms_args *args, const ms_einsum_options *options);
/* Writes the cheapest collectives that bring one tensor from --in to --out. Errors:
 * MS_EINPUT for bad options, and when there is no way. */
ms_status ms_explain_redistribution(ms_ctx *cx, ms_args *args,
                                    const ms_einsum_options *options);

#endif
