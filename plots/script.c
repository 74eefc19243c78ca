#include "plots/script.h"

#include "base/number.h"
#include "base/paths.h"
#include "base/utf8.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* pixels per letter of DejaVu Sans in style.gp's sizes, on average */
#define TITLE_LETTER    11.8
#define SUBTITLE_LETTER 6.8

const char *const ms_picture_format_names[] = {"png", "svg", "pdf", NULL};

int ms_picture_format_find(const char *path)
{
    const char *dot = strrchr(path, '.');
    if (dot == NULL || strchr(dot, '/') != NULL)
        return -1;
    for (int i = 0; i < MS_NUM_PICTURE_FORMATS; i++)
        if (strcmp(dot + 1, ms_picture_format_names[i]) == 0)
            return i;
    return -1;
}

/* Writes a text in single quotes, which are doubled inside; `escaped` get a backslash. */
static void write_quoted(FILE *out, const char *text, const char *escaped)
{
    fputc('\'', out);
    for (const char *c = text; *c != '\0'; c++) {
        if (strchr(escaped, *c) != NULL)
            fputc('\\', out);
        if (*c == '\'')
            fputc('\'', out);
        fputc((unsigned char)*c < ' ' ? ' ' : *c, out);
    }
    fputc('\'', out);
}

void ms_script_number(FILE *out, const char *name, double value)
{
    fprintf(out, "%s = %.9g\n", name, value);
}

void ms_script_text(FILE *out, const char *name, const char *value)
{
    fprintf(out, "%s = ", name);
    write_quoted(out, value, "\\^_{}@&~");
    fputc('\n', out);
}

ms_logarithmic_range ms_logarithmic_range_of(double low, double high)
{
    const double least = 6.3; /* more than the 2.5 x 2 and 2 x 2.5 of two labels */
    double wider = ms_max(1.0, sqrt(least / (high / low)));
    return (ms_logarithmic_range){low / wider, high * wider};
}

double ms_script_title_width(const char *title, const char *subtitle)
{
    double head = TITLE_LETTER * (double)ms_utf8_width(title),
           below = SUBTITLE_LETTER * (double)ms_utf8_width(subtitle);
    return ms_max(head, below);
}

void ms_script_begin(FILE *out, const ms_script *script)
{
    fprintf(out,
            "# meshsim plot: %s. Renders again with: gnuplot THIS-FILE\n"
            "# or another way:                      gnuplot -e 'format=\"svg\"' "
            "THIS-FILE\n\n"
            "name = ",
            script->kind);
    write_quoted(out, script->name, "");
    fprintf(out, "\nif (!exists('format')) format = '%s'\n",
            ms_picture_format_names[script->format]);
    ms_script_number(out, "width", script->width);
    ms_script_number(out, "height", script->height);
    ms_script_text(out, "title", script->title);
    ms_script_text(out, "subtitle", script->subtitle);
    ms_script_number(out, "left", script->margins.left);
    ms_script_number(out, "right", script->margins.right);
    ms_script_number(out, "top", script->margins.top);
    ms_script_number(out, "bottom", script->margins.bottom);
}

static ms_status copy_commands(ms_ctx *cx, FILE *out, const char *name)
{
    const char *path;
    MS_TRY(ms_plot_script(cx, name, &path));
    FILE *in = fopen(path, "r");
    if (in == NULL)
        return ms_fail(cx, MS_EIO, (ms_loc){.file = path}, "cannot be read: %s",
                       strerror(errno));
    char block[4096];
    for (size_t got; (got = fread(block, 1, sizeof block, in)) > 0;)
        (void)fwrite(block, 1, got, out);
    bool failed = ferror(in) != 0;
    fclose(in);
    return failed ? ms_fail(cx, MS_EIO, (ms_loc){.file = path}, "cannot be read") : MS_OK;
}

ms_status ms_script_end(ms_ctx *cx, FILE *out, const ms_script *script)
{
    fputc('\n', out);
    MS_TRY(copy_commands(cx, out, "style.gp"));
    fputc('\n', out);
    return copy_commands(cx, out, ms_arena_printf(cx->arena, "%s.gp", script->kind));
}

void ms_data_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\n')
            fputs("\\n", out);
        else if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
            fputc('_', out); /* replaces characters that gnuplot cannot quote */
        else
            fputc(*c, out);
    }
    fputc('"', out);
}
