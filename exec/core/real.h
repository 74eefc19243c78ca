/* Floating-point type of exec/cpu/cpu_*.c, which are compiled for fp32 and for fp64. */
#ifndef MS_EXEC_CORE_REAL_H
#define MS_EXEC_CORE_REAL_H

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
#define MS_REAL_MATH(name) name##f /* for example sqrtf instead of sqrt */
#endif

/* Compiles a function with long loops for several vector widths and calls the widest that
 * the processor has; results are identical. Sanitizers cannot run the selection code. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) &&                \
    !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&                             \
    !defined(__SANITIZE_THREAD__)
#define MS_WIDE __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define MS_WIDE
#endif

#endif
