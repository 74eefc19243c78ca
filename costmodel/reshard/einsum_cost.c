#include "costmodel/reshard/einsum_cost.h"

#include <string.h>

#define MAX_LETTERS (MS_EINSUM_MAX_LETTERS + 1)

/* One kernel of an einsum: a GEMM of two operands, or a pass over one (`right` empty). */
typedef struct step {
    char left[MAX_LETTERS], right[MAX_LETTERS], result[MAX_LETTERS];
} step;

typedef struct steps {
    int num;
    step list[2 * MS_EINSUM_MAX_INPUTS + 1];
    double flop;
} steps;

/* Operands and products of an einsum that are still to be multiplied. */
typedef struct factors {
    int num;
    char letters[MS_EINSUM_MAX_INPUTS][MAX_LETTERS];
} factors;

static bool has(const char *letters, char letter)
{
    return strchr(letters, letter) != NULL;
}

static void append(char *letters, char letter)
{
    size_t length = strlen(letters);
    letters[length] = letter;
    letters[length + 1] = '\0';
}

static step make_step(const char *left, const char *right, const char *result)
{
    step made = {{0}, {0}, {0}};
    memcpy(made.left, left, strlen(left));
    memcpy(made.right, right, strlen(right));
    memcpy(made.result, result, strlen(result));
    return made;
}

/* Adds a pass that sums operand `input` over letters that no other tensor has. */
static void sum_alone(steps *all, const ms_einsum *einsum, int input, char *kept)
{
    for (const char *c = einsum->inputs[input]; *c != '\0'; c++) {
        bool is_shared = ms_einsum_letter_kind(einsum, *c) == MS_LETTER_CONTRACTION;
        if (is_shared || has(einsum->output, *c))
            append(kept, *c);
    }
    if (strcmp(kept, einsum->inputs[input]) != 0)
        all->list[all->num++] = make_step(einsum->inputs[input], "", kept);
}

/* Appends to `result` the letters of factors i and j that the output or others have. */
static void multiply(const ms_einsum *einsum, const factors *left, int i, int j,
                     char *result)
{
    const char *const both[] = {left->letters[i], left->letters[j]};
    for (int side = 0; side < 2; side++) {
        for (const char *c = both[side]; *c != '\0'; c++) {
            bool is_needed = has(einsum->output, *c);
            for (int k = 0; k < left->num; k++)
                is_needed |= k != i && k != j && has(left->letters[k], *c);
            if (is_needed && !has(result, *c))
                append(result, *c);
        }
    }
}

static double letters_elements(const char *letters, const ms_letter_sizes *sizes)
{
    double elements = 1.0;
    for (; *letters != '\0'; letters++)
        elements *= sizes->of[(unsigned char)*letters];
    return elements;
}

/* FLOP of a product: 2 per combination of indices; 0 for scaling by a scalar. */
static double product_flop(const step *s, const ms_letter_sizes *sizes)
{
    if (s->left[0] == '\0' || s->right[0] == '\0')
        return 0.0;
    double flop = 2.0 * letters_elements(s->left, sizes);
    for (const char *c = s->right; *c != '\0'; c++)
        if (!has(s->left, *c))
            flop *= sizes->of[(unsigned char)*c];
    return flop;
}

/* Finds the order of pairwise products with the fewest FLOP, the first of equal ones. */
static void find_order(const ms_einsum *einsum, const ms_letter_sizes *sizes,
                       const factors *left, const steps *done, steps *best)
{
    if (left->num == 1) {
        if (best->num == 0 || done->flop < best->flop)
            *best = *done;
        return;
    }
    for (int i = 0; i < left->num; i++) {
        for (int j = i + 1; j < left->num; j++) {
            char result[MAX_LETTERS] = {0};
            multiply(einsum, left, i, j, result);
            steps next = *done;
            next.list[next.num] = make_step(left->letters[i], left->letters[j], result);
            next.flop += product_flop(&next.list[next.num++], sizes);
            factors rest = *left;
            memcpy(rest.letters[i], result, sizeof result);
            memcpy(rest.letters[j], rest.letters[--rest.num], sizeof result);
            find_order(einsum, sizes, &rest, &next, best);
        }
    }
}

static steps steps_of(const ms_einsum *einsum, const ms_letter_sizes *sizes)
{
    steps alone = {.num = 0}, all = {.num = 0};
    factors left = {.num = einsum->num_inputs};
    for (int i = 0; i < left.num; i++)
        sum_alone(&alone, einsum, i, left.letters[i]);
    if (left.num == 1)
        all = alone;
    else
        find_order(einsum, sizes, &left, &alone, &all);
    const char *last = all.num > 0 ? all.list[all.num - 1].result : einsum->inputs[0];
    bool broadcasts = strlen(last) != strlen(einsum->output);
    if (broadcasts || all.num == 0)
        all.list[all.num++] = make_step(last, "", einsum->output);
    return all;
}

/* GEMM shape: letters of both operands are batch if in the result, else contracted. */
static ms_gemm_shape shape_of(const step *s, const ms_letter_sizes *sizes)
{
    ms_gemm_shape shape = {.batch = 1.0, .m = 1.0, .n = 1.0, .k = 1.0};
    for (const char *c = s->left; *c != '\0'; c++) {
        double size = sizes->of[(unsigned char)*c];
        if (!has(s->right, *c))
            shape.m *= size;
        else if (has(s->result, *c))
            shape.batch *= size;
        else
            shape.k *= size;
    }
    for (const char *c = s->right; *c != '\0'; c++)
        if (!has(s->left, *c))
            shape.n *= sizes->of[(unsigned char)*c];
    return shape;
}

static bool contracts(const step *s)
{
    for (const char *c = s->left; *c != '\0'; c++)
        if (has(s->right, *c) && !has(s->result, *c))
            return true;
    return false;
}

double ms_einsum_flop(const ms_einsum *einsum, const ms_letter_sizes *sizes)
{
    return steps_of(einsum, sizes).flop;
}

double ms_einsum_s(const ms_pricer *pricer, const ms_einsum *einsum,
                   const ms_letter_sizes *sizes, double element_bytes)
{
    steps all = steps_of(einsum, sizes);
    double total_s = 0.0;
    for (int i = 0; i < all.num; i++) {
        const step *s = &all.list[i];
        ms_gemm_shape shape = shape_of(s, sizes);
        shape.element_bytes = shape.result_bytes = element_bytes;
        double elements =
            letters_elements(s->left, sizes) + letters_elements(s->result, sizes);
        if (s->right[0] != '\0')
            elements += letters_elements(s->right, sizes);
        if (contracts(s) && shape.batch * shape.m * shape.n * shape.k > 0.0)
            total_s += ms_gemm_s(pricer, shape);
        else if (elements > 0.0)
            total_s += ms_stream_s(pricer, elements * element_bytes);
    }
    return total_s;
}
