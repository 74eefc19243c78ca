/* Flags of Megatron-LM that the notes of a table row list: "...; flags: a=1; b=[x y]". */
#include "sim/validate/pubrun_priv.h"

#include <stdlib.h>
#include <string.h>

static bool has_value(const char *flag, const char *name, const char **value)
{
    size_t length = strlen(name);
    *value = flag + length + 1;
    return strncmp(flag, name, length) == 0 && flag[length] == '=';
}

static bool begins(const char *value, const char *word)
{
    return strncmp(value, word, strlen(word)) == 0;
}

/* Takes what a flag says into cells that the row leaves empty. Returns NULL, or why a
 * model with this flag cannot be predicted. */
static const char *take_flag(ms_arena *arena, const char *flag, ms_pubrun_cells *c)
{
    const char *value;
    if (has_value(flag, "attention-backend", &value) && c->flash_attention < 0)
        c->flash_attention = begins(value, "unfused") ? 0 : 1;
    /* the implementation without Transformer Engine has no fused attention */
    if (has_value(flag, "transformer-impl", &value) && begins(value, "local"))
        c->flash_attention = 0;
    if (has_value(flag, "decoder-first-pipeline-num-layers", &value))
        c->first_rank_layers = strtol(value, NULL, 10);
    if (has_value(flag, "decoder-last-pipeline-num-layers", &value))
        c->last_rank_layers = strtol(value, NULL, 10);
    if (has_value(flag, "num-distributed-optimizer-instances", &value))
        c->optimizer_instances = strtol(value, NULL, 10);
    if (has_value(flag, "cross-entropy-loss-fusion", &value))
        c->fuses_loss = begins(value, "True");
    if (has_value(flag, "recompute-modules", &value))
        c->recompute_modules =
            ms_arena_printf(arena, "%.*s", (int)strcspn(value, ";"), value);
    if (has_value(flag, "optimizer", &value) && c->optimizer == NULL)
        c->optimizer = ms_arena_printf(arena, "%.*s", (int)strcspn(value, ";"), value);
    if (has_value(flag, "multi-latent-attention", &value) && begins(value, "True"))
        return "model: latent attention whose ranks are not stated";
    if (has_value(flag, "hybrid-layer-pattern", &value))
        return "model: hybrid layers that are not stated";
    if (has_value(flag, "fine-grained-activation-offloading", &value))
        return "offload: its share is not stated";
    return NULL;
}

const char *ms_pubrun_take_flags(ms_arena *arena, ms_pubrun_cells *cells)
{
    /* Megatron-Kwai's balanced recomputation, in the words of its rows */
    if (cells->recompute == NULL && cells->notes != NULL &&
        strstr(cells->notes, "recompute of MLP activation function and norms only")) {
        cells->recompute = "selective";
        cells->recompute_modules = "norms,activations";
    }
    const char *at = cells->notes == NULL ? NULL : strstr(cells->notes, "flags: "),
               *reason = NULL;
    if (at == NULL)
        return NULL;
    for (at += strlen("flags: "); *at != '\0' && reason == NULL;) {
        reason = take_flag(arena, at, cells);
        at += strcspn(at, ";");
        at += strspn(at, "; ");
    }
    return reason;
}
