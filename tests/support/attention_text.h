/* Texts of attention cases (tests/support/attention_cases.h). */
#ifndef MS_TESTS_SUPPORT_ATTENTION_TEXT_H
#define MS_TESTS_SUPPORT_ATTENTION_TEXT_H

#include "base/arena.h"

typedef struct attention_case {
    long batch, sequence, heads, kv_heads, width, value_width, cap, window;
    long alibi_heads, first_head;
    long num_ranks; /* cp ranks; 0: one attention over the whole sequence */
    long is_gathered, head_tail, is_unfused, is_not_aligned; /* flags: 0 or 1 */
} attention_case;

/* Reads the text of a case; fails the test at an unknown word. */
attention_case ms_attention_case_read(ms_arena *arena, const char *text);

#endif
