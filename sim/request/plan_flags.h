/* Limit of the number of GPUs that command-line options accept. */
#ifndef MS_SIM_REQUEST_PLAN_FLAGS_H
#define MS_SIM_REQUEST_PLAN_FLAGS_H

/* 2^24; products of axes are exact in a double far beyond it. */
#define MS_MAX_GPUS 16777216

#endif
