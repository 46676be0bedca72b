// Chapter 7. Rows of the table of proofs: what the files with samples share.
#pragma once

#include "core/mask.h"
#include "nn/check/proof.h"
#include "nn/check/samples.h"

namespace orrery::nn {

/// The samples of stacks and of the whole Transformer (nn/check/model_samples.cpp).
std::vector<Sample> model_samples();

/// The elements of all groups, one after another.
template <class Element> std::vector<Element> joined(std::initializer_list<std::vector<Element>> groups) {
  std::vector<Element> all;
  for (const std::vector<Element>& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

/// Token ids, row after row.
inline Tensor ids(const Shape& shape, const std::vector<i32>& elements) { return Tensor::of<i32>(shape, elements); }

/// How models are checked: in a few coordinates of each parameter, and along directions through all of them.
inline const GradcheckOptions some_coordinates{.coordinates = 5, .directions = 4};
/// The same for a mean, whose gradients are small: a factor of 1.0001 is to be seen in those of 1e-5.
inline const GradcheckOptions finer_coordinates{.atol = 1e-10, .coordinates = 5, .directions = 4};

/// The padding of two sequences.
inline Mask lengths_3_and_2() { return Mask::padding(ids({2}, {3, 2})); }

/// The same, said of the first input [2, T, ...] and an output of as many positions.
inline Padding padding_of_x() { return {.places = {{"input 0", {3, 2}}}, .output = {3, 2}}; }

/// The padding of a translator's embeddings. A table that is shared with the generator has none: its row 0 is a class.
template <class Config> Padding padding_of_tables(const Config& config, std::vector<i32> output) {
  if (config.share_embeddings) return {};
  return {.places = {{"src_embed.weight"}, {"tgt_embed.weight"}}, .output = std::move(output)};
}

/// The logits of a translator.
template <class Model, class Config> Sample translator(std::string name, std::string variant, const Config& config) {
  const Tensor source = ids({2, 4}, {3, 1, 5, 2, 4, 3, 0, 0}), target = ids({2, 3}, {1, 4, 5, 1, 3, 0});
  return module_sample(
      std::move(name), std::move(variant), {}, [=](Rng& rng) { return Model(config, rng); },
      [=](const Model& model, const Inputs&, Pass& pass) { return model(source, target, pass); },
      {.options = some_coordinates, .padding = padding_of_tables(config, {3, 2})});
}

/// Its loss as in training, through the head that never stores all logits.
template <class Model, class Config>
Sample translator_loss(std::string name, std::string variant, const Config& config) {
  const Tensor source = ids({2, 4}, {3, 1, 5, 2, 4, 3, 0, 0}), target = ids({2, 3}, {1, 4, 5, 1, 3, 0}),
               labels = ids({2, 3}, {4, 5, 2, 3, 2, 0});
  return module_sample(
      std::move(name), std::move(variant), {}, [=](Rng& rng) { return Model(config, rng); },
      [=](const Model& model, const Inputs&, Pass& pass) {
        return model.loss(source, target, labels, pass, {.ignore_index = 0, .label_smoothing = 0.1});
      },
      {.options = finer_coordinates, .padding = padding_of_tables(config, {})});
}

}  // namespace orrery::nn
