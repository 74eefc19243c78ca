#include "exec/core/world.h"

#include "sim/simulate/actors.h"

#include <assert.h>
#include <string.h>

/* ---- coordinates ---- */

static long coordinate_on_axis(const ms_mesh *mesh, const char *axis, long rank)
{
    const ms_mesh_axis *a = &mesh->axes[ms_mesh_find(mesh, axis)];
    return rank / a->stride % a->size;
}

/* Coordinates of a rank. Those in MoE layers (efsdp, ep, etp; etp varies fastest) number
 * the dp_shard x cp x tp ranks of one dp_replicate and pp coordinate anew. */
static ms_place place_of(const ms_world *world, const ms_mesh *mesh, long rank)
{
    const ms_plan *plan = world->plan;
    ms_place place = {.rank = rank};
    long *const at[MS_NUM_PLAN_AXES] = {&place.pp, &place.dp_replicate, &place.dp_shard,
                                        &place.cp, &place.tp};
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++)
        *at[i] = coordinate_on_axis(mesh, ms_plan_axis_names[i], rank);
    place.dp = place.dp_replicate * plan->size[MS_DP_SHARD] + place.dp_shard;
    long shared = (place.dp_shard * world->cp + place.cp) * world->tp + place.tp;
    place.etp = shared % world->etp;
    place.ep = shared / world->etp % world->ep;
    place.efsdp = shared / world->etp / world->ep;
    long num_efsdp = world->edp / plan->size[MS_DP_REPLICATE];
    place.edp = place.dp_replicate * num_efsdp + place.efsdp;
    return place;
}

/* ---- groups ---- */

/* Rank number in the order of axes (pp, dp, cp, tp), whatever the plan's order is. */
static long canonical_rank(const ms_world *world, long rank)
{
    const ms_place *p = &world->places[rank];
    return ((p->pp * world->dp + p->dp) * world->cp + p->cp) * world->tp + p->tp;
}

static void sort_members(const ms_world *world, long *ranks, long size)
{
    for (long i = 1; i < size; i++) {
        long rank = ranks[i], at = i;
        for (;
             at > 0 && canonical_rank(world, ranks[at - 1]) > canonical_rank(world, rank);
             at--)
            ranks[at] = ranks[at - 1];
        ranks[at] = rank;
    }
}

static ms_members *members_of(ms_arena *arena, const ms_world *world,
                              const ms_fold_axis *axis)
{
    ms_members *members = MS_NEW_ARRAY(arena, world->num_ranks, ms_members);
    long *all = MS_NEW_ARRAY(arena, world->num_ranks, long);
    memcpy(all, axis->ranks, (size_t)world->num_ranks * sizeof *all);
    for (long g = 0; g < axis->num_groups; g++) {
        long *ranks = all + g * axis->size;
        sort_members(world, ranks, axis->size);
        for (int i = 0; i < (int)axis->size; i++)
            members[ranks[i]] = (ms_members){(int)axis->size, i, ranks};
    }
    return members;
}

ms_world ms_world_make(ms_arena *arena, const ms_plan *plan)
{
    ms_plan_groups groups = ms_plan_groups_of(plan);
    ms_world world = {.plan = plan, .num_ranks = groups.mesh.num_ranks};
    world.dp = ms_plan_data_parallel(plan);
    world.cp = plan->size[MS_CP];
    world.tp = plan->size[MS_TP];
    world.ep = plan->ep;
    world.etp = plan->etp;
    world.edp = world.dp * world.cp * world.tp / (world.ep * world.etp);
    ms_place *places = MS_NEW_ARRAY(arena, world.num_ranks, ms_place);
    for (long rank = 0; rank < world.num_ranks; rank++)
        places[rank] = place_of(&world, &groups.mesh, rank);
    world.places = places;
    for (int i = 0; i < MS_NUM_TRAFFIC_GROUPS; i++) {
        ms_fold_axis axis = ms_group_axis(arena, &groups, i);
        world.members[i] = members_of(arena, &world, &axis);
    }
    return world;
}

ms_traffic_group ms_world_group(const ms_node_comm *comm)
{
    return (ms_traffic_group)ms_node_bill_axis(comm);
}

/* ---- shards of tensors ---- */

static void split_dim(const ms_program *program, const ms_tensor *t, int axis, long at,
                      ms_local *shard)
{
    const char *where = strchr(t->dims, t->at[axis].dim);
    long pieces = program->mesh_size[t->mesh][axis];
    assert(where != NULL && *where != '\0');
    long i = where - t->dims;
    assert(*where == MS_DIM_ROWS || shard->shape[i] % pieces == 0);
    shard->shape[i] /= pieces;
    if (*where != MS_DIM_ROWS && pieces > 1)
        shard->start[i] += shard->shape[i] * at;
}

ms_local ms_world_local(const ms_world *world, const ms_program *program, int tensor,
                        const ms_place *place)
{
    const ms_tensor *t = &program->tensors[tensor];
    const long sizes[2][MS_MESH_AXES] = {{world->dp, world->cp, world->tp},
                                         {world->edp, world->ep, world->etp}};
    const long at[2][MS_MESH_AXES] = {{place->dp, place->cp, place->tp},
                                      {place->edp, place->ep, place->etp}};
    ms_local shard = {.num_dims = (int)strlen(t->dims), .count = 1};
    for (int i = 0; i < shard.num_dims; i++)
        shard.shape[i] = (long)program->size[t->dims[i] - '0'];
    for (int strided = 0; strided < 2; strided++) {
        for (int axis = 0; axis < MS_MESH_AXES; axis++) {
            long pieces = program->mesh_size[t->mesh][axis];
            assert(pieces == 1 || pieces == sizes[t->mesh][axis]);
            if (t->at[axis].kind == MS_SHARD &&
                (t->at[axis].split_factor > 1) == (strided == 1))
                split_dim(program, t, axis, at[t->mesh][axis], &shard);
        }
    }
    for (int i = 0; i < shard.num_dims; i++)
        shard.count *= shard.shape[i];
    shard.bytes = (double)shard.count * t->element_bytes;
    return shard;
}
