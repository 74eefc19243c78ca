/* A training campaign: days, GPU-hours, money, energy and CO2 of training a model to the
 * end with one plan, interruptions included. */
#ifndef MS_COSTMODEL_CAMPAIGN_CAMPAIGN_H
#define MS_COSTMODEL_CAMPAIGN_CAMPAIGN_H

#include "costmodel/campaign/goodput.h"

/* Terms of a campaign that no plan determines; NaN: not known, and so is all that depends
 * on it. */
typedef struct ms_campaign_terms {
    double tokens;            /* that the model is to see */
    double gpu_hour_price;    /* in the user's currency */
    double gpu_power_w;       /* a GPU's, with its share of the node and network */
    double pue;               /* power of the data centre / power of its computers */
    double co2_kg_per_kwh;    /* the grid emits */
    double gpu_mean_s;        /* mean time between interruptions by one GPU of the job */
    double restart_s;         /* detection, scheduling, loading, first steps */
    double repair_s;          /* time in which a failed node returns */
    double write_bytes_per_s; /* bandwidth to storage, whole job */
    double checkpoint_s;      /* for which a checkpoint stops the job; NaN: its writing */
} ms_campaign_terms;

/* A plan's step, as predicted. */
typedef struct ms_campaign_step {
    double step_s, step_low_s, step_high_s; /* low, high: 90 % interval; NaN: none */
    double tokens;
    double checkpoint_bytes; /* weights and optimizer states of the whole job */
    long gpus, gpus_per_node;
} ms_campaign_step;

typedef struct ms_campaign {
    double num_steps;
    double useful_s; /* time of the steps alone */
    double elapsed_s, elapsed_low_s, elapsed_high_s;
    double gpu_hours; /* the GPUs of the job and the spare ones */
    double cost, energy_kwh, co2_kg;
    /* interruptions */
    ms_interruptions job;
    double interval_steps; /* best whole number of steps between checkpoints */
    double goodput_frac;
    double num_interruptions; /* expected */
    double spare_nodes;       /* more are away in less than 5 % of the time */
} ms_campaign;

/* The campaign of a plan under `terms`. Every GPU interrupts the job independently of the
 * others, at a constant rate; failed nodes are replaced by spare ones, whose number is the
 * 95th percentile of a Poisson variable with mean (nodes failing in `repair_s`). Energy
 * counts all hours at full power. */
ms_campaign ms_campaign_of(const ms_campaign_terms *terms, const ms_campaign_step *step);

#endif
