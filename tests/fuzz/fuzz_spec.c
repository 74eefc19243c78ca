/* Fuzzes texts of tensor placements (sharding over mesh axes) in both notations: an
 * accepted placement is valid, reads back from both notations as the same, gives every
 * rank a part of the right size, and can be redistributed to replicas. */
#include "costmodel/reshard/redistribute.h"
#include "tests/support/pytorch_prices.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_parts(ms_ctx *cx, const ms_mesh *mesh, const ms_global_tensor *x,
                        const ms_spec *spec)
{
    long largest[MS_MAX_TENSOR_DIMS];
    ms_spec_largest_size(mesh, spec, x, largest);
    for (long rank = 0; rank < mesh->num_ranks; rank++) {
        for (int dim = 0; dim < x->num_dims; dim++) {
            ms_ranges held = ms_spec_ranges(cx->arena, mesh, spec, x, dim, rank);
            require(ms_ranges_length(held) <= largest[dim]);
            require(largest[dim] <= x->size[dim]);
        }
    }
}

static void check_text(ms_ctx *cx, const ms_mesh *mesh, const ms_global_tensor *x,
                       const ms_spec *spec)
{
    ms_spec back;
    const char *why = NULL, *text = ms_spec_text(cx->arena, mesh, spec);
    require(ms_spec_read(cx, text, mesh, x, &back) == MS_OK);
    require(ms_spec_equal(mesh, spec, &back));
    text = ms_spec_partition_text(cx->arena, mesh, x, spec, &why);
    require((text == NULL) == (why != NULL));
    if (text != NULL) {
        require(ms_spec_read(cx, text, mesh, x, &back) == MS_OK);
        require(ms_spec_equal(mesh, spec, &back));
    }
}

static void check_plan(ms_ctx *cx, const ms_mesh *mesh, const ms_global_tensor *x,
                       const ms_spec *spec)
{
    ms_collective_prices prices =
        ms_collective_prices_pytorch(cx->arena, mesh, &ms_pytorch_defaults, 4);
    ms_redistribute_task task = {mesh, x, *spec, {{{0}}}, &prices, true};
    ms_redistribution plan;
    const char *why;
    require(ms_redistribute(cx->arena, &task, &plan, &why));
    require(plan.seconds >= 0.0 && plan.num_steps <= 2 * mesh->num_axes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    const char *text = ms_arena_strndup(cx.arena, (const char *)data, size);
    ms_mesh mesh =
        ms_mesh_make((const char *const[]){"dp", "cp", "tp"}, (const long[]){2, 3, 4}, 3);
    ms_global_tensor x = {"x", 3, "bsh", {6, 48, 7}, 2};
    ms_spec spec;
    if (ms_spec_read(&cx, text, &mesh, &x, &spec) == MS_OK) {
        check_parts(&cx, &mesh, &x, &spec);
        check_text(&cx, &mesh, &x, &spec);
        check_plan(&cx, &mesh, &x, &spec);
    } else {
        require(cx.num_errors > 0);
    }
    ms_arena_close(cx.arena);
    return 0;
}
