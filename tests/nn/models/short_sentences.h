// Chapter 7. Two short sentences and their translations, for tests of models that translate.
//
// Serves: nn/models/transformer.h
#pragma once

#include "core/tensor.h"

inline const orrery::Tensor short_source = orrery::Tensor::of<orrery::i32>({2, 4}, {3, 4, 5, 6, 7, 8, 0, 0});
inline const orrery::Tensor short_target = orrery::Tensor::of<orrery::i32>({2, 3}, {1, 5, 4, 1, 8, 2});
