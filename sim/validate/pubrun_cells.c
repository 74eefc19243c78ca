/* Columns of a file of published runs, and the cells of one row. */
#include "sim/validate/pubrun_priv.h"

#include <string.h>
#include <strings.h>

#define TEXT(title, member, missing)                                                     \
    {                                                                                    \
        title, MS_CELL_TEXT, offsetof(ms_pubrun_cells, member), missing                  \
    }
#define COUNT(member, missing)                                                           \
    {                                                                                    \
#member, MS_CELL_COUNT, offsetof(ms_pubrun_cells, member), missing               \
    }
#define OPTIONAL(member)                                                                 \
    {                                                                                    \
#member, MS_CELL_OPTIONAL_COUNT, offsetof(ms_pubrun_cells, member), NULL         \
    }
#define OPTIONAL_TEXT(member)                                                            \
    {                                                                                    \
#member, MS_CELL_OPTIONAL_TEXT, offsetof(ms_pubrun_cells, member), NULL          \
    }
#define POSITIVE(title, member)                                                          \
    {                                                                                    \
        title, MS_CELL_POSITIVE, offsetof(ms_pubrun_cells, member), "not measured"       \
    }

static const ms_cell_rule columns[] = {
    TEXT("id", id, "the line"),
    TEXT("source", source, "\"own runs\""),
    TEXT("date", date, "not known"),
    TEXT("model", model, NULL),
    TEXT("gpu_type", gpu_type, NULL),
    TEXT("inter_node_network", network, "the cluster's"),
    TEXT("vpp_or_schedule", schedule, "the stack's"),
    TEXT("recompute", recompute, "as the stack does by need"),
    TEXT("precision", precision, "bf16"),
    TEXT("compile_or_fused", compile, "the stack's"),
    TEXT("framework", framework, "generic"),
    OPTIONAL_TEXT(status),
    COUNT(layers, "the model's"),
    COUNT(hidden, "the model's"),
    COUNT(heads, "the model's"),
    COUNT(kv_heads, "the model's"),
    COUNT(head_dim, "the model's"),
    COUNT(ffn_hidden, "the model's"),
    COUNT(gated_ffn, "the model's"),
    COUNT(vocab, "the model's"),
    COUNT(tied_embeddings, "the model's"),
    COUNT(experts, "the model's"),
    COUNT(top_k, "the model's"),
    COUNT(moe_ffn_hidden, "the model's"),
    COUNT(shared_experts, "the model's"),
    COUNT(seq, NULL),
    COUNT(mbs, "as the batch and memory allow"),
    COUNT(gbs_seqs, "by step and rate, else as memory allows"),
    COUNT(gpus, NULL),
    OPTIONAL(gpus_per_node),
    OPTIONAL(flash_attention),
    OPTIONAL(lora_rank),
    OPTIONAL(dense_layers),
    OPTIONAL(zero_shard),
    OPTIONAL_TEXT(plan),
    OPTIONAL_TEXT(notes),
    OPTIONAL_TEXT(memory_kind),
    OPTIONAL_TEXT(memory_rank),
    OPTIONAL_TEXT(offload),
    OPTIONAL_TEXT(optimizer),
    COUNT(dp_replicate, "the rest"),
    COUNT(dp_shard, "the rest"),
    COUNT(tp, "1"),
    COUNT(sp, "the stack's"),
    COUNT(async_tp, "the cluster's"),
    COUNT(pp, "1"),
    COUNT(cp, "1"),
    COUNT(ep, "all ranks that divide the experts"),
    COUNT(zero_stage, "the stack's"),
    POSITIVE("measured_tokens_per_s_per_gpu", tokens_per_s_per_gpu),
    POSITIVE("measured_step_s", step_s),
    POSITIVE("measured_peak_mem_gib", peak_mem_gib),
};

ms_status ms_pubrun_cells_open(ms_ctx *cx, const char *file, ms_csv *csv,
                               ms_cell_columns *out)
{
    MS_TRY(
        ms_cells_open(cx, file, csv, columns, sizeof columns / sizeof columns[0], out));
    if (!ms_cells_have(out, "measured_step_s") && !ms_cells_have(out, "status") &&
        !ms_cells_have(out, "measured_tokens_per_s_per_gpu") &&
        !ms_cells_have(out, "measured_peak_mem_gib")) {
        return ms_fail(cx, MS_EINPUT, (ms_loc){.file = file, .line = 1},
                       "no column is a measurement: \"measured_step_s\", "
                       "\"measured_tokens_per_s_per_gpu\" or "
                       "\"measured_peak_mem_gib\"");
    }
    ms_cells_note_missing(cx, file, out);
    return MS_OK;
}

/* Finds a measurement outside the range of any real run: its cell has another unit, or a
 * slip. Returns NULL, or a text that describes it. */
static const char *find_implausible_measurement(ms_arena *arena, const ms_pubrun_cells *c)
{
    const struct {
        const char *name;
        double value, least, most;
    } measured[] = {
        {"measured_tokens_per_s_per_gpu", c->tokens_per_s_per_gpu, 1e-3, 1e8},
        {"measured_step_s", c->step_s, 1e-5, 1e6},
        {"measured_peak_mem_gib", c->peak_mem_gib, 1e-3, 1e5},
    };
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        if (measured[i].value < measured[i].least || measured[i].value > measured[i].most)
            return ms_arena_printf(arena, "%s is %g, must be between %g and %g",
                                   measured[i].name, measured[i].value, measured[i].least,
                                   measured[i].most);
    }
    return NULL;
}

/* Fills in what a row would state if the file had a column for it. */
static void fill_missing(ms_arena *arena, const ms_cell_columns *found, int line,
                         ms_pubrun_cells *cells)
{
    if (!ms_cells_have(found, "id"))
        cells->id = ms_arena_printf(arena, "line %d", line);
    if (!ms_cells_have(found, "source"))
        cells->source = "own runs";
    if (!ms_cells_have(found, "tp"))
        cells->tp = 1;
    if (!ms_cells_have(found, "pp"))
        cells->pp = 1;
}

const char *ms_pubrun_cells_read(ms_arena *arena, const ms_cell_columns *found,
                                 const ms_csv_row *row, ms_pubrun_cells *out)
{
    *out = (ms_pubrun_cells){0};
    const char *words = NULL, *remark = NULL;
    ms_csv_row plain = ms_pubrun_words_read(arena, found, row, &words, &remark);
    const char *fault = ms_cells_read(arena, found, &plain, out);
    fill_missing(arena, found, row->line, out);
    out->words = words;
    if (out->schedule == NULL && remark != NULL)
        out->schedule =
            ms_arena_printf(arena, "%.*s", (int)strcspn(remark + 1, ")"), remark + 1);
    if (fault == NULL && out->id == NULL)
        fault = "the row has no id";
    return fault != NULL ? fault : find_implausible_measurement(arena, out);
}

typedef struct named_cell {
    const char *name;
    long value;
} named_cell;

void ms_pubrun_odd_cells_note(const ms_pubrun_cells *c, ms_pubrun_notes *notes)
{
    const long most_per_node = 64;
    const named_cell yes_or_no[] = {{"gated_ffn", c->gated_ffn},
                                    {"tied_embeddings", c->tied_embeddings},
                                    {"sp", c->sp},
                                    {"async_tp", c->async_tp}};
    const named_cell sizes[] = {{"dp_replicate", c->dp_replicate},
                                {"dp_shard", c->dp_shard},
                                {"cp", c->cp},
                                {"ep", c->ep}};
    if (c->words != NULL)
        ms_pubrun_note(notes, "%s", c->words);
    if (c->status != NULL && strcasecmp(c->status, "finished") != 0 &&
        !ms_pubrun_is_unfinished(c))
        ms_pubrun_note(notes, "status \"%s\" taken as finished",
                       ms_cell_text(notes->arena, c->status));
    for (size_t i = 0; i < sizeof yes_or_no / sizeof *yes_or_no; i++)
        if (yes_or_no[i].value > 1)
            ms_pubrun_note(notes, "%s %ld taken as 1", yes_or_no[i].name,
                           yes_or_no[i].value);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value == 0)
            ms_pubrun_note(notes, "%s 0 taken as 1", sizes[i].name);
    if (c->flash_attention == MS_CELL_UNREAD || c->flash_attention > 1)
        ms_pubrun_note(notes, "flash_attention is neither 0 nor 1 and is passed over");
    if (c->gpus_per_node == MS_CELL_UNREAD || c->gpus_per_node == 0 ||
        c->gpus_per_node > most_per_node)
        ms_pubrun_note(notes, "gpus_per_node is not 1 to %ld and is passed over",
                       most_per_node);
}
