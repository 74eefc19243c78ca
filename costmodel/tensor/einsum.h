/* Einsums, and the rules by which placements pass through any operation that is linear in
 * each operand (GSPMD: Xu et al. 2021, arXiv 2105.04663, section 3.2; DTensor: pytorch
 * torch/distributed/tensor/_ops/_einsum_strategy.py): on each mesh axis an operation is
 * sharded in one way, mostly by a letter, which determines the placements of operands,
 * result and gradients. No prices of redistributions. */
#ifndef MS_COSTMODEL_TENSOR_EINSUM_H
#define MS_COSTMODEL_TENSOR_EINSUM_H

#include "base/diag.h"
#include "costmodel/tensor/placement.h"

#define MS_EINSUM_MAX_INPUTS 4
#define MS_EINSUM_MAX_DIMS   8 /* most dims (letters) of one operand */
/* most letters of all operands together */
#define MS_EINSUM_MAX_LETTERS ((MS_EINSUM_MAX_INPUTS) * (MS_EINSUM_MAX_DIMS))

typedef struct ms_einsum {
    int num_inputs;
    char inputs[MS_EINSUM_MAX_INPUTS][MS_EINSUM_MAX_DIMS + 1];
    char output[MS_EINSUM_MAX_DIMS + 1];
    char letters[MS_EINSUM_MAX_LETTERS +
                 1]; /* the einsum's letters, each once, in order of appearance */
} ms_einsum;

/* Reads an einsum such as "bsh,hf->bsf". Blanks are skipped; letters are a-z and A-Z,
 * each at most once in an operand. Without "->" the output has the letters that appear
 * once, in alphabetical order, capitals first (as numpy.einsum). Errors, with the column:
 * MS_EINPUT for other characters, an ellipsis, an empty operand, a letter twice in one
 * operand (a diagonal) or in the output only, more operands or letters than fit. */
ms_status ms_einsum_parse(ms_ctx *cx, const char *text, ms_einsum *out);
/* Text of an einsum: "bsh,hf->bsf". */
const char *ms_einsum_text(ms_arena *arena, const ms_einsum *einsum);

typedef enum ms_letter_kind {
    MS_LETTER_BATCH,       /* letter in every input and the output */
    MS_LETTER_FREE,        /* letter in some inputs and the output */
    MS_LETTER_CONTRACTION, /* letter in several inputs, not in the output */
    MS_LETTER_SUMMED       /* letter in one input, not in the output */
} ms_letter_kind;
extern const char *const ms_letter_kind_names[]; /* names of letter kinds: "batch" ... */
/* Kind of a letter in some input; with one input, a letter of the output is free. */
ms_letter_kind ms_einsum_letter_kind(const ms_einsum *einsum, char letter);

/* The einsum that computes the gradient of operand `input`: the letters of `input` and of
 * the output are exchanged, and operand `input` is now the output's gradient; other
 * operands stay. A letter summed in forward is in the result only: it broadcasts. */
ms_einsum ms_einsum_gradient(const ms_einsum *einsum, int input);

/* ---- how an operation is spread over one mesh axis ---- */

/* Values of ms_spread.letter if an einsum is not split by a letter over an axis. */
enum {
    MS_WHOLE = 0,   /* every rank computes the whole einsum */
    MS_LINEAR = '+' /* one operand is a partial sum, and so is the result */
};

/* Placement of an operand (ms_spread_operand) or of the result (ms_spread_result) if an
 * operation is sharded by `letter`; `own`: `letter`, or 0 if the tensor lacks it. Lacking
 * it, operands are whole and the result is a partial sum. For gradients swap the
 * functions. */
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
    char letter;       /* letter that is split, or MS_WHOLE, MS_LINEAR */
    signed char input; /* MS_LINEAR: index of the input that is a partial sum */
    int split_factor;  /* split_factor of the split letter's placements */
} ms_spread;

/* Placement of input `input`, or of the output, under a sharding of the einsum. */
ms_placement ms_einsum_operand_placement(const ms_einsum *einsum, ms_spread spread,
                                         int input);
ms_placement ms_einsum_output_placement(const ms_einsum *einsum, ms_spread spread);
/* Placement of the gradient of a tensor placed as `forward`: the same shard; otherwise
 * whole, also for a partial sum, as the sum changes equally with every summand. */
ms_placement ms_gradient_placement(ms_placement forward);
/* The sharding of ms_einsum_gradient(einsum, input): inputs as in forward, the output's
 * gradient as by ms_gradient_placement. */
ms_spread ms_einsum_gradient_spread(ms_spread spread, int input);

/* Reasons why placements of inputs are not legal together on one axis. */
typedef enum ms_einsum_conflict {
    MS_CONFLICT_NONE,
    MS_CONFLICT_NOT_A_SUM,     /* partial max, min, avg: only sums pass a product */
    MS_CONFLICT_TWO_PARTIALS,  /* two partial sums: their product is no sum over ranks */
    MS_CONFLICT_PARTIAL_SHARD, /* one input is a partial sum, another is split */
    MS_CONFLICT_STRIDED,       /* one letter, cut into different pieces (split_factor) */
    MS_CONFLICT_ONE_SIDED,     /* a letter split on one input and whole on another */
    MS_CONFLICT_TWO_LETTERS    /* inputs are split by different letters */
} ms_einsum_conflict;
/* Clauses for messages, by conflict: "two inputs are partial sums ...". */
extern const char *const ms_einsum_conflict_texts[];

/* Finds the sharding (at most one) that gives exactly these placements of the inputs;
 * returns the conflict if there is none. */
ms_einsum_conflict ms_einsum_spread_of(const ms_einsum *einsum,
                                       const ms_placement *inputs, ms_spread *out);

#endif
