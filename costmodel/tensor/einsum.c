#include "costmodel/tensor/einsum.h"

#include <assert.h>
#include <string.h>

const char *const ms_letter_kind_names[] = {"batch", "free", "contraction", "summed",
                                            NULL};

const char *const ms_einsum_conflict_texts[] = {
    [MS_CONFLICT_NONE] = "legal",
    [MS_CONFLICT_NOT_A_SUM] =
        "a partial max, min or avg enters a product before it is reduced",
    [MS_CONFLICT_TWO_PARTIALS] = "two inputs are partial sums, and a product of sums is "
                                 "not the sum of products",
    [MS_CONFLICT_PARTIAL_SHARD] = "a partial sum meets an input that is sharded",
    [MS_CONFLICT_STRIDED] = "a shard meets a strided shard of the same letter: ranks "
                            "hold different pieces of it",
    [MS_CONFLICT_ONE_SIDED] = "a letter is sharded on one input and whole on another",
    [MS_CONFLICT_TWO_LETTERS] = "inputs are sharded by different letters",
};

static const ms_placement partial_sum = {.kind = MS_PARTIAL_SUM};

static bool has(const char *letters, char letter)
{
    return letter != 0 && strchr(letters, letter) != NULL;
}

/* ---- reading ---- */

typedef struct reader {
    ms_ctx *cx;
    const char *text;
    const char *at;
    ms_einsum *out;
} reader;

static ms_status refuse(const reader *r, const char *where, const char *what,
                        const char *hint)
{
    ms_status status =
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "einsum \"%s\", column %ld: %s", r->text,
                (long)(where - r->text) + 1, what);
    ms_hint(r->cx, "%s", hint);
    return status;
}

static void skip_blanks(reader *r)
{
    while (*r->at == ' ' || *r->at == '\t')
        r->at++;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool at_arrow(const reader *r)
{
    return r->at[0] == '-' && r->at[1] == '>';
}

static ms_status refuse_character(const reader *r)
{
    if (*r->at == '.')
        return refuse(r, r->at, "an ellipsis is not taken",
                      "write out all letters of every operand");
    if (*r->at == '-')
        return refuse(r, r->at, "\"-\" without \">\"", "the output follows \"->\"");
    return refuse(r, r->at, "this is no letter", "for example \"bsh,hf->bsf\"");
}

static ms_status read_letters(reader *r, char *letters)
{
    size_t num_letters = 0;
    for (skip_blanks(r); *r->at != '\0' && *r->at != ',' && !at_arrow(r);
         r->at++, skip_blanks(r)) {
        if (!is_letter(*r->at))
            return refuse_character(r);
        if (has(letters, *r->at))
            return refuse(
                r, r->at, "this letter stands twice in one operand",
                "diagonals are not taken: every dim of an operand has its own letter");
        if (num_letters == MS_EINSUM_MAX_DIMS)
            return refuse(r, r->at, "an operand has more than 8 letters",
                          "merge dims that stay together into one letter");
        letters[num_letters++] = *r->at;
    }
    return MS_OK;
}

static void note_letters(ms_einsum *einsum, const char *letters)
{
    size_t num_letters = strlen(einsum->letters);
    for (; *letters != '\0'; letters++)
        if (!has(einsum->letters, *letters))
            einsum->letters[num_letters++] = *letters;
}

static ms_status read_inputs(reader *r)
{
    for (;;) {
        const char *start = r->at;
        if (r->out->num_inputs == MS_EINSUM_MAX_INPUTS)
            return refuse(r, start, "more than 4 operands",
                          "split it into several products");
        char *letters = r->out->inputs[r->out->num_inputs++];
        MS_TRY(read_letters(r, letters));
        if (letters[0] == '\0')
            return refuse(r, start, "an operand without letters",
                          "every operand has at least one letter, as in \"bh->b\"");
        note_letters(r->out, letters);
        if (*r->at != ',')
            return MS_OK;
        r->at++;
    }
}

static int num_holders(const ms_einsum *einsum, char letter)
{
    int num = 0;
    for (int i = 0; i < einsum->num_inputs; i++)
        num += has(einsum->inputs[i], letter);
    return num;
}

/* Makes the output of an einsum without "->": letters that appear once, sorted. */
static ms_status imply_output(const reader *r)
{
    ms_einsum *einsum = r->out;
    size_t num_letters = 0;
    for (int code = 'A'; code <= 'z'; code++) {
        char c = (char)code;
        if (num_holders(einsum, c) != 1)
            continue;
        if (num_letters == MS_EINSUM_MAX_DIMS)
            return refuse(r, r->at, "the implied output has more than 8 letters",
                          "write the output after \"->\"");
        einsum->output[num_letters++] = c;
    }
    return MS_OK;
}

static ms_status read_output(reader *r)
{
    const char *start = r->at;
    MS_TRY(read_letters(r, r->out->output));
    if (*r->at != '\0')
        return refuse(r, r->at, "an einsum has one output",
                      "for example \"bsh,hf->bsf\"");
    for (const char *c = start; c < r->at; c++)
        if (is_letter(*c) && !has(r->out->letters, *c))
            return refuse(r, c, "no input has this letter of the output",
                          "an output takes its letters from the inputs");
    return MS_OK;
}

ms_status ms_einsum_parse(ms_ctx *cx, const char *text, ms_einsum *out)
{
    *out = (ms_einsum){0};
    reader r = {.cx = cx, .text = text, .at = text, .out = out};
    MS_TRY(read_inputs(&r));
    if (*r.at == '\0')
        return imply_output(&r);
    r.at += strlen("->");
    return read_output(&r);
}

const char *ms_einsum_text(ms_arena *arena, const ms_einsum *einsum)
{
    const char *text = einsum->inputs[0];
    for (int i = 1; i < einsum->num_inputs; i++)
        text = ms_arena_printf(arena, "%s,%s", text, einsum->inputs[i]);
    return ms_arena_printf(arena, "%s->%s", text, einsum->output);
}

/* ---- letters ---- */

ms_letter_kind ms_einsum_letter_kind(const ms_einsum *einsum, char letter)
{
    int num = num_holders(einsum, letter);
    if (!has(einsum->output, letter))
        return num > 1 ? MS_LETTER_CONTRACTION : MS_LETTER_SUMMED;
    return num > 1 && num == einsum->num_inputs ? MS_LETTER_BATCH : MS_LETTER_FREE;
}

ms_einsum ms_einsum_gradient(const ms_einsum *einsum, int input)
{
    assert(input >= 0 && input < einsum->num_inputs);
    ms_einsum gradient = *einsum;
    memcpy(gradient.output, einsum->inputs[input], sizeof gradient.output);
    memcpy(gradient.inputs[input], einsum->output, sizeof gradient.output);
    memset(gradient.letters, 0, sizeof gradient.letters);
    for (int i = 0; i < gradient.num_inputs; i++)
        note_letters(&gradient, gradient.inputs[i]);
    return gradient;
}

/* ---- rules ---- */

ms_placement ms_gradient_placement(ms_placement forward)
{
    return forward.kind == MS_SHARD ? forward : ms_replicate;
}

static ms_placement with_factor(ms_placement placement, ms_spread spread)
{
    if (placement.kind == MS_SHARD)
        placement.split_factor = spread.split_factor;
    return placement;
}

static char own_letter(const char *letters, ms_spread spread)
{
    bool by_letter = spread.letter != MS_WHOLE && spread.letter != MS_LINEAR;
    return (char)(by_letter && has(letters, spread.letter) ? spread.letter : 0);
}

ms_placement ms_einsum_operand_placement(const ms_einsum *einsum, ms_spread spread,
                                         int input)
{
    if (spread.letter == MS_LINEAR && spread.input == input)
        return partial_sum;
    return with_factor(ms_spread_operand(own_letter(einsum->inputs[input], spread)),
                       spread);
}

ms_placement ms_einsum_output_placement(const ms_einsum *einsum, ms_spread spread)
{
    return with_factor(
        ms_spread_result(spread.letter, own_letter(einsum->output, spread)), spread);
}

ms_spread ms_einsum_gradient_spread(ms_spread spread, int input)
{
    /* operand `input` is now the output's gradient, which is whole */
    if (spread.letter == MS_LINEAR && spread.input == input)
        return (ms_spread){.letter = MS_WHOLE};
    return spread;
}

/* ---- spreads of given placements ---- */

static ms_einsum_conflict linear_spread(const ms_einsum *einsum,
                                        const ms_placement *inputs, ms_spread *out)
{
    int partial = -1;
    bool sharded = false;
    for (int i = 0; i < einsum->num_inputs; i++) {
        if (inputs[i].kind == MS_PARTIAL_SUM && partial >= 0)
            return MS_CONFLICT_TWO_PARTIALS;
        if (inputs[i].kind == MS_PARTIAL_SUM)
            partial = i;
        sharded = sharded || inputs[i].kind == MS_SHARD;
    }
    if (partial >= 0 && sharded)
        return MS_CONFLICT_PARTIAL_SHARD;
    if (partial >= 0)
        *out = (ms_spread){.letter = MS_LINEAR, .input = (signed char)partial};
    return MS_CONFLICT_NONE;
}

/* The conflict of the first input whose placement differs from what `spread` requires. */
static ms_einsum_conflict letter_conflict(const ms_einsum *einsum,
                                          const ms_placement *inputs, ms_spread spread)
{
    for (int i = 0; i < einsum->num_inputs; i++) {
        if (ms_placement_equal(inputs[i], ms_einsum_operand_placement(einsum, spread, i)))
            continue;
        if (inputs[i].kind == MS_REPLICATE)
            return MS_CONFLICT_ONE_SIDED;
        return inputs[i].dim == spread.letter ? MS_CONFLICT_STRIDED
                                              : MS_CONFLICT_TWO_LETTERS;
    }
    return MS_CONFLICT_NONE;
}

ms_einsum_conflict ms_einsum_spread_of(const ms_einsum *einsum,
                                       const ms_placement *inputs, ms_spread *out)
{
    *out = (ms_spread){.letter = MS_WHOLE};
    for (int i = 0; i < einsum->num_inputs; i++)
        if (ms_placement_is_partial(inputs[i]) && inputs[i].kind != MS_PARTIAL_SUM)
            return MS_CONFLICT_NOT_A_SUM;
    ms_einsum_conflict conflict = linear_spread(einsum, inputs, out);
    if (conflict != MS_CONFLICT_NONE || out->letter == MS_LINEAR)
        return conflict;
    for (int i = 0; i < einsum->num_inputs; i++)
        if (inputs[i].kind == MS_SHARD && out->letter == MS_WHOLE)
            *out = (ms_spread){.letter = inputs[i].dim,
                               .split_factor = inputs[i].split_factor};
    return letter_conflict(einsum, inputs, *out);
}
