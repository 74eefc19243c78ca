/* Reads and writes layouts, and operations on them, as text in the notation of CuTe. */
#include "topo/layout_priv.h"

#include "base/utf8.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <string.h>

/* ---- writing ---- */

static const char *tree_text(ms_arena *arena, ms_layout layout, bool strides)
{
    if (layout.num_modes == 0)
        return ms_arena_printf(arena, "%ld", strides ? layout.stride : layout.size);
    const char *text = "";
    for (int i = 0; i < layout.num_modes; i++)
        text = ms_arena_printf(arena, "%s%c%s", text, i == 0 ? '(' : ',',
                               tree_text(arena, layout.modes[i], strides));
    return ms_arena_printf(arena, "%s)", text);
}

const char *ms_layout_text(ms_arena *arena, ms_layout layout)
{
    return ms_arena_printf(arena, "%s:%s", tree_text(arena, layout, false),
                           tree_text(arena, layout, true));
}

/* ---- reading ---- */

#define MAX_MODES 64
#define MAX_DEPTH 16

typedef struct reader {
    ms_ctx *cx;
    ms_layout_order order;
    const char *text, *at;
    int num_modes;       /* number of modes of the layout that is being read */
    bool is_shape_alone; /* the layout read last has no strides */
} reader;

static char next_char(reader *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
    return *r->at;
}

static ms_status wrong(const reader *r, const char *what)
{
    return ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "column %ld: %s in layout \"%s\"",
                   (long)(r->at - r->text) + 1, what, r->text);
}

static ms_status expected(const reader *r, const char *what)
{
    size_t length = strlen(r->at);
    size_t step = length == 0 ? 0 : ms_utf8_step(r->at, length);
    const char *found = length == 0 ? "the end"
                                    : ms_arena_printf(r->cx->arena, "'%.*s'",
                                                      step == 0 ? 1 : (int)step, r->at);
    return wrong(r, ms_arena_printf(r->cx->arena, "expected %s, found %s", what, found));
}

static ms_status read_char(reader *r, char wanted)
{
    if (next_char(r) != wanted)
        return expected(r, (const char[]){'\'', wanted, '\'', '\0'});
    r->at++;
    return MS_OK;
}

/* Reads a number at r->at, which stays for error messages; *end: behind the number. */
static ms_status read_number(reader *r, const char *what, long *out, const char **end)
{
    long value = 0;
    next_char(r);
    if (!isdigit((unsigned char)*r->at))
        return expected(r, what);
    for (*end = r->at; isdigit((unsigned char)**end); ++*end)
        if (__builtin_mul_overflow(value, 10L, &value) ||
            __builtin_add_overflow(value, (long)(**end - '0'), &value))
            return wrong(r, "number out of range");
    *out = value;
    return MS_OK;
}

static ms_status read_size(reader *r, long *out)
{
    const char *end = r->at;
    MS_TRY(read_number(r, "a size or '('", out, &end));
    if (*out == 0)
        return wrong(r, "a size must be at least 1");
    if (++r->num_modes > MAX_MODES)
        return wrong(r, "more than 64 modes");
    r->at = end;
    return MS_OK;
}

/* Reads a shape: sizes in nested parentheses; the strides follow behind the ':'. */
static ms_status read_shape(reader *r, int depth, ms_layout *out)
{
    *out = (ms_layout){.order = r->order};
    if (next_char(r) != '(')
        return read_size(r, &out->size);
    if (depth == MAX_DEPTH)
        return wrong(r, "parentheses nest deeper than 16");
    ms_layout modes[MAX_MODES + 1];
    do {
        r->at++; /* skips the parenthesis or a comma */
        MS_TRY(read_shape(r, depth + 1, &modes[out->num_modes++]));
    } while (next_char(r) == ',');
    if (*r->at != ')')
        return expected(r, "',' or ')'");
    r->at++;
    ms_layout *kept = MS_NEW_ARRAY(r->cx->arena, out->num_modes, ms_layout);
    memcpy(kept, modes, (size_t)out->num_modes * sizeof *modes);
    out->modes = kept;
    return MS_OK;
}

static ms_status set_stride(const reader *r, ms_layout *mode, long stride)
{
    long extent;
    if (__builtin_mul_overflow(mode->size, stride, &extent))
        return wrong(r, "size times stride out of range");
    mode->stride = stride;
    return MS_OK;
}

static ms_status read_strides(reader *r, ms_layout *layout)
{
    if (layout->num_modes == 0) {
        const char *end = r->at;
        long stride = 0;
        MS_TRY(read_number(r, "a stride, as the shape has a size", &stride, &end));
        MS_TRY(set_stride(r, layout, stride));
        r->at = end;
        return MS_OK;
    }
    assert(layout->modes != NULL);
    ms_layout *modes = MS_NEW_ARRAY(r->cx->arena, layout->num_modes, ms_layout);
    for (int i = 0; i < layout->num_modes; i++) {
        modes[i] = layout->modes[i];
        MS_TRY(read_char(r, i == 0 ? '(' : ','));
        MS_TRY(read_strides(r, &modes[i]));
    }
    MS_TRY(read_char(r, ')'));
    return ms_layout_join(r->cx, modes, layout->num_modes, layout);
}

/* Sets compact strides of a shape: in linear order values are consecutive. */
static ms_status set_compact(const reader *r, ms_layout *layout, long *stride)
{
    if (layout->num_modes == 0) {
        MS_TRY(set_stride(r, layout, *stride));
        *stride *= layout->size;
        return MS_OK;
    }
    int num_modes = layout->num_modes;
    assert(layout->modes != NULL);
    ms_layout *modes = MS_NEW_ARRAY(r->cx->arena, num_modes, ms_layout);
    for (int i = 0; i < num_modes; i++) {
        int place = r->order == MS_LEXICOGRAPHIC ? num_modes - 1 - i : i;
        modes[place] = layout->modes[place];
        MS_TRY(set_compact(r, &modes[place], stride));
    }
    return ms_layout_join(r->cx, modes, num_modes, layout);
}

/* Reads a layout that is no operation; a shape without strides is compact. */
static ms_status read_layout(reader *r, ms_layout *out)
{
    r->num_modes = 0;
    MS_TRY(read_shape(r, 0, out));
    r->is_shape_alone = next_char(r) != ':';
    if (r->is_shape_alone) {
        long stride = 1;
        return set_compact(r, out, &stride);
    }
    r->at++;
    return read_strides(r, out);
}

/* ---- operations ---- */

typedef ms_status layout_operation(ms_ctx *cx, const ms_layout *operands, ms_layout *out);

static ms_status coalesce(ms_ctx *cx, const ms_layout *operands, ms_layout *out)
{
    *out = ms_layout_coalesce(cx->arena, operands[0]);
    return MS_OK;
}

static ms_status complement(ms_ctx *cx, const ms_layout *operands, ms_layout *out)
{
    return ms_layout_complement(cx, operands[0], operands[1].size, out);
}

static ms_status compose(ms_ctx *cx, const ms_layout *operands, ms_layout *out)
{
    return ms_layout_compose(cx, operands[0], operands[1], out);
}

static ms_status divide(ms_ctx *cx, const ms_layout *operands, ms_layout *out)
{
    return ms_layout_divide(cx, operands[0], operands[1], out);
}

static ms_status invert(ms_ctx *cx, const ms_layout *operands, ms_layout *out)
{
    *out = ms_layout_right_inverse(cx->arena, operands[0]);
    return MS_OK;
}

static ms_status multiply(ms_ctx *cx, const ms_layout *operands, ms_layout *out)
{
    return ms_layout_product(cx, operands[0], operands[1], out);
}

static const struct {
    int num_operands;
    layout_operation *apply;
} operations[] = {
    {1, coalesce}, {2, complement}, {2, divide}, {1, invert}, {2, multiply}};
static const char *const operation_names[] = {"coalesce", "complement", "divide",
                                              "inverse", "product"};
#define NUM_OPERATIONS ((int)(sizeof operations / sizeof *operations))

/* Applies an operation; to an error it adds the operation's column in the text. */
static ms_status apply_at(const reader *r, const char *at, const char *name,
                          layout_operation *operation, const ms_layout *operands,
                          ms_layout *out)
{
    ms_status status = operation(r->cx, operands, out);
    if (status != MS_OK)
        ms_hint(r->cx, "column %ld: the %s", (long)(at - r->text) + 1, name);
    return status;
}

static ms_status read_name(reader *r, int *operation)
{
    int length = 0;
    while (isalpha((unsigned char)r->at[length]))
        length++;
    for (*operation = 0; *operation < NUM_OPERATIONS; ++*operation) {
        const char *name = operation_names[*operation];
        if ((int)strlen(name) == length && strncmp(r->at, name, (size_t)length) == 0) {
            r->at += length;
            return MS_OK;
        }
    }
    const char *name = ms_arena_strndup(r->cx->arena, r->at, (size_t)length);
    wrong(r, ms_arena_printf(r->cx->arena, "no operation is called \"%s\"", name));
    const char *nearest = ms_nearest(name, operation_names, NUM_OPERATIONS);
    if (nearest != NULL)
        ms_hint(r->cx, "did you mean \"%s\"?", nearest);
    return MS_EINPUT;
}

static ms_status read_expression(reader *r, int depth, ms_layout *out);

/* Reads a layout, or an operation with its operands in parentheses. */
static ms_status read_term(reader *r, int depth, ms_layout *out)
{
    if (!isalpha((unsigned char)next_char(r)))
        return read_layout(r, out);
    if (depth == MAX_DEPTH)
        return wrong(r, "operations nest deeper than 16");
    const char *at = r->at;
    ms_layout operands[2] = {{0}};
    int operation;
    MS_TRY(read_name(r, &operation));
    for (int i = 0; i < operations[operation].num_operands; i++) {
        MS_TRY(read_char(r, i == 0 ? '(' : ','));
        MS_TRY(read_expression(r, depth + 1, &operands[i]));
    }
    MS_TRY(read_char(r, ')'));
    r->is_shape_alone = false;
    return apply_at(r, at, operation_names[operation], operations[operation].apply,
                    operands, out);
}

static ms_status read_expression(reader *r, int depth, ms_layout *out)
{
    MS_TRY(read_term(r, depth, out));
    while (next_char(r) == 'o') {
        const char *at = r->at++;
        ms_layout operands[] = {*out, {0}};
        MS_TRY(read_term(r, depth, &operands[1]));
        MS_TRY(apply_at(r, at, "composition", compose, operands, out));
    }
    return MS_OK;
}

ms_status ms_layout_parse(ms_ctx *cx, const char *text, ms_layout_order order,
                          ms_layout *out)
{
    reader r = {.cx = cx, .order = order, .text = text, .at = text};
    MS_TRY(read_expression(&r, 0, out));
    if (next_char(&r) == '\0')
        return MS_OK;
    return expected(&r, r.is_shape_alone ? "':'" : "the end");
}
