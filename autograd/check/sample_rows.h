// Chapter 6. Rows of the table of proofs for operations: what the files that hold them share.
//
// Serves: autograd/check/proof.h
#pragma once

#include <string>
#include <vector>

#include "autograd/check/samples.h"
#include "core/shape.h"

namespace orrery::sample_rows {

/// Where an input's values come from.
enum class Range { normal, positive, away_from_zero, distinct };

struct Input {
  Shape shape;
  Range range = Range::normal;
};

using Variables = std::vector<Variable>;
using Function = std::function<Variable(const Variables&)>;

using DrawnFunction = std::function<Variable(const Variables&, const Draw&)>;

/// Why an input of an operation that made no number has the gradient 0.
inline constexpr const char* no_output = "nothing was computed from it";

/// The row of f(inputs...).
Sample sample(std::string name, std::string variant, std::vector<Input> inputs, Function f,
              std::vector<DeclaredZero> zeros = {});

/// The row of f(inputs, the name of a dropout mask).
Sample drawn_sample(std::string name, std::string variant, std::vector<Input> inputs, DrawnFunction f,
                    std::vector<DeclaredZero> zeros = {});

/// The rows of the fused operations (autograd/check/fused_samples.cpp).
void add_fused(std::vector<Sample>& table);

}  // namespace orrery::sample_rows
