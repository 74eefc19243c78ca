/* Words that several plots share. */
#ifndef MS_PLOTS_CAPTION_H
#define MS_PLOTS_CAPTION_H

#include "sim/simulation.h"

/* A unit in which values up to `largest_s` are easy to read: "s", "ms" or "us" with its
 * factor. */
typedef struct ms_time_unit {
    const char *name;
    double per_s;
} ms_time_unit;
ms_time_unit ms_time_unit_of(double largest_s);

/* Parts of memory in full words, NULL-ended. */
extern const char *const ms_memory_part_titles[];

/* The name of a file without folder and ".json". */
const char *ms_caption_name(ms_arena *arena, const char *name_or_path);
/* "pp 4 · dp_shard 16 · tp 8": axes larger than 1, in the plan's order, with ep and
 * etp. */
char *ms_caption_axes(ms_arena *arena, const ms_plan *plan);
/* "llama-3.1-70b on 512 × H100 SXM5 80GB" */
char *ms_caption_job(ms_arena *arena, const ms_plan *plan, const ms_workload *workload);
/* "1 micro-batch" */
const char *ms_caption_microbatches(ms_arena *arena, const ms_plan *plan);
/* "zero 1 · mbs 1 · 1f1b · recompute full" */
const char *ms_caption_choices(ms_arena *arena, const ms_plan *plan);
/* " · rank 5 computes 1.3 times as long": what disturbs a simulation, and its engine
 * unless that is the replay; "" for nothing. */
const char *ms_caption_disturbance(ms_arena *arena, const ms_simulation *simulation);
/* Breaks at " · " so that lines have at most `most` bytes where that is possible. */
char *ms_caption_wrap(ms_arena *arena, const char *text, size_t most);

#endif
