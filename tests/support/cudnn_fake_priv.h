/* Shared by the two files of the fake cuDNN: descriptors and their attributes. */
#ifndef MS_TESTS_SUPPORT_CUDNN_FAKE_PRIV_H
#define MS_TESTS_SUPPORT_CUDNN_FAKE_PRIV_H

#include "tests/support/cudnn_fake.h"

#include <stdbool.h>

#define FAKE_MOST_ATTRIBUTES 16

typedef struct fake_attribute {
    cudnnBackendAttributeName_t name;
    int64_t count;
    void *values;
} fake_attribute;

typedef struct fake_desc {
    cudnnBackendDescriptorType_t type;
    bool is_final;
    int num_attributes;
    fake_attribute attributes[FAKE_MOST_ATTRIBUTES];
    struct fake_desc *graph; /* graph of an engine's configuration */
    int rank;                /* place of a configuration in the heuristic's list */
} fake_desc;

void cudnn_fake_defect(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The values of an attribute; NULL: not set. */
const void *cudnn_fake_values(const fake_desc *d, cudnnBackendAttributeName_t name,
                              int64_t *count);
/* The descriptor that an attribute names; NULL: not set. */
fake_desc *cudnn_fake_part(const fake_desc *d, cudnnBackendAttributeName_t name);
/* Executes a graph with a variant pack: cudnn_fake_run.c. */
void cudnn_fake_run(const fake_desc *graph, const fake_desc *pack);

#endif
