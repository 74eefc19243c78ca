#include "costmodel/einsum_cost.h"

#include <string.h>

/* One kernel of an einsum: a product of two operands, or a pass over one (`right` empty). */
typedef struct step {
    char left[MS_EINSUM_MAX_LETTERS + 1], right[MS_EINSUM_MAX_DIMS + 1];
    char result[MS_EINSUM_MAX_LETTERS + 1];
} step;

#define MAX_STEPS (2 * MS_EINSUM_MAX_INPUTS + 1)

typedef struct steps {
    int num;
    step list[MAX_STEPS];
} steps;

static bool has(const char *letters, char letter)
{
    return strchr(letters, letter) != NULL;
}

/* Some operand from `first` on, or the output, has the letter. */
static bool needed(const ms_einsum *einsum, int first, char letter)
{
    for (int i = first; i < einsum->num_inputs; i++)
        if (has(einsum->inputs[i], letter))
            return true;
    return has(einsum->output, letter);
}

static void append(char *letters, char letter)
{
    size_t length = strlen(letters);
    letters[length] = letter;
    letters[length + 1] = '\0';
}

static void pass_over(steps *all, const char *left, const char *result)
{
    step *s = &all->list[all->num++];
    *s = (step){{0}, {0}, {0}};
    strcpy(s->left, left);
    strcpy(s->result, result);
}

/* Operand `input` without the letters that it alone has and nothing needs. */
static void sum_alone(steps *all, const ms_einsum *einsum, int input, char *kept)
{
    kept[0] = '\0';
    for (const char *c = einsum->inputs[input]; *c != '\0'; c++)
        if (has(einsum->output, *c) ||
            ms_einsum_letter_kind(einsum, *c) == MS_LETTER_CONTRACTION)
            append(kept, *c);
    if (strcmp(kept, einsum->inputs[input]) != 0)
        pass_over(all, einsum->inputs[input], kept);
}

static void multiply(steps *all, const ms_einsum *einsum, int input, char *left)
{
    char right[MS_EINSUM_MAX_DIMS + 1];
    sum_alone(all, einsum, input, right);
    step *s = &all->list[all->num++];
    *s = (step){{0}, {0}, {0}};
    strcpy(s->left, left);
    strcpy(s->right, right);
    for (const char *c = left; *c != '\0'; c++)
        if (needed(einsum, input + 1, *c))
            append(s->result, *c);
    for (const char *c = right; *c != '\0'; c++)
        if (!has(left, *c) && needed(einsum, input + 1, *c))
            append(s->result, *c);
    strcpy(left, s->result);
}

static steps steps_of(const ms_einsum *einsum)
{
    steps all = {.num = 0};
    char left[MS_EINSUM_MAX_LETTERS + 1];
    sum_alone(&all, einsum, 0, left);
    for (int i = 1; i < einsum->num_inputs; i++)
        multiply(&all, einsum, i, left);
    bool broadcasts = strlen(left) != strlen(einsum->output);
    if (broadcasts || (all.num == 0 && einsum->num_inputs == 1))
        pass_over(&all, left, einsum->output);
    return all;
}

double ms_letters_elements(const char *letters, const ms_letter_sizes *sizes)
{
    double elements = 1.0;
    for (; *letters != '\0'; letters++)
        elements *= sizes->of[(unsigned char)*letters];
    return elements;
}

/* A letter of both operands that the result keeps is the batch, one that it drops is contracted. */
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

/* Not a pass over one operand; a factor that is a number scales another. */
static bool is_product(const step *s)
{
    return s->left[0] != '\0' && s->right[0] != '\0';
}

double ms_einsum_flop(const ms_einsum *einsum, const ms_letter_sizes *sizes)
{
    steps all = steps_of(einsum);
    double flop = 0.0;
    for (int i = 0; i < all.num; i++) {
        ms_gemm_shape shape = shape_of(&all.list[i], sizes);
        if (is_product(&all.list[i]))
            flop += 2.0 * shape.batch * shape.m * shape.n * shape.k;
    }
    return flop;
}

double ms_einsum_s(const ms_pricer *pricer, const ms_einsum *einsum,
                   const ms_letter_sizes *sizes, double element_bytes)
{
    steps all = steps_of(einsum);
    double total_s = 0.0;
    for (int i = 0; i < all.num; i++) {
        const step *s = &all.list[i];
        ms_gemm_shape shape = shape_of(s, sizes);
        shape.element_bytes = shape.result_bytes = element_bytes;
        double elements =
            ms_letters_elements(s->left, sizes) + ms_letters_elements(s->result, sizes);
        if (s->right[0] != '\0')
            elements += ms_letters_elements(s->right, sizes);
        if (contracts(s) && shape.batch * shape.m * shape.n * shape.k > 0.0)
            total_s += ms_gemm_s(pricer, shape);
        else if (elements > 0.0)
            total_s += ms_stream_s(pricer, elements * element_bytes);
    }
    return total_s;
}
