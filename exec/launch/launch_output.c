#include "exec/launch/launch.h"

#include <ctype.h>
#include <signal.h>
#include <string.h>

#define MIN_DASHES 20

ms_launch_output ms_launch_output_open(void)
{
    return (ms_launch_output){.dead_rank = -1};
}

static bool is_ruler(const char *line)
{
    size_t dashes = strspn(line, "-");
    return dashes >= MIN_DASHES && line[dashes] == '\0';
}

static bool is_launcher_message(const char *line)
{
    return strncmp(line, "mpiexec: Forwarding", 19) == 0 ||
           strncmp(line, "mpirun: Forwarding", 18) == 0 ||
           strstr(line, "abort is already in progress") != NULL ||
           strstr(line, "more process has sent help message") != NULL ||
           strstr(line, "total processes failed to start") != NULL;
}

/* The number (up to 9 digits) directly after `word` in a line; -1 if there is none. */
static long number_after(const char *line, const char *word)
{
    const char *at = strstr(line, word);
    if (at == NULL)
        return -1;
    at += strlen(word);
    long value = -1;
    for (int digits = 0; isdigit((unsigned char)at[digits]) && digits < 9; digits++)
        value = (digits == 0 ? 0 : 10 * value) + (at[digits] - '0');
    return value;
}

/* Reads "mpirun noticed that process rank 1 ... exited on signal 9 (Killed)." */
static void note_death(ms_launch_output *o)
{
    long rank = number_after(o->line, "process rank ");
    long number = number_after(o->line, "on signal ");
    if (rank >= 0)
        o->dead_rank = rank;
    if (number > 0)
        o->dead_signal = (int)number;
}

static void add_to_block(ms_launch_output *o)
{
    note_death(o);
    int room = (int)sizeof o->block - o->block_length;
    if (o->length + 4 > room)
        return; /* the buffer is full; the first messages matter most */
    o->block_length +=
        snprintf(o->block + o->block_length, (size_t)room, "  %s\n", o->line);
}

static void end_line(ms_launch_output *o, FILE *out)
{
    o->line[o->length] = '\0';
    if (is_ruler(o->line)) {
        o->in_block = !o->in_block;
    } else if (o->in_block || is_launcher_message(o->line)) {
        add_to_block(o);
    } else {
        o->has_error = o->has_error || strstr(o->line, "error: ") != NULL;
        if (out != NULL)
            fprintf(out, "%s\n", o->line);
    }
    o->length = 0;
}

void ms_launch_output_add(ms_launch_output *o, const char *bytes, long num_bytes,
                          FILE *out)
{
    for (long i = 0; i < num_bytes; i++) {
        if (bytes[i] == '\n' || o->length == (int)sizeof o->line - 1)
            end_line(o, out);
        if (bytes[i] != '\n')
            o->line[o->length++] = bytes[i];
    }
}

void ms_launch_output_close(ms_launch_output *o, FILE *out)
{
    if (o->length > 0)
        end_line(o, out);
}

static ms_status fail_dead(ms_ctx *cx, long rank, int number)
{
    const char *rank_text =
        rank >= 0 ? ms_arena_printf(cx->arena, "rank %ld", rank) : "a rank";
    ms_fail(cx, MS_EIO, MS_NOWHERE, "%s died by signal %d (%s)", rank_text, number,
            strsignal(number));
    if (number == SIGKILL)
        ms_hint(cx, "the system kills processes when there is no memory left");
    return MS_EIO;
}

ms_status ms_launch_judge(ms_ctx *cx, const ms_launch_output *o, int code)
{
    if (o->dead_signal > 0)
        return fail_dead(cx, o->dead_rank, o->dead_signal);
    if (code == MS_OK || code == MS_ENOFIT || code == MS_ECHECK ||
        code == MS_EINTERRUPTED)
        return (ms_status)code; /* the ranks ended regularly */
    if (o->has_error)
        return code == MS_EINPUT ? MS_EINPUT : MS_EIO; /* a rank has reported the error */
    if (code > 128)
        return fail_dead(cx, -1, code - 128);
    ms_fail(cx, MS_EIO, MS_NOWHERE, "mpiexec failed with exit status %d%s%s", code,
            o->block_length > 0 ? ":\n" : "", o->block);
    return ms_hint(cx, "--backend loop needs no mpiexec");
}
