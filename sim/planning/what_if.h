/* Sensitivity: how a step, and with a campaign days and money, change when hardware,
 * efficiencies or prices are different, with a plan that is kept and with the best plan
 * searched again; and what the next GPU, NIC and GiB are worth (docs/formulas 14.4). */
#ifndef MS_SIM_PLANNING_WHAT_IF_H
#define MS_SIM_PLANNING_WHAT_IF_H

#include "base/figure.h"
#include "sim/planning/best_plan.h"

typedef struct ms_what_if_question {
    ms_best_question job; /* a job without files */
    const ms_plan *given; /* legal plan of the job to keep; NULL: its fastest plan */
    double change_frac;   /* numbers become 1 - this and 1 + this times as large */
    bool search_all;      /* search again for every number, not those of largest effect */
    double gpu_hour_price; /* NaN: that of the cluster's file */
    int num_threads;
    const volatile int *interrupted; /* nonzero: stop; NULL: never */
    /* Called for each search that is done. NULL: not called. */
    void (*progress)(void *payload, int num_done, int num);
    void *payload;
} ms_what_if_question;

/* A job after a change. Plans that are illegal then, or do not fit, are not found,
 * and `reason` says why. */
typedef struct ms_what_if_outcome {
    ms_best_plan kept;   /* the plan that is kept */
    ms_best_plan former; /* the fastest plan of the job as it is */
    bool searched;       /* `best` and `plan_changes` are known */
    /* the fastest plan: of the search, `kept` and `former`. These two have the layers of
     * each stage that they had; a search splits layers anew, which may be slower */
    ms_best_plan best;
    bool plan_changes; /* `best` is faster than `former` */
} ms_what_if_outcome;

typedef enum ms_what_if_side {
    MS_WHAT_IF_LOW,
    MS_WHAT_IF_HIGH,
    MS_WHAT_IF_SIDES
} ms_what_if_side;

/* A number, and the job with it lower and higher; each alone, the others as they are. */
typedef struct ms_what_if_number {
    /* "cluster hgx-h100", "profile h100-sxm" or "campaign"; of a mixed cluster those of each
     * group, and the cluster's own for the network between them */
    const char *file;
    const char *key, *help;
    ms_unit unit;
    double value;                     /* value now */
    double changed[MS_WHAT_IF_SIDES]; /* values on each side */
    bool limited[MS_WHAT_IF_SIDES]; /* less was changed than asked: the rest is illegal */
    ms_what_if_outcome sides[MS_WHAT_IF_SIDES];
    /* largest less least measure, of both sides and the job as it is, over that of the
     * job as it is; of the kept plan or, where it is none, the best one; infinite: on a
     * side nothing fits */
    double swing_frac;
} ms_what_if_number;

typedef struct ms_what_if_edit {
    const char
        *key; /* key of the number with its file: "cluster levels.leaf.bandwidth" */
    ms_unit unit;
    double from, to;
} ms_what_if_edit;

/* Edits of each group of a cluster, and of the network between them. */
#define MS_WHAT_IF_EDITS (2 * MS_MAX_LEVELS * (MS_MAX_DEVICE_KINDS + 1))

/* A named change of the hardware. */
typedef struct ms_what_if_hardware {
    const char *name;
    const char *reason; /* why it cannot be applied to the cluster; NULL: it can */
    int num_edits;
    ms_what_if_edit edits[MS_WHAT_IF_EDITS];
    ms_what_if_outcome outcome;
    double gain_frac; /* ms_what_if_gain_frac of the best plan; NaN: none */
} ms_what_if_hardware;

typedef enum ms_what_if_good {
    MS_WHAT_IF_GPU,
    MS_WHAT_IF_NIC, /* one NIC of a node */
    MS_WHAT_IF_GIB, /* memory of one GPU */
    MS_WHAT_IF_GOODS
} ms_what_if_good;
/* "GPU" "NIC" "GiB", NULL-ended */
extern const char *const ms_what_if_good_names[];

/* Value of more of a good: the smallest step of it with which the best plan gets
 * faster. */
typedef struct ms_what_if_value {
    bool found;         /* there is such a step, below the largest that was tried */
    const char *reason; /* why there is none; NULL */
    double tried;       /* largest step that was tried: GPUs, NICs a node, GiB a GPU */
    double step;        /* GPUs, NICs a node, GiB a GPU */
    double units;       /* number of the good in the whole job by this step */
    ms_best_plan best;
    double gain_frac;         /* throughput with / without the step - 1 */
    double gpu_hours_per_day; /* GPU-hours a day that give as much */
    double money_per_day;     /* NaN: no price */
    double net_gpu_hours_per_day, net_money_per_day; /* less what added GPUs cost */
} ms_what_if_value;

/* Measure that orders the numbers: the money of a campaign if it is known, otherwise its days
 * or, without a campaign, the step. */
typedef enum ms_what_if_measure {
    MS_WHAT_IF_STEP,
    MS_WHAT_IF_TIME,
    MS_WHAT_IF_COST,
    MS_WHAT_IF_MEASURES
} ms_what_if_measure;
/* "step_s" "elapsed_s" "cost", NULL-ended */
extern const char *const ms_what_if_measure_names[];

typedef struct ms_what_if {
    double change_frac, gpu_hour_price; /* price: NaN if unknown */
    ms_what_if_measure measure;
    ms_plan job; /* the job's base plan */
    const char
        *profile;  /* name of the profile in use; on a mixed cluster of each group's */
    bool is_given; /* `kept` is a user's plan, not the fastest */
    ms_best_plan best; /* the fastest of the job as it is; may be not found */
    ms_best_plan kept; /* not found if `best` is not and no plan was given */
    int num_numbers;
    ms_what_if_number *numbers; /* (num_numbers): largest swing first */
    int num_without_effect;     /* numbers left out: they change nothing */
    int num_hardware;
    ms_what_if_hardware *hardware; /* (num_hardware) */
    ms_what_if_value values[MS_WHAT_IF_GOODS];
} ms_what_if;

/* Answers a question into *out; arrays live in cx->arena. MS_ENOFIT: no plan fits, or the
 * given one does not, with the reason in out->best or out->kept and no numbers.
 * MS_EINTERRUPTED: searches are missing. MS_EINPUT: bad input. */
ms_status ms_what_if_find(ms_ctx *cx, const ms_what_if_question *question,
                          ms_what_if *out);

/* A plan's value of a measure: seconds, seconds, money; NaN: not found or unknown. */
double ms_what_if_value_of(ms_what_if_measure measure, const ms_best_plan *plan);
/* Throughput of `plan` over that of `before`, less 1: of the campaign if there is one,
 * otherwise of the steps. NaN: one is not found. */
double ms_what_if_gain_frac(const ms_best_plan *before, const ms_best_plan *plan);

#endif
