#include "sim/request/plan_source.h"

#include "base/csv.h"
#include "base/note.h"

#include <string.h>

static ms_status read_plan(ms_ctx *cx, const char *name, const ms_csv *text, ms_plan *out)
{
    ms_jdoc *doc;
    ms_jval root;
    const char *start = text->text + text->offset;
    size_t left = text->length - text->offset, blank = 0;
    while (blank < left && strchr(" \t\r\n", start[blank]) != NULL)
        blank++;
    if (blank < left && start[blank] != '{') {
        ms_fail(cx, MS_EINPUT, (ms_loc){.file = name},
                "neither a plan in JSON nor a file of a framework that is known by its "
                "words");
        return ms_hint(cx, "meshsim import %s --from FORMAT, of a part of a script: %s",
                       name, ms_choice_text(cx->arena, ms_port_format_names, ", "));
    }
    MS_TRY(ms_json_parse(cx, name, text->text, text->length, &doc, &root));
    ms_status status = ms_plan_read(cx, root, out);
    ms_json_close(doc);
    return status;
}

static void note_imported(const ms_ctx *cx, const ms_port_imported *imported)
{
    for (int i = 0; i < imported->ignored.num; i++)
        ms_note(cx, "ignored: %s", imported->ignored.texts[i]);
    for (int i = 0; i < imported->assumed.num; i++)
        ms_note(cx, "assumed: %s", imported->assumed.texts[i]);
}

ms_status ms_plan_source_load(ms_ctx *cx, const ms_plan_options *opts, ms_plan *out)
{
    ms_csv text;
    ms_port_imported imported;
    const ms_model *model;
    bool given[MS_NUM_CHOICES];
    const char *name =
        strcmp(opts->plan_file, "-") == 0 ? "standard input" : opts->plan_file;
    MS_TRY(ms_csv_load(cx, opts->plan_file, &text));
    const ms_port_format *format =
        ms_port_format_of_text(cx->arena, text.text, text.length);
    if (format == NULL)
        return read_plan(cx, name, &text, out);
    for (ms_choice choice = 0; choice < MS_NUM_CHOICES; choice++)
        given[choice] = ms_plan_is_given(opts, choice);
    ms_port_import_options how = {
        .name = name,
        .model = opts->of[MS_CHOOSE_MODEL].text,
        .cluster = opts->of[MS_CHOOSE_CLUSTER].text,
        .stack = opts->of[MS_CHOOSE_STACK].text,
        .gpus = ms_plan_given_or(opts, MS_CHOOSE_GPUS, 0),
        .sequence_length = ms_plan_given_or(opts, MS_CHOOSE_SEQUENCE_LENGTH, 0),
        .overrides = true,
        .given = given};
    MS_TRY(ms_port_import(cx, format, text.text, text.length, &how, &imported));
    MS_TRY(ms_port_find_model(cx, format, &how, &imported, &model));
    ms_note(cx, "%s is read as a file of %s", name, ms_port_format_name(format));
    note_imported(cx, &imported);
    *out = imported.plan;
    return MS_OK;
}
