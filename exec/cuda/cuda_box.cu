/* Kernels that copy boxes (multi-dimensional sub-arrays) between arrays of a GPU. */
#include "exec/cuda/cuda_arrays.h"
#include "exec/cuda/cuda_device.cuh"

#define THREADS     256
#define LARGE_BYTES 16 /* bytes of the widest load */
#define DIMS        (MS_BOX_DIMS + 1)

namespace
{

/* Sizes and strides of a box, outermost dimension first; the last one has stride 1. */
typedef struct box {
    int num_dims;
    long num[DIMS], to_stride[DIMS], from_stride[DIMS];
} box;

template <class U> struct copied {
    U *to;
    const U *from;
    box at;
};

/* Copies a box of `count` units; 32 bits of `Index`, if enough, make divisions fast. */
template <class U, class Index> __global__ void copy_units(copied<U> c, Index count)
{
    long step = (long)gridDim.x * blockDim.x;
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < (long)count;
         i += step) {
        Index left = (Index)i;
        long to = 0, from = 0;
        for (int d = c.at.num_dims - 1; d > 0; d--) {
            Index num = (Index)c.at.num[d], outer = left / num;
            long inner = (long)(left - outer * num);
            to += inner * c.at.to_stride[d];
            from += inner * c.at.from_stride[d];
            left = outer;
        }
        c.to[to + (long)left * c.at.to_stride[0]] =
            c.from[from + (long)left * c.at.from_stride[0]];
    }
}

/* Adds a dimension outside those of b, merged with the outermost if that has no gaps. */
void add_dim(box *b, long num, long to_stride, long from_stride)
{
    int last = b->num_dims - 1;
    if (num == 1 && last >= 0)
        return;
    if (last >= 0 && to_stride == b->num[last] * b->to_stride[last] &&
        from_stride == b->num[last] * b->from_stride[last]) {
        b->num[last] *= num;
        return;
    }
    b->num[b->num_dims] = num;
    b->to_stride[b->num_dims] = to_stride;
    b->from_stride[b->num_dims] = from_stride;
    b->num_dims++;
}

/* The sizes and strides of a box copy, in bytes. */
box read_box(const ms_box_copy *copy)
{
    long bytes = (long)copy->element_bytes;
    box inward = {0, {0}, {0}, {0}}, out = inward;
    add_dim(&inward, copy->run * bytes, 1, 1);
    for (int d = MS_BOX_DIMS; d-- > 0;)
        add_dim(&inward, copy->num[d], copy->to_stride[d] * bytes,
                copy->from_stride[d] * bytes);
    out.num_dims = inward.num_dims;
    for (int d = 0; d < out.num_dims; d++) {
        out.num[d] = inward.num[out.num_dims - 1 - d];
        out.to_stride[d] = inward.to_stride[out.num_dims - 1 - d];
        out.from_stride[d] = inward.from_stride[out.num_dims - 1 - d];
    }
    return out;
}

/* Bytes per load: the largest power of 2, up to 16, dividing all sizes and addresses. */
long unit_of(const box *b, const ms_box_copy *copy)
{
    unsigned long all = (unsigned long)copy->to | (unsigned long)copy->from |
                        (unsigned long)b->num[b->num_dims - 1] | LARGE_BYTES;
    for (int d = 0; d + 1 < b->num_dims; d++)
        all |= (unsigned long)b->to_stride[d] | (unsigned long)b->from_stride[d];
    return (long)(all & (~all + 1));
}

struct alignas(LARGE_BYTES) large_unit {
    unsigned long half[2];
};

template <class U>
void copy_by(ms_cuda_stream *stream, const ms_box_copy *copy, const box *bytes)
{
    copied<U> c = {(U *)copy->to, (const U *)copy->from, *bytes};
    int last = c.at.num_dims - 1;
    c.at.num[last] /= (long)sizeof(U);
    long count = 1;
    for (int d = 0; d <= last; d++) {
        count *= c.at.num[d];
        c.at.to_stride[d] = d == last ? 1 : c.at.to_stride[d] / (long)sizeof(U);
        c.at.from_stride[d] = d == last ? 1 : c.at.from_stride[d] / (long)sizeof(U);
    }
    if (count <= 0xffffffffL)
        MS_LAUNCH((copy_units<U, unsigned>), ms_blocks(count, THREADS, MS_MANY_BLOCKS),
                  THREADS, 0, stream, c, (unsigned)count);
    else
        MS_LAUNCH((copy_units<U, unsigned long>),
                  ms_blocks(count, THREADS, MS_MANY_BLOCKS), THREADS, 0, stream, c,
                  (unsigned long)count);
}

} // namespace

/* ---- launches ---- */

void ms_cuda_array_copy_box(ms_cuda_stream *stream, const ms_box_copy *copy)
{
    long count = copy->run;
    for (int d = 0; d < MS_BOX_DIMS; d++)
        count *= copy->num[d];
    if (count <= 0)
        return;
    box bytes = read_box(copy);
    switch (unit_of(&bytes, copy)) {
    case 1:
        return copy_by<unsigned char>(stream, copy, &bytes);
    case 2:
        return copy_by<unsigned short>(stream, copy, &bytes);
    case 4:
        return copy_by<unsigned>(stream, copy, &bytes);
    case 8:
        return copy_by<unsigned long>(stream, copy, &bytes);
    default:
        copy_by<large_unit>(stream, copy, &bytes);
    }
}
