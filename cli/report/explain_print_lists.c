/* Prints the lists of an explanation: collectives with their reasons, and tensors. */
#include "base/print.h"
#include "base/wrap.h"
#include "cli/report/explain_print_priv.h"

#include "sim/explain/explain_reason.h"
#include "sim/step/prediction_text.h"

#include <math.h>
#include <string.h>

#define WIDTH 120 /* characters of a line with --wide */

/* ---- wrapped text ---- */

void ms_print_paragraph(FILE *out, const char *text, int indent)
{
    int most = ms_table_most_width() > 0 ? ms_table_most_width() : WIDTH;
    do {
        size_t bytes =
            ms_wrap_bytes(text, (size_t)(most > indent ? most - indent : 1), "");
        ms_print(out, "%*s%.*s\n", indent, "", (int)bytes, text);
        text = ms_wrap_rest(text, bytes);
    } while (*text != '\0');
}

/* ---- collectives ---- */

static bool is_shown(const ms_explanation *e, const ms_explain_view *view,
                     const ms_explain_collective *c)
{
    const char *block = view->block;
    if (block != NULL && strcmp(block, "layer") == 0)
        block = ms_explain_main_block(e)->name;
    return block == NULL || (c->block != NULL && strcmp(c->block, block) == 0);
}

static const char *lowering_text(ms_arena *arena, const ms_traffic_entry *entry)
{
    const char *name = ms_collective_names[entry->collective];
    if (entry->collective == MS_SEND)
        return entry->cause == MS_CAUSE_NODES ? "send, ring" : name;
    if (entry->num_chunks > 1)
        return ms_arena_printf(arena, "%s, %d chunks", name, entry->num_chunks);
    return ms_arena_printf(arena, "%s, %s", name, ms_algorithm_name(entry->algorithm));
}

static void collective_row(ms_table *table, ms_arena *arena, int number,
                           const ms_explanation *e, const ms_explain_collective *c)
{
    const ms_traffic_entry *entry = c->entry;
    ms_table_cells(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s %ld/%ld\t%.3f\t%.0f\t%.*f", number,
                   c->block == NULL ? "-" : c->block, ms_explain_pass(c), c->axis,
                   lowering_text(arena, entry),
                   ms_amount_text(arena, entry->size_bytes / 1e6), c->tier,
                   c->span->per_domain[0], c->span->size, 1e3 * entry->one_s,
                   entry->count, ms_decimals(e->prediction.step_s) + 1, entry->exposed_s);
}

/* Prints on which other ranks listed blocks are; notes if exposed times are unknown. */
static void print_elsewhere(FILE *out, const ms_explanation *e,
                            const ms_explain_view *view)
{
    const char *gap = "", *last = "";
    bool unknown = false;
    for (int i = 0; i < e->num_collectives; i++) {
        const ms_explain_collective *c = &e->collectives[i];
        if (!is_shown(e, view, c))
            continue;
        unknown = unknown || isnan(c->entry->exposed_s);
        if (c->rank == e->rank || strcmp(last, c->block) == 0)
            continue;
        ms_print(out, "%s%s is on rank %d", gap, c->block, c->rank);
        gap = ", ";
        last = c->block;
    }
    if (gap[0] != '\0')
        fputc('\n', out);
    if (unknown) {
        ms_print(out,
                 "exposed parameters and gradients are known of rank %d, which ends the "
                 "step\n",
                 e->prediction.ending_rank);
    }
}

/* A reason for collectives, and the numbers in the printed list of those that have it. */
typedef struct reason {
    const ms_explain_cause *cause;
    const char *numbers;
} reason;

static bool same_cause(const ms_explain_cause *a, const ms_explain_cause *b)
{
    return strcmp(a->pass, b->pass) == 0 && strcmp(a->tensor, b->tensor) == 0 &&
           strcmp(a->change, b->change) == 0 && strcmp(a->why, b->why) == 0;
}

static int add_reason(ms_arena *arena, reason *reasons, int num, int number,
                      const ms_explain_cause *cause)
{
    for (int i = 0; i < num; i++) {
        if (!same_cause(reasons[i].cause, cause))
            continue;
        reasons[i].numbers = ms_arena_printf(arena, "%s,%d", reasons[i].numbers, number);
        return num;
    }
    reasons[num] = (reason){cause, ms_arena_printf(arena, "%d", number)};
    return num + 1;
}

static void print_reasons(FILE *out, ms_arena *arena, const reason *reasons, int num)
{
    for (int i = 0; i < num; i++) {
        const ms_explain_cause *c = reasons[i].cause;
        const char *text =
            ms_arena_printf(arena, "%-3s %-9s %s  %s: %s", reasons[i].numbers, c->pass,
                            c->tensor, c->change, c->why);
        ms_wrap_print(out, text, (size_t)ms_table_most_width(), 4);
    }
}

void ms_print_collectives(FILE *out, ms_arena *arena, const ms_explanation *e,
                          const ms_explain_view *view)
{
    ms_table *table =
        MS_TABLE(arena, "rllllrL3r2rr", "#", "part", "pass", "over", "collective",
                 "size (MB)", "tier, per node", "one (ms)", "a step", "exposed (s)");
    int num_reasons = 0, most = 1;
    for (int i = 0; i < e->num_collectives; i++)
        most += e->collectives[i].num_causes;
    reason *reasons = MS_NEW_ARRAY(arena, most, reason);
    for (int i = 0; i < e->num_collectives; i++) {
        const ms_explain_collective *c = &e->collectives[i];
        if (!is_shown(e, view, c))
            continue;
        collective_row(table, arena, i + 1, e, c);
        for (int k = 0; k < c->num_causes; k++)
            num_reasons = add_reason(arena, reasons, num_reasons, i + 1, &c->causes[k]);
    }
    fputs("\ncollectives of one rank in a step\n", out);
    if (num_reasons == 0) {
        fputs("nothing is sent\n", out);
        return;
    }
    ms_table_print(table, out);
    print_elsewhere(out, e, view);
    fputs("\nwhy they are there\n", out);
    print_reasons(out, arena, reasons, num_reasons);
}

/* ---- tensors ---- */

static const char *letter_name(char letter)
{
    static const struct {
        char letter;
        const char *name;
    } names[] = {{MS_DIM_BATCH, "sequences"},
                 {MS_DIM_SEQUENCE, "tokens"},
                 {MS_DIM_HIDDEN, "hidden"},
                 {MS_DIM_HEADS, "heads"},
                 {MS_DIM_KV_HEADS, "kv heads"},
                 {MS_DIM_HEAD, "head width"},
                 {MS_DIM_VALUE, "value width"},
                 {MS_DIM_FFN, "MLP width"},
                 {MS_DIM_SHARED, "shared-expert width"},
                 {MS_DIM_EXPERT_FFN, "expert width"},
                 {MS_DIM_VOCAB, "vocabulary"},
                 {MS_DIM_EXPERTS, "experts"},
                 {MS_DIM_CHOICES, "experts a token"},
                 {MS_DIM_ROWS, "rows for experts"},
                 {MS_DIM_Q_LORA, "query latent"},
                 {MS_DIM_KV_LORA, "kv latent"},
                 {MS_DIM_ROPE, "rotary key"},
                 {MS_DIM_KV_UP, "key and value"},
                 {MS_DIM_KEYS, "keys"},
                 {MS_DIM_POSITIONS, "positions"},
                 {MS_DIM_MAMBA_PROJECTED, "Mamba-2 projected"},
                 {MS_DIM_MAMBA_CHANNELS, "Mamba-2 channels"},
                 {MS_DIM_MAMBA_INNER, "Mamba-2 width"},
                 {MS_DIM_MAMBA_HEADS, "Mamba-2 heads"},
                 {MS_DIM_MAMBA_TAPS, "taps"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].letter == letter)
            return names[i].name;
    return "column";
}

/* Prints the letters of tensor dims in use, with their sizes over all dp ranks. */
static void print_letters(FILE *out, ms_arena *arena, const ms_program *program)
{
    const char *text = "", *gap = "";
    for (int letter = '1'; letter <= 'z'; letter++) {
        bool used = false;
        for (int t = 0; t < program->num_tensors && !used; t++)
            used = strchr(program->tensors[t].dims, letter) != NULL;
        if (!used)
            continue;
        text = ms_arena_printf(arena, "%s%s%c %.10g %s", text, gap, letter,
                               program->size[letter - '0'], letter_name((char)letter));
        gap = ", ";
    }
    ms_print_paragraph(out, text, 0);
}

/* Cell of column "backward": "kept" for a saved activation; for a weight "P@dp,tp", the
 * axes over which its gradient is a partial sum (elsewhere split like the weight). */
static const char *backward_text(ms_arena *arena, const ms_program *program,
                                 const ms_tensor *tensor)
{
    if (tensor->saved)
        return "kept";
    if (tensor->role != MS_ROLE_WEIGHT || tensor->gradient < 0)
        return "";
    const ms_tensor *gradient = &program->tensors[tensor->gradient];
    const char *text = "";
    for (int axis = 0; axis < MS_MESH_AXES; axis++) {
        if (gradient->at[axis].kind == MS_PARTIAL_SUM &&
            program->mesh_size[gradient->mesh][axis] > 1)
            text = ms_arena_printf(arena, "%s%s%s", text, text[0] == '\0' ? "P@" : ",",
                                   ms_mesh_axis_names[gradient->mesh][axis]);
    }
    return text[0] == '\0' ? "complete" : text;
}

static void tensor_row(ms_table *table, ms_arena *arena, const ms_program *program, int t)
{
    const ms_tensor *tensor = &program->tensors[t];
    ms_table_cells(table, "%s\t%s\t%s\t%s\t%s\t%s", tensor->name,
                   ms_tensor_maker(program, t), tensor->dims,
                   ms_tensor_shape_text(arena, program, t, false),
                   ms_tensor_placement_text(arena, program, t),
                   ms_tensor_shape_text(arena, program, t, true));
    double megabytes = ms_tensor_local_bytes(program, t) / 1e6;
    ms_table_cells(table, "%.*g\t%s", megabytes < 1.0 ? 3 : 4, megabytes,
                   backward_text(arena, program, tensor));
}

static void print_tensors(FILE *out, ms_arena *arena, const ms_explain_block *block)
{
    const ms_program *program = block->program;
    ms_table *table =
        MS_TABLE(arena, "lll1l3Ll2rl", "tensor", "made by", "dims", "global shape",
                 "placement", "on one rank", "MB", "backward");
    for (int t = 0; t < program->num_tensors; t++)
        if (ms_tensor_is_forward(program, &program->tensors[t]))
            tensor_row(table, arena, program, t);
    if (block->held.block == MS_BLOCK_LAYER)
        ms_print(out, "\ntensors of %s, of which there %s %ld, one micro-batch\n",
                 block->name, block->num_layers == 1 ? "is" : "are", block->num_layers);
    else
        ms_print(out, "\ntensors of the %s, one micro-batch\n", block->name);
    print_letters(out, arena, program);
    ms_table_print(table, out);
    fputs(
        "backward: activations kept for it; P@ of a weight: axes over which its gradient "
        "is a partial sum\n",
        out);
}

void ms_print_tensors(FILE *out, ms_arena *arena, const ms_explanation *e,
                      const ms_explain_view *view)
{
    const char *others = "";
    const char *shown = view->block == NULL ? "layer" : view->block;
    for (int i = 0; i < e->num_blocks; i++) {
        if (ms_explain_block_is(e, &e->blocks[i], shown))
            print_tensors(out, arena, &e->blocks[i]);
        else
            others = ms_arena_printf(arena, "%s%s%s", others,
                                     others[0] == '\0' ? "" : ", ", e->blocks[i].name);
    }
    if (others[0] != '\0')
        ms_print(out, "other parts (--part): %s\n", others);
}
