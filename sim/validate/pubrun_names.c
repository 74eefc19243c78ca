/* Finds models by the names that published tables give them. */
#include "sim/validate/pubrun_priv.h"

#include <string.h>

static bool is_named(const char *text, const char *plain, const char *pattern)
{
    return *pattern == '^' ? ms_begins_word(text, pattern + 1)
                           : strstr(plain, pattern) != NULL;
}

/* The first known model whose name matches; unless `with_shapes`, only a model kind. */
static const ms_known_model *find_model(const ms_name_tables *names, const char *text,
                                        bool gated, bool with_shapes)
{
    static const ms_known_model unknown = {.name = "",
                                           .unsupported = MS_UNSUPPORTED_UNKNOWN};
    const char *plain = ms_plain_text(names->arena, text);
    const ms_known_model *rows = names->models.rows;
    for (const ms_known_model *row = rows; row < rows + names->models.num_rows; row++)
        if ((with_shapes || row->model == NULL) && (gated || !row->gated) &&
            is_named(text, plain, row->name))
            return row;
    return &unknown;
}

const ms_known_model *ms_known_model_find(const ms_name_tables *names, const char *text,
                                          bool gated)
{
    return find_model(names, text, gated, true);
}

const ms_known_model *ms_known_kind_find(const ms_name_tables *names, const char *text,
                                         bool gated)
{
    return find_model(names, text, gated, false);
}

const char *ms_known_model_refusal(const ms_known_model *known)
{
    static const char *const reasons[] = {
        NULL, "incomplete: architecture of a model that is not known here",
        "incomplete: architecture, with state-space or linear-attention layers other "
        "than Mamba-2",
        "incomplete: architecture, with an encoder beside the decoder"};
    return reasons[known->unsupported];
}
