/* Axes that are made of others: several flattened into one, or the innermost part of
 * them. Each is a layout over ranks in lexicographic order. Only axes with names of the
 * zoo derive any. Source: pytorch/torchtitan torchtitan/distributed/parallel_dims.py. */
#ifndef MS_TOPO_MESH_DERIVE_H
#define MS_TOPO_MESH_DERIVE_H

#include "topo/layout.h"
#include "topo/mesh_zoo.h"

#define MS_MAX_DERIVED 12

typedef struct ms_derived_axis {
    const char *name;
    const char *old_name; /* in older versions of TorchTitan; NULL: none */
    /* "dp_shard x cp": names of the mesh, or "the innermost 4 ranks of ..." */
    const char *made_of;
    const char *used_for;
    ms_axis_role role; /* of expert axes; MS_AXIS_OTHER otherwise */
    ms_layout layout;  /* hierarchical: one mode for each axis or part of one */
} ms_derived_axis;

typedef struct ms_derived {
    int num;
    int ep_generation; /* of the axis ep among them, 1..3; 0: none */
    ms_derived_axis axes[MS_MAX_DERIVED];
} ms_derived;

/* The layout of some axes (a mask of roles) flattened, in mesh order; axes of size 1 are
 * left out; 1:1 when none is left. */
ms_layout ms_mesh_layout(ms_ctx *cx, const ms_mesh *mesh, const ms_axis_role *roles,
                         unsigned mask);

/* batch, loss and fsdp from the data-parallel axes, cp and sp; with choices->ep (or etp)
 * larger than 1 also ep, efsdp, edp and etp. A mesh with an axis efsdp, ep or etp is the
 * one of experts alone: it derives edp, and nothing that dense layers use. Where ep takes
 * its ranks:
 *   generation 1 (July 2025, "dp2ep", PR 1324): all of cp and the inner part of dp_shard;
 *   tp stays tensor parallelism inside
 *     experts. ep % cp = 0, dp_shard cp % ep = 0.
 *   generation 2 (August 2025, PR 1555): etp = tp as 1; etp = 1 takes tp too: ep % (cp
 *   tp) = 0, dp_shard cp tp % ep = 0.
 *   generation 3 (December 2025, PR 1660, two meshes): the innermost ranks of dp_shard x
 *   cp x tp, or with etp = tp of
 *     dp_shard x cp; only (dp_shard cp tp) % (ep etp) = 0. Without order among the axes.
 * An axis dp serves as dp_shard, and sp as cp. Errors: MS_EINPUT with the rule that is
 * broken. */
ms_status ms_mesh_derive(ms_ctx *cx, const ms_mesh *mesh, const ms_axis_role *roles,
                         const ms_zoo_choices *choices, ms_derived *out);

#endif
