/* Schedule families, in small files, and the action lists that they fill. */
#ifndef MS_COSTMODEL_SCHEDULE_SCHEDULE_PRIV_H
#define MS_COSTMODEL_SCHEDULE_SCHEDULE_PRIV_H

#include "costmodel/schedule/schedule.h"

/* A growing list of one rank's actions. */
typedef struct ms_action_list {
    ms_arena *arena;
    ms_action *actions;
    int num, capacity;
} ms_action_list;

void ms_action_push(ms_action_list *list, ms_action action);
void ms_action_add(ms_action_list *list, ms_action_kind kind, int stage, int microbatch);
/* Appends an overlapped pair of a forward and a whole backward to a rank's list. */
void ms_action_add_pair(ms_action_list *list, int stage, int microbatch,
                        int backward_stage, int backward_microbatch);

typedef struct ms_schedule_family {
    /* other names, ended by NULL: PyTorch's class names with and without "Schedule",
     * Megatron-LM's options and functions, those of papers. Hyphens, underscores and
     * letter case do not count. */
    const char *const *aliases;
    ms_schedule_traits traits;
    /* Why the family refuses a shape, whose virtual stages are within traits; returns
     * NULL if allowed. NULL instead of a function: all these shapes are allowed. */
    const char *(*objection)(const ms_schedule_shape *shape);
    /* Fills the action list of a rank; NULL: `fill` fills the lists of all ranks. */
    void (*fill_rank)(const ms_schedule_shape *shape, int rank, ms_action_list *list);
    void (*fill)(const ms_schedule_shape *shape, ms_arena *scratch,
                 ms_action_list *lists);
} ms_schedule_family;

#define MS_ALIASES(...)                                                                  \
    .aliases = (const char *const[])                                                     \
    {                                                                                    \
        __VA_ARGS__, NULL                                                                \
    }
#define MS_NO_ALIASES                                                                    \
    .aliases = (const char *const[])                                                     \
    {                                                                                    \
        NULL                                                                             \
    }

#define MS_FAMILY(kind, name, family) extern const ms_schedule_family ms_family_##family;
MS_SCHEDULES(MS_FAMILY)
#undef MS_FAMILY
extern const ms_schedule_family ms_family_custom;

/* The actions of one rank, in the order of execution. */
typedef struct ms_rank_actions {
    const ms_action *actions;
    int num;
} ms_rank_actions;
/* The actions of a rank: those listed, or, in an outline, those that its family fills
 * `list` with. */
ms_rank_actions ms_schedule_rank_actions(const ms_schedule *schedule, int rank,
                                         ms_action_list *list);
/* Fills the slots of a schedule. False if its lists deadlock; `stuck` (may be NULL) then
 * gets each rank's first action that cannot run (num_ranks indices into actions, -1: the
 * rank is done). */
bool ms_schedule_find_slots(ms_arena *arena, ms_schedule *schedule, int *stuck);

/* Whether a schedule of the shape can be listed, in whole or condensed. */
bool ms_schedule_can_condense(const ms_schedule_shape *shape);

/* Why a family with stages in a loop refuses the shape; NULL: it does not. */
const char *ms_loop_objection(const ms_schedule_shape *shape);
/* The k-th forward (or backward) of a rank in interleaved 1F1B. Source: Megatron-LM
 * schedules.py, get_schedule_table. */
ms_action ms_interleaved_action(const ms_schedule_shape *shape, ms_action_kind kind,
                                int rank, int k);

#endif
