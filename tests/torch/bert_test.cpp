// Chapter 7. Equal to Hugging Face's BERT: its folder loads unchanged, and gives its outputs, losses and gradients for
// every head; what is saved has its names, and names what it lacks.
#include "nn/models/bert.h"

#include "autograd/ops.h"
#include "nn/files/bert_files.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"
#include "tests/torch/fixture.h"

using namespace orrery;
using namespace orrery::torch_parity;
using nn::Bert;
using nn::BertConfig;
using nn::BertHead;
using small::error_of;

namespace {

const std::string folder_of_fixture = std::string(ORRERY_SOURCE_DIR) + "/tests/fixtures/bert";

// The fixture's model with another head, in f64, and what transformers computes with it (tests/fixtures/bert.py).
struct Published {
  TensorMap expected = read_safetensors(folder_of_fixture + "/expected.safetensors").tensors;
  Bert model;
  nn::Pass pass;
  Variable hidden;

  explicit Published(BertHead head) : model(loaded(head)) {
    nn::to(model, f64);
    hidden = model.hidden(at("ids"), at("segments"), pass);
  }
  static Bert loaded(BertHead head) {
    BertConfig config = nn::bert_config(folder_of_fixture);
    CHECK(config.head == BertHead::pretraining);
    config.head = head;
    if (head == BertHead::sentence || head == BertHead::token) config.labels = {"red", "green", "blue"};
    Rng zeros = Rng::of_zeros();
    return nn::load_bert(folder_of_fixture, config, zeros);
  }
  const Tensor& at(const std::string& name) const { return expected.at(name); }
};

}  // namespace

TEST_CASE("promise 9: a folder of Hugging Face's BERT loads, and has its hidden states and pooled outputs") {
  const Published bert(BertHead::none);
  const Variable pooled = bert.model.pooled(bert.hidden);
  CHECK(difference(bert.hidden.value().rows(0, 1), bert.at("hidden").rows(0, 1)) == "");
  CHECK(difference(slice(bert.hidden.value().rows(1, 2), 1, 0, 3), slice(bert.at("hidden").rows(1, 2), 1, 0, 3)) == "");
  CHECK(difference(pooled.value(), bert.at("pooled")) == "");
}

TEST_CASE("promise 9: the heads of words and of the next sentence have Hugging Face's scores, loss and gradients") {
  Published bert(BertHead::pretraining);
  const Variable words = bert.model.word_logits(bert.hidden), next = bert.model.logits(bert.hidden, bert.pass);
  CHECK(difference(words.value().rows(0, 1), bert.at("words").rows(0, 1)) == "");
  CHECK(difference(next.value(), bert.at("next_sentence")) == "");
  const Variable loss =
      bert.model.word_loss(bert.hidden, bert.at("word_labels")) + cross_entropy(next, bert.at("next_sentence_labels"));
  CHECK(difference(loss.value(), bert.at("pretraining_loss")) == "");
  CHECK(
      difference(
          (cross_entropy(words, bert.at("word_labels")) + cross_entropy(next, bert.at("next_sentence_labels"))).value(),
          bert.at("pretraining_loss")) == "");
  backward(loss);
  const auto gradient = [&](const std::string& name) { return bert.at("gradient." + name); };
  const auto& attention = bert.model.encoder.layers[0].self_attn.as<nn::MultiHeadAttention>();
  CHECK(difference(bert.model.token_embedding.weight.gradient(), gradient("embeddings.word_embeddings.weight")) == "");
  CHECK(difference(bert.model.position_embedding.weight.gradient(),
                   gradient("embeddings.position_embeddings.weight")) == "");
  CHECK(difference(bert.model.segment_embedding.weight.gradient(),
                   gradient("embeddings.token_type_embeddings.weight")) == "");
  CHECK(difference(attention.in_proj.weight.gradient().rows(0, 4),
                   gradient("encoder.layer.0.attention.self.query.weight")) == "");
  CHECK(difference(bert.model.encoder.layers[1].norm2.weight.gradient(),
                   gradient("encoder.layer.1.output.LayerNorm.weight")) == "");
  CHECK(difference(bert.model.pooler->weight.gradient(), gradient("pooler.dense.weight")) == "");
  CHECK(difference(bert.model.words->bias.gradient(), gradient("cls.predictions.bias")) == "");
}

TEST_CASE("promise 9: the heads of a sentence, of tokens and of a span have Hugging Face's scores and losses") {
  for (const BertHead head : {BertHead::sentence, BertHead::token, BertHead::span}) {
    const std::string name(nn::names(head)[static_cast<size_t>(head)]);
    CAPTURE(name);
    Published bert(head);
    const Variable logits = bert.model.logits(bert.hidden, bert.pass);
    CHECK(difference(logits.value().rows(0, 1), bert.at(name).rows(0, 1)) == "");
    CHECK(difference(cross_entropy(logits, bert.at(name + "_labels")).value(), bert.at(name + "_loss")) == "");
  }
}

TEST_CASE("what we save of a BERT has Hugging Face's names, with its prefix if there is a head, and its numbers") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  const TensorMap theirs = read_safetensors(folder_of_fixture).tensors;
  size_t seen = 0;
  for (const BertHead head : {BertHead::none, BertHead::pretraining, BertHead::token, BertHead::span}) {
    Bert model = Published::loaded(head);
    nn::save(model, path);
    for (const auto& [name, tensor] : read_safetensors(path).tensors) {
      const std::string full = (head == BertHead::none ? "bert." : "") + name;
      CAPTURE(full);
      REQUIRE(theirs.contains(full));
      CHECK(same_bits(tensor, theirs.at(full)));
      seen += head == BertHead::pretraining;
    }
    Bert again = nn::load<Bert>(path);
    CHECK(again.config == model.config);
    Rng zeros = Rng::of_zeros();
    CHECK(nn::load_bert(path, model.config, zeros).parameter_count() == model.parameter_count());
  }
  CHECK(seen + 4 == theirs.size());  // theirs has two classifiers besides
}

TEST_CASE("a head that a file lacks is drawn, and anything else that it lacks is an error") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  Bert model = Published::loaded(BertHead::words);
  nn::save(model, path);
  BertConfig config = nn::bert_config(path);
  config.head = BertHead::sentence;
  config.labels = {"a", "b"};
  Rng rng(3), same(3);
  const Bert drawn(config, same), started = nn::load_bert(path, config, rng);
  CHECK(same_bits(started.classifier->weight.value(), drawn.classifier->weight.value()));
  CHECK(same_bits(started.pooler->weight.value(), drawn.pooler->weight.value()));
  CHECK(same_bits(started.token_embedding.weight.value(), model.token_embedding.weight.value()));
  config.num_layers = 1;
  CHECK(small::contains(error_of([&] { nn::load_bert(path, config, rng); }), "unexpected: "));
  config.num_layers = 3;
  CHECK(small::contains(error_of([&] { nn::load_bert(path, config, rng); }),
                        "missing: encoder.layer.2.attention.self.query.weight"));
  TensorMap tensors = read_safetensors(path).tensors;
  tensors["cls.predictions.decoder.weight"] = tensors.at("bert.embeddings.word_embeddings.weight").clone();
  tensors["bert.embeddings.position_ids"] = full({1, 6}, 0);
  tensors["bert.embeddings.LayerNorm.gamma"] = tensors.at("bert.embeddings.LayerNorm.weight");
  tensors.erase("bert.embeddings.LayerNorm.weight");
  Bert other = Published::loaded(BertHead::words);
  write_safetensors(path, tensors);
  CHECK_NOTHROW(nn::load(other, path));
}

TEST_CASE("a BERT's config.json is read and written, and what we do not have is refused by name") {
  const BertConfig config = nn::bert_config(folder_of_fixture);
  CHECK(config.vocab_size == 11);
  CHECK(config.layer.d_ff == 6);
  CHECK(config.max_positions == 6);
  CHECK(config.layer.layer_norm_eps == 1e-12);
  CHECK(nn::published_bert_config(nn::published_json(config), "test") == config);
  const auto read = [](const std::string& text) { return nn::published_bert_config(text, "test"); };
  BertConfig labelled = read(R"({"vocab_size": 9, "architectures": ["BertForTokenClassification"],
                                 "id2label": {"1": "B", "0": "O"}, "hidden_act": "gelu_new", "pad_token_id": 3})");
  CHECK(labelled.head == BertHead::token);
  CHECK(labelled.labels == std::vector<std::string>{"O", "B"});
  CHECK(labelled.layer.activation == nn::Activation::gelu_tanh);
  CHECK(labelled.pad_id == 3);
  CHECK(read(nn::published_json(labelled)) == labelled);
  CHECK(BertConfig::of_json(nn::to_json(labelled)) == labelled);
  const auto refused = [&](const std::string& field, const std::string& message) {
    CHECK(error_of([&] { read(R"({"vocab_size": 9, )" + field + "}"); }) == "test: " + message);
  };
  refused(R"("model_type": "roberta")", R"(model_type must be "bert", not "roberta")");
  refused(R"("position_embedding_type": "relative_key")",
          R"(position_embedding_type must be "absolute", not "relative_key")");
  refused(R"("is_decoder": true)", "is_decoder must be false, not true");
  refused(R"("hidden_act": "silu")", R"(hidden_act cannot be "silu")");
  refused(R"("architectures": ["BertForMultipleChoice"])", R"(architectures cannot be ["BertForMultipleChoice"])");
  refused(R"("hidden_size": 7)", "bert config: d_model (7) is not a multiple of num_heads (12); give d_k and d_v");
  BertConfig sums{.vocab_size = 9, .sentence_sums = true};
  CHECK(error_of([&] { nn::published_json(sums); }) ==
        R"(bert config: Hugging Face's BERT has no {"sentence_sums":true})");
  labelled.layer.activation_dropout = 0.1;
  CHECK(error_of([&] { nn::published_json(labelled); }) ==
        R"(bert config: Hugging Face's BERT has no {"activation_dropout":0.1})");
}
