/* Reads and writes safetensors files; the header is checked before data are read. */
#include "exec/params/safetensors.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LENGTH_BYTES 8
#define MAX_LENGTH   (1L << 52) /* limit of sizes and counts: exact as doubles */

const char *const ms_safe_type_names[] = {"F64", "F32", "BF16", "F16",
                                          "I64", "I32", NULL};
static const long type_bytes[] = {8, 4, 2, 2, 8, 4};

/* ---- elements ---- */

static uint64_t load_bytes(const unsigned char *from, long num_bytes)
{
    uint64_t bits = 0;
    for (long i = num_bytes; i-- > 0;)
        bits = bits << 8 | from[i];
    return bits;
}

static void store_bytes(unsigned char *to, uint64_t bits, long num_bytes)
{
    for (long i = 0; i < num_bytes; i++, bits >>= 8)
        to[i] = (unsigned char)bits;
}

/* Value of a 16-bit float with 7 fraction bits (bfloat16) or 10 (IEEE 754 half). */
static double decode_16_bits(uint64_t bits, int fraction_bits)
{
    int exponent_bits = 15 - fraction_bits;
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (int)(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    double fraction = (double)(bits & ((1u << fraction_bits) - 1));
    double value;
    if (exponent == (1 << exponent_bits) - 1)
        value = fraction > 0.0 ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, 1 - bias - fraction_bits);
    else
        value = ldexp(fraction + (double)(1 << fraction_bits),
                      exponent - bias - fraction_bits);
    return bits >> 15 != 0 ? -value : value;
}

/* The 16-bit float nearest to `value`, ties to even. */
static uint64_t encode_16_bits(double value, int fraction_bits)
{
    uint64_t infinity = (1u << 15) - (1u << fraction_bits);
    uint64_t sign = signbit(value) ? 1u << 15 : 0;
    int bias = (1 << (14 - fraction_bits)) - 1, exponent;
    if (isnan(value))
        return sign | infinity | 1u << (fraction_bits - 1);
    if (isinf(value) || value == 0.0)
        return value == 0.0 ? sign : sign | infinity;
    (void)frexp(value, &exponent);
    exponent = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
    if (exponent > bias)
        return sign | infinity;
    /* Addition, not OR: the leading 1 bit adds one to the exponent, a carry another. */
    uint64_t bits = (uint64_t)rint(ldexp(fabs(value), fraction_bits - exponent)) +
                    ((uint64_t)(exponent + bias - 1) << fraction_bits);
    return sign | (bits > infinity ? infinity : bits);
}

static double load_element(const unsigned char *from, ms_safe_type type)
{
    uint64_t bits = load_bytes(from, type_bytes[type]);
    double value;
    float single;
    uint32_t low = (uint32_t)bits;
    switch (type) {
    case MS_SAFE_F64:
        memcpy(&value, &bits, sizeof value);
        return value;
    case MS_SAFE_F32:
        memcpy(&single, &low, sizeof single);
        return (double)single;
    case MS_SAFE_BF16:
        return decode_16_bits(bits, 7);
    case MS_SAFE_F16:
        return decode_16_bits(bits, 10);
    case MS_SAFE_I64:
        return (double)(int64_t)bits;
    case MS_SAFE_I32:
    case MS_NUM_SAFE_TYPES:
        break;
    }
    return (double)(int32_t)low;
}

static uint64_t element_bits(ms_safe_type type, double value)
{
    uint64_t bits;
    float single = (float)value;
    uint32_t low;
    switch (type) {
    case MS_SAFE_F64:
        memcpy(&bits, &value, sizeof bits);
        return bits;
    case MS_SAFE_F32:
        memcpy(&low, &single, sizeof low);
        return low;
    case MS_SAFE_BF16:
        return encode_16_bits(value, 7);
    case MS_SAFE_F16:
        return encode_16_bits(value, 10);
    case MS_SAFE_I64:
    case MS_SAFE_I32:
    case MS_NUM_SAFE_TYPES:
        break;
    }
    assert(fabs(value) <= (type == MS_SAFE_I64 ? 0x1p62 : 0x1p31 - 1.0));
    return (uint64_t)(int64_t)value;
}

/* ---- reading ---- */

/* A tensor in the file's header; its data are bytes begin .. end - 1 after the header. */
typedef struct entry {
    ms_safe_tensor tensor;
    long begin, end;
    ms_jval at;
} entry;

static const ms_field entry_fields[] = {
    {MS_FIELD_CHOICE, "dtype", 0, .required = true, .choices = ms_safe_type_names,
     .help = "type of the elements"},
    {MS_FIELD_ANY, "shape", 0, .required = true, .help = "sizes of the dims"},
    {MS_FIELD_ANY, "data_offsets", 0, .required = true,
     .help = "begin and end of the data in bytes"},
    {0},
};

static ms_status read_shape(ms_ctx *cx, ms_jval shape, ms_safe_tensor *out)
{
    if (!ms_json_is_array(shape))
        return ms_json_fail(cx, shape, "\"shape\" must be an array");
    out->num_dims = ms_json_length(shape);
    if (out->num_dims > MS_SAFE_DIMS)
        return ms_json_fail(cx, shape, "%d dims, must be at most %d", out->num_dims,
                            MS_SAFE_DIMS);
    out->count = 1;
    for (int d = 0; d < out->num_dims; d++) {
        ms_jval size = ms_json_element(cx, shape, d);
        MS_TRY(ms_json_integer(cx, size, 0, MAX_LENGTH, &out->shape[d]));
        if (out->shape[d] > 0 && out->count > MAX_LENGTH / out->shape[d])
            return ms_json_fail(cx, shape, "more elements than can be addressed");
        out->count *= out->shape[d];
    }
    return MS_OK;
}

static ms_status read_offsets(ms_ctx *cx, ms_jval offsets, long data_bytes, entry *out)
{
    if (!ms_json_is_array(offsets) || ms_json_length(offsets) != 2)
        return ms_json_fail(cx, offsets, "\"data_offsets\" must be [begin, end]");
    ms_jval begin = ms_json_element(cx, offsets, 0);
    ms_jval end = ms_json_element(cx, offsets, 1);
    MS_TRY(ms_json_integer(cx, begin, 0, data_bytes, &out->begin));
    MS_TRY(ms_json_integer(cx, end, out->begin, data_bytes, &out->end));
    long want = out->tensor.count * type_bytes[out->tensor.type];
    if (out->end - out->begin != want) {
        return ms_json_fail(cx, offsets,
                            "%ld bytes of data, but %ld elements of %s need %ld",
                            out->end - out->begin, out->tensor.count,
                            ms_safe_type_names[out->tensor.type], want);
    }
    return MS_OK;
}

static ms_status read_entry(ms_ctx *cx, ms_jval value, const char *name, long data_bytes,
                            entry *out)
{
    int type = 0;
    ms_jval shape = {0}, offsets = {0};
    MS_TRY(ms_json_read(cx, value, entry_fields, &type));
    ms_json_member(cx, value, "shape", &shape);
    ms_json_member(cx, value, "data_offsets", &offsets);
    out->at = value;
    out->tensor.name = ms_arena_strdup(cx->arena, name);
    out->tensor.type = (ms_safe_type)type;
    MS_TRY(read_shape(cx, shape, &out->tensor));
    return read_offsets(cx, offsets, data_bytes, out);
}

static ms_status check_metadata(ms_ctx *cx, ms_jval metadata)
{
    const char *key, *text;
    if (!ms_json_is_object(metadata))
        return ms_json_fail(cx, metadata, "\"__metadata__\" must be an object of texts");
    for (int i = 0; i < ms_json_length(metadata); i++)
        MS_TRY(ms_json_text(cx, ms_json_entry(cx, metadata, i, &key), &text));
    return MS_OK;
}

static int compare_offsets(const void *a, const void *b)
{
    const entry *left = a, *right = b;
    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    if (left->end != right->end)
        return left->end < right->end ? -1 : 1;
    return strcmp(left->tensor.name, right->tensor.name);
}

/* Checks that tensors, sorted by position, fill the file without gaps or overlaps. */
static ms_status check_offsets(ms_ctx *cx, ms_jval root, const entry *entries, int num,
                               long data_bytes)
{
    long at = 0;
    for (int i = 0; i < num; at = entries[i++].end) {
        const char *name = entries[i].tensor.name;
        if (entries[i].begin < at)
            return ms_json_fail(cx, entries[i].at,
                                "data of \"%s\" overlap those of \"%s\"", name,
                                entries[i - 1].tensor.name);
        if (entries[i].begin > at)
            return ms_json_fail(cx, entries[i].at,
                                "%ld bytes before the data of \"%s\" belong to no tensor",
                                entries[i].begin - at, name);
    }
    if (at != data_bytes)
        return ms_json_fail(cx, root, "%ld bytes at the end belong to no tensor",
                            data_bytes - at);
    return MS_OK;
}

static void convert_values(ms_arena *arena, const unsigned char *data, entry *from)
{
    ms_safe_tensor *tensor = &from->tensor;
    double *values = ms_arena_take(arena, (size_t)tensor->count * sizeof *values);
    const unsigned char *at = data + from->begin;
    for (long i = 0; i < tensor->count; i++, at += type_bytes[tensor->type])
        values[i] = load_element(at, tensor->type);
    tensor->values = values;
}

static ms_status read_header(ms_ctx *cx, ms_jval root, const unsigned char *data,
                             long data_bytes, ms_safe_file *out)
{
    if (!ms_json_is_object(root))
        return ms_json_fail(cx, root, "the header must be an object");
    int num_members = ms_json_length(root), num = 0;
    entry *entries = MS_NEW_ARRAY(cx->arena, num_members, entry);
    for (int i = 0; i < num_members; i++) {
        const char *name;
        ms_jval value = ms_json_entry(cx, root, i, &name);
        if (strcmp(name, "__metadata__") == 0)
            MS_TRY(check_metadata(cx, value));
        else
            MS_TRY(read_entry(cx, value, name, data_bytes, &entries[num++]));
    }
    qsort(entries, (size_t)num, sizeof *entries, compare_offsets);
    MS_TRY(check_offsets(cx, root, entries, num, data_bytes));
    out->num_tensors = num;
    out->tensors = MS_NEW_ARRAY(cx->arena, num, ms_safe_tensor);
    for (int i = 0; i < num; i++) {
        convert_values(cx->arena, data, &entries[i]);
        out->tensors[i] = entries[i].tensor;
    }
    return MS_OK;
}

ms_status ms_safetensors_read(ms_ctx *cx, const char *name, const unsigned char *data,
                              size_t length, ms_safe_file *out)
{
    ms_loc loc = {.file = name};
    if (length < LENGTH_BYTES)
        return ms_fail(cx, MS_EINPUT, loc,
                       "%zu bytes, but safetensors begin with a length of 8", length);
    uint64_t header_bytes = load_bytes(data, LENGTH_BYTES);
    const unsigned char *header = data + LENGTH_BYTES;
    if (header_bytes > length - LENGTH_BYTES) {
        return ms_fail(
            cx, MS_EINPUT, loc,
            "a header of %llu bytes in a file of %zu: truncated, or not safetensors",
            (unsigned long long)header_bytes, length);
    }
    if (header_bytes == 0 || header[0] != '{')
        return ms_fail(cx, MS_EINPUT, loc, "the header must begin with '{'");
    ms_jdoc *doc = NULL;
    ms_jval root;
    MS_TRY(
        ms_json_parse(cx, name, (const char *)header, (size_t)header_bytes, &doc, &root));
    ms_status status =
        read_header(cx, root, header + header_bytes,
                    (long)(length - LENGTH_BYTES - (size_t)header_bytes), out);
    ms_json_close(doc);
    return status;
}

static ms_status read_file(ms_ctx *cx, const char *path, FILE *file, ms_safe_file *out)
{
    errno = 0;
    long length = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (length < 0 || length > MAX_LENGTH || fseek(file, 0, SEEK_SET) != 0)
        return ms_fail(cx, MS_EIO, (ms_loc){.file = path}, "cannot be read: %s",
                       errno != 0 ? strerror(errno) : "not a regular file");
    unsigned char *data = ms_arena_take(cx->arena, (size_t)length);
    if (fread(data, 1, (size_t)length, file) != (size_t)length)
        return ms_fail(cx, MS_EIO, (ms_loc){.file = path}, "cannot be read: %s",
                       errno != 0 ? strerror(errno) : "it became shorter");
    return ms_safetensors_read(cx, path, data, (size_t)length, out);
}

ms_status ms_safetensors_load(ms_ctx *cx, const char *path, ms_safe_file *out)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return ms_fail(cx, MS_EIO, (ms_loc){.file = path}, "cannot be opened: %s",
                       strerror(errno));
    ms_status status = read_file(cx, path, file, out);
    fclose(file);
    return status;
}

const ms_safe_tensor *ms_safe_find(const ms_safe_file *file, const char *name)
{
    for (int i = 0; i < file->num_tensors; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    return NULL;
}

/* ---- writing ---- */

static int compare_names(const void *a, const void *b)
{
    const ms_safe_tensor *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

static const ms_safe_tensor **sorted_by_name(ms_arena *arena, const ms_safe_file *file)
{
    int num = file->num_tensors;
    const ms_safe_tensor **sorted = MS_NEW_ARRAY(arena, num, const ms_safe_tensor *);
    for (int i = 0; i < num; i++)
        sorted[i] = &file->tensors[i];
    qsort(sorted, (size_t)num, sizeof *sorted, compare_names);
    for (int i = 1; i < num; i++)
        assert(strcmp(sorted[i - 1]->name, sorted[i]->name) != 0);
    return sorted;
}

static void write_header(FILE *file, const ms_safe_tensor *const *tensors, int num)
{
    ms_jout out = ms_jout_open(file);
    out.line_depth = 1;
    long at = 0;
    ms_jout_begin_object(&out);
    for (int i = 0; i < num; i++) {
        const ms_safe_tensor *tensor = tensors[i];
        long offsets[2] = {at, at + tensor->count * type_bytes[tensor->type]};
        ms_jout_begin_object_field(&out, tensor->name);
        ms_jout_text_field(&out, "dtype", ms_safe_type_names[tensor->type]);
        ms_jout_key(&out, "shape");
        ms_jout_integers(&out, tensor->shape, tensor->num_dims);
        ms_jout_key(&out, "data_offsets");
        ms_jout_integers(&out, offsets, 2);
        ms_jout_end_object(&out);
        at = offsets[1];
    }
    ms_jout_end_object(&out);
    ms_jout_close(&out);
}

static void write_values(FILE *file, const ms_safe_tensor *tensor)
{
    enum {
        CHUNK = 1024
    };
    unsigned char chunk[CHUNK * 8];
    long size = type_bytes[tensor->type];
    for (long first = 0; first < tensor->count; first += CHUNK) {
        long num = tensor->count - first < CHUNK ? tensor->count - first : CHUNK;
        for (long i = 0; i < num; i++)
            store_bytes(chunk + i * size,
                        element_bits(tensor->type, tensor->values[first + i]), size);
        fwrite(chunk, (size_t)size, (size_t)num, file);
    }
}

/* Writes header (padded with spaces to align the data), header length and data. */
static bool write_all(FILE *file, const ms_safe_tensor *const *tensors, int num)
{
    unsigned char length[LENGTH_BYTES] = {0};
    fwrite(length, 1, LENGTH_BYTES, file);
    write_header(file, tensors, num);
    long end = ftell(file);
    for (; end > 0 && end % 8 != 0; end++)
        fputc(' ', file);
    store_bytes(length, (uint64_t)(end - LENGTH_BYTES), LENGTH_BYTES);
    if (end < 0 || fseek(file, 0, SEEK_SET) != 0)
        return false;
    fwrite(length, 1, LENGTH_BYTES, file);
    if (fseek(file, end, SEEK_SET) != 0)
        return false;
    for (int i = 0; i < num; i++)
        write_values(file, tensors[i]);
    return fflush(file) == 0 && ferror(file) == 0;
}

ms_status ms_safetensors_write(ms_ctx *cx, const char *path, const ms_safe_file *file)
{
    struct stat info;
    /* true for special files such as /dev/null */
    bool in_place = lstat(path, &info) == 0 && !S_ISREG(info.st_mode);
    const char *target =
        in_place ? path : ms_arena_printf(cx->arena, "%s.%ld.tmp", path, (long)getpid());
    errno = 0;
    FILE *out = fopen(target, in_place ? "wb" : "wbx");
    if (out == NULL)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "cannot write %s: %s", path,
                       strerror(errno));
    bool good = write_all(out, sorted_by_name(cx->arena, file), file->num_tensors);
    int error = errno;
    if (fclose(out) != 0 && good) {
        good = false;
        error = errno;
    }
    if (good && !in_place && rename(target, path) != 0) {
        good = false;
        error = errno;
    }
    if (good)
        return MS_OK;
    if (!in_place)
        (void)remove(target);
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "cannot write %s: %s", path, strerror(error));
}
