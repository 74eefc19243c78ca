/* Cases of layer programs over the small models: their keys, and failures counted over
 * all cases of a test, so that one run shows every case that is wrong. */
#ifndef MS_TESTS_SUPPORT_PROGRAM_CASES_H
#define MS_TESTS_SUPPORT_PROGRAM_CASES_H

#include "costmodel/program/program.h"
#include "tests/support/small_models.h"

#define MS_CASE_MICROBATCH 2

/* Dense models first, then those with experts. */
ms_model ms_case_model(int i);
/* Nothing is split. */
ms_program_key ms_case_whole_key(ms_block_kind part);
/* tp 2 x cp 2. */
ms_program_key ms_case_split_key(ms_block_kind part);
/* A program that is not sound counts as a failure. */
const ms_program *ms_case_program(ms_arena *arena, const ms_model *model,
                                  const ms_program_key *key, long data_parallel);
/* A copy whose tensors and nodes may be changed. */
ms_program *ms_case_copy(ms_arena *arena, const ms_program *program);
const char *ms_case_describe(ms_arena *arena, const ms_model *model,
                             const ms_program_key *key);

/* Before a test: forgets earlier failures. A cmocka setup function. */
int ms_case_start(void **state);
/* Prints and counts one failure. */
void ms_case_wrong(const char *label, const char *what);
int ms_case_num_wrong(void);

#endif
