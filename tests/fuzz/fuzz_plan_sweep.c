/* Fuzzes files of a sweep's answers: a file that is accepted can be read again, and then
 * answers as many questions. */
#define _GNU_SOURCE
#include "sim/planning/plan_sweep.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ms_plan_sweep make_sweep(ms_ctx *cx, const ms_plan_limits *limits)
{
    ms_best_question *question = MS_NEW(cx->arena, ms_best_question);
    question->base = ms_plan_default(8);
    question->base.model = "llama-3.2-1b";
    question->base.cluster = "hgx-h100";
    question->base.stack = "megatron";
    question->limits = limits;
    return (ms_plan_sweep){1, 1, question, MS_NEW(cx->arena, bool),
                           MS_NEW(cx->arena, ms_best_plan)};
}

/* Opens the file; returns the number of answers taken, or -1 if it is refused. */
static int open_once(const char *path)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_plan_limits limits = {0};
    ms_plan_sweep sweep = make_sweep(&cx, &limits);
    ms_plan_sweep_state *state;
    int num_known;
    ms_status status = ms_plan_sweep_state_open(&cx, path, &sweep, &state, &num_known);
    if ((status != MS_OK) != (cx.first != NULL))
        abort();
    if (status == MS_OK)
        ms_plan_sweep_state_close(state);
    ms_arena_close(cx.arena);
    return status == MS_OK ? num_known : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int file = memfd_create("fuzz", 0);
    if (file < 0 || write(file, data, size) != (ssize_t)size)
        abort();
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    int first = open_once(path);
    if (first >= 0 && open_once(path) != first)
        abort();
    close(file);
    return 0;
}
