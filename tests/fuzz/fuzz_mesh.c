/* Fuzzes the option --mesh: nothing crashes, and in an accepted mesh the groups of every
 * axis hold each rank once. Deriving further axes (for experts and sharding) from the
 * mesh either fails with an error or gives axes whose groups hold each rank once, too.
 * The first byte of the input chooses the ZeRO stage, ep, etp and the generation of
 * expert axes. */
#include "topo/mesh_derive.h"
#include "topo/mesh_place.h"
#include "topo/mesh_text.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST_RANKS 4096

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void require_partition(ms_ctx *cx, ms_layout layout, long num_ranks)
{
    bool seen[MOST_RANKS] = {false};
    long *ranks;
    require(ms_layout_groups(cx, layout, num_ranks, &ranks) == MS_OK);
    for (long i = 0; i < num_ranks; i++) {
        require(ranks[i] >= 0 && ranks[i] < num_ranks && !seen[ranks[i]]);
        seen[ranks[i]] = true;
    }
}

static void look_at(ms_ctx *cx, const ms_mesh *mesh, uint8_t choice)
{
    ms_axis_role roles[MS_MAX_AXES];
    ms_derived derived;
    ms_zoo_choices choices = {.zero = choice % 4,
                              .ep = 1 + choice / 4 % 8,
                              .etp = choice / 32 % 3,
                              .ep_generation = 1 + choice / 96 % 3};
    for (int i = 0; i < mesh->num_axes; i++)
        require_partition(
            cx,
            ms_layout_make(MS_LEXICOGRAPHIC, mesh->axes[i].size, mesh->axes[i].stride),
            mesh->num_ranks);
    if (ms_mesh_roles(cx, mesh, roles) != MS_OK) {
        require(cx->num_errors > 0);
        return;
    }
    (void)ms_mesh_strategy(cx->arena, mesh, roles, &choices);
    if (ms_mesh_derive(cx, mesh, roles, &choices, &derived) != MS_OK) {
        require(cx->num_errors > 0);
        return;
    }
    for (int i = 0; i < derived.num; i++)
        require_partition(cx, derived.axes[i].layout, mesh->num_ranks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ms_arena *arena = ms_arena_open();
    ms_ctx cx = {.arena = arena};
    ms_mesh mesh;
    uint8_t choice = size > 0 ? data[0] : 0;
    const char *text = ms_arena_strndup(arena, size > 0 ? (const char *)data + 1 : "",
                                        size > 0 ? size - 1 : 0);
    ms_mesh_limits limits = {.num_ranks = choice % 2 == 0 ? 0 : 64,
                             .most_ranks = MOST_RANKS};
    if (ms_mesh_parse(&cx, text, &limits, &mesh) == MS_OK)
        look_at(&cx, &mesh, choice);
    else
        require(cx.num_errors > 0);
    ms_arena_close(arena);
    return 0;
}
