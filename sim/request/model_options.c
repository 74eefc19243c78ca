#include "sim/request/model_options.h"

#include "base/note.h"
#include "base/paths.h"
#include "sim/request/opened_plan.h"

#define DEFAULT_SEQUENCE_LENGTH 8192
#define MAX_SEQUENCE_LENGTH     (1 << 30)

const ms_option ms_model_option_table[] = {
    MS_OPT_INTEGER(ms_model_options, sequence_length, "--seq", "TOKENS", 1,
                   MAX_SEQUENCE_LENGTH,
                   "sequence length of the FLOP per token (default 8k)"),
    MS_OPT_TEXT(ms_model_options, model_type, "--as", "TYPE",
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

ms_status ms_model_options_load(ms_ctx *cx, const char *name,
                                const ms_model_options *options, const ms_model **model,
                                long *sequence_length)
{
    const char *type = options->model_type;
    MS_TRY(check_type(cx, name, type));
    MS_TRY(type == NULL ? ms_model_load(cx, name, model)
                        : ms_model_load_as(cx, name, type, model));
    ms_note_unread_keys(cx, *model);
    *sequence_length = options->sequence_length.value;
    if (!options->sequence_length.given) {
        *sequence_length = DEFAULT_SEQUENCE_LENGTH;
        ms_note_default(cx, "--seq %ld", *sequence_length);
    }
    return MS_OK;
}
