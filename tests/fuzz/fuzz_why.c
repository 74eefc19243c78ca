/* Any text as the question of --why: no crash, and what is accepted holds one value a choice that reads back as itself. */
#include "sim/search/why.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What each choice was given, written and read again. */
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
