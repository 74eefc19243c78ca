/* meshsim version: the version of the program. */
#include "cli/options/commands.h"
#include "cli/options/output.h"

ms_status ms_cmd_version(ms_ctx *cx, ms_args *args)
{
    MS_TRY(ms_args_read(cx, args, NULL, 0));
    if (args->done)
        return MS_OK;
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (args->common.json) {
        ms_jout_begin_object(&out.json);
        ms_jout_text_field(&out.json, "schema", "meshsim.version/1");
        ms_jout_text_field(&out.json, "version", MS_VERSION);
        ms_jout_end_object(&out.json);
    } else {
        fputs("meshsim " MS_VERSION "\n", out.file);
    }
    return ms_output_close(cx, &out, MS_OK);
}
