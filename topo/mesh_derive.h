/* Derived axes of a mesh: mesh axes flattened together, or their innermost part, as
 * layouts in lexicographic order, for names of the mesh zoo only. Source:
 * pytorch/torchtitan torchtitan/distributed/parallel_dims.py. */
#ifndef MS_TOPO_MESH_DERIVE_H
#define MS_TOPO_MESH_DERIVE_H

#include "topo/layout.h"
#include "topo/mesh_zoo.h"

#define MS_MAX_DERIVED 12

typedef struct ms_derived_axis {
    const char *name;
    const char *old_name; /* the axis in older TorchTitan; NULL: none */
    /* axes joined: "dp_shard x cp", or "the innermost 4 of dp_shard x cp" */
    const char *made_of;
    const char *used_for; /* collectives along the axis, as text */
    ms_axis_role role;    /* role of an expert axis; MS_AXIS_OTHER for other axes */
    ms_layout layout;     /* hierarchical: one mode for each mesh axis or part of one */
} ms_derived_axis;

typedef struct ms_derived {
    int num;
    /* TorchTitan's rule for ep: 1 (July 2025), 2 (August 2025), 3 (December 2025), 0:
     * none */
    int ep_generation;
    ms_derived_axis axes[MS_MAX_DERIVED];
} ms_derived;

/* Layout of the axes with roles in `mask` (bit 1 << role), flattened; 1:0 for none. */
ms_layout ms_mesh_layout(ms_ctx *cx, const ms_mesh *mesh, const ms_axis_role *roles,
                         unsigned mask);

/* Derives the axes of a mesh: batch, loss and fsdp from the data-parallel axes, cp and
 * sp; if choices->ep or choices->etp exceeds 1 also ep, efsdp, edp and etp. A mesh with
 * an axis efsdp, ep or etp is one of experts alone: only edp is derived. The
 * generations of the rule for ep differ in where ep takes its ranks:
 *   generation 1 (July 2025, "dp2ep", PR 1324): all of cp and the inner part of
 *   dp_shard; tp remains tensor parallelism inside experts. ep % cp = 0 and
 *   dp_shard * cp % ep = 0.
 *   generation 2 (August 2025, PR 1555): with etp = tp as generation 1; with etp = 1
 *   also tp: ep % (cp * tp) = 0, dp_shard * cp * tp % ep = 0.
 *   generation 3 (December 2025, PR 1660, two meshes): the innermost ranks of
 *   dp_shard x cp x tp, or of dp_shard x cp with etp = tp; only
 *   dp_shard * cp * tp % (ep * etp) = 0, whatever the order of the axes.
 * An axis dp counts as dp_shard, and sp as cp. MS_EINPUT with the violated rule. */
ms_status ms_mesh_derive(ms_ctx *cx, const ms_mesh *mesh, const ms_axis_role *roles,
                         const ms_zoo_choices *choices, ms_derived *out);

#endif
