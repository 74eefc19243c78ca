/* Layouts: functions from 0..size-1 to integers (ranks), written shape:stride. A mode
 * size:stride is the function i -> i * stride; several modes in parentheses, which may
 * nest, take a coordinate each and add: ((2,2),3):((24,2),8). The order says how a linear
 * index falls into coordinates. Lexicographic: the last mode is fastest, as in a
 * row-major mesh and PyTorch's _MeshLayout. Co-lexicographic: the first is, as in CuTe. A
 * layout carries its order; what an operation returns has that of its operands, which
 * must not mix. Sizes are >= 1, strides >= 0, and every value fits a long: what would not
 * is an error. Sources: NVIDIA/cutlass media/docs (01_layout.md, 02_layout_algebra.md);
 * PyTorch torch/distributed/_mesh_layout.py. */
#ifndef MS_TOPO_LAYOUT_H
#define MS_TOPO_LAYOUT_H

#include "base/diag.h"

#include <stdbool.h>

typedef enum ms_layout_order {
    MS_LEXICOGRAPHIC,
    MS_COLEXICOGRAPHIC
} ms_layout_order;

/* i -> i * stride for i < size. */
typedef struct ms_mode {
    long size, stride;
} ms_mode;

/* A value; the modes are never changed and live in the arena of whoever made them. */
typedef struct ms_layout {
    ms_layout_order order;
    int num_modes; /* 0: a single mode size:stride */
    long size;     /* of all modes together: their product */
    long stride;   /* of a single mode */
    const struct ms_layout *modes;
} ms_layout;

/* ---- making, reading and writing ---- */

/* The single mode size:stride; size * stride fits a long. */
ms_layout ms_layout_make(ms_layout_order order, long size, long stride);
/* (modes[0],modes[1],...): at least one. MS_EINPUT when the size or a value leaves the
 * range of long. */
ms_status ms_layout_join(ms_ctx *cx, const ms_layout *modes, int num_modes,
                         ms_layout *out);
/* Reads "(2,(2,2)):(4,(2,1))", blanks allowed; a shape alone, "(2,4)", is compact:
 * strides are the products of the faster sizes. At most 64 modes, nested at most 16 deep.
 * Operations may stand where a layout does: A o B composes, coalesce(A),
 * complement(A,N) within the size of N, divide(A,B), inverse(A) from the right, and
 * product(A,B). MS_EINPUT with the column of what is wrong. */
ms_status ms_layout_parse(ms_ctx *cx, const char *text, ms_layout_order order,
                          ms_layout *out);
/* A layout in that notation, without blanks. */
const char *ms_layout_text(ms_arena *arena, ms_layout layout);

/* ---- the function ---- */

/* Number of top-level modes: 1 for a single mode. */
int ms_layout_rank(ms_layout layout);
/* The i-th top-level mode, 0 <= i < rank. */
ms_layout ms_layout_mode(ms_layout layout, int i);
/* How deep modes nest: 0 for a single mode, 1 for (4,2):(2,1). */
int ms_layout_depth(ms_layout layout);
/* One more than the largest value. */
long ms_layout_cosize(ms_layout layout);
/* The value at a linear index, 0 <= index < size. */
long ms_layout_at(ms_layout layout, long index);
/* All values, by linear index (_MeshLayout.all_ranks_from_zero). The caller has seen that
 * the size is no burden. */
long *ms_layout_values(ms_arena *arena, ms_layout layout);
/* No value occurs twice (_MeshLayout.check_non_overlap): exact. MS_EINPUT with a value
 * that does; or when modes interlock such that only a look at all values could tell, and
 * they reach beyond 2^22. */
ms_status ms_layout_check_injective(ms_ctx *cx, ms_layout layout);

/* ---- algebra ---- */

/* The same function of the linear index with fewest modes: those of size 1 are dropped,
 * (s,t):(t d,d) becomes s t:d. */
ms_layout ms_layout_coalesce(ms_arena *arena, ms_layout layout);

/* a o b: i -> a(b(i)), in the form of b, each of whose modes becomes one or several.
 * MS_EINPUT unless every mode of b steps through the sizes of a evenly, and no
 * coordinates of b carry from one mode of a into the next or leave a. */
ms_status ms_layout_compose(ms_ctx *cx, ms_layout a, ms_layout b, ms_layout *out);
/* What `a` leaves out of 0..limit-1: the ascending offsets at which copies of `a` fill
 * the range and meet nowhere. Where the extent of `a` does not divide the limit, the last
 * copies reach beyond it. MS_EINPUT unless each mode of `a` begins at a multiple of where
 * the finer ones end. limit >= 1. */
ms_status ms_layout_complement(ms_ctx *cx, ms_layout a, long limit, ms_layout *out);
/* logical_divide: `a` in tiles `b`, a o (b, complement(b, size of a)). Two modes, the
 * tile the faster one: in lexicographic order (tiles, tile). MS_EINPUT where either
 * operation is, and when tiles do not fill `a`. With `a` = W:1 these are the groups of
 * `b` in a world of W ranks: rank i of group k stands at (k, i). */
ms_status ms_layout_divide(ms_ctx *cx, ms_layout a, ms_layout b, ms_layout *out);
/* logical_product: copies of the tile `a`, placed as `b` says among the tiles of a range:
 * (a, complement(a, size of a * cosize of b) o b). Two modes, the tile the faster one. */
ms_status ms_layout_product(ms_ctx *cx, ms_layout a, ms_layout b, ms_layout *out);
/* A layout r with a(r(i)) = i, over the modes of `a` that continue each other from stride
 * 1 on; 1:0 when there are none. */
ms_layout ms_layout_right_inverse(ms_arena *arena, ms_layout a);

#endif
