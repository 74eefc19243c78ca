#include "base/figure.h"

#include <string.h>

static ms_figure *append(ms_figures *list)
{
    MS_MAKE_ROOM(list->arena, list->items, list->num, list->capacity, 32);
    return &list->items[list->num++];
}

static bool is_number(const ms_field *field)
{
    return field->kind == MS_FIELD_INTEGER || field->kind == MS_FIELD_NUMBER ||
           field->kind == MS_FIELD_QUANTITY ||
           (field->kind == MS_FIELD_ANY && field->low < field->high);
}

static ms_unit unit_of(const ms_field *field)
{
    bool counted = field->kind == MS_FIELD_INTEGER || field->kind == MS_FIELD_NUMBER;
    return counted ? MS_UNIT_COUNT : field->unit;
}

void ms_figures_add(ms_figures *list, const char *prefix, const ms_field *fields,
                    size_t offset)
{
    for (const ms_field *field = fields; field->kind != MS_FIELD_END; field++) {
        if (!is_number(field))
            continue;
        *append(list) =
            (ms_figure){.key = ms_arena_printf(list->arena, "%s%s%s", prefix,
                                               prefix[0] == '\0' ? "" : ".", field->key),
                        .help = field->help,
                        .unit = unit_of(field),
                        .offset = offset + field->offset,
                        .is_integer = field->kind == MS_FIELD_INTEGER,
                        .is_coefficient = field->kind == MS_FIELD_ANY,
                        .low = field->kind == MS_FIELD_QUANTITY ? 0.0 : field->low,
                        .high = field->kind == MS_FIELD_QUANTITY ? 0.0 : field->high};
    }
}

double ms_figure_value(const ms_figure *figure, const void *in)
{
    const char *at = (const char *)in + figure->offset;
    if (figure->is_integer) {
        long value;
        memcpy(&value, at, sizeof value);
        return (double)value;
    }
    double value;
    memcpy(&value, at, sizeof value);
    return value;
}

void ms_figure_set(const ms_figure *figure, void *in, double value)
{
    char *at = (char *)in + figure->offset;
    long whole = (long)value;
    if (figure->is_integer)
        memcpy(at, &whole, sizeof whole);
    else
        memcpy(at, &value, sizeof value);
}
