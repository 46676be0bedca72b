// Chapter 7. The table of proofs for stacks and whole models.
//
// Layers are checked in every coordinate; models in a few of each parameter and along directions of norm 1 through all
// of them.
#include "autograd/ops.h"
#include "nn/check/sample_rows.h"
#include "nn/models/bert.h"
#include "nn/models/gpt.h"
#include "nn/models/stack.h"
#include "nn/models/transformer.h"

namespace orrery::nn {
namespace {

LayerOptions small(bool norm_first = false, double dropout = 0, Activation activation = Activation::relu) {
  return {.d_model = 4,
          .num_heads = 2,
          .d_ff = 6,
          .dropout = dropout,
          .attention_dropout = dropout,
          .activation_dropout = dropout,
          .norm_first = norm_first,
          .activation = activation};
}

// make(rng) builds an EncoderLayer or an Encoder.
template <class Make> Sample encoder(std::string name, std::string variant, Make make, SampleNotes notes = {}) {
  notes.padding = padding_of_x();
  return module_sample(
      std::move(name), std::move(variant), {{2, 3, 4}}, make,
      [mask = lengths_3_and_2()](const auto& layer, const Inputs& in, Pass& pass) { return layer(in[0], mask, pass); },
      std::move(notes));
}

// make(rng) builds a DecoderLayer or a Decoder.
template <class Make> Sample decoder(std::string name, std::string variant, Make make, SampleNotes notes = {}) {
  notes.padding = padding_of_x();
  notes.padding.places.push_back({"input 1", {3, 2}});
  return module_sample(
      std::move(name), std::move(variant), {{2, 3, 4}, {2, 4, 4}}, make,
      [mask = lengths_3_and_2()](const auto& layer, const Inputs& in, Pass& pass) {
        return layer(in[0], in[1], Mask::causal() & mask, mask, pass);
      },
      std::move(notes));
}

Sample encoder_layer(std::string variant, LayerOptions options) {
  return encoder("EncoderLayer", std::move(variant), [=](Rng& rng) { return EncoderLayer(options, rng); });
}
Sample decoder_layer(std::string variant, LayerOptions options) {
  return decoder("DecoderLayer", std::move(variant), [=](Rng& rng) { return DecoderLayer(options, rng); });
}

// The two stacks that a `Stacks` refers to.
struct EncoderAndDecoder : Module {
  Encoder encoder;
  Decoder decoder;
  EncoderAndDecoder(const LayerOptions& options, Rng& rng)
      : encoder(1, true, options, rng), decoder(1, true, options, rng) {}
  void visit(Visitor& v) override { Stacks(encoder, decoder).visit(v); }
};

Sample stacks() {
  return module_sample(
      "Stacks", "of one layer", {{2, 3, 4}, {2, 4, 4}},
      [](Rng& rng) { return EncoderAndDecoder(small(true, 0, Activation::gelu), rng); },
      [mask = lengths_3_and_2()](EncoderAndDecoder& both, const Inputs& in, Pass& pass) {
        return Stacks(both.encoder, both.decoder)(in[0], in[1], mask, Mask::causal(), pass);
      },
      {.options = some_coordinates, .padding = {.places = {{"input 0", {3, 2}}}}});
}

TransformerConfig small_model() {
  return {.src_vocab_size = 7,
          .tgt_vocab_size = 6,
          .layer = {.d_model = 4, .num_heads = 2, .d_ff = 6, .dropout = 0},
          .num_encoder_layers = 2,
          .num_decoder_layers = 2,
          .max_len = 5};
}

Sample transformer(std::string variant, const TransformerConfig& config) {
  return translator<Transformer>("Transformer", std::move(variant), config);
}

Sample transformer_loss() {
  TransformerConfig config = small_model();
  config.layer.activation = Activation::gelu;
  return translator_loss<Transformer>("Transformer", "loss, label smoothing, padding", config);
}

Sample copying_transformer() {
  TransformerConfig config = small_model();
  config.tgt_vocab_size = config.src_vocab_size;
  config.copy = true;
  config.layer.activation = Activation::gelu;
  return transformer("words are copied", config);
}

Sample pre_norm_transformer() {
  TransformerConfig config = small_model();
  config.layer.norm_first = config.final_norm = true;
  config.layer.activation = Activation::gelu;
  return transformer("pre-norm, gelu, final norm", config);
}

Sample shared_transformer() {
  TransformerConfig config = small_model();
  config.tgt_vocab_size = config.src_vocab_size;
  config.share_embeddings = true;
  config.layer.activation = Activation::gelu;  // with so many numbers, some relu would be at its kink
  config.positions = Positions::learned;
  config.layer.d_model = 8;  // in narrower rows dropout leaves so little that layer norm magnifies rounding
  config.layer.dropout = 0.1;
  return transformer("shared embeddings, learned positions, gelu, dropout", config);
}

// Wide enough for dropout, as above; more positions than the sequence has.
GptConfig small_gpt() {
  return {.vocab_size = 7,
          .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12, .dropout = 0},
          .num_layers = 2,
          .max_len = 5};
}

// The padding of a GPT that reads row 0 of its table as padding only. A tied table is the head, too: row 0 is a class.
Padding padding_of_table(const GptConfig& config, std::vector<i32> output) {
  if (config.tied) return {};
  return {.places = {{"token_embedding.weight"}}, .output = std::move(output)};
}

Sample gpt(std::string variant, GptConfig config) {
  const Tensor ids = Tensor::of<i32>({2, 4}, {3, 1, 5, 2, 4, 3, 3, 0});
  return module_sample(
      "Gpt", std::move(variant), {}, [=](Rng& rng) { return Gpt(config, rng); },
      [=, padding = Mask::padding(std::vector<i32>{4, 3})](const Gpt& model, const Inputs&, Pass& pass) {
        return model(ids, pass, padding);
      },
      {.options = some_coordinates, .padding = padding_of_table(config, {4, 3})});
}

// The loss as in training, through the head that never stores all logits. A tied table is used at both ends.
Sample gpt_loss(std::string variant, bool tied) {
  GptConfig config = small_gpt();
  config.tied = tied;
  const Tensor ids = Tensor::of<i32>({2, 4}, {3, 1, 5, 2, 4, 3, 3, 0}),
               labels = Tensor::of<i32>({2, 4}, {1, 5, 2, 6, 3, 3, 0, -100});
  return module_sample(
      "Gpt", std::move(variant), {}, [=](Rng& rng) { return Gpt(config, rng); },
      [=](const Gpt& model, const Inputs&, Pass& pass) { return model.loss(ids, labels, pass); },
      {.options = some_coordinates, .padding = padding_of_table(config, {})});
}

Sample gpt_without_biases() {
  GptConfig config = small_gpt();
  config.layer.bias = false;
  config.layer.activation = Activation::gelu;
  return gpt("gelu, no biases", config);
}

Sample gpt_untied() {
  GptConfig config = small_gpt();
  config.tied = false;
  config.layer.dropout = 0.1;
  return gpt("gelu with tanh, a head of its own, dropout", config);
}

Sample gpt_with_rotary_positions() {
  GptConfig config = small_gpt();
  config.rotary = config.query_key_norm = true;
  return gpt("rotary positions, normalised queries and keys", config);
}

// run(model, hidden, pass). Wide enough for dropout, as above; more positions than the sequences have. `output` says
// which positions of the output are none of padding; row 0 of a table that is the head, too, is a class.
template <class Run>
Sample bert(std::string variant, BertHead head, Run run, std::vector<i32> output = {}, double dropout = 0,
            bool sentence_sums = false) {
  BertConfig config{.vocab_size = 7,
                    .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12, .dropout = dropout},
                    .num_layers = 2,
                    .repeats = head == BertHead::sentence ? 2 : 1,
                    .max_positions = 5,
                    .type_vocab_size = sentence_sums ? 3 : 2,
                    .sentence_sums = sentence_sums,
                    .head = head};
  if (head == BertHead::sentence || head == BertHead::token) config.labels = {"a", "b", "c"};
  const Tensor words = ids({2, 4}, {3, 1, 5, 2, 4, 3, 0, 0}),
               segments = ids({2, 4}, sentence_sums ? std::vector<i32>{0, 1, 1, 2, 0, 0, 0, 0}
                                                    : std::vector<i32>{0, 0, 1, 1, 0, 1, 0, 0});
  const Padding padding{.places = {{"token_embedding.weight"}}, .output = std::move(output)};
  return module_sample(
      "Bert", std::move(variant), {}, [=](Rng& rng) { return Bert(config, rng); },
      [=](const Bert& model, const Inputs&, Pass& pass) {
        return run(model, model.hidden(words, segments, pass), pass);
      },
      {.options = some_coordinates, .padding = config.has_words() || head == BertHead::span ? Padding{} : padding});
}

}  // namespace

std::vector<Sample> model_samples() {
  const Tensor hidden_words = ids({2, 4}, {-100, 6, -100, 2, 5, -100, -100, -100}), follows = ids({2}, {1, 0});
  const auto pooled = [](const Bert& model, const Variable& x, Pass&) { return model.pooled(x); };
  const auto words = [](const Bert& model, const Variable& x, Pass&) { return model.word_logits(x); };
  const auto classes = [](const Bert& model, const Variable& x, Pass& pass) { return model.logits(x, pass); };
  const auto pretraining_loss = [=](const Bert& model, const Variable& x, Pass& pass) {
    return model.word_loss(x, hidden_words) + cross_entropy(model.logits(x, pass), follows);
  };
  return {
      encoder_layer("post-norm", small()),
      encoder_layer("pre-norm, gelu", small(true, 0, Activation::gelu)),
      encoder_layer("pre-norm, gelu with tanh", small(true, 0, Activation::gelu_tanh)),
      encoder_layer("pre-norm, gelu, dropout", small(true, 0.2, Activation::gelu)),
      encoder_layer("post-norm, dropout", small(false, 0.2)),
      encoder("Encoder", "two layers", [](Rng& rng) { return Encoder(2, false, small(), rng); },
              {.options = some_coordinates}),
      encoder("Encoder", "pre-norm, final norm", [](Rng& rng) { return Encoder(2, true, small(true), rng); },
              {.options = some_coordinates}),
      decoder_layer("post-norm", small()),
      decoder_layer("pre-norm, gelu", small(true, 0, Activation::gelu)),
      decoder_layer("pre-norm, dropout", small(true, 0.2)),
      decoder("Decoder", "two layers", [](Rng& rng) { return Decoder(2, false, small(), rng); },
              {.options = some_coordinates}),
      decoder("Decoder", "pre-norm, final norm", [](Rng& rng) { return Decoder(2, true, small(true), rng); },
              {.options = some_coordinates}),
      stacks(),
      transformer("post-norm", small_model()),
      pre_norm_transformer(),
      shared_transformer(),
      transformer_loss(),
      copying_transformer(),
      gpt("gelu with tanh, tied", small_gpt()),
      gpt_with_rotary_positions(),
      gpt_without_biases(),
      gpt_untied(),
      gpt_loss("loss, tied", true),
      gpt_loss("loss, a head of its own", false),
      bert("pooled", BertHead::none, pooled),
      bert("words", BertHead::words, words),
      bert("loss of pre-training, dropout", BertHead::pretraining, pretraining_loss, {}, 0.1),
      bert("a sentence, layers used twice, dropout", BertHead::sentence, classes, {}, 0.1),
      bert("sentences that are sums of words", BertHead::sentence, classes, {}, 0, true),
      bert("tokens", BertHead::token, classes, {4, 2}),
      bert("a span", BertHead::span, classes),
  };
}

}  // namespace orrery::nn
