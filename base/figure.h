/* Lists each number of a JSON file from its field tables (base/json.h): its key, and
 * where it is in the struct that the file fills. Programs show and vary numbers so. */
#ifndef MS_BASE_FIGURE_H
#define MS_BASE_FIGURE_H

#include "base/json.h"

typedef struct ms_figure {
    const char *key; /* path of the number in its file: "link.step" */
    const char *help;
    ms_unit unit;
    size_t offset; /* bytes from the struct's start to the long or double */
    bool is_integer;
    /* true: a struct (MS_FIELD_ANY) is at `offset`; its first member is the number */
    bool is_coefficient;
    double low, high; /* limits stated by the field table; 0 if it states none */
} ms_figure;

typedef struct ms_figures {
    ms_arena *arena;
    int num, capacity;
    ms_figure *items;
} ms_figures;

/* Appends the numbers of a field table whose struct begins `offset` bytes into an outer
 * struct; keys become prefix.key ("": no prefix). */
void ms_figures_add(ms_figures *list, const char *prefix, const ms_field *fields,
                    size_t offset);

/* Reads or sets the number in the struct that starts at `in`. */
double ms_figure_value(const ms_figure *figure, const void *in);
void ms_figure_set(const ms_figure *figure, void *in, double value);

#endif
