/* The type that one object of exec/cpu_*.c computes in. Each of these files is compiled
 * twice: for fp32 as it is, for fp64 with MS_REAL_IS_FP64. */
#ifndef MS_EXEC_REAL_H
#define MS_EXEC_REAL_H

#include <stdint.h>

#ifdef MS_REAL_IS_FP64
typedef double ms_real;
typedef uint64_t ms_real_bits;
#define MS_TYPED(name)     name##_fp64
#define MS_REAL_MATH(name) name
#else
typedef float ms_real;
typedef uint32_t ms_real_bits;
#define MS_TYPED(name)     name##_fp32
#define MS_REAL_MATH(name) name##f /* sqrtf of <math.h> */
#endif

/* Before a function with long loops: compiled for several vector widths, the widest that
 * the processor has is called. The numbers are the same, since nothing is reordered or
 * contracted. Sanitizers cannot run code before they are set up, which the choice would be. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) &&                \
    !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&                             \
    !defined(__SANITIZE_THREAD__)
#define MS_WIDE __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define MS_WIDE
#endif

#endif
