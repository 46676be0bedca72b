// Chapter 5. The common part of optimisers: checking the list of parameters, stepping through it, restoring a state.
#include "optim/optimizer.h"

#include <cmath>
#include <limits>
#include <set>

#include "core/machine/parallel.h"
#include "core/tensor_ops.h"
#include "optim/clip.h"

namespace orrery::optim {

Optimizer::Optimizer(const ParameterGroups& groups, double weight_decay) {
  std::set<const Node*> seen;
  std::set<std::string_view> names;
  for (const ParameterGroup& group : groups.groups()) {
    const Setting setting{group.weight_decay.value_or(weight_decay), group.learning_rate_factor};
    check(setting.weight_decay >= 0 && std::isfinite(setting.weight_decay), "optimizer",
          "weight decay must be 0 or more and finite, got ", setting.weight_decay);
    check(setting.learning_rate_factor >= 0 && std::isfinite(setting.learning_rate_factor), "optimizer",
          "a group's learning rate factor must be 0 or more and finite, got ", setting.learning_rate_factor);
    for (const NamedParameter& p : without_repeats(group.parameters)) {
      check(seen.insert(p.value.node().get()).second, "optimizer", "parameter ", p.name, " is in two groups");
      parameters_.push_back(p);
      settings_.push_back(setting);
    }
  }
  check(!parameters_.empty(), "optimizer", "was given no parameters");
  for (const NamedParameter& p : parameters_) {
    check(names.insert(p.name).second, "optimizer", "two parameters are named ", p.name);
  }
}

void Optimizer::check_gradients(double learning_rate) const {
  check(learning_rate >= 0 && std::isfinite(learning_rate), "optimizer",
        "the learning rate must be 0 or more and finite, got ", learning_rate);
  for (const NamedParameter& p : parameters_) {
    check(!p.value.is_replaced(), "optimizer", "parameter ", p.name,
          " got another value after the optimizer was made (replace_value, nn::to), and only the old one would move; "
          "make the optimizer again");
    const Tensor& g = p.value.gradient();
    check(!g.defined() || (g.shape() == p.value.shape() && g.dtype() == p.value.dtype()), "optimizer", "parameter ",
          p.name, " is ", p.value.dtype(), ' ', p.value.shape(), ", its gradient ", g.dtype(), ' ', g.shape(),
          ": mutable_gradient was given another tensor");
  }
}

void Optimizer::step(double learning_rate) {
  check_gradients(learning_rate);
  check_finite_gradients(parameters_);
  update_all(learning_rate, 1.0);
}

double Optimizer::step(double learning_rate, double max_norm) {
  check_gradients(learning_rate);
  const double norm = grad_norm(parameters_);
  update_all(learning_rate, clip_factor(norm, max_norm));
  return norm;
}

// All parameters in one parallel region: most of them are too small for one of their own.
void Optimizer::update_all(double learning_rate, double gradient_factor) {
  // An update would round such a factor to 0, though it brings huge gradients into range.
  const bool scaled_first = !is_normal(gradient_factor, f32);
  std::vector<Tensor> gradients;  // alive until all updates are made
  std::vector<Ready> updates;
  std::vector<i64> sizes;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Variable& p = parameters_[i].value;
    if (p.is_frozen() || !p.gradient().defined()) continue;
    const Setting& setting = settings_[i];
    gradients.push_back(scaled_first ? p.gradient() * gradient_factor : p.gradient());
    updates.push_back(update(i, {p.mutable_value(), gradients.back(), learning_rate * setting.learning_rate_factor,
                                 setting.weight_decay, scaled_first ? 1.0 : gradient_factor}));
    sizes.push_back(p.value().count());
  }
  const std::vector<Piece> pieces = pieces_of(sizes);
  for (const Ready& ready : updates)  // from here on nothing can fail
    if (ready.updates) ++*ready.updates;
  const auto move = [&](i64 i) {
    const Piece& piece = pieces[static_cast<size_t>(i)];
    updates[piece.owner].move(piece.begin, piece.end);
  };
  parallel_tasks(static_cast<i64>(pieces.size()), move, work_of(pieces));
  clear_gradients();
}

void Optimizer::clear_gradients() {
  for (NamedParameter& p : parameters_) p.value.clear_gradient();
}

void Optimizer::load_state(const std::map<std::string, Tensor>& state) {
  std::map<std::string, Tensor> own = this->state();
  for (const auto& [name, value] : state) check(own.contains(name), "load_state", "unexpected ", name);
  for (const auto& [name, value] : own) {
    const auto found = state.find(name);
    check(found != state.end(), "load_state", "missing ", name);
    const Tensor& given = found->second;
    check(given.defined() && given.shape() == value.shape() && given.dtype() == value.dtype(), "load_state", name,
          " is ", given.dtype(), ' ', given.shape(), ", needs ", value.dtype(), ' ', value.shape());
    if (given.dtype() == Dtype::i32)
      check(given.at(0) >= 0 && given.at(0) < std::numeric_limits<i32>::max(), "load_state", name, " is ",
            static_cast<i64>(given.at(0)), ", which is no number of updates");
  }
  for (auto& [name, value] : own) copy_into(value, state.at(name));
}

}  // namespace orrery::optim
