/* Fuzzes the question of `search --why`: no crash, and an accepted question holds one
 * value for each plan choice that it names, which reads back from its text. */
#include "sim/search/why.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The value that the question gives each plan choice, written as text, reads back as
 * the same value. */
static void expect_again(ms_ctx *cx, const ms_space *asked)
{
    const ms_stack stack = {0};
    for (int i = 0; i < MS_NUM_CHOICES; i++) {
        ms_why_question again;
        const char *order;
        if (asked->high[i] == LONG_MAX)
            continue;
        const char *text = ms_space_choice_text(cx->arena, (ms_choice)i, asked->low[i]);
        if (asked->low[i] != asked->high[i] ||
            ms_why_question_read(cx, text, &asked->base, &stack, &order, &again) !=
                MS_OK ||
            again.asked.low[i] != asked->low[i] || again.asked.high[i] != asked->low[i])
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    const char *text = ms_arena_strndup(cx.arena, (const char *)data, size), *order;
    ms_plan base = ms_plan_default(512);
    const ms_stack stack = {0};
    ms_why_question question;
    ms_status status = ms_why_question_read(&cx, text, &base, &stack, &order, &question);
    if (status == MS_OK)
        expect_again(&cx, &question.asked);
    else if (cx.num_errors == 0)
        abort();
    ms_arena_close(cx.arena);
    return 0;
}
