#include "costmodel/plan/lora.h"

#include "costmodel/tensor/technique.h"

#include <stddef.h>
#include <string.h>

const char *const ms_lora_base_names[] = {"compute", "nf4", NULL};

static const struct {
    const char *word;
    unsigned char targets;
} words[] = {
    {"attention", MS_LORA_ATTENTION},
    {"mlp", MS_LORA_MLP},
    {"all", MS_LORA_ATTENTION | MS_LORA_MLP},
    {"q", MS_LORA_QUERY},
    {"k", MS_LORA_KEY},
    {"v", MS_LORA_VALUE},
    {"o", MS_LORA_OUTPUT},
    {"gate", MS_LORA_GATE},
    {"up", MS_LORA_UP},
    {"down", MS_LORA_DOWN},
    /* Megatron Bridge */
    {"linear_qkv", MS_LORA_QUERY | MS_LORA_KEY | MS_LORA_VALUE},
    {"linear_proj", MS_LORA_OUTPUT},
    {"linear_fc1", MS_LORA_GATE | MS_LORA_UP},
    {"linear_fc2", MS_LORA_DOWN},
};

static unsigned targets_of(const char *word, size_t length)
{
    static const char suffix[] = "_proj";
    size_t cut = sizeof suffix - 1;
    if (length > cut && memcmp(word + length - cut, suffix, cut) == 0 &&
        memcmp(word, "linear", length < 6 ? length : 6) != 0)
        length -= cut;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].word) == length && memcmp(words[i].word, word, length) == 0)
            return words[i].targets;
    return 0;
}

bool ms_lora_targets_parse(const char *text, unsigned char *targets)
{
    unsigned set;
    if (!ms_word_set_parse(text, targets_of, &set))
        return false;
    *targets = (unsigned char)set;
    return true;
}

/* ---- parameters ---- */

/* Widths of the input and the result of an adapted layer. */
typedef struct adapted {
    ms_lora_target target;
    long in, out;
} adapted;

#define MAX_ADAPTED 7

static int attention_layers(const ms_model *model, adapted out[MAX_ADAPTED])
{
    long h = model->hidden, q = model->num_heads * model->head_dim,
         k = model->num_kv_heads * model->head_dim,
         v = model->num_kv_heads * model->value_head_dim,
         heads = model->num_heads * model->value_head_dim;
    if (model->attention != MS_ATTENTION_MLA) {
        const adapted all[] = {{MS_LORA_QUERY, h, q},
                               {MS_LORA_KEY, h, k},
                               {MS_LORA_VALUE, h, v},
                               {MS_LORA_OUTPUT, heads, h}};
        memcpy(out, all, sizeof all);
        return 4;
    }
    long low = model->mla.q_lora_rank, latent = model->mla.kv_lora_rank,
         up = model->num_heads * (model->mla.nope_head_dim + model->value_head_dim);
    const adapted all[] = {{MS_LORA_QUERY, low > 0 ? h : 0, low},
                           {MS_LORA_QUERY, low > 0 ? low : h, q},
                           {MS_LORA_KEY, h, latent},
                           {MS_LORA_KEY, h, model->mla.rope_head_dim},
                           {MS_LORA_VALUE, latent, up},
                           {MS_LORA_OUTPUT, heads, h}};
    memcpy(out, all, sizeof all);
    return 6;
}

static int mlp_layers(const ms_model *model, adapted out[MAX_ADAPTED])
{
    long h = model->hidden, f = model->ffn_hidden;
    const adapted all[] = {
        {MS_LORA_UP, h, f}, {MS_LORA_DOWN, f, h}, {MS_LORA_GATE, h, f}};
    memcpy(out, all, sizeof all);
    return ms_activation_is_gated(model->activation) ? 3 : 2;
}

static bool has_all(const ms_lora *lora, unsigned targets)
{
    return (lora->targets & targets) == targets;
}

static double widths(const ms_lora *lora, const adapted *layers, int num)
{
    double sum = 0.0;
    for (int i = 0; i < num; i++)
        if (has_all(lora, layers[i].target))
            sum += (double)(layers[i].in + layers[i].out);
    return sum;
}

/* Number of layers of a set that share the A of another one of it. */
static double num_sharers(const ms_lora *lora, unsigned set)
{
    int num = __builtin_popcount(lora->targets & set);
    return num > 0 ? num - 1 : 0;
}

double ms_lora_params(const ms_model *model, const ms_lora *lora, bool joined)
{
    adapted attention[MAX_ADAPTED], mlp[MAX_ADAPTED];
    double per_attention = widths(lora, attention, attention_layers(model, attention)),
           per_mlp = widths(lora, mlp, mlp_layers(model, mlp)), sum = 0.0,
           h = (double)model->hidden;
    if (joined && model->attention != MS_ATTENTION_MLA)
        per_attention -=
            h * num_sharers(lora, MS_LORA_QUERY | MS_LORA_KEY | MS_LORA_VALUE);
    if (joined && ms_activation_is_gated(model->activation))
        per_mlp -= h * num_sharers(lora, MS_LORA_GATE | MS_LORA_UP);
    for (long i = 0; i < model->num_layers; i++) {
        const ms_layer_kind *kind = &model->kinds[model->kind_of_layer[i]];
        if (kind->mixer == MS_MIXER_ATTENTION)
            sum += per_attention;
        if (ms_layer_kind_has_dense_mlp(kind))
            sum += per_mlp;
    }
    return sum * lora->rank;
}
