/* Functions shared by redistribute*.c. */
#ifndef MS_COSTMODEL_RESHARD_REDISTRIBUTE_PRIV_H
#define MS_COSTMODEL_RESHARD_REDISTRIBUTE_PRIV_H

#include "costmodel/reshard/redistribute.h"

/* Limits of the changes of a spec that a search may make. */
typedef struct ms_move_space {
    const ms_redistribute_task *task;
    ms_axis_set movable; /* axes of size > 1 that may change */
    bool leaves_orders;  /* visits also specs whose dims are split in no order of axes */
    /* Restricted search: axes join a dim only as in the target, and uneven parts are
     * never compared (find_all is false). Few specs; the target is always reached, since
     * everything movable can be gathered and cut anew. */
    bool is_plain;
    double *effort_left; /* effort left to the search (MAX_EFFORT); negative: used up */
    ms_arena *scratch;
} ms_move_space;

typedef void ms_move_visitor(void *data, ms_change change, ms_axis_set axes,
                             const ms_spec *to);

/* Calls `visit` with every spec that one change makes of a spec, some more than once. */
void ms_moves_visit(const ms_move_space *space, const ms_spec *from,
                    ms_move_visitor *visit, void *data);

#endif
