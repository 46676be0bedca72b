// Chapter 9. Training a GPT on a text: draw blocks, forward, loss, backward, step; and evaluate.
//
// Serves: nn/models/gpt.h
#include "apps/lm/training.h"

#include <cmath>

#include "apps/program/stopwatch.h"
#include "apps/training/training_step.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/generate/decoding.h"
#include "nn/models/config_json.h"
#include "optim/schedule.h"

namespace orrery {
namespace {

// The names of tensors in a state.
const std::string of_parameter = "parameter.", of_average = "average.", of_best = "best.", losses_name = "losses";

nn::GptConfig for_text(nn::GptConfig config, const TextData& data) {
  config.vocab_size = data.alphabet.size();
  return config;
}

TensorMap copy_of(const Parameters& parameters) {
  TensorMap copies;
  for (const NamedParameter& p : parameters) copies[p.name] = p.value.value().clone();
  return copies;
}

void load(const Parameters& parameters, const TensorMap& tensors, const std::string& prefix) {
  for (NamedParameter p : parameters) {
    const auto found = tensors.find(prefix + p.name);
    check(
        found != tensors.end() && found->second.shape() == p.value.shape() && found->second.dtype() == p.value.dtype(),
        "lm", "the saved state has no ", prefix, p.name, " that fits the model");
    copy_into(p.value.mutable_value(), found->second);
  }
}

}  // namespace

// Calls field(name, value) for every field (nn/models/config_json.h).
template <class Recipe, class Field>
static void for_each_field(Recipe& recipe, Field&& field) {
  field("steps", recipe.steps);
  field("batch", recipe.batch);
  field("warmup", recipe.warmup);
  field("rate", recipe.rate);
  field("last_rate", recipe.last_rate);
  field("beta1", recipe.beta1);
  field("beta2", recipe.beta2);
  field("weight_decay", recipe.weight_decay);
  field("clip", recipe.clip);
  field("average", recipe.average);
  field("replacement", recipe.replacement);
  field("estimate_every", recipe.estimate_every);
  field("estimate_batches", recipe.estimate_batches);
}

std::string to_json(const LmRecipe& recipe) { return nn::config_json::text_of(recipe); }

LmRecipe lm_recipe(const std::string& json) { return nn::config_json::config_of<LmRecipe>(json, "lm recipe"); }

void LmRecipe::validate() const {
  using nn::config_json::check_positive;
  check_positive("lm recipe", "steps", steps);
  check_positive("lm recipe", "batch", batch);
  check_positive("lm recipe", "estimate_every", estimate_every);
  check_positive("lm recipe", "estimate_batches", estimate_batches);
  nn::config_json::check_probability("lm recipe", "average", average);
  check(warmup_steps() >= 0 && warmup_steps() < steps, "lm recipe", "warmup (", warmup, ") must be below steps, ",
        steps);
}

double LmRecipe::rate_of(i64 step) const { return optim::warmup_cosine(step, rate, warmup_steps(), steps, last_rate); }

double loss_over(const nn::Gpt& model, const Tensor& text) {
  const NoGradient nothing_recorded;
  const i64 block = model.config.max_len, count = text.count() - 1;  // characters that follow another
  check(count > 0, "lm", "a text of ", text.count(), " characters is too short: it needs at least two");
  const i64 at_once = std::max<i64>(1, 4096 / block);
  double total = 0;
  for (i64 begin = 0; begin < count;) {
    const i64 whole = std::min(at_once, (count - begin) / block), length = whole > 0 ? block : count - begin;
    const TextBatch batch = blocks_from(text, begin, std::max<i64>(1, whole), length);
    nn::Pass pass = nn::Pass::inference();
    total += model.loss(batch.ids, batch.labels, pass, {.reduction = Reduction::sum}).item();
    begin += batch.ids.count();
  }
  return total / static_cast<double>(count);
}

LmTraining::LmTraining(const LmRecipe& recipe, const TextData& data)
    : recipe_(recipe),
      data_(data),
      weights_(random_numbers(recipe.seed, 0)),
      blocks_(random_numbers(recipe.seed, 1)),
      judged_(random_numbers(recipe.seed, 2)),
      shuffled_(data_.training, recipe.model.max_len, blocks_),
      model_(for_text(recipe.model, data), weights_),
      average_(recipe.average > 0 ? std::optional(model_.clone()) : std::nullopt),
      trained_(model_.parameters()),
      judged_parameters_(model().parameters()),
      adam_(optim::decay_matrices(model_.parameters(), recipe.weight_decay),
            {.beta1 = recipe.beta1, .beta2 = recipe.beta2, .weight_decay = recipe.weight_decay}) {}

// Gives the same bits for the same batch until a parameter changes, even with dropout, since a Pass is a value.
Variable LmTraining::loss_of(const TextBatch& batch) const {
  nn::Pass pass = nn::Pass::training(static_cast<u64>(recipe_.seed), steps_done_ + 1);
  return model_.loss(batch.ids, batch.labels, pass);
}

TextBatch LmTraining::next_batch(Rng& numbers) {
  return recipe_.replacement ? random_blocks(data_.training, recipe_.batch, recipe_.model.max_len, numbers)
                             : shuffled_.batch(steps_done_ * recipe_.batch, recipe_.batch);
}

double LmTraining::step() {
  const TextBatch batch = next_batch(blocks_);
  const double loss = train_step({.program = "lm",
                                  .number = steps_done_ + 1,
                                  .rate = recipe_.rate_of(steps_done_ + 1),
                                  .clip = recipe_.clip,
                                  .rate_option = "--rate"},
                                 adam_, [&] { return loss_of(batch); });
  ++steps_done_;
  losses_.push_back(loss);
  if (average_) average_parameters();
  return loss;
}

// The exponential mean of Kingma and Ba 2015, section 7.2, with its bias corrected, as a recurrence:
//   mean_t = mean_(t-1) + w (p_t - mean_(t-1)),  w = (1 - beta) / (1 - beta^t)
void LmTraining::average_parameters() {
  const double beta = recipe_.average, w = (1 - beta) / (1 - std::pow(beta, static_cast<double>(steps_done_)));
  for (size_t i = 0; i < trained_.size(); ++i)
    lerp_in_place(judged_parameters_[i].value.mutable_value(), trained_[i].value.value(), w);
}

double LmTraining::mean_loss(Rng& numbers) const {
  const NoGradient nothing_recorded;
  double total = 0;
  for (i64 i = 0; i < recipe_.estimate_batches; ++i) {
    const TextBatch batch = random_blocks(data_.validation, recipe_.batch, recipe_.model.max_len, numbers);
    nn::Pass pass = nn::Pass::inference();
    total += model().loss(batch.ids, batch.labels, pass).item();
  }
  return total / static_cast<double>(recipe_.estimate_batches);
}

double LmTraining::estimate() {
  const double loss = mean_loss(judged_);
  if (loss < best_estimate_) {
    best_estimate_ = loss, best_step_ = steps_done_;
    best_ = copy_of(judged_parameters_);
  }
  return loss;
}

double LmTraining::finish_with_best() {
  const double last = validation_loss();
  if (best_step_ == 0 || best_step_ == steps_done_) return last;
  const TensorMap last_parameters = copy_of(judged_parameters_);
  load(judged_parameters_, best_, "");
  const double best = validation_loss();
  if (!(last < best)) return best;  // also if `last` is NaN
  load(judged_parameters_, last_parameters, "");
  return last;
}

std::string LmTraining::sample(i64 count) const {
  Rng numbers = random_numbers(recipe_.seed, 3);
  std::string text;
  nn::generate(model(), data_.alphabet.beginning(), count, {.temperature = 0.8}, numbers, [&](i32 token) {
    text += data_.alphabet.character(token);
    return true;
  });
  return text;
}

LmState LmTraining::state() const {
  LmState state{.steps_done = steps_done_,
                .blocks = blocks_.position(),
                .judged = judged_.position(),
                .best_step = best_step_,
                .best_estimate = best_estimate_,
                .tensors = adam_.state()};
  for (const NamedParameter& p : trained_) state.tensors[of_parameter + p.name] = p.value.value();
  if (average_)
    for (const NamedParameter& p : judged_parameters_) state.tensors[of_average + p.name] = p.value.value();
  if (best_step_ != steps_done_)
    for (const auto& [name, tensor] : best_) state.tensors[of_best + name] = tensor;
  state.tensors[losses_name] = Tensor::of<double>({steps_done_}, losses_);
  return state;
}

void LmTraining::load_state(const LmState& state) {
  std::map<std::string, Tensor> moments = state.tensors;
  std::erase_if(moments, [](const auto& entry) {
    const auto is_of = [&](const std::string& prefix) { return entry.first.starts_with(prefix); };
    return is_of(of_parameter) || is_of(of_average) || is_of(of_best) || entry.first == losses_name;
  });
  const auto losses = state.tensors.find(losses_name);
  check(losses != state.tensors.end() && losses->second.dtype() == f64 && state.steps_done >= 0 &&
            state.steps_done <= recipe_.steps && losses->second.count() == state.steps_done,
        "lm", "the saved state is not of a training of ", recipe_.steps, " steps");
  check(state.best_step >= 0 && state.best_step <= state.steps_done, "lm",
        "the saved state has its best step in the future");
  adam_.load_state(moments);
  const std::string& of_last = average_ ? of_average : of_parameter;
  if (state.best_step > 0) {
    load(judged_parameters_, state.tensors, state.best_step == state.steps_done ? of_last : of_best);
    best_ = copy_of(judged_parameters_);
  }
  load(trained_, state.tensors, of_parameter);
  if (average_) load(judged_parameters_, state.tensors, of_average);
  const double* all = losses->second.data<double>();
  losses_.assign(all, all + state.steps_done);
  steps_done_ = state.steps_done, best_step_ = state.best_step, best_estimate_ = state.best_estimate;
  blocks_ = Rng(blocks_.seed(), state.blocks), judged_ = Rng(judged_.seed(), state.judged);
}

double LmTraining::measure() {
  Rng blocks = blocks_, judged = judged_;
  const TextBatch batch = next_batch(blocks);
  const auto pass = [&] { backward(loss_of(batch)); };
  pass();  // the first pass also allocates memory and starts threads
  const double step = seconds_of(pass);
  adam_.clear_gradients();
  const double estimates = seconds_of([&] { mean_loss(judged); }) *
                           static_cast<double>((recipe_.steps - steps_done_) / recipe_.estimate_every);
  const double forward = step / 3 / static_cast<double>(tokens_per_step());  // backward takes twice as long as forward
  return step * static_cast<double>(recipe_.steps - steps_done_) + estimates +
         forward * static_cast<double>(data_.validation.count());
}

std::string LmTraining::hash() const { return training_hash(losses_, adam_); }

}  // namespace orrery
