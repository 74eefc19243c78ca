/* meshsim cluster: device and network of one cluster, or the names of all. */
#include "base/paths.h"
#include "cli/options/commands.h"
#include "cli/options/output.h"
#include "topo/cluster.h"

static ms_status write_cluster(ms_ctx *cx, const ms_args *args)
{
    const ms_cluster *cluster;
    MS_TRY(ms_cluster_load(cx, args->words.words[0], &cluster));
    if (ms_config_is_path(args->words.words[0]))
        MS_TRY(ms_output_check_differ(cx, args->words.words[0], args->common.output));
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (args->common.json)
        ms_cluster_write_json(&out.json, cluster);
    else
        ms_cluster_print(out.file, cluster);
    return ms_output_close(cx, &out, MS_OK);
}

ms_status ms_cmd_cluster(ms_ctx *cx, ms_args *args)
{
    MS_TRY(ms_args_read(cx, args, NULL, 0));
    if (args->done)
        return MS_OK;
    if (args->words.num_words > 0)
        return write_cluster(cx, args);
    const char *const *names;
    int num_names;
    MS_TRY(ms_cluster_names(cx, &names, &num_names));
    return ms_args_write_names(cx, args, "clusters", names, num_names);
}
