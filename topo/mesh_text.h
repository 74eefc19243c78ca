/* Meshes as people write them: "pp=2,dp_shard=4,tp=8", axes outer to inner. */
#ifndef MS_TOPO_MESH_TEXT_H
#define MS_TOPO_MESH_TEXT_H

#include "base/diag.h"
#include "topo/mesh.h"

/* Limits of the number of ranks of a mesh. */
typedef struct ms_mesh_limits {
    long num_ranks;  /* required product of the sizes; 0: not given */
    long most_ranks; /* largest product accepted */
    /* true: the size -1 is refused, since the command has no --gpus */
    bool takes_no_rest;
} ms_mesh_limits;

/* Reads a mesh. Axis names are a letter, then letters, digits, '_' and '-', at most 32,
 * each once; sizes are >= 1, or one is -1: limits->num_ranks divided by the others.
 * MS_EINPUT with the item and a valid example; names live in cx->arena. */
ms_status ms_mesh_parse(ms_ctx *cx, const char *text, const ms_mesh_limits *limits,
                        ms_mesh *out);

/* The axes and sizes of a mesh as text, outer to inner: "pp 2 x dp_shard 4 x tp 8". */
char *ms_mesh_text(ms_arena *arena, const ms_mesh *mesh);

#endif
