// Chapter 9. The tiny model, its weights, and one pass through it.
#include "apps/show/trace/model_pass.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "apps/program/terminal.h"
#include "autograd/ops/cross_entropy.h"
#include "autograd/ops/softmax.h"
#include "nn/models/transformer.h"

namespace orrery {
namespace {

constexpr i32 begin_mark = 0, end_mark = 1, a = 2, b = 3, c = 4, d = 5, e = 6;
const std::vector<std::string> vocabulary{"<bos>", "<eos>", "a", "b", "c", "d", "e"};

std::vector<std::string> texts(const std::vector<i32>& ids) {
  std::vector<std::string> result;
  for (const i32 id : ids) result.push_back(vocabulary[static_cast<size_t>(id)]);
  return result;
}

std::string sentence(const std::vector<std::string>& tokens) { return joined(tokens, " "); }

Tensor one_row(const std::vector<i32>& ids) { return Tensor::of<i32>({1, static_cast<i64>(ids.size())}, ids); }

const std::vector<i32> source_ids{a, b, c, d, e}, target_ids{begin_mark, e, d, c, b, a},
    label_ids{e, d, c, b, a, end_mark};

// The sizes and the tokens of the pass, of which nothing is computed yet.
ModelPass planned_pass() {
  constexpr i64 d_model = 8, h = 2;
  return {.B = 1,
          .h = h,
          .S = static_cast<i64>(source_ids.size()),
          .d_k = d_model / h,
          .T = static_cast<i64>(target_ids.size()),
          .K = static_cast<i64>(vocabulary.size()),
          .d_model = d_model,
          .d_ff = 16,
          .source = texts(source_ids),
          .target = texts(target_ids),
          .labels = texts(label_ids),
          .words = vocabulary,
          .boxes = {},
          .steps = {},
          .parameters = {},
          .loss = 0};
}

void round_weights(nn::Module& model) {
  nn::to(model, f64);
  for (NamedParameter& p : model.parameters()) {
    Tensor& weight = p.value.mutable_value();
    for (i64 i = 0; i < weight.count(); ++i) weight.set(i, std::round(weight.at(i) * 100) / 100);
  }
}

nn::Transformer model_for(const ModelPass& pass) {
  Rng rng(1);
  nn::Transformer model({.src_vocab_size = pass.K,
                         .tgt_vocab_size = pass.K,
                         .layer = {.d_model = pass.d_model, .num_heads = pass.h, .d_ff = pass.d_ff, .dropout = 0},
                         .num_encoder_layers = 1,
                         .num_decoder_layers = 1,
                         .pad_id = -1},
                        rng);
  round_weights(model);
  return model;
}

// A softmax with a mask gives a weight of exactly 0 to what is hidden, and to nothing else.
void mark_masked(TracedStep& step) {
  if (step.operation != "masked_softmax" || step.is_backward()) return;
  TracedValue& weights = step.outputs.at(0);
  for (i64 i = 0; i < weights.value.count(); ++i)
    if (weights.value.at(i) == 0) weights.masked.push_back(i);
}

// The loss has an input that is no Variable, the labels. It computes the probabilities of all words, and uses them.
void add_probabilities(TracedStep& step, const Variable& logits, const Tensor& labels) {
  if (step.operation != "cross_entropy") return;
  TracedValue probabilities;
  probabilities.name = "P";
  probabilities.value = softmax(constant(logits.value())).value();
  step.inside.push_back(std::move(probabilities));
  if (step.is_backward()) return;
  TracedValue words;
  words.index = 1;
  words.value = labels;
  for (i64 i = 0; i < labels.count(); ++i) words.words.push_back(vocabulary.at(static_cast<size_t>(labels.at(i))));
  step.inputs.push_back(std::move(words));
}

// Boxes in the order in which the forward pass first comes to them.
std::vector<TracedBox> boxes_of(const std::vector<TracedStep>& steps) {
  std::vector<TracedBox> boxes;
  for (const TracedStep& step : steps) {
    const auto known = [&](const TracedBox& box) { return box.id == step.box; };
    if (std::none_of(boxes.begin(), boxes.end(), known)) boxes.push_back(traced_box(step.box));
  }
  return boxes;
}

}  // namespace

ModelPass traced_pass() {
  ModelPass result = planned_pass();
  nn::Transformer model = model_for(result);
  StepRecorder recorder;
  Variable logits, loss;
  {
    const ObserverScope scope(recorder);
    nn::Pass pass = nn::Pass::training(1, 1);
    nn::AttentionRecorder seen;  // with it, attention is computed step by step, as in the paper's formula (1)
    pass.recorder = &seen;
    logits = model(one_row(source_ids), one_row(target_ids), pass);
    loss = cross_entropy(logits, one_row(label_ids));
    backward(loss);
  }
  result.loss = loss.item();
  result.steps = recorder.steps();
  for (TracedStep& step : result.steps) {
    mark_masked(step);
    add_probabilities(step, logits, one_row(label_ids));
  }
  explain(result.steps);
  result.boxes = boxes_of(result.steps);
  for (const NamedParameter& p : model.parameters())
    result.parameters.push_back({p.name, p.value.value(), p.value.gradient()});
  return result;
}

std::string introduction(const ModelPass& pass) {
  std::ostringstream text;
  text << "One forward and one backward pass of the paper's model, so small that every number can be followed. The "
          "source is \""
       << sentence(pass.source) << "\". The model is to write it in reverse: from the target \""
       << sentence(pass.target) << "\" it has to predict \"" << sentence(pass.labels) << "\". B = " << pass.B
       << " sequence, S = " << pass.S << " source tokens, T = " << pass.T << " target tokens, K = " << pass.K
       << " words, h = " << pass.h << " heads, d_model = " << pass.d_model << ", d_k = d_v = " << pass.d_k
       << ", d_ff = " << pass.d_ff
       << ", one layer in each stack. The sizes differ, so that a shape tells what its axes are. The weights are "
          "random, rounded to two decimals; the pass is computed in f64 without dropout and padding, and shown with "
          "four decimals. dx stands for dL/dx.";
  return text.str();
}

double shown(double x) {
  constexpr double unit = 10'000;
  const double rounded = std::round(x * unit) / unit;
  return rounded == 0 ? 0.0 : rounded;
}

}  // namespace orrery
