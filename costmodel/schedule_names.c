/* Names of schedules, ours and those of frameworks and papers. */
#include "costmodel/schedule.h"

#include <ctype.h>
#include <string.h>

const char *const ms_schedule_names[] = {
    "gpipe", "1f1b",     "interleaved", "looped-bfs",    "interleaved-zb",
    "zb-h1", "zb-h2",    "zb-auto",     "zb-v",          "v-half",
    "v-min", "dualpipe", "dualpipev",   "combined-1f1b", NULL};

/* PyTorch's class names with and without "Schedule", Megatron-LM's options and functions,
 * the papers' names. Hyphens, underscores and letter case do not count. */
static const struct alias {
    const char *name;
    ms_schedule_kind kind;
} aliases[] = {
    {"gpipe", MS_GPIPE},
    {"afab", MS_GPIPE},
    {"all-forward-all-backward", MS_GPIPE},
    {"ScheduleGPipe", MS_GPIPE},
    {"1f1b", MS_1F1B},
    {"one-forward-one-backward", MS_1F1B},
    {"non-interleaved", MS_1F1B},
    {"pipedream-flush", MS_1F1B},
    {"dapple", MS_1F1B},
    {"Schedule1F1B", MS_1F1B},
    {"forward_backward_pipelining_without_interleaving", MS_1F1B},
    {"interleaved", MS_INTERLEAVED},
    {"interleaved-1f1b", MS_INTERLEAVED},
    {"1f1b-interleaved", MS_INTERLEAVED},
    {"1f1b-i", MS_INTERLEAVED},
    {"vpp", MS_INTERLEAVED},
    {"ScheduleInterleaved1F1B", MS_INTERLEAVED},
    {"forward_backward_pipelining_with_interleaving", MS_INTERLEAVED},
    {"looped-bfs", MS_LOOPED_BFS},
    {"bfs", MS_LOOPED_BFS},
    {"breadth-first", MS_LOOPED_BFS},
    {"ScheduleLoopedBFS", MS_LOOPED_BFS},
    {"interleaved-zb", MS_INTERLEAVED_ZB},
    {"interleaved-zero-bubble", MS_INTERLEAVED_ZB},
    {"ScheduleInterleavedZeroBubble", MS_INTERLEAVED_ZB},
    {"zb-h1", MS_ZB_H1},
    {"zb-1p", MS_ZB_H1},
    {"zb-h2", MS_ZB_H2},
    {"zb-auto", MS_ZB_AUTO},
    {"zb", MS_ZB_AUTO},
    {"zero-bubble", MS_ZB_AUTO},
    {"zb-2p", MS_ZB_AUTO},
    {"zb-v", MS_ZB_V},
    {"zbv-zero-bubble", MS_ZB_V},
    {"ScheduleZBVZeroBubble", MS_ZB_V},
    {"v-half", MS_V_HALF},
    {"zbv-half", MS_V_HALF},
    {"v-min", MS_V_MIN},
    {"zbv-min", MS_V_MIN},
    {"dualpipe", MS_DUALPIPE},
    {"dualpipev", MS_DUALPIPEV},
    {"cut-in-half", MS_DUALPIPEV},
    {"ScheduleDualPipeV", MS_DUALPIPEV},
    {"combined-1f1b", MS_COMBINED_1F1B},
    {"combined", MS_COMBINED_1F1B},
    {"overlap-moe-expert-parallel-comm", MS_COMBINED_1F1B},
};

static bool is_hyphen(char c)
{
    return c == '-' || c == '_';
}

static bool same_word(const char *a, const char *b)
{
    for (;;) {
        a += is_hyphen(*a);
        b += is_hyphen(*b);
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (*a == '\0')
            return true;
        a++;
        b++;
    }
}

bool ms_schedule_parse(const char *text, ms_schedule_kind *out)
{
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (same_word(text, aliases[i].name)) {
            *out = aliases[i].kind;
            return true;
        }
    }
    return false;
}

bool ms_schedule_is_file(const char *word)
{
    size_t length = strlen(word);
    return length > 4 && strcmp(word + length - 4, ".csv") == 0;
}
