/* A plan's results as one HTML page: the answer first, then what it rests on. */
#ifndef MS_CLI_PAGE_PAGE_H
#define MS_CLI_PAGE_PAGE_H

#include "plots/timeline_data.h"
#include "sim/explain/advise.h"
#include "sim/planning/plan_sweep.h"
#include "sim/request/campaign_options.h"
#include "sim/result/result_file.h"

/* A file of a search: its plans, and how they were found. */
typedef struct ms_page_search {
    ms_results plans;       /* the list, the reported plan first */
    const double *gap_frac; /* (plans.num): step time above the optimum's; NaN: unknown */
    bool has_certificate, optimal;
    double best_step_s; /* the fastest plan's */
    double band_frac;   /* plans less slower than the fastest by this are tied; NaN */
    double min_fit;     /* least probability with which a listed plan fits; NaN */
    double num_meshes, num_configurations; /* looked at; NaN: not stated */
    const char *command;                   /* which repeats the search */
} ms_page_search;

/* A job of a sweep; figures are NaN if they are not known. */
typedef struct ms_page_point {
    const char *model, *cluster;
    double gpus, sequence_length, global_batch;
    bool found, optimal, keeps_limits; /* keeps_limits: deadline and budget */
    const char *reason;                /* why no plan was found; NULL */
    const char *broken_limit;          /* which, and by how much; NULL */
    double step_s, tokens_per_s, mfu_frac, peak_bytes;
    double elapsed_s, gpu_hours, cost;
} ms_page_point;

/* A file of a sweep, one task after the other, each with as many points; or the sizes of a
 * search with an objective, which are one task. */
typedef struct ms_page_sweep {
    const char *about; /* a sentence that says what the points are */
    int num, num_tasks;
    const ms_page_point *points;         /* (num) */
    const ms_plan_sweep_choice *choices; /* (num_tasks) */
    int reported;                        /* the point of the page */
    const char *command; /* which repeats that point's search; NULL: none */
} ms_page_sweep;

typedef struct ms_page {
    ms_arena *arena;
    const char *path; /* file that the plan was read from; NULL: flags */
    const char *kind; /* "plan", "search", "prediction", "sweep" */
    const ms_plan *plan;
    const ms_workload *workload;
    const ms_prediction *prediction;
    double file_step_s; /* step time that the file states; NaN: none */
    const ms_explanation *explanation;
    const ms_advice *advice;
    const ms_timeline *timeline; /* NULL: `no_timeline` says why */
    const char *no_timeline;
    const ms_campaign_answer *campaign; /* NULL: not asked for */
    bool file_has_campaign;             /* the file's plans were found with one */
    const ms_page_search *search;       /* NULL: the file is no search */
    const ms_page_sweep *sweep;         /* NULL: the file has one job alone */
    const ms_kept_notes *notes;         /* defaults and notes of the command */
    const char *command;                /* "meshsim report ...", which repeats the page */
} ms_page;

/* "llama-3.1-70b on 64 GPUs of hgx-h100" */
const char *ms_page_title(const ms_page *page);

/* The plan's layout as a sentence: how many ranks share what. */
const char *ms_page_layout_text(const ms_page *page);

/* Writes the page, valid HTML and at the same time well-formed XML. Equal input gives
 * equal bytes. */
void ms_page_write(FILE *out, const ms_page *page);

#endif
