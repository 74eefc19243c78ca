#include "tests/support/dense_einsum.h"

#include <string.h>

#define MAX_LETTERS (MS_EINSUM_MAX_LETTERS + MS_EINSUM_MAX_DIMS)

/* Nested loops over all letters: their indices, and each array's stride per letter. */
typedef struct loop {
    int num_letters;
    char letters[MAX_LETTERS + 1];
    long size[MAX_LETTERS], index[MAX_LETTERS];
    long stride[MS_EINSUM_MAX_INPUTS + 1][MAX_LETTERS]; /* last: strides of the output */
} loop;

static void set_strides(loop *l, int array, const char *letters, const long *size)
{
    long stride = 1;
    for (int i = (int)strlen(letters) - 1; i >= 0; i--) {
        l->stride[array][strchr(l->letters, letters[i]) - l->letters] = stride;
        stride *= size[(unsigned char)letters[i]];
    }
}

static loop make_loop(const ms_einsum *einsum, const long *size)
{
    loop l = {.num_letters = (int)strlen(einsum->letters)};
    memcpy(l.letters, einsum->letters, (size_t)l.num_letters);
    for (const char *c = einsum->output; *c != '\0'; c++)
        if (strchr(l.letters, *c) == NULL)
            l.letters[l.num_letters++] = *c;
    for (int i = 0; i < l.num_letters; i++)
        l.size[i] = size[(unsigned char)l.letters[i]];
    for (int i = 0; i < einsum->num_inputs; i++)
        set_strides(&l, i, einsum->inputs[i], size);
    set_strides(&l, einsum->num_inputs, einsum->output, size);
    return l;
}

static long offset(const loop *l, int array)
{
    long at = 0;
    for (int i = 0; i < l->num_letters; i++)
        at += l->stride[array][i] * l->index[i];
    return at;
}

static bool advance(loop *l)
{
    for (int i = l->num_letters - 1; i >= 0; i--) {
        if (++l->index[i] < l->size[i])
            return true;
        l->index[i] = 0;
    }
    return false;
}

void ms_dense_einsum(const ms_einsum *einsum, const long *size,
                     const double *const *inputs, double *out)
{
    loop l = make_loop(einsum, size);
    long num_out = 1, num_iterations = 1;
    for (const char *c = einsum->output; *c != '\0'; c++)
        num_out *= size[(unsigned char)*c];
    for (int i = 0; i < l.num_letters; i++)
        num_iterations *= l.size[i];
    for (long i = 0; i < num_out; i++)
        out[i] = 0.0;
    if (num_iterations == 0)
        return;
    do {
        double product = 1.0;
        for (int i = 0; i < einsum->num_inputs; i++)
            product *= inputs[i][offset(&l, i)];
        out[offset(&l, einsum->num_inputs)] += product;
    } while (advance(&l));
}
