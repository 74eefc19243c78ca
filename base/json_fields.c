/* Reads JSON objects by field tables, through the public functions of base/json.h. */
#include "base/json.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

static long to_long(double value)
{
    if (value >= (double)LONG_MAX)
        return LONG_MAX;
    if (value <= (double)LONG_MIN)
        return LONG_MIN;
    return (long)value;
}

static int count_words(const char *const *words)
{
    int count = 0;
    while (words[count] != NULL)
        count++;
    return count;
}

static const char *join(ms_ctx *cx, const char *const *words)
{
    const char *list = words[0];
    for (int i = 1; words[i] != NULL; i++)
        list = ms_arena_printf(cx->arena, "%s, %s", list, words[i]);
    return list;
}

static ms_status read_choice(ms_ctx *cx, ms_jval value, const ms_field *field, int *out)
{
    const char *text = "";
    MS_TRY(ms_json_text(cx, value, &text));
    int found = ms_choice_find(text, field->choices);
    if (found >= 0) {
        *out = found;
        return MS_OK;
    }
    ms_json_fail(cx, value, "\"%s\" is \"%s\", must be one of %s", field->key, text,
                 join(cx, field->choices));
    const char *nearest = ms_nearest(text, field->choices, count_words(field->choices));
    if (nearest != NULL)
        ms_hint(cx, "did you mean \"%s\"?", nearest);
    return MS_EINPUT;
}

static ms_status read_list(ms_ctx *cx, ms_jval array, const ms_field *field,
                           ms_list *out);

static ms_status read_field(ms_ctx *cx, ms_jval value, const ms_field *field, void *out)
{
    void *slot = (char *)out + field->offset;
    switch (field->kind) {
    case MS_FIELD_TEXT:
        return ms_json_text(cx, value, slot);
    case MS_FIELD_BOOL:
        return ms_json_bool(cx, value, slot);
    case MS_FIELD_INTEGER:
        assert(field->low < field->high); /* numeric fields need limits */
        return ms_json_integer(cx, value, to_long(field->low), to_long(field->high),
                               slot);
    case MS_FIELD_NUMBER:
        assert(field->low < field->high);
        return ms_json_number(cx, value, field->low, field->high, slot);
    case MS_FIELD_QUANTITY:
        return ms_json_quantity(cx, value, field->unit, slot);
    case MS_FIELD_CHOICE:
        return read_choice(cx, value, field, slot);
    case MS_FIELD_LIST:
        return read_list(cx, value, field, slot);
    case MS_FIELD_ANY:
    case MS_FIELD_END:
        return MS_OK;
    }
    return MS_OK;
}

/* Reads every element of an array, even after errors in earlier elements. */
static ms_status read_list(ms_ctx *cx, ms_jval array, const ms_field *field, ms_list *out)
{
    if (!ms_json_is_array(array))
        return ms_json_fail(cx, array, "\"%s\" must be an array", field->key);
    const ms_field *element = field->element;
    int num_rows = ms_json_length(array);
    char *rows = ms_arena_array(cx->arena, (size_t)num_rows, field->element_bytes);
    ms_status status = MS_OK;
    for (int i = 0; i < num_rows; i++) {
        ms_jval value = ms_json_element(cx, array, i);
        void *row = rows + (size_t)i * field->element_bytes;
        ms_status row_status = element->key == NULL
                                   ? read_field(cx, value, element, row)
                                   : ms_json_read(cx, value, element, row);
        status = status == MS_OK ? row_status : status;
    }
    *out = (ms_list){rows, num_rows};
    return status;
}

static ms_status read_or_miss(ms_ctx *cx, ms_jval object, const ms_field *field,
                              void *out)
{
    ms_jval value;
    if (ms_json_member(cx, object, field->key, &value)) {
        if (field->nullable && ms_json_is_null(value))
            return MS_OK;
        return read_field(cx, value, field, out);
    }
    if (!field->required)
        return MS_OK;
    ms_json_fail(cx, object, "field \"%s\" is missing", field->key);
    if (field->help != NULL)
        ms_hint(cx, "%s: %s", field->key, field->help);
    return MS_EINPUT;
}

static const ms_field *find_field(const ms_field *fields, const char *key)
{
    for (; fields->kind != MS_FIELD_END; fields++)
        if (strcmp(fields->key, key) == 0)
            return fields;
    return NULL;
}

static ms_status fail_unknown(ms_ctx *cx, ms_jval object, const char *key,
                              const ms_field *fields)
{
    int count = 0;
    while (fields[count].kind != MS_FIELD_END)
        count++;
    const char **known = MS_NEW_ARRAY(cx->arena, count + 1, const char *);
    for (int i = 0; i < count; i++)
        known[i] = fields[i].key;
    ms_fail(cx, MS_EINPUT, ms_json_key_loc(cx, object, key), "unknown key \"%s\"", key);
    const char *nearest = ms_nearest(key, known, count);
    if (nearest != NULL)
        ms_hint(cx, "did you mean \"%s\"?", nearest);
    else if (count > 0)
        ms_hint(cx, "known keys: %s", join(cx, known));
    return MS_EINPUT;
}

/* Accepts a key that the table lacks if it is a remark ("_...", source, note, date). */
static ms_status check_other(ms_ctx *cx, ms_jval object, const char *key, ms_jval value,
                             const ms_field *fields)
{
    static const char *const remarks[] = {"source", "note", "date"};
    const char *text;
    if (key[0] == '_')
        return MS_OK;
    for (size_t i = 0; i < sizeof remarks / sizeof remarks[0]; i++)
        if (strcmp(key, remarks[i]) == 0)
            return ms_json_text(cx, value, &text);
    return fail_unknown(cx, object, key, fields);
}

/* One error if most required fields (at least 3) are missing: a file of another kind. */
static ms_status check_kind(ms_ctx *cx, ms_jval object, const ms_field *fields)
{
    int num_required = 0, num_missing = 0;
    const char *required = "";
    for (const ms_field *field = fields; field->kind != MS_FIELD_END; field++) {
        ms_jval value;
        if (!field->required)
            continue;
        required = ms_arena_printf(cx->arena, "%s%s%s", required,
                                   num_required++ > 0 ? ", " : "", field->key);
        num_missing += !ms_json_member(cx, object, field->key, &value);
    }
    if (num_missing < 3 || 2 * num_missing <= num_required)
        return MS_OK;
    const char *path = ms_json_loc(cx, object).path;
    if (path != NULL && path[0] != '\0') /* only the root object of a file is checked */
        return MS_OK;
    ms_json_fail(cx, object, "%d of %d fields that must be here are missing", num_missing,
                 num_required);
    return ms_hint(cx, "is it a file of another kind? these are needed: %s", required);
}

ms_status ms_json_read(ms_ctx *cx, ms_jval object, const ms_field *fields, void *out)
{
    if (!ms_json_is_object(object))
        return ms_json_fail(cx, object, "an object must stand here");
    MS_TRY(check_kind(cx, object, fields));
    ms_status status = MS_OK;
    for (const ms_field *field = fields; field->kind != MS_FIELD_END; field++) {
        ms_status field_status = read_or_miss(cx, object, field, out);
        status = status == MS_OK ? field_status : status;
    }
    int num_members = ms_json_length(object);
    for (int i = 0; i < num_members; i++) {
        const char *key;
        ms_jval value = ms_json_entry(cx, object, i, &key);
        if (find_field(fields, key) != NULL)
            continue;
        ms_status other_status = check_other(cx, object, key, value, fields);
        status = status == MS_OK ? other_status : status;
    }
    return status;
}
