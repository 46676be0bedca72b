// Chapter 5. Parameter groups: naming bare Variables, and finding tied parameters.
//
// Two Variables are the same parameter when they share their leaf, the place where the gradient is collected.
#include "optim/parameters.h"

#include <unordered_set>

#include "core/machine/parallel.h"

namespace orrery::optim {
namespace {

// Bare Variables without a name are named after their position.
Parameters named(std::span<const Variable> variables) {
  Parameters result;
  for (const Variable& variable : variables) {
    const bool has_name = variable.is_leaf() && !variable.name().empty();
    result.push_back({has_name ? variable.name() : "parameter " + std::to_string(result.size()), variable});
  }
  return result;
}

}  // namespace

ParameterGroups::ParameterGroups(Parameters parameters) { groups_.push_back({.parameters = std::move(parameters)}); }

ParameterGroups::ParameterGroups(std::initializer_list<Variable> variables)
    : ParameterGroups(named(std::span(variables.begin(), variables.size()))) {}

ParameterGroups::ParameterGroups(const std::vector<Variable>& variables) : ParameterGroups(named(variables)) {}

ParameterGroups decay_matrices(const Parameters& parameters, double weight_decay) {
  ParameterGroup matrices{.weight_decay = weight_decay}, others{.weight_decay = 0.0};
  for (const NamedParameter& p : parameters) (p.value.shape().rank() >= 2 ? matrices : others).parameters.push_back(p);
  return {std::move(matrices), std::move(others)};
}

std::vector<Piece> pieces_of(const std::vector<i64>& sizes) {
  std::vector<Piece> pieces;
  for (size_t owner = 0; owner < sizes.size(); ++owner) {
    for (i64 begin = 0; begin < sizes[owner]; begin += piece_size)
      pieces.push_back({owner, begin, std::min(sizes[owner], begin + piece_size)});
  }
  return pieces;
}

i64 work_of(const std::vector<Piece>& pieces) {
  i64 elements = 0;
  for (const Piece& piece : pieces) elements += piece.end - piece.begin;
  return elements * element_work;
}

Parameters without_repeats(const Parameters& parameters) {
  Parameters result;
  std::unordered_set<const Node*> seen;
  for (const NamedParameter& p : parameters) {
    check(p.value.is_leaf(), "optim", p.name, " is not a parameter: it collects no gradient");
    if (seen.insert(p.value.node().get()).second) result.push_back(p);
  }
  return result;
}

}  // namespace orrery::optim
