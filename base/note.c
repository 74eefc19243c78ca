#include "base/note.h"

#include "base/print.h"

#include <stdarg.h>
#include <stdio.h>

static void keep_note(const ms_ctx *cx, const char *kind, const char *text)
{
    ms_kept_note *note = MS_NEW(cx->arena, ms_kept_note);
    *note = (ms_kept_note){kind, text, NULL};
    if (cx->notes->last == NULL)
        cx->notes->first = note;
    else
        cx->notes->last->next = note;
    cx->notes->last = note;
}

void ms_note_at(const ms_ctx *cx, int least, const char *kind, const char *format, ...)
{
    va_list args;
    if (cx->notes != NULL) {
        va_start(args, format);
        keep_note(cx, kind, ms_arena_vprintf(cx->arena, format, args));
        va_end(args);
    }
    if (cx->verbosity < least)
        return;
    va_start(args, format);
    fprintf(stderr, "%s: ", kind);
    ms_vprint(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}
