/* The numbers that a struct holds, listed by the field tables that read it (base/json.h):
 * what a table can read, it can also show. */
#ifndef MS_BASE_FIGURE_H
#define MS_BASE_FIGURE_H

#include "base/json.h"

typedef struct ms_figure {
    const char *key; /* path in the file: "link.step" */
    const char *help;
    ms_unit unit;
    /* of a double from the start of the struct; of a long when is_integer */
    size_t offset;
    bool is_integer;
    /* a field of kind MS_FIELD_ANY with low < high: its value stands first there */
    bool is_coefficient;
    double low, high; /* as the table has them; 0 when it states none */
} ms_figure;

typedef struct ms_figures {
    ms_arena *arena;
    int num, capacity;
    ms_figure *items;
} ms_figures;

/* Appends the numbers of a table: integers, numbers, quantities and coefficients. They
 * stand `offset` bytes into the struct, and are named prefix.key ("" for no prefix).
 * Fields of other kinds are passed over. */
void ms_figures_add(ms_figures *list, const char *prefix, const ms_field *fields,
                    size_t offset);

/* The value in a struct, and writing it. */
double ms_figure_value(const ms_figure *figure, const void *in);
void ms_figure_set(const ms_figure *figure, void *in, double value);

#endif
