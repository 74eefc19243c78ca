/* Layer programs of published models on small meshes, for tests against published
 * counts. */
#ifndef MS_TESTS_ORACLE_PUBLISHED_PROGRAMS_H
#define MS_TESTS_ORACLE_PUBLISHED_PROGRAMS_H

#include "costmodel/program/program_check.h"
#include "tests/test.h"

#define SEQUENCE 4096

static inline const ms_model *model_named(ms_ctx *cx, const char *name)
{
    const ms_model *model;
    ASSERT_OK(ms_model_load(cx, name, &model), cx);
    return model;
}

static inline ms_program_key key_of(ms_block_kind part, int tp, bool sequence_parallel)
{
    return (ms_program_key){.block = (unsigned char)part,
                            .sequence_parallel = sequence_parallel,
                            .loss_parallel = true,
                            .attention_fused = true,
                            .regather = true,
                            .recompute = MS_RECOMPUTE_NONE,
                            .tp = (short)tp,
                            .cp = 1,
                            .ep = 1,
                            .etp = 1,
                            .microbatch = 1};
}

static inline const ms_program *make(ms_ctx *cx, const ms_model *model,
                                     ms_program_key key, long dp)
{
    const ms_program *program =
        ms_program_make(cx->arena, model, &key, SEQUENCE, dp, MS_BF16);
    ms_check_finding finding;
    if (!ms_program_check(program, &finding))
        fail_msg("%s", finding.text);
    return program;
}

#endif
