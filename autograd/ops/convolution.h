// Chapter 8. Convolution over positions.
#pragma once

#include "autograd/variable.h"

namespace orrery {

class Mask;

/// Zeros that a convolution adds to a sequence: `same` on both sides, so that an output sees as many positions before
/// its own as after it; `causal` only in front, so that it sees no later positions; `none` nowhere, and then there are
/// width - 1 fewer outputs.
enum class ConvolutionPadding { same, causal, none };
/// Convolution over positions: x [B, T, C_in] to [B, T, C_out] (with padding `none`, [B, T - width + 1, C_out]), with
/// weight [C_out, C_in, width] and bias [C_out], which may be undefined. Only the padding of `mask` is used: inputs
/// that it pads count as 0. Errors: shapes that do not fit; padding `same` with an even width; padding `none` with T <
/// width - 1.
Variable convolution(const Variable& x, const Variable& weight, const Variable& bias, ConvolutionPadding padding,
                     const Mask& mask);

}  // namespace orrery
