// Chapter 7. Rows of the table of proofs: what the files with samples share.
//
// Serves: autograd/check/proof.h
#pragma once

#include "nn/check/proof.h"
#include "nn/check/samples.h"

namespace orrery::nn {

/// The samples of stacks and of the whole Transformer (nn/check/model_samples.cpp).
std::vector<Sample> model_samples();

/// The samples of recurrent and convolutional layers, and of their translators (nn/check/sequence_samples.cpp).
std::vector<Sample> sequence_layer_samples();
std::vector<Sample> sequence_model_samples();

/// Token ids, row after row.
inline Tensor ids(const Shape& shape, const std::vector<i32>& elements) { return Tensor::of<i32>(shape, elements); }

}  // namespace orrery::nn
