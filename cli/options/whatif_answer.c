#include "cli/options/whatif_answer.h"

#include "cli/options/interrupt.h"
#include "cli/options/progress.h"

#include <math.h>

typedef struct watcher {
    const ms_args *args;
} watcher;

static void show_progress(void *payload, int num_done, int num)
{
    const watcher *w = payload;
    const ms_progress now = {"searches", num_done, num, NAN, NAN};
    if (!ms_progress_write(w->args, &now))
        fprintf(stderr, "\r%d of %d searches done\033[K", num_done, num);
}

ms_status ms_whatif_answer(ms_ctx *cx, const ms_args *args, ms_what_if_question *question,
                           ms_what_if *out)
{
    watcher w = {args};
    bool shows = ms_progress_is_shown(args);
    question->num_threads = ms_args_threads(args);
    question->interrupted = &ms_interrupted;
    question->progress = shows ? show_progress : NULL;
    question->payload = &w;
    ms_status status = ms_what_if_find(cx, question, out);
    if (shows)
        ms_progress_clear(args);
    return status;
}
