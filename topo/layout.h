/* Layouts: functions from 0..size-1 to integers (ranks), written shape:stride. A mode
 * size:stride is i -> i * stride for i < size; modes in parentheses, which may nest, take
 * one coordinate each and their values are added: ((2,2),3):((24,2),8). In lexicographic
 * order the last mode varies fastest, as in a row-major mesh and PyTorch's _MeshLayout;
 * in co-lexicographic order the first, as in CuTe. Operands have the same order, which
 * the result has too. Sizes are >= 1 and strides >= 0; what does not fit a long is an
 * error. Sources: NVIDIA/cutlass media/docs (01_layout.md, 02_layout_algebra.md); PyTorch
 * torch/distributed/_mesh_layout.py. */
#ifndef MS_TOPO_LAYOUT_H
#define MS_TOPO_LAYOUT_H

#include "base/diag.h"

#include <stdbool.h>

typedef enum ms_layout_order {
    MS_LEXICOGRAPHIC,
    MS_COLEXICOGRAPHIC
} ms_layout_order;

/* The function i -> i * stride for 0 <= i < size. */
typedef struct ms_mode {
    long size, stride;
} ms_mode;

/* A layout, passed by value; its modes are immutable, in their creator's arena. */
typedef struct ms_layout {
    ms_layout_order order;
    int num_modes; /* top-level modes; 0: the layout is a single mode size:stride */
    long size;     /* product of the sizes of all modes */
    long stride;   /* stride of a single mode; 0 otherwise */
    const struct ms_layout *modes;
} ms_layout;

/* ---- making, reading and writing ---- */

/* A single mode size:stride; size * stride must fit a long. */
ms_layout ms_layout_make(ms_layout_order order, long size, long stride);
/* The layout (modes[0],modes[1],...). MS_EINPUT if a value does not fit a long. */
ms_status ms_layout_join(ms_ctx *cx, const ms_layout *modes, int num_modes,
                         ms_layout *out);
/* Reads "(2,(2,2)):(4,(2,1))", blanks allowed. A shape alone, "(2,4)", is compact:
 * strides are products of faster sizes. At most 64 modes, 16 deep. Operations may stand
 * for layouts: A o B, coalesce(A), complement(A,N), divide(A,B), inverse(A) from the
 * right, product(A,B). MS_EINPUT with the column and what was expected. */
ms_status ms_layout_parse(ms_ctx *cx, const char *text, ms_layout_order order,
                          ms_layout *out);
/* The text of a layout, "(2,(2,2)):(4,(2,1))", in the arena. */
const char *ms_layout_text(ms_arena *arena, ms_layout layout);

/* ---- the function ---- */

/* Number of top-level modes: 1 for a single mode. */
int ms_layout_rank(ms_layout layout);
/* The i-th top-level mode, 0 <= i < rank. */
ms_layout ms_layout_mode(ms_layout layout, int i);
/* Nesting depth of the modes: 0 for a single mode, 1 for (4,2):(2,1). */
int ms_layout_depth(ms_layout layout);
/* The largest value plus 1. */
long ms_layout_cosize(ms_layout layout);
/* The value at a linear index, 0 <= index < size. */
long ms_layout_at(ms_layout layout, long index);
/* layout.size values by linear index (_MeshLayout.all_ranks_from_zero). */
long *ms_layout_values(ms_arena *arena, ms_layout layout);
/* Checks that no value occurs twice (_MeshLayout.check_non_overlap). MS_EINPUT: a value
 * does, or modes interlock and reach beyond 2^22, too many values to compare. */
ms_status ms_layout_check_injective(ms_ctx *cx, ms_layout layout);

/* ---- algebra ---- */

/* Equal function with the fewest modes: modes of size 1 go, (s,t):(t d,d) is s t:d. */
ms_layout ms_layout_coalesce(ms_arena *arena, ms_layout layout);

/* Composition a o b: i -> a(b(i)), nested as b. MS_EINPUT if a mode of b reaches beyond
 * a, steps unevenly over sizes of a, or carries from one mode of a to the next. */
ms_status ms_layout_compose(ms_ctx *cx, ms_layout a, ms_layout b, ms_layout *out);
/* Complement of `a` in 0..limit-1 (limit >= 1): the offsets, ascending, by which copies
 * of `a` must be shifted to fill that range; the last copies may reach beyond it.
 * MS_EINPUT unless each stride of `a` is a multiple of the extent of all finer modes. */
ms_status ms_layout_complement(ms_ctx *cx, ms_layout a, long limit, ms_layout *out);
/* Division of `a` into tiles `b` (CuTe logical_divide): a o (b, complement(b, size of
 * a)), in lexicographic order with modes (tiles, tile). MS_EINPUT if undefined. If a =
 * W:1, index (k, i) gives rank i of group k when W ranks are divided into groups `b`. */
ms_status ms_layout_divide(ms_ctx *cx, ms_layout a, ms_layout b, ms_layout *out);
/* Product (CuTe logical_product): copies of the tile `a`, placed as `b` says: (a,
 * complement(a, size of a * cosize of b) o b), `a` fastest. MS_EINPUT if undefined. */
ms_status ms_layout_product(ms_ctx *cx, ms_layout a, ms_layout b, ms_layout *out);
/* Right inverse r of `a`: a(r(i)) = i below r's size. It has a's mode of stride 1, then
 * the one whose stride is where that ends, and so on; 1:0 if there is none. */
ms_layout ms_layout_right_inverse(ms_arena *arena, ms_layout a);

#endif
