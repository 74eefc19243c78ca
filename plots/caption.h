/* Titles, captions and units that several plots share. */
#ifndef MS_PLOTS_CAPTION_H
#define MS_PLOTS_CAPTION_H

#include "sim/simulate/simulation.h"

/* A unit for times up to `largest_s`: "s", "ms" or "us", and how many make a second. */
typedef struct ms_time_unit {
    const char *name;
    double per_s;
} ms_time_unit;
ms_time_unit ms_time_unit_of(double largest_s);
/* A time as text in a suitable unit: "412 ms". */
char *ms_caption_time(ms_arena *arena, double time_s);

/* Names of the memory categories in full words, NULL-ended. */
extern const char *const ms_memory_category_titles[];

/* The file name of a model, cluster or plan without folder and ".json". */
const char *ms_caption_name(ms_arena *arena, const char *name_or_path);
/* The plan's axes larger than 1, then ep and etp: "pp 4 · tp 8"; "1 GPU" if none. */
char *ms_caption_axes(ms_arena *arena, const ms_plan *plan);
/* Model and devices of a plan: "llama-3.1-70b on 512 × H100 SXM5 80GB". */
char *ms_caption_job(ms_arena *arena, const ms_plan *plan, const ms_workload *workload);
/* Number of micro-batches of a plan: "1 micro-batch", "8 micro-batches". */
const char *ms_caption_microbatches(ms_arena *arena, const ms_plan *plan);
/* Choices of a plan apart from its axes: "zero 1 · mbs 1 · 1f1b · recompute full". */
const char *ms_caption_choices(ms_arena *arena, const ms_plan *plan);
/* Disturbances of a simulation, and its engine unless that is the replay, as text: " ·
 * rank 5 computes 1.3 times as long"; "" for none. */
const char *ms_caption_disturbance(ms_arena *arena, const ms_simulation *simulation);
/* Breaks a text at " · " into lines of at most `most` bytes where possible. */
char *ms_caption_wrap(ms_arena *arena, const char *text, size_t most);

/* Number of lines of a text; 0 for an empty one. */
int ms_caption_lines(const char *text);

#endif
