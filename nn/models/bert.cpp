// Chapter 7. Bert: its configuration, then: embed the tokens, encode, and what each head makes of it.
#include "nn/models/bert.h"

#include <algorithm>

#include "autograd/ops/activation.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/layout.h"
#include "autograd/ops/reduce.h"
#include "core/tensor_ops.h"
#include "nn/layers/padding.h"
#include "nn/models/config_json.h"

namespace orrery::nn {
namespace {

constexpr std::string_view bert_operation = "bert config";

Tensor bert_table(i64 count, const BertConfig& config, Rng& rng) {
  const i64 d_model = config.layer.d_model;
  return config.sentence_sums ? initial_embedding(count * d_model, 1, rng).reshape({count, d_model})  // N(0, 1)
                              : initial_weight(Init::normal_002, count, d_model, rng);
}

// From N(1, 1).
Tensor places_in_sentences(const BertConfig& config, Rng& rng) {
  const Tensor drawn = bert_table(config.max_positions, config, rng);
  return rng.draws_shapes() ? drawn : drawn + 1.0;
}

Variable activated_by(Activation activation, const Variable& x) {
  if (activation == Activation::gelu) return gelu(x);
  return activation == Activation::relu ? relu(x) : gelu_tanh(x);
}

template <class Part> const Part& part_of(const std::optional<Part>& part, const char* what) {
  check(part.has_value(), "bert", "this model has no ", what);
  return *part;
}

}  // namespace

void BertConfig::validate() const {
  config_json::check_fields(bert_operation, *this);
  layer.validate(bert_operation);
  check(layer.init == LayerOptions{}.init || layer.init == Init::normal_002, bert_operation,
        "init cannot be chosen: a BERT's weights start from N(0, 0.02^2)");
  check(pad_id >= -1 && pad_id < vocab_size, bert_operation, "pad_id must be a token's id, or -1 for none, not ",
        pad_id);
  check(!sentence_sums || (has_pooler() && !has_words()), bert_operation,
        "sentence_sums leaves no positions for the head of words or spans");
  check(!labels.empty() || (head != BertHead::sentence && head != BertHead::token), bert_operation,
        "the head of a sentence or of tokens needs labels");
}

LayerOptions BertConfig::layers() const {
  LayerOptions all = layer;
  all.attention_dropout = layer.attention_dropout.value_or(layer.dropout);
  all.activation_dropout = layer.activation_dropout.value_or(0);
  all.activation = layer.activation.value_or(Activation::gelu);
  all.norm_first = false;
  all.init = sentence_sums ? Init::xavier : Init::normal_002;
  return all;
}

i64 BertConfig::classes() const {
  if (head == BertHead::sentence || head == BertHead::token) return std::ssize(labels);
  return head == BertHead::none || head == BertHead::words ? 0 : 2;
}

i64 BertConfig::parameter_count() const { return config_json::counted<Bert>(*this, {&BertConfig::num_layers}); }

BertConfig BertConfig::of_json(const std::string& json) {
  return config_json::config_of<BertConfig>(json, bert_operation);
}

bool operator==(const BertConfig& a, const BertConfig& b) { return to_json(a) == to_json(b); }

std::string to_json(const BertConfig& config) {
  BertConfig complete = config;
  complete.layer = config.layers();
  return config_json::text_of(complete);
}

Bert::WordHead::WordHead(const BertConfig& config, Rng& rng)
    : dense(config.layer.d_model, config.layer.d_model, rng, config.layers().linear()),
      norm(config.layer.d_model, config.layers().norm(), rng),
      bias(parameter(initial_constant({config.vocab_size}, 0, rng))) {}

void Bert::WordHead::visit(Visitor& v) {
  v("dense", dense);
  v("norm", norm);
  v("bias", bias);
}

Bert::Bert(const BertConfig& config, Rng& rng)
    : config(config_json::valid(config)),
      token_embedding(bert_table(config.vocab_size, config, rng)),
      position_embedding(config.sentence_sums ? places_in_sentences(config, rng)
                                              : bert_table(config.max_positions, config, rng)),
      segment_embedding(bert_table(config.type_vocab_size, config, rng)),
      embedding_norm(config.layer.d_model, config.layers().norm(), rng),
      encoder(config.num_layers, false, config.layers(), rng),
      dropout(config.layer.dropout) {
  const LinearOptions linear = config.layers().linear();
  const i64 d_model = config.layer.d_model, classes = config.classes();
  if (config.has_pooler()) pooler.emplace(d_model, d_model, rng, linear);
  if (config.has_words()) words.emplace(config, rng);
  if (classes > 0) classifier.emplace(d_model, classes, rng, linear);
  name_parameters();
}

Variable Bert::sentence_sums(const Tensor& ids, const Tensor& segments, Mask& mask) const {
  const auto [B, S] = dims<2>(ids, "ids");
  i64 K = 1, W = 1;  // of the text of most sentences, and of the longest sentence
  std::vector<i32> place(static_cast<size_t>(B * S)), sentences(static_cast<size_t>(B));
  const i32* const segment = segments.data<i32>();
  for (i64 b = 0; b < B; ++b)
    for (i64 i = b * S; i < b * S + mask.length(b, S); ++i) {
      const bool first = i == b * S, begins = first || segment[i] != segment[i - 1];
      i32 &count = sentences[static_cast<size_t>(b)], &at = place[static_cast<size_t>(i)];
      count += begins;
      check(segment[i] == count - 1, "bert", "with sentence_sums, segments must be 0, 1, ... in their order, not ",
            segment[i], " in place of ", count - 1);
      at = begins ? 0 : place[static_cast<size_t>(i - 1)] + 1;
      K = std::max<i64>(K, count);
      W = std::max<i64>(W, at + 1);
    }
  Tensor words = full({B, K, W}, 0), is_word = full({B, K, W, 1}, 0);
  i32 *word = words.write<i32>(), *known = is_word.write<i32>();
  for (i64 b = 0; b < B; ++b)
    for (i64 i = b * S; i < b * S + mask.length(b, S); ++i) {
      const i64 to = (b * K + segment[i]) * W + place[static_cast<size_t>(i)];
      word[to] = ids.data<i32>()[i];
      known[to] = 1;
    }
  mask = Mask::padding(sentences);
  const Variable zero = constant(full({1}, 0.0, token_embedding.weight.dtype())),
                 vectors = where(is_word, token_embedding(words), zero);  // padding may hold anything
  return sum(vectors * slice(position_embedding.weight, 0, 0, W), {2}) + slice(segment_embedding.weight, 0, 0, K);
}

Variable Bert::hidden(const Tensor& ids, const Tensor& segments, const Mask& of_words, Pass& pass) const {
  Mask mask = of_words;
  const i64 S = dims<2>(ids, "ids")[1];
  check(S <= config.max_positions, "bert", "a sequence has ", S, " positions, but max_positions is ",
        config.max_positions);
  check(!segments.defined() || segments.shape() == ids.shape(), "bert", "segments must have the shape of the ids, ",
        ids.shape());
  const Variable sum = config.sentence_sums
                           ? sentence_sums(ids, segments.defined() ? segments : full(ids.shape(), 0), mask)
                           : embedding_sum(token_embedding.weight, ids, 1.0, position_embedding.weight) +
                                 segment_embedding(segments.defined() ? segments : full({1, 1}, 0));
  Variable x = dropout(embedding_norm(with_harmless_padding(sum, mask)), pass);
  for (i64 i = 0; i < config.repeats; ++i) x = encoder(x, mask, pass);
  return x;
}

Variable Bert::pooled(const Variable& hidden) const {
  const Variable first = reshape(slice(hidden, 1, 0, 1), {hidden.size(0), config.layer.d_model});
  return tanh(part_of(pooler, "pooler")(first));
}

Variable Bert::transformed(const Variable& hidden) const {
  const WordHead& head = part_of(words, "head for words");
  return head.norm(activated_by(*config.layers().activation, head.dense(hidden)));
}

Variable Bert::word_logits(const Variable& hidden) const {
  return linear(transformed(hidden), token_embedding.weight, words->bias);
}

std::pair<Variable, Tensor> Bert::labelled(const Variable& hidden, const Tensor& labels, i32 ignore_index) {
  const auto [B, S, d_model] = dims<3>(hidden.value(), "hidden");
  check(labels.defined() && labels.dtype() == Dtype::i32 && labels.shape() == Shape{B, S}, "bert",
        "labels must be i32 of the shape of the ids, ", Shape{B, S});
  std::vector<i32> places, counted;
  for (i64 i = 0; i < labels.count(); ++i) {
    const i32 label = labels.data<i32>()[i];
    if (label == ignore_index) continue;
    places.push_back(static_cast<i32>(i));
    counted.push_back(label);
  }
  const Shape shape{std::ssize(places)};
  return {embedding(reshape(hidden, {B * S, d_model}), Tensor::of<i32>(shape, places)),
          Tensor::of<i32>(shape, counted)};
}

Variable Bert::word_loss(const Variable& hidden, const Tensor& labels, const CrossEntropyOptions& options) const {
  const auto [chosen, right] = labelled(hidden, labels, options.ignore_index);
  return linear_cross_entropy(transformed(chosen), token_embedding.weight, words->bias, right, options);
}

Variable Bert::logits(const Variable& hidden, Pass& pass) const {
  const Linear& classes = part_of(classifier, "head for classes");
  switch (config.head) {
    case BertHead::sentence: return classes(dropout(pooled(hidden), pass));
    case BertHead::token: return classes(dropout(hidden, pass));
    case BertHead::span: return permute(classes(hidden), {0, 2, 1});
    default: return classes(pooled(hidden));
  }
}

Bert Bert::clone() {
  Rng zeros = Rng::of_zeros();
  return cloned(*this, Bert(config, zeros));
}

void Bert::visit(Visitor& v) {
  v("token_embedding", token_embedding);
  v("position_embedding", position_embedding);
  v("segment_embedding", segment_embedding);
  v("embedding_norm", embedding_norm);
  v.inlined(encoder);
  v("pooler", pooler);
  v("words", words);
  const bool next = config.head == BertHead::next_sentence || config.head == BertHead::pretraining;
  v(next ? "next_sentence" : config.head == BertHead::span ? "span" : "classifier", classifier);
}

}  // namespace orrery::nn
