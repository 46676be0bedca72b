// Chapter 10. A BERT of two layers reads texts without labels, and then learns from a few labels what they are about.
// Question: how many labels does a model save that has read other texts before?
// Answer: with 8 it does what a new model does with 512. Hidden words have taught it which words go together.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "apps/tasks/text_encoder.h"
#include "autograd/ops.h"
#include "core/machine/clock.h"
#include "optim/optim.h"

using namespace orrery;

// Six words about one of four subjects: "b17 b3 a40 b5 b21 b9". For a quarter of them the list is drawn anew.
LabelledText sentence(i64 subject, Rng& rng) {
  LabelledText text{.words = {""}, .labels = {std::string(1, "abcd"[subject])}};
  for (int i = 0; i < 6; ++i) {
    const i64 of = rng.uniform() < 0.25 ? rng.integer(0, 4) : subject;
    text.words[0] += (i > 0 ? " " : "") + std::string(1, "abcd"[of]) + std::to_string(rng.integer(0, 50));
  }
  return text;
}

// The share of 1,000 sentences that a model labels rightly when it has learned `count` others with their labels.
double accuracy(nn::Bert model, const TextTokens& tokens, i64 count) {
  Rng rng(2);
  std::vector<LabelledText> texts;
  for (i64 i = 0; i < count + 1000; ++i) texts.push_back(sentence(i % 4, rng));
  const EncodedTexts all = TextReader{tokens, model.config, 8}(texts), others(all.begin() + count, all.end());
  std::vector<i64> learned, labels;  // a few several times: products of at most 16 rows differ in bits among CPUs
  for (i64 i = 0; i < std::max<i64>(count, 24); ++i) learned.push_back(i % count);
  for (const i64 text : learned) labels.push_back(text % 4);
  const Tensor ids = ids_of(all, learned, tokens.pad());
  optim::AdamW adam(model.parameters());
  for (i64 step = 1; step <= 300; ++step) {
    nn::Pass pass = nn::Pass::training(1, step);
    backward(cross_entropy(model.logits(model.hidden(ids, {}, pass), pass), Tensor::of({std::ssize(labels)}, labels)));
    adam.step(0.003, 1.0);
  }
  const auto hit = [](const JudgedText& text) { return text.answers[0].label == text.right[0]; };
  return static_cast<double>(std::ranges::count_if(judged(model, others), hit)) / 1000;
}

int main() {
  constexpr i64 texts = 4000, steps = 2000;
  Rng rng(1);
  std::vector<std::string> lines;  // each of two sentences about one subject
  for (i64 i = 0; i < texts; ++i) lines.push_back(sentence(i % 4, rng).words[0]);
  for (i64 i = 0; i < texts; ++i) lines[static_cast<size_t>(i)] += " " + sentence(i % 4, rng).words[0];
  const TextTokens tokens(Vocabulary::of_segmented({lines.begin(), lines.end()}));
  EncodedTexts parts;
  for (const std::string& line : lines) parts.push_back({.ids = tokens.ids(line), .places = {0, 2, 4, 6, 8, 10}});
  nn::BertConfig config{.vocab_size = tokens.size(), .num_layers = 2, .labels = {"a", "b", "c", "d"}};
  config.layer = {.d_model = 32, .num_heads = 4, .d_ff = 64};
  config.head = nn::BertHead::sentence;
  nn::Bert fresh(config, rng), tuned = fresh.clone();
  config.head = nn::BertHead::pretraining;
  nn::Bert bert(config, rng);
  optim::AdamW adam(bert.parameters());
  translate::BatchesByLength batches = batches_of(parts, 32, rng);
  const double begin = steady_seconds(), known = 13.0 / 16 * std::log(800.0 / 13) + 3.0 / 16 * std::log(800.0);
  std::cout << std::fixed << std::setprecision(2) << "a guess " << std::log(200.0) << "  by subject " << known << '\n';
  for (i64 step = 1; step <= steps; ++step) {
    const PretrainingBatch in = pretraining_batch(tokens, parts, batches.batch(step - 1), rng);
    nn::Pass pass = nn::Pass::training(1, step);
    const Variable x = bert.hidden(in.ids, in.segments, pass);
    const Variable words = bert.word_loss(x, in.words), next = cross_entropy(bert.logits(x, pass), in.next);
    backward(words + next);
    adam.step(optim::warmup_cosine(step, 0.003, 100, steps), 1.0);
    if (step % 500 == 0) std::cout << step << "  words " << words.item() << "  next " << next.item() << std::endl;
  }
  for (NamedParameter& to : tuned.parameters())
    for (const NamedParameter& from : bert.parameters())
      if (to.name == from.name) copy_into(to.value.mutable_value(), from.value.value());  // all but the heads
  for (const i64 count : {8, 32, 128, 512})
    std::cout << count << " labels: " << accuracy(fresh.clone(), tokens, count) << " from scratch, "
              << accuracy(tuned.clone(), tokens, count) << " after pretraining" << std::endl;
  std::cout << "measured: " << steps << " steps and 8 trainings in " << steady_seconds() - begin << " s\n";
}
