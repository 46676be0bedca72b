// Chapter 5. What an optimiser is given: parameters, in groups that may differ in weight decay and learning rate.
//
// Most models use one group: optim::Adam adam(model.parameters()). Weight decay is usually not applied to biases and to
// the weights of layer normalisation, which have one axis:
//   optim::AdamW adam(optim::decay_matrices(model.parameters(), 0.1));
// A parameter used in two places (a tied one) may have two names; it is still one parameter, updated and clipped once.
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "autograd/variable.h"

namespace orrery::optim {

/// Parameters that are updated in the same way.
struct ParameterGroup {
  Parameters parameters{};
  std::optional<double> weight_decay{};  ///< replaces the optimiser's own
  double learning_rate_factor = 1;       ///< multiplies the learning rate of every step
};

/// One or several groups, made from a model's parameters, from bare Variables, or from groups.
class ParameterGroups {
 public:
  ParameterGroups(Parameters parameters);
  ParameterGroups(std::initializer_list<Variable> variables);
  ParameterGroups(const std::vector<Variable>& variables);
  ParameterGroups(std::initializer_list<ParameterGroup> groups) : groups_(groups) {}
  ParameterGroups(std::vector<ParameterGroup> groups) : groups_(std::move(groups)) {}

  const std::vector<ParameterGroup>& groups() const { return groups_; }

 private:
  std::vector<ParameterGroup> groups_;
};

/// Two groups: matrices (two axes or more) with this weight decay, everything else without.
ParameterGroups decay_matrices(const Parameters& parameters, double weight_decay);

/// The number of elements of a piece. Like the ways of products (core/products/gemm.h), it never changes: norms of
/// gradients are added up piece by piece, so their bits depend on it.
inline constexpr i64 piece_size = 16384;
/// A part of one of several tensors, small enough to be one task of a thread.
struct Piece {
  size_t owner;    ///< which tensor
  i64 begin, end;  ///< its elements
};
/// Cuts tensors of these sizes into pieces, in order. The cuts depend on the sizes alone.
std::vector<Piece> pieces_of(const std::vector<i64>& sizes);
/// How much work they are for `parallel_tasks` (core/machine/parallel.h).
i64 work_of(const std::vector<Piece>& pieces);

/// The list with every tied parameter under its first name only. Errors: a Variable that is not a parameter.
Parameters without_repeats(const Parameters& parameters);

}  // namespace orrery::optim
