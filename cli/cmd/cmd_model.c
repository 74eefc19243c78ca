/* meshsim model: counts and shapes of one model, or the names of all. */
#include "base/paths.h"
#include "cli/options/commands.h"
#include "cli/options/output.h"
#include "cli/options/plan_command.h"
#include "costmodel/model/model.h"

#define DEFAULT_SEQUENCE_LENGTH 8192
#define MAX_SEQUENCE_LENGTH     (1 << 30)

typedef struct model_options {
    ms_opt_integer sequence_length;
    const char *model_type;
} model_options;

static const ms_option model_table[] = {
    MS_OPT_INTEGER(model_options, sequence_length, "--seq", "TOKENS", 1,
                   MAX_SEQUENCE_LENGTH,
                   "sequence length of the FLOP per token (default 8k)"),
    MS_OPT_TEXT(model_options, model_type, "--as", "TYPE",
                "model_type as which a Hugging Face config is read (default its own)"),
    {0},
};

static ms_status check_type(ms_ctx *cx, const char *word, const char *model_type)
{
    if (model_type == NULL || ms_config_is_path(word))
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "--as %s is about a Hugging Face config, but \"%s\" is a name", model_type,
            word);
    return ms_hint(cx, "give the path of its config.json");
}

static ms_status write_model(ms_ctx *cx, const ms_args *args,
                             const model_options *options)
{
    const ms_model *model;
    const char *word = args->words.words[0], *type = options->model_type;
    MS_TRY(check_type(cx, word, type));
    MS_TRY(type == NULL ? ms_model_load(cx, word, &model)
                        : ms_model_load_as(cx, word, type, &model));
    ms_note_unread_keys(cx, model);
    if (ms_config_is_path(word))
        MS_TRY(ms_output_check_differ(cx, word, args->common.output));
    long sequence_length = options->sequence_length.value;
    if (!options->sequence_length.given) {
        sequence_length = DEFAULT_SEQUENCE_LENGTH;
        ms_note_default(cx, "--seq %ld", sequence_length);
    }
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
    model_options options = {0};
    const ms_option_set set = {"options", model_table, &options};
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
