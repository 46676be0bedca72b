// Chapter 9. What a toy attends to, as a picture in the terminal; what the steps of its training did, as numbers to
// draw; and the toy itself, as a page that computes.
//
// In the picture rows are queries, columns keys. The darker a cell, the larger the weight of that key's value for that
// query.
#pragma once

#include <ostream>

#include "apps/show/attention/attention_page.h"
#include "apps/show/figure/figures.h"
#include "apps/tasks/toy/task.h"
#include "apps/tasks/toy/training.h"
#include "nn/models/transformer.h"

namespace orrery {

/// The cross-attention of the head with the sharpest weights while the model writes the answer to `source`: a row for
/// each symbol written, a column for each symbol read.
AttentionFigure sharpest_head(const nn::Transformer& model, const ToyTask& task, const Sequence& source);

/// The weights of every head, in the encoder and in both attentions of the decoder, for `source` and its right answer.
HeadsFigure every_head(const nn::Transformer& model, const ToyTask& task, const Sequence& source);

/// The same for each of `sources` as a page for a browser, up to the first that it has no room for.
AttentionPage attention_page(const nn::Transformer& model, const ToyTask& task, const std::vector<Sequence>& sources);

/// A page for a browser in which the model itself runs (apps/show/playground): it holds every parameter, and the first
/// 100 sequences of the exam of seed 1. Errors: `refused_by_page`; a parameter that is not finite.
std::string toy_page(nn::Transformer& model, const ToyTask& task);
/// Why there is no such page of a model, such as "takes at most ... parameters, not ..."; "" if there is one. A browser
/// computes in a moment what a page takes: 4 million parameters, a page of 21 MB, and `AttentionPage::most_weights`.
std::string refused_by_page(const nn::TransformerConfig& config, const ToyTask& task);

/// How sharp the weights of a head are: the mean over its rows of the largest weight; 1 if each row reads one symbol.
double sharpness(const std::vector<std::vector<double>>& weights);

/// Prints the weights as shades of grey, with their labels.
void print_attention(std::ostream& out, const AttentionFigure& figure);

/// The smallest cross entropy that targets of `classes` classes with label smoothing allow: the entropy of a smoothed
/// target. 0 without smoothing.
double least_loss(i64 classes, double smoothing);

/// The means of loss and accuracy over equal numbers of steps, at most 120 of them.
LossFigure loss_curve(const ToyRecipe& recipe, const std::vector<StepResult>& steps);

}  // namespace orrery
