/* Shared by the files of the redistribution planner only. */
#ifndef MS_COSTMODEL_RESHARD_REDISTRIBUTE_PRIV_H
#define MS_COSTMODEL_RESHARD_REDISTRIBUTE_PRIV_H

#include "costmodel/reshard/redistribute.h"

/* Which changes may be made. */
typedef struct ms_move_space {
    const ms_redistribute_task *task;
    ms_axis_set movable; /* axes of size > 1 that may change */
    /* Dims may also come to be split in no order of axes on the way. On more than three
     * axes that is a multiple of the specs. */
    bool leaves_orders;
    /* Axes join a dim only as the target has them, and nothing that takes a proof about
     * uneven parts. Few specs, and the target is among them: everything that moves can be
     * gathered and cut anew. */
    bool is_plain;
    double *effort_left; /* changes that may still be tried; below 0: too many */
    ms_arena *scratch;
} ms_move_space;

typedef void ms_move_visitor(void *data, ms_change change, ms_axis_set axes,
                             const ms_spec *to);

/* Calls `visit` with every change that is possible from a spec; one that several ways
 * lead to may come more than once. */
void ms_moves_visit(const ms_move_space *space, const ms_spec *from,
                    ms_move_visitor *visit, void *data);

#endif
