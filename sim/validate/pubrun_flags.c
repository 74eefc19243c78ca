/* Flags of Megatron-LM that the notes of a table row list: "...; flags: a=1; b=[x y]", and
 * words of its column compile_or_fused. */
#include "costmodel/plan/stack_choices.h"
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

static void take_switch(const char *flag, const char *name, bool *is_on)
{
    const char *value;
    if (has_value(flag, name, &value))
        *is_on = begins(value, "True");
}

/* Takes what a flag says into cells that the row leaves empty. Returns NULL, or why a
 * model with this flag cannot be predicted. */
static const char *take_flag(ms_arena *arena, const char *flag, ms_pubrun_cells *c)
{
    const char *value;
    if (has_value(flag, "attention-backend", &value)) {
        c->names_flash_attention = begins(value, "flash");
        if (c->flash_attention < 0)
            c->flash_attention = begins(value, "unfused") ? 0 : 1;
    }
    if (has_value(flag, "transformer-impl", &value)) {
        /* the implementation without Transformer Engine has no fused attention; its
         * experts may be Transformer Engine's, as a test's name then says */
        bool is_local = begins(value, "local");
        c->flash_attention = is_local ? 0 : c->flash_attention;
        c->lacks_engine =
            is_local && (c->model == NULL || strstr(c->model, "_te_") == NULL);
    }
    if (has_value(flag, "decoder-first-pipeline-num-layers", &value))
        c->first_rank_layers = strtol(value, NULL, 10);
    if (has_value(flag, "decoder-last-pipeline-num-layers", &value))
        c->last_rank_layers = strtol(value, NULL, 10);
    if (has_value(flag, "num-distributed-optimizer-instances", &value))
        c->optimizer_instances = strtol(value, NULL, 10);
    if (has_value(flag, "moe-token-dispatcher-type", &value))
        c->gathers_tokens = begins(value, "allgather");
    take_switch(flag, "cross-entropy-loss-fusion", &c->fuses_loss);
    take_switch(flag, "deterministic-mode", &c->is_deterministic);
    take_switch(flag, "qk-layernorm", &c->qk_norm);
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
    /* Megatron-LM's own tests are named by their layout: "..._etp1_ep4" */
    const char *name = cells->model == NULL ? NULL : strstr(cells->model, "_etp");
    if (name != NULL)
        cells->expert_tensor = strtol(name + strlen("_etp"), NULL, 10);
    const char *at = cells->notes == NULL ? NULL : strstr(cells->notes, "flags: "),
               *reason = NULL;
    if (at == NULL)
        return NULL;
    /* defaults of Megatron-LM's flags; a test's name tells the other choice of the mask */
    cells->lacks_grouping = strstr(at, "moe-grouped-gemm=True") == NULL;
    cells->gathers_tokens = cells->experts > 1;
    cells->makes_mask =
        cells->model == NULL || strstr(cells->model, "no_create_attention_mask") == NULL;
    for (at += strlen("flags: "); *at != '\0' && reason == NULL;) {
        reason = take_flag(arena, at, cells);
        at += strcspn(at, ";");
        at += strspn(at, "; ");
    }
    return reason;
}

void ms_pubrun_set_host(const ms_pubrun_cells *cells, ms_pubrun_notes *notes,
                        ms_pubrun *run)
{
    const ms_stack *stack = run->stack;
    ms_plan *plan = &run->plan;
    const char *text = ms_plain_text(notes->arena, cells->compile);
    ms_compile stated = strstr(text, "torchcompile") != NULL ? MS_COMPILE_REGIONAL
                        : strstr(text, "eager") != NULL      ? MS_COMPILE_NONE
                                                             : MS_COMPILE_OF_STACK;
    plan->compile = stated != stack->compile ? stated : MS_COMPILE_OF_STACK;
    if (strstr(text, "cudagraphs") != NULL && stack->graph_launch_s.value > 0.0)
        plan->cuda_graphs = MS_GRAPHS_LAYERS;
    ms_ctx check_context = {.arena = notes->arena};
    if (ms_plan_check_host(&check_context, plan, stack, run->model) == MS_OK)
        return;
    plan->compile = MS_COMPILE_OF_STACK;
    ms_pubrun_note(notes, "compiled, or not, as stack %s", stack->name);
}
