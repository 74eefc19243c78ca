/* For tests of readers of published training runs: rows of their CSV files as text. */
#ifndef MS_TESTS_UNIT_RUN_ROWS_H
#define MS_TESTS_UNIT_RUN_ROWS_H

#include "sim/validate/pubrun.h"

#include "tests/test.h"

static const char columns[] =
    "id,source,date,model,layers,hidden,heads,kv_heads,head_dim,ffn_hidden,gated_ffn,"
    "vocab,tied_embeddings,experts,top_k,moe_ffn_hidden,shared_experts,seq,mbs,gbs_seqs,"
    "gpus,gpu_type,inter_node_network,dp_replicate,dp_shard,tp,sp,async_tp,pp,"
    "vpp_or_schedule,cp,ep,zero_stage,recompute,precision,compile_or_fused,framework,"
    "measured_tokens_per_s_per_gpu,measured_step_s,measured_peak_mem_gib\n";

static inline ms_pubruns read_text(ms_ctx *cx, const char *rows)
{
    const char *text = ms_arena_printf(cx->arena, "%s%s", columns, rows);
    ms_pubruns runs;
    ASSERT_OK(ms_pubruns_read(cx, "runs.csv", text, strlen(text), &runs), cx);
    return runs;
}

/* The run read from a text of one row; lives as long as the test. */
static inline const ms_pubrun *row_of(const char *row)
{
    ms_pubruns runs = read_text(test_cx(), row);
    ASSERT_INT(runs.num_runs, 1);
    return &runs.runs[0];
}

static inline void reason_is(const char *row, const char *reason)
{
    ASSERT_TEXT(row_of(row)->reason, reason);
}

#define GPT_ROW(id, gpus, layout)                                                        \
    id ",Test,2024-01,GPT X,8,1024,16,16,64,4096,0,51200,1,,,,,2048,1,16," gpus          \
       ",A100 80GB,," layout "\n"

/* A run on the device and network as a publication names them; precision "" is not
 * stated. */
static inline ms_pubrun device_row(ms_ctx *cx, const char *device, const char *network,
                                   const char *precision)
{
    const char *row = ms_arena_printf(
        cx->arena,
        "a,Test,2024-01,GPT X,8,1024,16,16,64,4096,0,51200,1,,,,,2048,1,16,16,%s,%s,2,,"
        "4,0,,2,1F1B,1,1,1,none,%s,,Megatron-LM,,1.5,\n",
        device, network, precision);
    return read_text(cx, row).runs[0];
}

#endif
