/* Threads that work on one thing together. */
#ifndef MS_BASE_WORKERS_H
#define MS_BASE_WORKERS_H

/* Calls work(payload) in num_threads threads at once, the calling one among them, or in
 * fewer if no more can be started, and returns when all have. They share the caller's
 * guard of memory (base/arena.h) and its locale. */
void ms_workers_run(int num_threads, void (*work)(void *payload), void *payload);

#endif
