/* meshsim model: counts and shapes of one model, or the names of all. */
#include "base/paths.h"
#include "cli/options/commands.h"
#include "cli/options/output.h"
#include "cli/options/plan_command.h"
#include "sim/request/model_options.h"

static ms_status write_model(ms_ctx *cx, const ms_args *args,
                             const ms_model_options *options)
{
    const ms_model *model;
    const char *word = args->words.words[0];
    long sequence_length;
    MS_TRY(ms_model_options_load(cx, word, options, &model, &sequence_length));
    if (ms_config_is_path(word))
        MS_TRY(ms_output_check_differ(cx, word, args->common.output));
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (args->common.json)
        ms_model_write_json(&out.json, model, (double)sequence_length);
    else
        ms_model_print(out.file, model, (double)sequence_length);
    return ms_output_close(cx, &out, MS_OK);
}

ms_status ms_cmd_model(ms_ctx *cx, ms_args *args)
{
    ms_model_options options = {0};
    const ms_option_set set = {"options", ms_model_option_table, &options};
    MS_TRY(ms_args_read(cx, args, &set, 1));
    if (args->done)
        return MS_OK;
    if (args->words.num_words > 0)
        return write_model(cx, args, &options);
    MS_TRY(ms_args_check_listing(cx, args, &set));
    const char *const *names;
    int num_names;
    MS_TRY(ms_model_names(cx, &names, &num_names));
    return ms_args_write_names(cx, args, "models", names, num_names);
}
