/* Fuzzes the layout algebra (shapes with strides) with two layouts, one a line: an
 * accepted layout is written and reads back, and no operation on the layouts overflows
 * or leaves the range of its operands. */
#include "topo/layout.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_layout(ms_ctx *cx, ms_layout layout)
{
    const char *text = ms_layout_text(cx->arena, layout);
    ms_layout again;
    require(ms_layout_cosize(layout) >= 1);
    /* a layout of more than 64 modes is not read back: the parser refuses it */
    if (ms_layout_parse(cx, text, layout.order, &again) == MS_OK)
        require(strcmp(ms_layout_text(cx->arena, again), text) == 0);
    ms_layout coalesced = ms_layout_coalesce(cx->arena, layout);
    require(coalesced.size == layout.size);
    require(ms_layout_at(coalesced, layout.size / 2) ==
            ms_layout_at(layout, layout.size / 2));
    ms_layout inverse = ms_layout_right_inverse(cx->arena, layout);
    long last = inverse.size - 1;
    require(ms_layout_at(layout, ms_layout_at(inverse, last)) == last);
}

static void check_pair(ms_ctx *cx, ms_layout a, ms_layout b)
{
    ms_layout got;
    if (ms_layout_compose(cx, a, b, &got) == MS_OK) {
        check_layout(cx, got);
        long index = b.size / 2;
        require(ms_layout_at(got, index) == ms_layout_at(a, ms_layout_at(b, index)));
    }
    if (ms_layout_complement(cx, a, b.size, &got) == MS_OK) {
        check_layout(cx, got);
        require(got.size >= b.size / a.size);
    }
    if (ms_layout_divide(cx, a, b, &got) == MS_OK) {
        check_layout(cx, got);
        require(got.size == a.size);
    }
    if (ms_layout_product(cx, a, b, &got) == MS_OK) {
        check_layout(cx, got);
        require(ms_layout_rank(got) == 2);
    }
}

static void check_texts(const char *first, const char *second, ms_layout_order order)
{
    ms_arena *arena = ms_arena_open();
    ms_ctx cx = {.arena = arena};
    ms_layout a, b;
    if (ms_layout_parse(&cx, first, order, &a) == MS_OK) {
        check_layout(&cx, a);
        ms_layout_check_injective(&cx, a);
        if (ms_layout_parse(&cx, second, order, &b) == MS_OK)
            check_pair(&cx, a, b);
    }
    ms_arena_close(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 2);
    require(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = text[size + 1] = '\0';
    char *second = strchr(text, '\n');
    if (second != NULL)
        *second++ = '\0';
    else
        second = text + size;
    check_texts(text, second, MS_LEXICOGRAPHIC);
    check_texts(text, second, MS_COLEXICOGRAPHIC);
    free(text);
    return 0;
}
