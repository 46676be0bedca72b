// Chapter 9. The state of a training, to resume from, and its fingerprint.
#include "apps/training/trainer.h"
#include "core/files/hash.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

// The names of tensors in a state.
const std::string of_parameter = "parameter.", of_average = "average.", of_kept = "kept.", of_best = "best.",
                  of_buffer = "buffer.", losses_name = "losses";

std::string kept_name(size_t i) { return of_kept + std::to_string(i) + "."; }

// The tensor of a parameter or buffer in a state; `own` is the model's.
const Tensor& fitting(const TrainingState& state, const std::string& name, const Tensor& own,
                      const std::string& program) {
  const auto found = state.tensors.find(name);
  check(found != state.tensors.end() && found->second.shape() == own.shape() && found->second.dtype() == own.dtype(),
        program, "the saved state has no ", name, " that fits the model");
  return found->second;
}

}  // namespace

TrainingState Trainer::state() const {
  TrainingState state{.steps_done = steps_done_,
                      .best_step = best_step_,
                      .best_score = best_score_,
                      .evaluations_since_best = since_best_,
                      .positions = task_.positions(),
                      .tensors = optimizer_->state()};
  const Buffers buffers = this->buffers();
  const auto add_values = [&](const std::string& prefix, const Values& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string& name = i < parameters_.size() ? parameters_[i].name : buffers.at(i - parameters_.size()).name;
      state.tensors[prefix + name] = values[i];
    }
  };
  for (const NamedParameter& p : parameters_) state.tensors[of_parameter + p.name] = p.value.value();
  for (const nn::Module::NamedBuffer& b : buffers) state.tensors[of_buffer + b.name] = b.value;
  add_values(of_average, average_.values());
  for (size_t k = 0; k < kept_.size(); ++k) add_values(kept_name(k), kept_[k]);
  if (best_step_ != steps_done_) add_values(of_best, best_);
  state.tensors[losses_name] = Tensor::of<double>({steps_done_}, losses_);
  return state;
}

// Reads one tensor of each parameter, and of each of the buffers.
void Trainer::load_values(const TrainingState& state, const std::string& prefix, Values& values,
                          const Buffers& buffers) const {
  const auto add = [&](const std::string& name, const Tensor& own) {
    values.push_back(fitting(state, name, own, task_.program()).clone());
  };
  values.clear();
  for (const NamedParameter& p : parameters_) add(prefix + p.name, p.value.value());
  for (const nn::Module::NamedBuffer& b : buffers) add((prefix == of_parameter ? of_buffer : prefix) + b.name, b.value);
}

void Trainer::load_state(const TrainingState& state) {
  const auto losses = state.tensors.find(losses_name);
  check(losses != state.tensors.end() && losses->second.dtype() == f64 && state.steps_done >= 0 &&
            state.steps_done <= recipe_.steps && losses->second.count() == state.steps_done,
        task_.program(), "the saved state is not of a training of ", recipe_.steps, " steps");
  check(state.best_step >= 0 && state.best_step <= state.steps_done, task_.program(),
        "the saved state has its best step in the future");
  check(state.positions.size() == task_.positions().size(), task_.program(),
        "the saved state has positions of another task");
  std::map<std::string, Tensor> moments = state.tensors;
  std::erase_if(moments, [](const auto& entry) {
    const auto is_of = [&](const std::string& prefix) { return entry.first.starts_with(prefix); };
    return is_of(of_parameter) || is_of(of_buffer) || is_of(of_average) || is_of(of_kept) || is_of(of_best) ||
           entry.first == losses_name;
  });
  optimizer_->load_state(moments);
  Buffers buffers = this->buffers();
  Values trained;
  load_values(state, of_parameter, trained, buffers);
  put(trained, buffers);
  if (recipe_.average > 0) {
    Values mean;
    load_values(state, of_average, mean);
    average_.set(std::move(mean), state.steps_done);
  }
  kept_.clear();
  for (size_t k = 0; state.tensors.contains(kept_name(k) + parameters_[0].name); ++k)
    load_values(state, kept_name(k), kept_.emplace_back());
  const double* all = losses->second.data<double>();
  losses_.assign(all, all + state.steps_done);
  steps_done_ = state.steps_done;
  best_step_ = state.best_step;
  best_score_ = state.best_score;
  since_best_ = state.evaluations_since_best;
  if (best_step_ > 0 && best_step_ < steps_done_) load_values(state, of_best, best_, buffers);
  if (best_step_ > 0 && best_step_ == steps_done_) with_judged([&] { best_ = copies(buffers); });
  task_.go_to(state.positions);
}

std::string Trainer::hash() const {
  Fingerprint fingerprint;
  for (const double loss : losses_) fingerprint.add(loss);
  for (const NamedParameter& p : optimizer_->parameters()) fingerprint.add(p.value.value());
  for (const nn::Module::NamedBuffer& b : buffers()) fingerprint.add(b.value);
  for (const auto& [name, tensor] : optimizer_->state()) fingerprint.add(tensor);
  return fingerprint.hex();
}

}  // namespace orrery
