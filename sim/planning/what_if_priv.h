/* Parts of a what-if study: each lists its changes and asks for searches, which are
 * answered together, and then reads the answers. */
#ifndef MS_SIM_PLANNING_WHAT_IF_PRIV_H
#define MS_SIM_PLANNING_WHAT_IF_PRIV_H

#include "sim/planning/what_if.h"

/* A relative difference of step times below this is rounding. */
#define MS_WHAT_IF_ROUNDING 1e-9

typedef struct ms_what_if_search {
    ms_best_question question;
    ms_what_if_outcome *outcome; /* where its answer goes */
} ms_what_if_search;

typedef struct ms_what_if_study {
    ms_ctx *cx;
    const ms_what_if_question *question;
    const ms_workload *workload; /* files of the job as it is */
    const ms_cluster *cluster;   /* the whole cluster, unchanged */
    ms_what_if *out;
    int num_searches, capacity;
    ms_what_if_search *searches;
} ms_what_if_study;

/* The files of a job's hardware, as they are or changed. */
typedef struct ms_what_if_files {
    int num; /* groups of a mixed cluster; 1: the cluster is not mixed */
    ms_cluster clusters[MS_MAX_DEVICE_KINDS]; /* (num): whole clusters, not the job's */
    ms_profile profiles[MS_MAX_DEVICE_KINDS]; /* (num) */
    /* the network between groups as its only stated level, levels[1]; without name if the
     * cluster is not mixed */
    ms_cluster between;
} ms_what_if_files;

/* Copies of the job's files, in the arena. */
ms_what_if_files *ms_what_if_files_of(const ms_what_if_study *study);
/* The job with other hardware; NULL: unchanged. Lives in the arena, and refers to `files`. */
ms_best_question ms_what_if_changed(const ms_what_if_study *study,
                                    const ms_what_if_files *files);
/* Predicts outcome->kept and outcome->former for a changed job. */
void ms_what_if_keep(const ms_what_if_study *study, const ms_best_question *question,
                     ms_what_if_outcome *outcome);
/* Asks for the fastest plan of a changed job, whose kept plans are predicted; `outcome`
 * must stay where it is. */
void ms_what_if_ask(ms_what_if_study *study, const ms_best_question *question,
                    ms_what_if_outcome *outcome);
/* Searches one changed job at once, with all threads. */
ms_status ms_what_if_search_now(const ms_what_if_study *study,
                                const ms_best_question *question, ms_best_plan *out);
/* Whether plan `a` takes less time than `b` by more than rounding. */
bool ms_what_if_is_faster(const ms_best_plan *a, const ms_best_plan *b);

/* Numbers (what_if_numbers.c). */
void ms_what_if_list_numbers(ms_what_if_study *study);
void ms_what_if_order_numbers(ms_what_if_study *study);

/* Named hardware (what_if_hardware.c). */
void ms_what_if_list_hardware(ms_what_if_study *study);
void ms_what_if_judge_hardware(ms_what_if_study *study);

/* Values (what_if_value.c). `tries`: steps of goods whose searches were asked for. */
typedef struct ms_what_if_tries ms_what_if_tries;
ms_what_if_tries *ms_what_if_list_steps(ms_what_if_study *study);
ms_status ms_what_if_judge_steps(ms_what_if_study *study, ms_what_if_tries *tries);

#endif
