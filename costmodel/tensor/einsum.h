/* Einsums, and the rules by which placements pass through them. Every operation that is
 * linear in each of its operands follows the same rules (GSPMD: Xu et al. 2021, arXiv
 * 2105.04663, section 3.2; DTensor: pytorch
 * torch/distributed/tensor/_ops/_einsum_strategy.py): on each mesh axis it is spread in
 * one way, a letter above all, and that one choice says what every operand must be, what
 * the result is, and what the gradients are. */
#ifndef MS_COSTMODEL_TENSOR_EINSUM_H
#define MS_COSTMODEL_TENSOR_EINSUM_H

#include "base/diag.h"
#include "costmodel/tensor/placement.h"

#define MS_EINSUM_MAX_INPUTS 4
#define MS_EINSUM_MAX_DIMS   8 /* letters of one operand */
#define MS_EINSUM_MAX_LETTERS                                                            \
    ((MS_EINSUM_MAX_INPUTS) * (MS_EINSUM_MAX_DIMS)) /* of all operands */

typedef struct ms_einsum {
    int num_inputs;
    char inputs[MS_EINSUM_MAX_INPUTS][MS_EINSUM_MAX_DIMS + 1];
    char output[MS_EINSUM_MAX_DIMS + 1];
    /* each once, in the order in which they appear in the inputs */
    char letters[MS_EINSUM_MAX_LETTERS + 1];
} ms_einsum;

/* Reads "bsh,hf->bsf". Blanks are skipped; letters are a-z and A-Z, each at most once in
 * an operand. Without "->" the output has the letters that appear once, in alphabetical
 * order, capitals first (as numpy.einsum). Errors, with the column: MS_EINPUT for other
 * characters, an ellipsis, an empty operand, a letter twice in one operand (a diagonal)
 * or in the output only, more operands or letters than fit. */
ms_status ms_einsum_parse(ms_ctx *cx, const char *text, ms_einsum *out);
/* "bsh,hf->bsf" */
const char *ms_einsum_text(ms_arena *arena, const ms_einsum *einsum);

typedef enum ms_letter_kind {
    MS_LETTER_BATCH,       /* in every input and the output */
    MS_LETTER_FREE,        /* in some inputs and the output */
    MS_LETTER_CONTRACTION, /* in several inputs, not in the output */
    MS_LETTER_SUMMED       /* in one input, not in the output */
} ms_letter_kind;
extern const char *const ms_letter_kind_names[]; /* "batch" ... */
/* Of a letter that some input has. The letter of a sole input is free when the output has
 * it. */
ms_letter_kind ms_einsum_letter_kind(const ms_einsum *einsum, char letter);

/* The einsum that gives the gradient of one input: its letters and those of the output
 * change places, so that operand `input` is the gradient of the output and the other
 * inputs stay where they are. A letter that was summed is then in the output only: it
 * broadcasts. */
ms_einsum ms_einsum_gradient(const ms_einsum *einsum, int input);

/* ---- how an operation is spread over one mesh axis ---- */

/* Instead of a letter. */
enum {
    MS_WHOLE = 0,   /* every rank does everything */
    MS_LINEAR = '+' /* one operand is a partial sum, and so is the result */
};

/* The rules themselves. `own` is the letter by which the operand or result is split when
 * the operation is spread by `letter`; 0: it lacks the letter. An operand is split by its
 * letter or whole; a result that lacks the letter is a partial sum over it. With the
 * result and operands exchanged the same rule gives gradients, since the gradient of a
 * product is a product. */
static inline ms_placement ms_spread_operand(char own)
{
    return own != 0 ? ms_shard(own) : ms_replicate;
}

static inline ms_placement ms_spread_result(char letter, char own)
{
    if (letter == MS_WHOLE)
        return ms_replicate;
    if (letter != MS_LINEAR && own != 0)
        return ms_shard(own);
    return (ms_placement){.kind = MS_PARTIAL_SUM};
}

typedef struct ms_spread {
    char letter;       /* or MS_WHOLE, MS_LINEAR */
    signed char input; /* MS_LINEAR: the input that is a partial sum */
    int split_factor;  /* of a letter, as in ms_placement */
} ms_spread;

/* What input `input` must be, and what the output then is. */
ms_placement ms_einsum_operand_placement(const ms_einsum *einsum, ms_spread spread,
                                         int input);
ms_placement ms_einsum_output_placement(const ms_einsum *einsum, ms_spread spread);
/* How the gradient of a tensor lies: split as the tensor, whole where that is whole or a
 * partial sum (a change of one summand changes the sum by as much). */
ms_placement ms_gradient_placement(ms_placement forward);
/* The spread of ms_einsum_gradient(einsum, input). Its operands are what they were in
 * forward, and the gradient of the output lies as ms_gradient_placement says. */
ms_spread ms_einsum_gradient_spread(ms_spread spread, int input);

/* Why placements of inputs are not legal together on one axis. */
typedef enum ms_einsum_conflict {
    MS_CONFLICT_NONE,
    MS_CONFLICT_NOT_A_SUM,     /* max, min, avg: only sums pass through a product */
    MS_CONFLICT_TWO_PARTIALS,  /* the sum of products is not the product of sums */
    MS_CONFLICT_PARTIAL_SHARD, /* a partial sum beside an input that is split */
    MS_CONFLICT_STRIDED,       /* one letter, but other pieces of it */
    /* a letter split on one input and whole on another that has it */
    MS_CONFLICT_ONE_SIDED,
    MS_CONFLICT_TWO_LETTERS /* inputs are split by different letters */
} ms_einsum_conflict;
/* One clause for messages: "two inputs are partial sums". */
extern const char *const ms_einsum_conflict_texts[];

/* The spread for which these placements of the inputs are exactly what the rules ask;
 * otherwise the conflict. There is at most one. */
ms_einsum_conflict ms_einsum_spread_of(const ms_einsum *einsum,
                                       const ms_placement *inputs, ms_spread *out);

#endif
