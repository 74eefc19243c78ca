/* Newton-Schulz iterations on matrices of the host, for the optimizer Muon. */
#ifndef MS_EXEC_CPU_ORTHOGONALIZE_H
#define MS_EXEC_CPU_ORTHOGONALIZE_H

/* ms_array_ops.orthogonalize (exec/core/arrays.h). */
void ms_host_orthogonalize(double *x, long m, long n, int iterations, double *scratch);

#endif
