#include "base/workers.h"

#include "base/arena.h"

#include <locale.h>
#include <pthread.h>

typedef struct crew {
    void (*work)(void *payload);
    void *payload;
    ms_memory_guard *guard;
    locale_t locale;
} crew;

static void *begin(void *payload)
{
    const crew *c = payload;
    (void)ms_memory_guard_join(c->guard, true);
    (void)uselocale(c->locale);
    c->work(c->payload);
    return NULL;
}

void ms_workers_run(int num_threads, void (*work)(void *payload), void *payload)
{
    crew c = {work, payload, ms_memory_guard_current(), uselocale((locale_t)0)};
    ms_arena *scratch = ms_arena_open();
    pthread_t *threads = MS_NEW_ARRAY(scratch, num_threads, pthread_t);
    int started = 0;
    while (started < num_threads - 1 &&
           pthread_create(&threads[started], NULL, begin, &c) == 0)
        started++;
    if (started > 0) {
        bool before = ms_memory_guard_join(c.guard, true);
        work(payload);
        (void)ms_memory_guard_join(c.guard, before);
    } else {
        work(payload);
    }
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    ms_arena_close(scratch);
}
