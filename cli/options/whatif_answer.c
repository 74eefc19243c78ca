#include "cli/options/whatif_answer.h"

#include "cli/options/interrupt.h"

#include <unistd.h>

static void show_progress(void *payload, int num_done, int num)
{
    (void)payload;
    fprintf(stderr, "\r%d of %d searches done\033[K", num_done, num);
}

ms_status ms_whatif_answer(ms_ctx *cx, const ms_args *args, ms_what_if_question *question,
                           ms_what_if *out)
{
    bool shows = cx->verbosity >= 0 && isatty(STDERR_FILENO);
    question->num_threads = ms_args_threads(args);
    question->interrupted = &ms_interrupted;
    question->progress = shows ? show_progress : NULL;
    ms_status status = ms_what_if_find(cx, question, out);
    if (shows)
        fputs("\r\033[K", stderr);
    return status;
}
