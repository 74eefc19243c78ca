#include "cli/page/html.h"

#include "base/json.h"
#include "base/print.h"
#include "base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

/* Entities of the characters that HTML reads as markup; NULL for all others. */
static const char *entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    default:
        return NULL;
    }
}

/* Writes a character of `step` bytes (0: invalid UTF-8) of an argument. Returns the bytes
 * that were read. */
static size_t put_escaped(FILE *out, const char *text, size_t step)
{
    if (step == 0 || (ms_utf8_is_control(text, step) && *text != '\n')) {
        (void)ms_print(out, "\\x%02X", (unsigned)(unsigned char)*text);
        return 1;
    }
    const char *named = entity(*text);
    if (named != NULL)
        fputs(named, out);
    else
        (void)fwrite(text, 1, step, out);
    return step;
}

static bool is_markup(char c)
{
    return entity(c) != NULL || c == '\n';
}

/* The text is formatted twice, the second time with spaces for the format's own markup,
 * which tells it from that of arguments. */
static void print_escaped(const ms_html *html, const char *format, va_list args)
{
    ms_arena_mark mark = ms_arena_save(html->arena);
    char *blank = ms_arena_strdup(html->arena, format);
    for (char *c = blank; *c != '\0'; c++)
        *c = is_markup(*c) ? ' ' : *c;
    va_list again;
    va_copy(again, args);
    const char *text = ms_arena_vprintf(html->arena, format, args);
    const char *blanked = ms_arena_vprintf(html->arena, blank, again);
    va_end(again);
    size_t length = strlen(text);
    for (size_t at = 0; at < length;) {
        if (text[at] != blanked[at])
            fputc(text[at++], html->out);
        else
            at += put_escaped(html->out, text + at, ms_utf8_step(text + at, length - at));
    }
    ms_arena_rewind(html->arena, mark);
}

void ms_html_print(const ms_html *html, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_escaped(html, format, args);
    va_end(args);
}

void ms_html_copy(const ms_html *html, FILE *from)
{
    char line[4096];
    while (fgets(line, sizeof line, from) != NULL)
        ms_html_print(html, "%s", line);
}

void ms_html_figure(const ms_html *html, const char *key, double value,
                    const char *format, ...)
{
    char exact[32];
    va_list args;
    ms_html_print(html, "<span class=\"figure\" data-key=\"%s\" data-value=\"%s\">", key,
                  isfinite(value) ? ms_json_number_text(value, exact) : "null");
    va_start(args, format);
    if (isnan(value))
        fputs("not known", html->out);
    else
        print_escaped(html, format, args);
    va_end(args);
    fputs("</span>", html->out);
}

ms_html_table ms_html_table_begin(const ms_html *html, const char *id,
                                  const char *caption, const char *alignment,
                                  const char *const *headings)
{
    ms_html_print(html,
                  "<div class=\"wide\" role=\"region\" tabindex=\"0\" "
                  "aria-labelledby=\"%s\">\n<table>\n<caption id=\"%s\">%s</caption>\n"
                  "<thead><tr>",
                  id, id, caption);
    for (int i = 0; headings[i] != NULL; i++)
        ms_html_print(html, "<th scope=\"col\" class=\"%s\">%s</th>",
                      alignment[i] == 'r' ? "r" : "l", headings[i]);
    fputs("</tr></thead>\n<tbody>\n", html->out);
    return (ms_html_table){.html = html, .alignment = alignment};
}

void ms_html_cell(ms_html_table *table, const char *format, ...)
{
    const ms_html *html = table->html;
    bool first = table->column == 0;
    va_list args;
    if (first)
        fputs("<tr><th scope=\"row\"", html->out);
    else
        fputs("<td", html->out);
    fputs(table->alignment[table->column] == 'r' ? " class=\"r\">" : ">", html->out);
    va_start(args, format);
    print_escaped(html, format, args);
    va_end(args);
    fputs(first ? "</th>" : "</td>", html->out);
    if (table->alignment[++table->column] == '\0') {
        fputs("</tr>\n", html->out);
        table->column = 0;
    }
}

void ms_html_table_end(const ms_html_table *table)
{
    fputs("</tbody>\n</table>\n</div>\n", table->html->out);
}
