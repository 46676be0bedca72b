// Chapter 8. Convolution over positions.
//
// Serves: nn/models/encoder.h
#pragma once

#include "autograd/variable.h"

namespace orrery {

class Mask;

/// Zeros that a convolution assumes around a sequence: on both sides, so that an output sees as many positions before
/// as behind its own; before it, so that it sees none behind; or none, and then there are width - 1 fewer outputs.
enum class ConvolutionPadding { same, causal, none };
/// Convolution over positions: x [B, T, C_in] to [B, T, C_out], with weight [C_out, C_in, width] and bias [C_out],
/// which may be undefined. Of the mask, only the padding counts: inputs behind it count as 0.
Variable convolution(const Variable& x, const Variable& weight, const Variable& bias, ConvolutionPadding padding,
                     const Mask& mask);

}  // namespace orrery
