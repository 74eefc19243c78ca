/* Files of named tensors: safetensors (huggingface/safetensors README.md, "Format"): 8
 * bytes little-endian length, a JSON header, raw little-endian data. */
#ifndef MS_EXEC_SAFETENSORS_H
#define MS_EXEC_SAFETENSORS_H

#include "base/json.h"

typedef enum ms_safe_type {
    MS_SAFE_F64,
    MS_SAFE_F32,
    MS_SAFE_BF16,
    MS_SAFE_F16,
    MS_SAFE_I64,
    MS_SAFE_I32,
    MS_NUM_SAFE_TYPES
} ms_safe_type;
/* "F64" "F32" "BF16" "F16" "I64" "I32", NULL */
extern const char *const ms_safe_type_names[];

#define MS_SAFE_DIMS 4
typedef struct ms_safe_tensor {
    const char *name;
    ms_safe_type type;
    int num_dims;
    long shape[MS_SAFE_DIMS];
    long count;
    const double *values; /* converted; exact for all types but I64 beyond 2^53 */
} ms_safe_tensor;

typedef struct ms_safe_file {
    int num_tensors;
    ms_safe_tensor *tensors; /* in the order of their data */
} ms_safe_file;

/* MS_EIO: cannot be read. MS_EINPUT: header or offsets are wrong (overlaps, holes, sizes
 * that do not fit, more than 4 dims, unknown types), with what and where. Lives in cx->arena. */
ms_status ms_safetensors_load(ms_ctx *cx, const char *path, ms_safe_file *out);
/* The same from memory, for fuzzing. */
ms_status ms_safetensors_read(ms_ctx *cx, const char *name, const unsigned char *data,
                              size_t length, ms_safe_file *out);
const ms_safe_tensor *ms_safe_find(const ms_safe_file *file,
                                   const char *name); /* NULL: absent */
/* Tensors are written in the order of their names, values converted to their type; the
 * file appears only when it is complete. */
ms_status ms_safetensors_write(ms_ctx *cx, const char *path, const ms_safe_file *file);

#endif
