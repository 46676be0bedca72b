// Chapter 7. Bert: published numbers of parameters, padding and segments, the loss of words that count, its heads.
#include "nn/models/bert.h"

#include <doctest/doctest.h>

#include "autograd/ops/layout.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using nn::Bert;
using nn::BertConfig;
using nn::BertHead;
using small::error_of;

namespace {

BertConfig small_bert(BertHead head) {
  BertConfig config{.vocab_size = 11,
                    .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12},
                    .num_layers = 2,
                    .max_positions = 6,
                    .head = head};
  if (head == BertHead::sentence || head == BertHead::token) config.labels = {"a", "b", "c"};
  return config;
}

Bert built_bert(BertHead head) {
  Rng rng(3);
  return {small_bert(head), rng};
}

const Tensor two_lines = Tensor::of<i32>({2, 4}, {3, 7, 5, 1, 9, 2, 0, 0});

Tensor hidden_of(const Bert& model, const Tensor& ids, const Tensor& segments = {}) {
  nn::Pass pass = nn::Pass::inference();
  return model.hidden(ids, segments, pass).value();
}

}  // namespace

TEST_CASE("BERT's published numbers of parameters") {
  BertConfig base{.vocab_size = 30522};
  CHECK(base.parameter_count() == 109'482'240);
  base.head = BertHead::words;
  CHECK(base.parameter_count() == 109'514'298);
  const BertConfig large{
      .vocab_size = 30522, .layer = {.d_model = 1024, .num_heads = 16, .d_ff = 4096}, .num_layers = 24};
  CHECK(large.parameter_count() == 335'141'888);
  for (int head = 0; head < 7; ++head) {
    Bert model = built_bert(static_cast<BertHead>(head));
    CHECK(model.parameter_count() == model.config.parameter_count());
    CHECK(BertConfig::of_json(nn::to_json(model.config)) == model.config);
    CHECK(same_bits(hidden_of(model.clone(), two_lines), hidden_of(model, two_lines)));
  }
}

TEST_CASE("a BERT's padding changes nothing; a word depends on both sides, on its segment and on its position") {
  const Bert model = built_bert(BertHead::none);
  const Tensor hidden = hidden_of(model, two_lines), alone = hidden_of(model, Tensor::of<i32>({1, 2}, {9, 2}));
  for (i64 i = 0; i < alone.count(); ++i) CHECK(hidden.at(4 * 8 + i) == doctest::Approx(alone.at(i)).epsilon(1e-5));
  const auto moves = [&](const Tensor& other) { return std::abs(other.at(0) - hidden.at(0)) > 1e-6; };
  CHECK(moves(hidden_of(model, Tensor::of<i32>({2, 4}, {3, 7, 5, 4, 9, 2, 0, 0}))));
  CHECK(moves(hidden_of(model, Tensor::of<i32>({2, 4}, {3, 5, 7, 1, 9, 2, 0, 0}))));
  CHECK(moves(hidden_of(model, two_lines, Tensor::of<i32>({2, 4}, {0, 0, 0, 1, 0, 0, 0, 0}))));
  CHECK(same_bits(hidden, hidden_of(model, two_lines, full({2, 4}, 0))));
}

TEST_CASE("a BERT's loss of words is the cross entropy of all their scores with the labels") {
  const Tensor labels = Tensor::of<i32>({2, 4}, {-100, 6, -100, 1, 10, -100, -100, -100});
  const Bert model = built_bert(BertHead::words);
  nn::Pass pass = nn::Pass::training(1, 1);
  const Variable hidden = model.hidden(two_lines, {}, pass);
  CHECK(model.word_loss(hidden, labels).item() ==
        doctest::Approx(cross_entropy(model.word_logits(hidden), labels).item()).epsilon(1e-6));
  CHECK(model.word_loss(hidden, full({2, 4}, -100)).item() == 0);
  CHECK(error_of([&] {
          model.word_loss(hidden, full({4, 2}, 1));
        }) == "bert: labels must be i32 of the shape of the ids, [2, 4]");
}

TEST_CASE("what each head gives, and what it does not") {
  nn::Pass pass = nn::Pass::inference();
  const auto shape = [&](BertHead head) {
    const Bert model = built_bert(head);
    return model.logits(model.hidden(two_lines, {}, pass), pass).shape();
  };
  CHECK(shape(BertHead::pretraining) == Shape{2, 2});
  CHECK(shape(BertHead::next_sentence) == Shape{2, 2});
  CHECK(shape(BertHead::sentence) == Shape{2, 3});
  CHECK(shape(BertHead::token) == Shape{2, 4, 3});
  CHECK(shape(BertHead::span) == Shape{2, 2, 4});
  CHECK(error_of([&] { shape(BertHead::words); }) == "bert: this model has no head for classes");
  const Bert tagger = built_bert(BertHead::token);
  const Variable hidden = tagger.hidden(two_lines, {}, pass);
  CHECK(error_of([&] { tagger.pooled(hidden); }) == "bert: this model has no pooler");
  CHECK(error_of([&] { tagger.word_logits(hidden); }) == "bert: this model has no head for words");
  CHECK(error_of([&] {
          hidden_of(tagger, full({1, 7}, 1));
        }) == "bert: a sequence has 7 positions, but max_positions is 6");
  CHECK(error_of([&] {
          hidden_of(tagger, two_lines, full({2, 3}, 0));
        }) == "bert: segments must have the shape of the ids, [2, 4]");
}

TEST_CASE("a BERT that goes through its layers twice is one of twice as many layers with the same weights") {
  BertConfig config = small_bert(BertHead::none);
  config.repeats = 2;
  Rng rng(3);
  const Bert twice(config, rng);
  CHECK(config.parameter_count() == small_bert(BertHead::none).parameter_count());
  config.repeats = 1;
  config.num_layers = 4;
  Bert whole(config, rng);
  const auto value_in = [](const Bert& model, const std::string& name) -> Tensor {
    for (const NamedParameter& each : const_cast<Bert&>(model).parameters())
      if (each.name == name) return each.value.value();
    return {};
  };
  for (NamedParameter& each : whole.parameters()) {
    std::string name = each.name;
    for (const auto& [deep, shallow] : {std::pair{"layers.2.", "layers.0."}, std::pair{"layers.3.", "layers.1."}})
      if (const size_t at = name.find(deep); at != name.npos) name.replace(at, std::string(deep).size(), shallow);
    copy_into(each.value.mutable_value(), value_in(twice, name));
  }
  CHECK(same_bits(hidden_of(twice, two_lines), hidden_of(whole, two_lines)));
  CHECK_FALSE(same_bits(hidden_of(built_bert(BertHead::none), two_lines), hidden_of(whole, two_lines)));
}

TEST_CASE("a sentence is the sum of its words, each times the vector of its place, and of its segment's vector") {
  BertConfig config = small_bert(BertHead::none);
  config.num_layers = 1;
  config.type_vocab_size = 3;
  config.sentence_sums = true;
  Rng rng(3);
  Bert model(config, rng);
  CHECK(sum(model.position_embedding.weight.value()).at(0) > 20);  // 48 from N(1, 1)
  CHECK(max(model.token_embedding.weight.value()).at(0) > 1);      // of 88 from N(0, 1)
  copy_into(model.position_embedding.weight.mutable_value(), randn({6, 8}, rng));
  const Tensor segments = Tensor::of<i32>({2, 4}, {0, 1, 1, 2, 0, 0, 0, 0}),
               hidden = hidden_of(model, two_lines, segments);
  CHECK(hidden.shape() == Shape{2, 3, 8});
  const auto rows = [](const nn::Embedding& table, i64 i) { return table.weight.value().rows(i, i + 1); };
  const auto word = [&](i64 id, i64 place) {
    return rows(model.token_embedding, id) * rows(model.position_embedding, place);
  };
  const auto sentence = [&](i64 k) { return rows(model.segment_embedding, k); };
  nn::Pass pass = nn::Pass::inference();
  const auto encoded = [&](const std::vector<Variable>& sums) {
    const Variable x = model.embedding_norm(reshape(concat(sums, 0), {1, std::ssize(sums), 8}));
    return model.encoder(x, Mask(), pass).value();
  };
  const Tensor of_three = encoded({constant(word(3, 0) + sentence(0)), constant(word(7, 0) + word(5, 1) + sentence(1)),
                                   constant(word(1, 0) + sentence(2))}),
               of_one = encoded({constant(word(9, 0) + word(2, 1) + sentence(0))});
  for (i64 i = 0; i < of_three.count(); ++i) CHECK(hidden.at(i) == doctest::Approx(of_three.at(i)).epsilon(1e-5));
  for (i64 i = 0; i < of_one.count(); ++i) CHECK(hidden.at(3 * 8 + i) == doctest::Approx(of_one.at(i)).epsilon(1e-5));
  CHECK(error_of([&] {
          hidden_of(model, two_lines, Tensor::of<i32>({2, 4}, {0, 2, 2, 2, 0, 0, 0, 0}));
        }) == "bert: with sentence_sums, segments must be 0, 1, ... in their order, not 2 in place of 1");
}

TEST_CASE("a BERT's configuration: its defaults, and what does not fit") {
  const BertConfig config = small_bert(BertHead::none);
  CHECK(config.layers().activation == nn::Activation::gelu);
  CHECK(config.layers().activation_dropout == 0);
  CHECK(config.layers().attention_dropout == 0.1);
  CHECK(BertConfig().layer.layer_norm_eps == 1e-12);
  const auto refused = [&](const char* message, const auto& change) {
    BertConfig wrong = config;
    change(wrong);
    CHECK(small::contains(error_of([&] { wrong.validate(); }), message));
  };
  refused("bert config: vocab_size must be positive, not 0", [](BertConfig& c) { c.vocab_size = 0; });
  refused("d_model (9) is not a multiple of num_heads (2)", [](BertConfig& c) { c.layer.d_model = 9; });
  refused("init cannot be chosen", [](BertConfig& c) { c.layer.init = nn::Init::pytorch_linear; });
  refused("pad_id must be a token's id, or -1 for none, not 11", [](BertConfig& c) { c.pad_id = 11; });
  refused("sentence_sums leaves no positions for the head of words or spans", [](BertConfig& c) {
    c.sentence_sums = true;
    c.head = BertHead::span;
  });
  refused("the head of a sentence or of tokens needs labels", [](BertConfig& c) { c.head = BertHead::token; });
}
