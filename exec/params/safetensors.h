/* Files of named tensors in the safetensors format (huggingface/safetensors README.md,
 * "Format"): 8 bytes of little-endian length, a JSON header, raw little-endian data. */
#ifndef MS_EXEC_PARAMS_SAFETENSORS_H
#define MS_EXEC_PARAMS_SAFETENSORS_H

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
/* "F64" "F32" "BF16" "F16" "I64" "I32", ended by NULL */
extern const char *const ms_safe_type_names[];

#define MS_SAFE_DIMS 4
typedef struct ms_safe_tensor {
    const char *name;
    ms_safe_type type;
    int num_dims;
    long shape[MS_SAFE_DIMS];
    long count;
    const double *values; /* elements as doubles; exact except for I64 beyond 2^53 */
} ms_safe_tensor;

typedef struct ms_safe_file {
    int num_tensors;
    ms_safe_tensor *tensors; /* in the order of their data in the file */
} ms_safe_file;

/* Reads a file into cx->arena. MS_EIO if it cannot be read; MS_EINPUT, with position, for
 * a wrong header or offsets (overlaps, gaps, sizes, types, more than 4 dims). */
ms_status ms_safetensors_load(ms_ctx *cx, const char *path, ms_safe_file *out);
/* Reads a safetensors file's content from memory; `name` is the file's in messages. */
ms_status ms_safetensors_read(ms_ctx *cx, const char *name, const unsigned char *data,
                              size_t length, ms_safe_file *out);
const ms_safe_tensor *ms_safe_find(const ms_safe_file *file,
                                   /* NULL if there is no such tensor */
                                   const char *name);
/* Writes tensors sorted by name; the file appears once it is complete. MS_EIO. */
ms_status ms_safetensors_write(ms_ctx *cx, const char *path, const ms_safe_file *file);

#endif
