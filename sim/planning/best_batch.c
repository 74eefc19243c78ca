/* Many questions for fastest plans: threads take one after the other. */
#include "sim/planning/best_plan.h"

#include "base/workers.h"

#include <pthread.h>

typedef struct crew {
    const ms_best_batch *batch;
    ms_best_plan *answers;
    ms_ctx *cx; /* context of the caller, used under the lock */
    int threads_each;
    int next, num_answered;
    ms_status status; /* status of the first failure */
    pthread_mutex_t lock;
} crew;

/* The index of the next question; -1: none is left, or work has to stop. */
static int take(crew *c)
{
    const ms_best_batch *batch = c->batch;
    pthread_mutex_lock(&c->lock);
    while (c->next < batch->num && batch->known != NULL && batch->known[c->next])
        c->next++;
    bool stop = c->status != MS_OK || ms_is_interrupted(batch->interrupted);
    int index = stop || c->next >= batch->num ? -1 : c->next++;
    pthread_mutex_unlock(&c->lock);
    return index;
}

/* Puts an answer of a thread into the caller's arena, which outlives the thread's. */
static ms_status keep(ms_ctx *cx, const ms_best_question *question,
                      const ms_best_plan *answer, ms_best_plan *out)
{
    if (answer->found) {
        MS_TRY(ms_best_plan_again(cx, question, &answer->plan, out));
        out->optimal = answer->optimal;
        out->open_bound_s = answer->open_bound_s;
        return MS_OK;
    }
    *out = *answer;
    out->reason = ms_arena_strdup(cx->arena, answer->reason);
    return MS_OK;
}

static ms_status fail_as(ms_ctx *cx, const ms_ctx *thread, ms_status status)
{
    ms_fail(cx, status, MS_NOWHERE, "%s",
            ms_arena_strdup(cx->arena, thread->first->message));
    return status;
}

/* Records the outcome of a question. The caller holds the lock. */
static ms_status record(crew *c, int index, const ms_ctx *thread, ms_status status,
                        ms_best_plan *answer)
{
    if (status == MS_EINTERRUPTED)
        return MS_OK; /* counted as missing */
    if (status == MS_EINPUT)
        answer->reason = thread->first->message;
    else if (status != MS_OK)
        return fail_as(c->cx, thread, status);
    const ms_best_batch *batch = c->batch;
    MS_TRY(keep(c->cx, &batch->questions[index], answer, &c->answers[index]));
    c->num_answered++;
    return batch->answered == NULL
               ? MS_OK
               : batch->answered(batch->payload, index, &c->answers[index]);
}

static void answer_one(crew *c, int index)
{
    ms_ctx thread = ms_ctx_quiet(c->cx, ms_arena_open());
    ms_search_options options = {.num_threads = c->threads_each,
                                 .interrupted = c->batch->interrupted};
    ms_best_plan answer = {0};
    ms_status status =
        ms_best_plan_find(&thread, &c->batch->questions[index], &options, &answer);
    pthread_mutex_lock(&c->lock);
    status = record(c, index, &thread, status, &answer);
    if (c->status == MS_OK)
        c->status = status;
    pthread_mutex_unlock(&c->lock);
    ms_arena_close(thread.arena);
}

static void work(void *payload)
{
    crew *c = payload;
    for (int index; (index = take(c)) >= 0;)
        answer_one(c, index);
}

static int num_open(const ms_best_batch *batch)
{
    int num = 0;
    for (int i = 0; i < batch->num; i++)
        num += batch->known == NULL || !batch->known[i];
    return num;
}

ms_status ms_best_batch_answer(ms_ctx *cx, const ms_best_batch *batch,
                               ms_best_plan *answers, int *num_answered)
{
    int open = num_open(batch);
    crew c = {.batch = batch,
              .answers = answers,
              .cx = cx,
              .threads_each =
                  open > 0 && open < batch->num_threads ? batch->num_threads / open : 1};
    pthread_mutex_init(&c.lock, NULL);
    int num_threads = open < batch->num_threads ? open : batch->num_threads;
    ms_workers_run(num_threads, work, &c);
    pthread_mutex_destroy(&c.lock);
    *num_answered = c.num_answered;
    if (c.status != MS_OK)
        return c.status;
    if (c.num_answered == open)
        return MS_OK;
    return ms_fail(cx, MS_EINTERRUPTED, MS_NOWHERE,
                   "interrupted: %d of %d searches are complete",
                   batch->num - open + c.num_answered, batch->num);
}
