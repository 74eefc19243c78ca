/* The columns of a file of published runs, and the cells of one row. */
#include "sim/runs_priv.h"

#define TEXT(title, member)                                                              \
    {                                                                                    \
        title, MS_CELL_TEXT, offsetof(ms_run_cells, member)                              \
    }
#define COUNT(member)                                                                    \
    {                                                                                    \
#member, MS_CELL_COUNT, offsetof(ms_run_cells, member)                           \
    }
#define POSITIVE(title, member)                                                          \
    {                                                                                    \
        title, MS_CELL_POSITIVE, offsetof(ms_run_cells, member)                          \
    }

static const ms_cell_rule columns[] = {
    TEXT("id", id),
    TEXT("source", source),
    TEXT("date", date),
    TEXT("model", model),
    TEXT("gpu_type", gpu_type),
    TEXT("inter_node_network", network),
    TEXT("vpp_or_schedule", schedule),
    TEXT("recompute", recompute),
    TEXT("precision", precision),
    TEXT("compile_or_fused", compile),
    TEXT("framework", framework),
    COUNT(layers),
    COUNT(hidden),
    COUNT(heads),
    COUNT(kv_heads),
    COUNT(head_dim),
    COUNT(ffn_hidden),
    COUNT(gated_ffn),
    COUNT(vocab),
    COUNT(tied_embeddings),
    COUNT(experts),
    COUNT(top_k),
    COUNT(moe_ffn_hidden),
    COUNT(shared_experts),
    COUNT(seq),
    COUNT(mbs),
    COUNT(gbs_seqs),
    COUNT(gpus),
    COUNT(dp_replicate),
    COUNT(dp_shard),
    COUNT(tp),
    COUNT(sp),
    COUNT(async_tp),
    COUNT(pp),
    COUNT(cp),
    COUNT(ep),
    COUNT(zero_stage),
    POSITIVE("measured_tokens_per_s_per_gpu", tokens_per_s_per_gpu),
    POSITIVE("measured_step_s", step_s),
    POSITIVE("measured_peak_mem_gib", peak_mem_gib),
};

ms_status ms_run_columns_find(ms_ctx *cx, const char *file, const ms_csv_row *header,
                              ms_cell_columns *out)
{
    return ms_cells_find(cx, file, header, columns, sizeof columns / sizeof columns[0],
                         out);
}

const char *ms_run_cells_read(ms_arena *arena, const ms_cell_columns *found,
                              const ms_csv_row *row, ms_run_cells *out)
{
    *out = (ms_run_cells){0};
    const char *fault = ms_cells_read(arena, found, row, out);
    return fault == NULL && out->id == NULL ? "the row has no id" : fault;
}
