#include "cli/report/mesh_layout.h"

#include "base/print.h"
#include "cli/options/output.h"
#include "topo/layout.h"

#define MAX_TEXT_VALUES 256
#define MAX_JSON_VALUES (1L << 20)
#define TEXT_WIDTH      100

static const char *const order_names[] = {"last mode fastest", "first mode fastest"};

/* Why a layout is not known to have distinct values; NULL: all its values differ. */
static const char *repetition(ms_arena *arena, ms_layout layout)
{
    ms_ctx probe = {.arena = arena};
    return ms_layout_check_injective(&probe, layout) == MS_OK ? NULL
                                                              : probe.last->message;
}

static void print_values(FILE *out, ms_layout layout)
{
    int column = 0;
    for (long i = 0; i < layout.size && i < MAX_TEXT_VALUES; i++) {
        if (column > TEXT_WIDTH) {
            ms_print(out, "\n%9s", "");
            column = 0;
        }
        column += ms_print(out, " %ld", ms_layout_at(layout, i));
    }
    fputs(layout.size > MAX_TEXT_VALUES ? " ...\n" : "\n", out);
}

static void print(FILE *out, ms_arena *arena, ms_layout layout)
{
    const char *repeated = repetition(arena, layout);
    ms_print(out, "layout    %s, %s\n", ms_layout_text(arena, layout),
             order_names[layout.order]);
    ms_print(out, "coalesced %s\n",
             ms_layout_text(arena, ms_layout_coalesce(arena, layout)));
    ms_print(out, "size      %ld\ncosize    %ld\n", layout.size,
             ms_layout_cosize(layout));
    ms_print(out, "image    ");
    print_values(out, layout);
    ms_print(out, "          %s\n",
             repeated == NULL ? "no value occurs twice" : repeated);
}

static void write_json(ms_jout *json, ms_arena *arena, const char *expression,
                       ms_layout layout)
{
    ms_jout_begin_object(json);
    ms_jout_text_field(json, "schema", "meshsim.layout/1");
    ms_jout_text_field(json, "expression", expression);
    ms_jout_text_field(json, "order", order_names[layout.order]);
    ms_jout_text_field(json, "layout", ms_layout_text(arena, layout));
    ms_jout_text_field(json, "coalesced",
                       ms_layout_text(arena, ms_layout_coalesce(arena, layout)));
    ms_jout_number_field(json, "depth", ms_layout_depth(layout));
    ms_jout_number_field(json, "size", (double)layout.size);
    ms_jout_number_field(json, "cosize", (double)ms_layout_cosize(layout));
    ms_jout_text_field(json, "repeated", repetition(arena, layout));
    ms_jout_key(json, "image");
    if (layout.size <= MAX_JSON_VALUES)
        ms_jout_integers(json, ms_layout_values(arena, layout), layout.size);
    else
        ms_jout_null(json);
    ms_jout_end_object(json);
}

ms_status ms_mesh_evaluate_layout(ms_ctx *cx, const ms_args *args, const char *expression,
                                  bool first_fastest)
{
    ms_layout layout;
    ms_output out;
    MS_TRY(ms_layout_parse(
        cx, expression, first_fastest ? MS_COLEXICOGRAPHIC : MS_LEXICOGRAPHIC, &layout));
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (args->common.json)
        write_json(&out.json, cx->arena, expression, layout);
    else
        print(out.file, cx->arena, layout);
    return ms_output_close(cx, &out, MS_OK);
}
