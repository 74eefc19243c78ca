/* Optimizers on whole tensors, written from their papers on matrices as Hugging Face
 * stores them; they share nothing with the tested code. */
#ifndef MS_TESTS_SUPPORT_WHOLE_OPTIMIZERS_H
#define MS_TESTS_SUPPORT_WHOLE_OPTIMIZERS_H

#include "tests/support/whole_tensors.h"

/* One step of every tensor with a gradient. Muon and Adafactor need models of which each
 * tensor is one weight; moments in 8 bits are not among them. */
void ms_whole_update_by(ms_whole *whole, ms_optimizer optimizer, const ms_adamw *how);

#endif
