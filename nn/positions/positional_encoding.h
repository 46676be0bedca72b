// Chapter 6. PositionalEncoding: tells the model the position of each vector in the sequence.
//
// Paper, section 3.5: "Since our model contains no recurrence and no convolution, in order for the model to make use of
// the order of the sequence, we must inject some information about the relative or absolute position of the tokens in
// the sequence. To this end, we add 'positional encodings' to the input embeddings":
//   PE(pos, 2i) = sin(pos / 10000^(2i / d_model)),   PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))
// "We also experimented with using learned positional embeddings instead, and found that the two versions produced
// nearly identical results". Shapes: x, y [B, T, d_model], T <= max_len.
// Read next: apps/book/ch6/attention.cpp
#pragma once

#include "nn/module.h"

namespace orrery {
class Rng;
}

namespace orrery::nn {

enum class Positions { sinusoidal, learned };

/// Rows PE(0), ..., PE(count - 1), f64 [count, d_model]. An odd d_model ends with a sine.
Tensor sinusoidal_table(i64 count, i64 d_model);

struct PositionalEncoding : Module {
  Variable weight;  // [max_len, d_model] when learned, else undefined
  Tensor table;     // the sinusoids, f64; not a buffer, since max_len and d_model determine them

  PositionalEncoding(Positions kind, i64 max_len, i64 d_model, Rng& rng);
  /// x [B, T, d_model] plus the encoding of positions 0 to T - 1. More positions than max_len are an error.
  Variable operator()(const Variable& x) const;
  /// The encodings of positions 0 to T - 1, perhaps followed by others: [T or more, d_model]. Sinusoids are converted
  /// to `dtype`; a learned table keeps its own. Error: more positions than max_len.
  Variable first_rows(i64 T, Dtype dtype) const;
  void visit(Visitor& v) override { v("weight", weight); }
};

}  // namespace orrery::nn
