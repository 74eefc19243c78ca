/* meshsim explain: how an einsum goes over a mesh. */
#include "cli/commands.h"
#include "cli/explain_einsum.h"

static const ms_option explain_table[] = {
    MS_OPT_TEXT(ms_einsum_options, cluster, "--cluster", "NAME|FILE",
                "whose network and devices (default hgx-h100)"),
    {0},
};

ms_status ms_cmd_explain(ms_ctx *cx, ms_args *args)
{
    ms_einsum_options options = {0};
    const ms_option_set sets[] = {{"options", ms_einsum_option_table, &options},
                                  {"cluster", explain_table, &options}};
    MS_TRY(ms_args_read(cx, args, sets, 2));
    if (args->done)
        return MS_OK;
    if (options.einsum != NULL)
        return ms_explain_einsum(cx, args, &options);
    ms_status status = ms_fail(cx, MS_EINPUT, MS_NOWHERE, "nothing to explain is given");
    ms_hint(cx, "for example --einsum \"bsh,hf->bsf\" --mesh dp=2,tp=4");
    return status;
}
