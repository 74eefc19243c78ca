/* Reads specs in both notations (spec.h). */
#include "costmodel/reshard/spec.h"

#include <ctype.h>
#include <string.h>

typedef struct reader {
    ms_ctx *cx;
    const char *text; /* the whole input, shown in messages */
    const char *at;
    const ms_mesh *mesh;
    const ms_global_tensor *tensor;
    ms_spec *out;
    bool named[MS_MAX_AXES]; /* axes whose placement was read already */
} reader;

#define MAX_WORD 64
/* Reports what is wrong with the text of a spec; returns MS_EINPUT. */
#define FAIL(r, format, ...)                                                             \
    ms_fail((r)->cx, MS_EINPUT, MS_NOWHERE, "placement \"%s\": " format, (r)->text,      \
            __VA_ARGS__)

/* ---- characters ---- */

static void skip_blanks(reader *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
}

static bool accept(reader *r, char c)
{
    skip_blanks(r);
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

static ms_status expected(reader *r, const char *what)
{
    skip_blanks(r);
    ms_status status = *r->at == '\0' ? FAIL(r, "expected %s at its end", what)
                                      : FAIL(r, "expected %s at \"%s\"", what, r->at);
    ms_hint(r->cx,
            "write S(b)@dp P@tp with a placement per axis, or P(\"dp\",None) with the "
            "axes of each dim");
    return status;
}

static ms_status want(reader *r, char c)
{
    char what[] = {'\'', c, '\'', '\0'};
    return accept(r, c) ? MS_OK : expected(r, what);
}

/* Reads a word of letters, digits and underscores; false: none, or too long. */
static bool read_word(reader *r, char *word)
{
    int n = 0;
    skip_blanks(r);
    for (; isalnum((unsigned char)*r->at) || *r->at == '_'; r->at++) {
        if (n == MAX_WORD - 1)
            return false;
        word[n++] = *r->at;
    }
    word[n] = '\0';
    return n > 0;
}

/* ---- axes ---- */

static ms_status unknown_axis(reader *r, const char *name)
{
    const char *names[MS_MAX_AXES], *all = "";
    for (int i = 0; i < r->mesh->num_axes; i++) {
        names[i] = r->mesh->axes[i].name;
        all = ms_arena_printf(r->cx->arena, "%s%s%s", all, i == 0 ? "" : ", ", names[i]);
    }
    ms_status status = FAIL(r, "the mesh has no axis \"%s\"", name);
    const char *nearest = ms_nearest(name, names, r->mesh->num_axes);
    if (nearest != NULL)
        ms_hint(r->cx, "did you mean \"%s\"? The axes are %s", nearest, all);
    else
        ms_hint(r->cx, "its axes are %s", all);
    return status;
}

/* Finds an axis by its name, the text [start, end); each axis may be given once. */
static ms_status find_axis(reader *r, const char *start, const char *end, int *axis)
{
    const char *name = ms_arena_strndup(r->cx->arena, start, (size_t)(end - start));
    *axis = ms_mesh_find(r->mesh, name);
    if (*axis < 0)
        return unknown_axis(r, name);
    if (r->named[*axis])
        return FAIL(r, "axis %s is given twice", name);
    r->named[*axis] = true;
    return MS_OK;
}

/* ---- one placement ---- */

static const struct {
    const char *word;
    unsigned char kind;
    bool is_strided;
} placement_words[] = {{"R", MS_REPLICATE, false},
                       {"Replicate", MS_REPLICATE, false},
                       {"S", MS_SHARD, false},
                       {"Shard", MS_SHARD, false},
                       {"SS", MS_SHARD, true},
                       {"StridedShard", MS_SHARD, true},
                       {"_StridedShard", MS_SHARD, true},
                       {"P", MS_PARTIAL_SUM, false},
                       {"Partial", MS_PARTIAL_SUM, false}};
#define NUM_WORDS ((int)(sizeof placement_words / sizeof placement_words[0]))

/* Reads the argument of a placement, named or not: "0", "dim=0". */
static ms_status read_argument(reader *r, char *word, const char *what)
{
    if (!read_word(r, word))
        return expected(r, what);
    if (accept(r, '=') && !read_word(r, word))
        return expected(r, what);
    return MS_OK;
}

/* Value of a word of 1 to 9 digits, otherwise -1. */
static int small_number(const char *word)
{
    int value = 0;
    size_t digits = strspn(word, "0123456789");
    if (digits == 0 || digits > 9 || word[digits] != '\0')
        return -1;
    for (size_t i = 0; i < digits; i++)
        value = value * 10 + (word[i] - '0');
    return value;
}

/* Reads a tensor's dim, given by its letter or position. */
static ms_status read_dim(reader *r, char *letter)
{
    char word[MAX_WORD] = "";
    MS_TRY(read_argument(r, word, "a dim"));
    int position = small_number(word);
    if (word[1] == '\0' && ms_global_tensor_dim(r->tensor, word[0]) >= 0)
        *letter = word[0];
    else if (position >= 0 && position < r->tensor->num_dims)
        *letter = r->tensor->dims[position];
    else
        return FAIL(r, "%s[%s] has no dim %s", r->tensor->name, r->tensor->dims, word);
    return MS_OK;
}

static ms_status read_factor(reader *r, int *factor)
{
    char word[MAX_WORD] = "";
    MS_TRY(want(r, ','));
    MS_TRY(read_argument(r, word, "a split factor"));
    *factor = small_number(word);
    if (*factor < 1)
        return FAIL(r, "\"%s\" is no split factor, a number of pieces", word);
    return MS_OK;
}

static ms_status read_reduction(reader *r, unsigned char *kind)
{
    char word[MAX_WORD] = "";
    if (accept(r, ')'))
        return MS_OK; /* Partial() means a sum */
    MS_TRY(read_argument(r, word, "a reduction"));
    for (int i = 0; i < MS_NUM_PLACEMENTS; i++) {
        if (ms_reduction_names[i] != NULL && strcmp(word, ms_reduction_names[i]) == 0) {
            *kind = (unsigned char)i;
            return want(r, ')');
        }
    }
    return FAIL(r, "no reduction \"%s\": sum, avg, max or min", word);
}

static ms_status read_shard(reader *r, bool is_strided, ms_placement *out)
{
    MS_TRY(want(r, '('));
    MS_TRY(read_dim(r, &out->dim));
    if (is_strided)
        MS_TRY(read_factor(r, &out->split_factor));
    return want(r, ')');
}

static ms_status read_placement(reader *r, ms_placement *out)
{
    char word[MAX_WORD] = "";
    *out = ms_replicate;
    if (!read_word(r, word))
        return expected(r, "a placement");
    int i = 0;
    while (i < NUM_WORDS && strcmp(word, placement_words[i].word) != 0)
        i++;
    if (i == NUM_WORDS) {
        return FAIL(r,
                    "no placement \"%s\": R, S(dim), SS(dim,factor), P "
                    "or P(reduction)",
                    word);
    }
    *out = (ms_placement){.kind = placement_words[i].kind};
    if (out->kind == MS_SHARD)
        return read_shard(r, placement_words[i].is_strided, out);
    if (*r->at != '(')
        return MS_OK;
    r->at++;
    return out->kind == MS_REPLICATE ? want(r, ')') : read_reduction(r, &out->kind);
}

/* ---- mesh-oriented ---- */

/* Reads a list such as "[R, S(0)]": one placement per axis, in the order of the mesh. */
static ms_status read_list(reader *r)
{
    char close = *r->at++ == '[' ? ']' : ')';
    int num_given = 0;
    while (!accept(r, close)) {
        ms_placement at;
        MS_TRY(read_placement(r, &at));
        if (num_given < r->mesh->num_axes)
            r->out->at[num_given] = at;
        num_given++;
        if (accept(r, close))
            break;
        MS_TRY(want(r, ','));
    }
    if (num_given != r->mesh->num_axes)
        return FAIL(r, "%d placements for the %d axes of the mesh", num_given,
                    r->mesh->num_axes);
    return MS_OK;
}

static ms_status read_named(reader *r)
{
    bool first = true;
    do {
        ms_placement at = ms_replicate;
        int axis;
        MS_TRY(read_placement(r, &at));
        skip_blanks(r);
        if (first && *r->at == '\0' && at.kind == MS_REPLICATE)
            return MS_OK; /* "R": replicated on all axes */
        MS_TRY(want(r, '@'));
        const char *start = r->at;
        while (*r->at != '\0' && *r->at != ',' && !isspace((unsigned char)*r->at))
            r->at++;
        MS_TRY(find_axis(r, start, r->at, &axis));
        r->out->at[axis] = at;
        first = false;
        accept(r, ',');
        skip_blanks(r);
    } while (*r->at != '\0');
    return MS_OK;
}

/* ---- tensor-oriented ---- */

static ms_status read_quoted(reader *r, ms_axis_order *order)
{
    skip_blanks(r);
    char quote = *r->at;
    if (quote != '"' && quote != '\'')
        return expected(r, "an axis in quotes");
    const char *start = ++r->at;
    const char *end = strchr(start, quote);
    if (end == NULL)
        return expected(r, "an axis that ends in a quote");
    r->at = end + 1;
    int axis;
    MS_TRY(find_axis(r, start, end, &axis));
    order->axes[order->num_axes++] = axis;
    return MS_OK;
}

/* Reads one entry of a PartitionSpec: None, one axis or a tuple of axes. */
static ms_status read_entry(reader *r, ms_axis_order *order)
{
    *order = (ms_axis_order){0};
    skip_blanks(r);
    if (strncmp(r->at, "None", 4) == 0) {
        r->at += 4;
        return MS_OK;
    }
    if (!accept(r, '('))
        return read_quoted(r, order);
    while (!accept(r, ')')) {
        MS_TRY(read_quoted(r, order));
        if (accept(r, ')'))
            break;
        MS_TRY(want(r, ','));
    }
    return MS_OK;
}

static ms_status read_partition(reader *r)
{
    int dim = 0;
    while (!accept(r, ')')) {
        ms_axis_order order;
        if (dim == r->tensor->num_dims) {
            return FAIL(r, "more entries than the %d dims of %s[%s]", r->tensor->num_dims,
                        r->tensor->name, r->tensor->dims);
        }
        MS_TRY(read_entry(r, &order));
        ms_spec_set_order(r->mesh, r->out, r->tensor->dims[dim++], &order);
        if (accept(r, ')'))
            break;
        MS_TRY(want(r, ','));
    }
    return MS_OK;
}

/* Whether "P(" or "PartitionSpec(" of a PartitionSpec follows (not "P(sum"); skips it. */
static bool begins_partition(reader *r)
{
    static const char *const words[] = {"PartitionSpec", "P"};
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(words[i]);
        if (strncmp(r->at, words[i], length) != 0 || r->at[length] != '(')
            continue;
        const char *next = r->at + length + 1;
        next += strspn(next, " \t");
        bool is_empty = *next == ')' && next[1 + strspn(next + 1, " \t")] != '@';
        if (i == 0 || is_empty || *next == '"' || *next == '\'' || *next == '(' ||
            strncmp(next, "None", 4) == 0) {
            r->at += length + 1;
            return true;
        }
    }
    return false;
}

static ms_status read_any(reader *r)
{
    skip_blanks(r);
    if (begins_partition(r))
        MS_TRY(read_partition(r));
    else if (*r->at == '[' || *r->at == '(')
        MS_TRY(read_list(r));
    else
        MS_TRY(read_named(r));
    skip_blanks(r);
    return *r->at == '\0' ? MS_OK : expected(r, "nothing more");
}

ms_status ms_spec_read(ms_ctx *cx, const char *text, const ms_mesh *mesh,
                       const ms_global_tensor *tensor, ms_spec *out)
{
    *out = (ms_spec){0};
    reader r = {.cx = cx, .text = text, .at = text, .mesh = mesh, .tensor = tensor};
    r.out = out;
    MS_TRY(read_any(&r));
    const char *why;
    if (!ms_spec_check(cx->arena, mesh, tensor, out, &why))
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "placement \"%s\": %s", text, why);
    return MS_OK;
}
