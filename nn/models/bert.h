// Chapter 7. Bert: an encoder that reads a text from both sides, and the heads that are trained on it.
//
// Devlin et al. 2018, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", section 3:
// "The first token of every sequence is always a special classification token ([CLS]). [...] Sentence pairs are packed
// together into a single sequence. We differentiate the sentences in two ways. First, we separate them with a special
// token ([SEP]). Second, we add a learned embedding to every token indicating whether it belongs to sentence A or
// sentence B. [...] For a given token, its input representation is constructed by summing the corresponding token,
// segment, and position embeddings."
//   x = dropout(norm(token_embedding[ids] + position_embedding[0, 1, ...] + segment_embedding[segments]))
//   x = norm(x + dropout(attention(x)));   x = norm(x + dropout(feed_forward(x)))      in each layer
//   pooled = tanh(x_0 W^T + b)                                                         x_0 is the row of [CLS]
// With `sentence_sums`, each segment is one position, such as each sentence of a story: the sum of its words, each
// times a learned vector of its place in the sentence (Sukhbaatar et al. 2015, "End-To-End Memory Networks", section
// 4.1; learned in Dehghani et al. 2018, "Universal Transformers", section 3.1). The question is the first one, with
// [CLS]:
//   x_k = dropout(norm(sum_t token_embedding[ids_t] * position_embedding[place of t in k] + segment_embedding[k]))
// Against the paper's encoder: positions are learned, a norm follows the embeddings too, and GELU replaces ReLU. The
// heads, one of which a model has (section 3.1 for pre-training, section 4 and figure 4 for tasks):
//   words           norm(gelu(x W^T + b)) token_embedding^T + c     "masked LM": which word is hidden
//   next_sentence   pooled W^T + b     whether sentence B follows A (class 0) or not (class 1)
//   pretraining     both
//   sentence        dropout(pooled) W^T + b       token   dropout(x) W^T + b      span   x W^T + b
// Shapes: ids and segments i32 [B, S], S <= max_positions, x [B, S, d_model], pooled [B, d_model]. With `sentence_sums`
// x is [B, K, d_model] for at most K segments.
// Without a head, BERT-base has 109,482,240 parameters, and BERT-large (24 layers of 1,024) 335,141,888. Files have the
// names of Hugging Face's BERT (nn/files/names.h), whose folders nn/files/bert_files.h reads.
#pragma once

#include "autograd/ops/cross_entropy.h"
#include "nn/layers/embedding.h"
#include "nn/models/stack.h"

namespace orrery::nn {

/// What stands on the encoder; `none` leaves the pooler.
enum class BertHead { none, pretraining, words, next_sentence, sentence, token, span };
constexpr std::array<std::string_view, 7> names(BertHead) {
  return {"none", "pretraining", "words", "next_sentence", "sentence", "token", "span"};
}

struct BertConfig {
  i64 vocab_size = 0;
  LayerOptions layer{.d_model = 768, .num_heads = 12, .d_ff = 3072, .layer_norm_eps = 1e-12};
  i64 num_layers = 12;
  i64 repeats = 1;             ///< how often a text goes through these layers (Lan et al. 2019, "ALBERT")
  i64 max_positions = 512;     ///< that have an embedding; a longer sequence is an error
  i64 type_vocab_size = 2;     ///< segments
  bool sentence_sums = false;  ///< a segment is one position, the sum of its words
  i32 pad_id = 0;              ///< trailing tokens of this id are padding; -1: there is none
  BertHead head = BertHead::none;
  std::vector<std::string> labels{};  ///< the names of the classes of a sentence or a token

  /// From JSON text, where absent fields keep their defaults. Errors: text that is not a JSON object, unknown fields,
  /// values of a wrong type, and those of `validate`.
  static BertConfig of_json(const std::string& json);
  /// Errors, naming the field: a value is out of range, or two values do not fit together.
  void validate() const;
  /// `layer` with BERT's defaults in all fields without a value: the exact GELU, and dropout on attention weights but
  /// not inside the feed-forward network. Its layers normalise sums, and its weights start from N(0, 0.02^2), or with
  /// `sentence_sums` as the paper's: `norm_first` is not read, and another `init` is an error.
  LayerOptions layers() const;
  /// How many classes the head tells apart, words aside: 2 of the next sentence and of a span, else those of `labels`.
  i64 classes() const;
  /// Whether the model reads [CLS] for the whole text, or nothing else does.
  bool has_pooler() const { return head != BertHead::words && head != BertHead::token && head != BertHead::span; }
  bool has_words() const { return head == BertHead::pretraining || head == BertHead::words; }
  /// The number of the model's parameters, counted without building it; 2^53 if there are more.
  i64 parameter_count() const;
  /// True if both describe the same model. A field without a value equals its default.
  friend bool operator==(const BertConfig& a, const BertConfig& b);
};

/// Calls field(about, value) for every field (nn/models/fields.h).
template <class F> void for_each_field(BertConfig& config, F&& field) {
  field({"vocab_size", Rule::positive}, config.vocab_size);
  for_each_field(config.layer, field);
  field({"num_layers", Rule::positive, 96, "Layers"}, config.num_layers);
  field({"repeats", Rule::positive, 96, "How often a text goes through these layers"}, config.repeats);
  field({"max_positions", Rule::positive, 65536, "Tokens that the model sees at once"}, config.max_positions);
  field({"type_vocab_size", Rule::positive}, config.type_vocab_size);
  field({"sentence_sums", Rule::any, 1, "Read each sentence as one vector, the sum of its words"},
        config.sentence_sums);
  field({"pad_id"}, config.pad_id);
  field({"head"}, config.head);
  field({"labels"}, config.labels);
}

/// Every field as JSON, for a file's metadata.
std::string to_json(const BertConfig& config);

struct Bert : Module {
  /// The head of masked words; its last weight is the token embedding.
  struct WordHead : Module {
    Linear dense;
    LayerNorm norm;
    Variable bias;  // [vocab_size]

    WordHead(const BertConfig& config, Rng& rng);
    void visit(Visitor& v) override;
  };

  BertConfig config;
  Embedding token_embedding, position_embedding, segment_embedding;
  LayerNorm embedding_norm;
  Encoder encoder;
  std::optional<Linear> pooler;
  std::optional<WordHead> words;
  std::optional<Linear> classifier;  // of the head's `classes()`
  Dropout dropout;

  /// Draws every weight from N(0, 0.02^2); biases are 0. With `sentence_sums` tables are drawn from N(0, 1), vectors of
  /// places in sentences from N(1, 1), so that the order of words counts, and matrices are Xavier's: from 0.02^2 a
  /// small model learns some stories late or never (bAbI's task 6: half of the answers right after 8 epochs). Errors:
  /// whatever `config.validate()` rejects.
  Bert(const BertConfig& config, Rng& rng);

  /// The encoder's output [B, S, d_model]. Without `segments` all tokens are of segment 0. No position sees trailing
  /// padding. Errors: more positions than max_positions; segments of another shape; ids that have no embedding; with
  /// `sentence_sums`, segments that are not 0, 1, ... in their order.
  Variable hidden(const Tensor& ids, const Tensor& segments, Pass& pass) const {
    return hidden(ids, segments, padding(ids), pass);
  }
  /// The same with the caller's own mask.
  Variable hidden(const Tensor& ids, const Tensor& segments, const Mask& mask, Pass& pass) const;
  /// The mask that follows from `pad_id`.
  Mask padding(const Tensor& ids) const { return padding_of(ids, config.pad_id); }

  // What follows takes the output of `hidden`. Error: the model has no such head.

  /// [B, d_model], for each whole text.
  Variable pooled(const Variable& hidden) const;
  /// Scores for the word at some positions of `hidden`, [..., d_model]: [..., vocab_size].
  Variable word_logits(const Variable& hidden) const;
  /// The positions of `hidden` whose label of `labels`, i32 [B, S], counts, [n, d_model], and these labels, i32 [n].
  static std::pair<Variable, Tensor> labelled(const Variable& hidden, const Tensor& labels, i32 ignore_index);
  /// The cross_entropy of the words' scores with `labels` i32 [B, S], the words that the ids hide. Only positions whose
  /// label counts go through the head.
  Variable word_loss(const Variable& hidden, const Tensor& labels, const CrossEntropyOptions& options = {}) const;
  /// The scores of the head's classes: [B, 2] for the next sentence, [B, labels] for a sentence, [B, S, labels] for
  /// tokens. For a span [B, 2, S]: each position as the first one and as the last, padding too. So `cross_entropy`
  /// takes i32 [B], [B, S] or [B, 2].
  Variable logits(const Variable& hidden, Pass& pass) const;

  Bert clone();  ///< a copy that shares nothing with this model, built from `config`
  void visit(Visitor& v) override;
  std::string_view family() const override { return "bert"; }

 private:
  Variable transformed(const Variable& hidden) const;
  // What the layers read of the sentences, and their mask in the place of that of their words.
  Variable sentence_sums(const Tensor& ids, const Tensor& segments, Mask& mask) const;
};

}  // namespace orrery::nn
