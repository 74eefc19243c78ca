/* Layer programs of the small models (tests/support/small_models.h) for tests: their
 * keys, and a count of failures over all cases of a test, so that one run shows every
 * wrong case. */
#ifndef MS_TESTS_SUPPORT_PROGRAM_CASES_H
#define MS_TESTS_SUPPORT_PROGRAM_CASES_H

#include "costmodel/program/program.h"
#include "tests/support/small_models.h"

#define MS_CASE_MICROBATCH 2

/* Small model i: dense models first, then those with experts. */
ms_model ms_case_model(int i);
/* Key of an unsharded program. */
ms_program_key ms_case_whole_key(ms_block_kind part);
/* Key of a program with tp 2 and cp 2. */
ms_program_key ms_case_split_key(ms_block_kind part);
/* Makes a program; an unsound one counts as a failure. */
const ms_program *ms_case_program(ms_arena *arena, const ms_model *model,
                                  const ms_program_key *key, long data_parallel);
/* Copies a program, so that its tensors and nodes may be changed. */
ms_program *ms_case_copy(ms_arena *arena, const ms_program *program);
const char *ms_case_describe(ms_arena *arena, const ms_model *model,
                             const ms_program_key *key);

/* cmocka setup function: resets the count of failures. */
int ms_case_start(void **state);
/* Prints and counts one failure. */
void ms_case_wrong(const char *label, const char *what);
int ms_case_num_wrong(void);

#endif
