/* Memory figures of published runs: kind and rank of the figure, types of optimizer
 * states, and tensors in host memory. */
#include "sim/validate/pubrun_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *ms_pubrun_set_memory_kind(const ms_pubrun_cells *cells, ms_pubrun *run)
{
    const char *kind = cells->memory_kind, *rank = cells->memory_rank;
    run->memory_rank =
        run->stack->reports_first_rank ? MS_MEMORY_OF_FIRST : MS_MEMORY_OF_WORST;
    if (rank != NULL && strcmp(rank, "first") == 0)
        run->memory_rank = MS_MEMORY_OF_FIRST;
    else if (rank != NULL && strcmp(rank, "last") == 0)
        run->memory_rank = MS_MEMORY_OF_LAST;
    else if (rank != NULL && strcmp(rank, "max") == 0)
        run->memory_rank = MS_MEMORY_OF_WORST;
    else if (rank != NULL)
        return "memory: no rank of that name";
    run->memory_kind = MS_MEMORY_AS_REPORTED;
    for (int i = 0; kind != NULL && i < MS_NUM_MEMORY_KINDS; i++) {
        if (strcmp(kind, ms_memory_kind_names[i]) != 0)
            continue;
        run->memory_kind = (ms_memory_kind)i;
        return NULL;
    }
    return kind == NULL ? NULL : "memory: no kind of that name";
}

static ms_coefficient stated(double value)
{
    return (ms_coefficient){value, MS_SPEC, "as the table row states"};
}

/* Sets the types of optimizer states. AdamW's master copy and moments are in fp32 unless
 * the row says that all states are bf16 (torchtune: parameters, gradients and moments). */
static const char *set_optimizer(const char *text, ms_stack *stack)
{
    if (strstr(text, "adam") == NULL)
        return "optimizer: its states are not known";
    if (strstr(text, "8bit") != NULL)
        return "optimizer: its states are not known";
    if (strstr(text, "bf16") == NULL && strstr(text, "bfloat16") == NULL)
        return NULL;
    stack->param_bytes = stack->grad_bytes = stated(2.0);
    stack->master_bytes = stated(0.0);
    stack->moment_bytes = stated(4.0);
    return NULL;
}

/* Sets what is in host memory: "activations=0.52", "optimizer", "layer_inputs". */
static const char *set_offload(const char *text, ms_plan *plan)
{
    static const char activations[] = "activations=";
    if (strcmp(text, "optimizer") == 0) {
        plan->offload_optimizer = MS_HOST_UPDATE;
        return NULL;
    }
    if (strcmp(text, "layerinputs") == 0 || strcmp(text, "layer_inputs") == 0) {
        plan->offload_layer_inputs = true;
        return NULL;
    }
    if (strncmp(text, activations, sizeof activations - 1) != 0)
        return "offload: not known what";
    char *end;
    double share = strtod(text + sizeof activations - 1, &end);
    if (*end != '\0' || !(share >= 0.0 && share <= 1.0))
        return "offload: no share from 0 to 1";
    plan->offload_activations_frac = share;
    return NULL;
}

bool ms_pubrun_times_offload(const ms_pubrun *run)
{
    return run->plan.offload_optimizer != MS_HOST_UPDATE ||
           (!isnan(run->cluster->host.memory_bytes_per_s) &&
            run->stack->host_update_bytes.value > 0.0);
}

/* Sets the kernels that flags state. */
static void set_libraries(const ms_pubrun_cells *cells, ms_stack *stack)
{
    stack->deterministic = cells->is_deterministic;
    stack->makes_mask = stack->makes_mask || cells->makes_mask;
    if (cells->names_flash_attention)
        stack->attention = MS_ATTENTION_FA2;
    if (cells->lacks_engine)
        stack->engine_workspace_bytes = stack->older_engine_workspace_bytes = stated(0.0);
    if (cells->lacks_grouping)
        stack->engine_streams = stated(0.0);
}

const char *ms_pubrun_set_states(ms_pubrun_store *store, const ms_pubrun_cells *cells,
                                 ms_pubrun_notes *notes, ms_pubrun *run)
{
    const char *flags = ms_plain_text(notes->arena, cells->compile);
    bool chunks_loss = strstr(flags, "chunkedcrossentropy") != NULL;
    bool has_libraries = cells->is_deterministic || cells->lacks_engine ||
                         cells->lacks_grouping || cells->makes_mask ||
                         cells->gathers_tokens || cells->names_flash_attention;
    if (cells->optimizer == NULL && cells->offload == NULL && !cells->fuses_loss &&
        !chunks_loss && !has_libraries)
        return NULL;
    ms_stack changed = *run->stack;
    const char *reason = NULL;
    set_libraries(cells, &changed);
    if (cells->gathers_tokens)
        run->plan.dispatcher = MS_DISPATCH_ALL_GATHER;
    /* Megatron Core's fused_cross_entropy.py: bf16 logits, their fp32 copy less the
     * largest, and its exponentials are alive at once */
    /* torchtune's modules/loss/ce_chunked_output_loss.py: all logits in 16 bits, their
     * gradients too; fp32 copies of an eighth at a time are counted as none */
    if (chunks_loss)
        changed.logit_bytes = changed.sharded_logit_bytes = stated(4.0);
    if (cells->fuses_loss)
        changed.logit_bytes = stated(10.0);
    if (cells->optimizer != NULL)
        reason = set_optimizer(ms_plain_text(notes->arena, cells->optimizer), &changed);
    if (cells->offload != NULL && reason == NULL) {
        reason = set_offload(cells->offload, &run->plan);
        ms_pubrun_note(notes, "%s in host memory%s",
                       ms_cell_text(notes->arena, cells->offload),
                       isnan(run->cluster->host.bytes_per_s)
                           ? ", its copies taken as hidden: the link is not known"
                           : "");
    }
    const char *change = ms_arena_printf(
        notes->arena, "%s/%d/%d/%d/%d/%d/%d/%d",
        cells->optimizer != NULL ? cells->optimizer : "", cells->fuses_loss, chunks_loss,
        cells->is_deterministic, cells->lacks_engine, cells->lacks_grouping,
        cells->makes_mask, cells->names_flash_attention);
    run->stack = ms_pubrun_store_variant(store, run->stack, change, &changed);
    return reason;
}
