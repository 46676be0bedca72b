// Chapter 5. What an optimiser is given: parameters, in groups that may differ in weight decay and learning rate.
//
// Most models are one group: optim::Adam adam(model.parameters()). Weight decay is commonly kept from biases and from
// the weights of layer normalisation, which have one axis:
//   optim::AdamW adam(optim::decay_matrices(model.parameters(), 0.1));
// A parameter used in two places (a tied one) may have two names; it is still one parameter, updated and clipped once.
// Serves: optim/adam.h
#pragma once

#include <initializer_list>
#include <optional>

#include "autograd/variable.h"
#include "core/machine/memory.h"

namespace orrery::optim {

/// Parameters that are updated alike.
struct ParameterGroup {
  Parameters parameters{};
  std::optional<double> weight_decay{};  ///< in place of the optimiser's own
  double learning_rate_factor = 1;       ///< multiplies the learning rate of every step
};

/// One or several groups, made of whatever is at hand: a model's parameters, bare Variables, or groups.
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

/// Two groups: matrices (two axes and more) with this weight decay, everything else with none.
ParameterGroups decay_matrices(const Parameters& parameters, double weight_decay);

/// Elements of a piece. Frozen, as the tiles of products are (core/products/blas.h): a norm of gradients is added up by pieces.
inline constexpr i64 piece_size = 16384;
/// A part of one of several tensors, small enough to be one thread's next task.
struct Piece {
  size_t owner;    ///< which tensor
  i64 begin, end;  ///< its elements
};
/// Tensors of these sizes cut into pieces, in order; the cuts depend on the sizes alone.
CachedVector<Piece> pieces_of(const CachedVector<i64>& sizes);

/// The list with every tied parameter kept only under its first name. Errors: what is no parameter.
Parameters without_repeats(const Parameters& parameters);

}  // namespace orrery::optim
