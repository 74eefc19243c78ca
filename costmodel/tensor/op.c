#include "costmodel/tensor/op.h"

#include <stddef.h>

const char *const ms_op_names[] = {
    "einsum",
    "bias",
    "sum-to",
    "add",
    "dropout-grad",
    "norm",
    "norm-grad",
    "rotary",
    "attention",
    "attention-grad",
    "sink-grad",
    "mla-keys",
    "mla-keys-grad",
    "activation",
    "activation-grad",
    "embed",
    "embed-grad",
    "loss-max",
    "loss-sum",
    "loss",
    "loss-grad",
    "route",
    "route-grad",
    "expert-bias",
    "expert-bias-grad",
    "permute",
    "permute-grad",
    "exchange",
    "grouped",
    "unpermute",
    "unpermute-grad",
    "gate",
    "gate-grad",
    "scan",
    "scan-grad",
    "group-norm",
    "group-norm-grad",
    "concat",
    "concat-grad",
    "redistribute",
    "adam",
    NULL,
};
_Static_assert(sizeof ms_op_names / sizeof *ms_op_names == MS_NUM_OPS + 1,
               "every operation has a name");

bool ms_op_is_pointwise(ms_op op)
{
    return op != MS_OP_EINSUM && op != MS_OP_GROUPED && op != MS_OP_ATTENTION &&
           op != MS_OP_ATTENTION_GRAD && op != MS_OP_SCAN && op != MS_OP_SCAN_GRAD &&
           op != MS_OP_REDISTRIBUTE && op != MS_OP_EXCHANGE;
}
