/* Fuzzes cells of published runs: each line "column=text" of the input replaces a cell
 * of a good row; an empty line begins the next row, other lines are ignored. No crash,
 * and every row gets a legal plan with a price, or a reason for having none. */
#include "sim/validate/pubrun.h"
#include "sim/validate/pubrun_prices.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NUM_COLUMNS 42

static const char *const good_row[NUM_COLUMNS][2] = {
    {"id", "r"},
    {"source", "S"},
    {"date", "2025-03"},
    {"model", "M"},
    {"gpu_type", "H100 SXM 80GB"},
    {"inter_node_network", ""},
    {"vpp_or_schedule", ""},
    {"recompute", ""},
    {"precision", "bf16"},
    {"compile_or_fused", ""},
    {"framework", "Megatron-LM"},
    {"layers", "8"},
    {"hidden", "1024"},
    {"heads", "16"},
    {"kv_heads", ""},
    {"head_dim", ""},
    {"ffn_hidden", "4096"},
    {"gated_ffn", ""},
    {"vocab", "1000"},
    {"tied_embeddings", ""},
    {"experts", ""},
    {"top_k", ""},
    {"moe_ffn_hidden", ""},
    {"shared_experts", ""},
    {"seq", "2048"},
    {"mbs", "1"},
    {"gbs_seqs", "16"},
    {"gpus", "8"},
    {"gpus_per_node", ""},
    {"flash_attention", ""},
    {"dp_replicate", ""},
    {"dp_shard", ""},
    {"tp", ""},
    {"sp", ""},
    {"async_tp", ""},
    {"pp", ""},
    {"cp", ""},
    {"ep", ""},
    {"zero_stage", ""},
    {"measured_tokens_per_s_per_gpu", ""},
    {"measured_step_s", "1"},
    {"measured_peak_mem_gib", "10"},
};

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* A piece of the fuzzer's input, not zero-ended. */
typedef struct piece {
    const char *text;
    size_t length;
} piece;

static void set_cell(piece *cells, piece line)
{
    for (int i = 0; i < NUM_COLUMNS; i++) {
        size_t length = strlen(good_row[i][0]);
        if (line.length > length && line.text[length] == '=' &&
            memcmp(line.text, good_row[i][0], length) == 0)
            cells[i] = (piece){line.text + length + 1, line.length - length - 1};
    }
}

static void write_row(FILE *out, piece *cells)
{
    for (int i = 0; i < NUM_COLUMNS; i++) {
        fputs(i > 0 ? ",\"" : "\"", out);
        for (size_t j = 0; j < cells[i].length; j++) {
            if (cells[i].text[j] == '"')
                fputc('"', out);
            fputc(cells[i].text[j], out);
        }
        fputc('"', out);
        cells[i] = (piece){good_row[i][1], strlen(good_row[i][1])};
    }
    fputc('\n', out);
}

static void write_table(FILE *out, const char *data, size_t size)
{
    piece cells[NUM_COLUMNS];
    for (int i = 0; i < NUM_COLUMNS; i++) {
        cells[i] = (piece){good_row[i][1], strlen(good_row[i][1])};
        fprintf(out, "%s%s", i > 0 ? "," : "", good_row[i][0]);
    }
    fputc('\n', out);
    for (size_t at = 0; at < size;) {
        const char *end = memchr(data + at, '\n', size - at);
        size_t length = end == NULL ? size - at : (size_t)(end - data) - at;
        if (length == 0)
            write_row(out, cells);
        set_cell(cells, (piece){data + at, length});
        at += length + 1;
    }
    write_row(out, cells);
}

static void check(ms_arena *arena, ms_pubrun_prices *prices, ms_pubrun *run)
{
    require(run->fault == NULL || run->reason != NULL);
    if (run->reason != NULL)
        return;
    require(ms_plan_refusal(&run->plan, run->model) == MS_LEGAL);
    ms_pubrun_score score;
    ms_pubrun_fill_batch(arena, prices, run);
    require(ms_plan_refusal(&run->plan, run->model) == MS_LEGAL);
    if (ms_pubrun_price(prices, run, &score) == MS_OK)
        require(!score.priced || (isfinite(score.step_s) && score.step_s > 0.0 &&
                                  isfinite(score.peak_bytes) && score.peak_bytes > 0.0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *table = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&table, &length);
    require(out != NULL);
    write_table(out, (const char *)data, size);
    fclose(out);
    ms_arena *arena = ms_arena_open();
    ms_ctx cx = {.arena = arena};
    ms_pubruns runs;
    ms_pubrun_prices *prices = ms_pubrun_prices_open();
    require(ms_pubruns_read(&cx, "fuzz", table, length, &runs) == MS_OK);
    for (int i = 0; i < runs.num_runs; i++)
        check(arena, prices, &runs.runs[i]);
    ms_pubrun_prices_close(prices);
    ms_arena_close(arena);
    free(table);
    return 0;
}
