#include "tests/support/port_fuzz.h"

#include "costmodel/port/port.h"

#include <stdlib.h>

static void require(bool holds)
{
    if (!holds)
        abort();
}

void port_fuzz_import(const char *format_name, const uint8_t *data, size_t size)
{
    ms_arena *arena = ms_arena_open();
    ms_ctx cx = {.arena = arena};
    const ms_port_format *format;
    ms_port_imported imported;
    ms_port_import_options options = {.name = "fuzz", .gpus = size % 2 == 0 ? 64 : 0};
    require(ms_port_format_find(&cx, format_name, &format) == MS_OK);
    ms_status status =
        ms_port_import(&cx, format, (const char *)data, size, &options, &imported);
    require((status == MS_OK) == (cx.num_errors == 0));
    if (status == MS_OK) {
        long ranks = 1;
        for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
            ranks *= imported.plan.size[axis];
        require(ranks == imported.plan.gpus);
        ms_plan_text(arena, &imported.plan);
    }
    ms_arena_close(arena);
}
