/* Reads and writes the patterns of hybrid models, one letter per layer: M is Mamba-2. */
#include "costmodel/model/model_priv.h"

#include <string.h>

typedef struct letter_kind {
    char letter;
    ms_layer_kind kind;
} letter_kind;

/* Kind of layer by its letter in the "hybrid_override_pattern" of Nemotron-H (NVIDIA
 * 2025, arXiv 2504.03624), configuration_nemotron_h.py. */
static const letter_kind letters[] = {
    {'M', {.mixer = MS_MIXER_MAMBA, .no_mlp = true}},
    {'*', {.mixer = MS_MIXER_ATTENTION, .no_mlp = true}},
    {'-', {.mixer = MS_MIXER_NONE}},
    {'E', {.mixer = MS_MIXER_NONE, .moe = true}},
};
#define NUM_LETTERS ((int)(sizeof letters / sizeof *letters))
_Static_assert(sizeof letters / sizeof *letters <= MS_MAX_LAYER_KINDS,
               "a model may have all letters");

bool ms_layer_kind_equal(const ms_layer_kind *x, const ms_layer_kind *y)
{
    return x->moe == y->moe && x->no_mlp == y->no_mlp &&
           x->window_tokens == y->window_tokens && x->mixer == y->mixer;
}

bool ms_layer_kind_has_dense_mlp(const ms_layer_kind *kind)
{
    return !kind->moe && !kind->no_mlp;
}

static bool is_single(const ms_layer_kind *kind)
{
    return kind->no_mlp || kind->mixer == MS_MIXER_NONE;
}

bool ms_model_is_hybrid(const ms_model *model)
{
    return is_single(&model->kinds[0]);
}

long ms_mamba_inner(const ms_model *model)
{
    return model->mamba.num_heads * model->mamba.head_dim;
}

long ms_mamba_channels(const ms_model *model)
{
    return ms_mamba_inner(model) + 2 * model->mamba.num_groups * model->mamba.state_size;
}

long ms_mamba_projected(const ms_model *model)
{
    return ms_mamba_inner(model) + ms_mamba_channels(model) + model->mamba.num_heads;
}

long ms_model_mixers(const ms_model *model, ms_mixer mixer)
{
    long count = 0;
    for (long i = 0; i < model->num_layers; i++)
        count += model->kinds[model->kind_of_layer[i]].mixer == mixer;
    return count;
}

/* ---- patterns ---- */

static const letter_kind *find_letter(char letter)
{
    for (int i = 0; i < NUM_LETTERS; i++)
        if (letters[i].letter == letter)
            return &letters[i];
    return NULL;
}

ms_status ms_model_read_hybrid(ms_ctx *cx, ms_jval pattern, ms_model *model)
{
    const char *text = "";
    MS_TRY(ms_json_text(cx, pattern, &text));
    return ms_model_set_hybrid(cx, pattern, text, model);
}

ms_status ms_model_set_hybrid(ms_ctx *cx, ms_jval pattern, const char *text,
                              ms_model *model)
{
    size_t length = strlen(text);
    if (length != (size_t)model->num_layers)
        return ms_json_fail(cx, pattern, "a pattern of %zu letters for %ld layers",
                            length, model->num_layers);
    for (long i = 0; i < model->num_layers; i++) {
        const letter_kind *found = find_letter(text[i]);
        if (found == NULL) {
            ms_status status =
                ms_json_fail(cx, pattern, "letter %ld of the pattern is '%c'", i + 1,
                             text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
            ms_hint(cx, "letters are M (Mamba-2), * (attention), - (MLP) and E (mixture "
                        "of experts)");
            return status;
        }
        ms_model_set_layer(model, i, found->kind);
    }
    return MS_OK;
}

const char *ms_model_hybrid_text(ms_arena *arena, const ms_model *model)
{
    char *text = MS_NEW_ARRAY(arena, model->num_layers + 1, char);
    for (long i = 0; i < model->num_layers; i++) {
        text[i] = '?';
        for (int k = 0; k < NUM_LETTERS; k++)
            if (ms_layer_kind_equal(&letters[k].kind,
                                    &model->kinds[model->kind_of_layer[i]]))
                text[i] = letters[k].letter;
    }
    return text;
}

/* ---- checks ---- */

static ms_status check_mamba(ms_ctx *cx, const ms_model *model, ms_loc loc)
{
    const struct {
        const char *what;
        long value;
    } sizes[] = {
        {"mamba_num_heads", model->mamba.num_heads},
        {"mamba_head_dim", model->mamba.head_dim},
        {"ssm_state_size", model->mamba.state_size},
        {"n_groups", model->mamba.num_groups},
        {"conv_kernel", model->mamba.conv_kernel},
        {"chunk_size", model->mamba.chunk_size},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 1 || sizes[i].value > MS_MAX_MODEL_SIZE)
            return ms_fail(cx, MS_EINPUT, loc, "%s is %ld, must be between 1 and %d",
                           sizes[i].what, sizes[i].value, MS_MAX_MODEL_SIZE);
    if (model->mamba.num_heads % model->mamba.num_groups != 0)
        return ms_fail(cx, MS_EINPUT, loc,
                       "%ld Mamba-2 heads are not divisible by %ld groups",
                       model->mamba.num_heads, model->mamba.num_groups);
    return MS_OK;
}

ms_status ms_model_check_hybrid(ms_ctx *cx, const ms_model *model, ms_loc loc)
{
    bool any_mamba = false, any_single = false;
    for (int k = 0; k < model->num_kinds; k++) {
        any_mamba = any_mamba || model->kinds[k].mixer == MS_MIXER_MAMBA;
        any_single = any_single || is_single(&model->kinds[k]);
    }
    if (any_mamba)
        MS_TRY(check_mamba(cx, model, loc));
    else if (model->mamba.num_heads != 0)
        return ms_fail(cx, MS_EINPUT, loc, "Mamba-2 heads, but no layer uses them");
    if (any_single && model->parallel_block)
        return ms_fail(cx, MS_EINPUT, loc,
                       "attention and MLP cannot be in parallel in layers of their own");
    return MS_OK;
}
