/* Meshes as people write them: "pp=2,dp_shard=4,tp=8", axes outer to inner. */
#ifndef MS_TOPO_MESH_TEXT_H
#define MS_TOPO_MESH_TEXT_H

#include "base/diag.h"
#include "topo/mesh.h"

/* How many ranks a mesh may have. */
typedef struct ms_mesh_limits {
    long num_ranks; /* the product must be this; 0: not given */
    long most_ranks;
    bool takes_no_rest; /* -1 is no size: the command has no --gpus */
} ms_mesh_limits;

/* Any names are taken: a letter, then letters, digits, '_' and '-', at most 32
 * characters, each once. Sizes are whole numbers from 1; one axis may be -1, the rest of
 * limits->num_ranks. Blanks around names and sizes do not count. Errors: MS_EINPUT with
 * the offending item and what would be right; names live in cx->arena. */
ms_status ms_mesh_parse(ms_ctx *cx, const char *text, const ms_mesh_limits *limits,
                        ms_mesh *out);

/* "pp 2 x dp_shard 4 x tp 8", outer to inner. */
char *ms_mesh_text(ms_arena *arena, const ms_mesh *mesh);

#endif
