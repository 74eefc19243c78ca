/* Internals of redistribute*.c. */
#ifndef MS_COSTMODEL_RESHARD_REDISTRIBUTE_PRIV_H
#define MS_COSTMODEL_RESHARD_REDISTRIBUTE_PRIV_H

#include "costmodel/reshard/redistribute.h"

/* Limits of the changes that a search may make. */
typedef struct ms_move_space {
    const ms_redistribute_task *task;
    ms_axis_set movable; /* axes of size > 1 that may change */
    bool leaves_orders;  /* visits specs, too, that split dims in no order of axes */
    /* Axes join a dim only as in the target, and uneven parts need no proof: few
     * specs, of which one is the target, since everything movable can be gathered and
     * cut anew. */
    bool is_plain;
    double *effort_left; /* changes still allowed; negative: too many tried */
    ms_arena *scratch;
} ms_move_space;

typedef void ms_move_visitor(void *data, ms_change change, ms_axis_set axes,
                             const ms_spec *to);

/* Calls `visit` with every possible change of a spec, some more than once. */
void ms_moves_visit(const ms_move_space *space, const ms_spec *from,
                    ms_move_visitor *visit, void *data);

#endif
