/* Plans drawn at random from the whole space of a search, for tests of its certificate. */
#ifndef MS_TESTS_SUPPORT_SPACE_PLANS_H
#define MS_TESTS_SUPPORT_SPACE_PLANS_H

#include "base/rng.h"
#include "sim/search/space.h"

typedef struct ms_space_draw {
    const ms_space *space;
    ms_workload *workload;
    int num_meshes;
    ms_mesh_choice *meshes; /* (num_meshes) */
} ms_space_draw;

/* Prepares drawing plans of a space; lists its meshes in the arena. */
ms_space_draw ms_space_draw_open(ms_arena *arena, const ms_space *space,
                                 ms_workload *workload);

/* Draws all choices of a plan that the search tries: a mesh, each choice alike. With
 * `near` only one or two choices of that plan are drawn anew, or its mesh. False: the plan
 * is not in the space, or the framework refuses it. */
bool ms_space_draw_plan(const ms_space_draw *draw, ms_rng *rng, const ms_plan *near,
                        ms_plan *out);

#endif
