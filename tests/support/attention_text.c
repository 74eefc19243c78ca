#include "tests/support/attention_text.h"

#include "tests/test.h"

#include <stdbool.h>

static const struct {
    const char *word;
    size_t offset;
    bool has_number;
} words[] = {
    {"b", offsetof(attention_case, batch), true},
    {"s", offsetof(attention_case, sequence), true},
    {"n", offsetof(attention_case, heads), true},
    {"g", offsetof(attention_case, kv_heads), true},
    {"d", offsetof(attention_case, width), true},
    {"w", offsetof(attention_case, value_width), true},
    {"window", offsetof(attention_case, window), true},
    {"cap", offsetof(attention_case, cap), true},
    {"alibi", offsetof(attention_case, alibi_heads), true},
    {"first", offsetof(attention_case, first_head), true},
    {"ranks", offsetof(attention_case, num_ranks), true},
    {"gathered", offsetof(attention_case, is_gathered), false},
    {"head-tail", offsetof(attention_case, head_tail), false},
    {"unfused", offsetof(attention_case, is_unfused), false},
    {"unaligned", offsetof(attention_case, is_not_aligned), false},
};
#define NUM_WORDS (sizeof words / sizeof *words)

attention_case ms_attention_case_read(ms_arena *arena, const char *text)
{
    attention_case c = {0};
    char *rest, *copy = ms_arena_strdup(arena, text);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        size_t i = 0;
        while (i < NUM_WORDS && strcmp(word, words[i].word) != 0)
            i++;
        const char *number =
            i < NUM_WORDS && words[i].has_number ? strtok_r(NULL, " ", &rest) : "1";
        if (i == NUM_WORDS || number == NULL) {
            fail_msg("\"%s\" of \"%s\"", word, text);
            break;
        }
        *(long *)(void *)((char *)&c + words[i].offset) = strtol(number, NULL, 10);
    }
    return c;
}
