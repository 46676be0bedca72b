// Chapter 10. Grades the exercises of this chapter: each part asks about the exercise of its number, EXERCISE, whose
// file was read before.
#if EXERCISE == 1  // pieces of words

void grade(Grader& g) {
  const std::set<std::string> vocabulary{"a",   "able",   "un",    "play", "pl",    "pla",
                                         "##a", "##able", "##aff", "##in", "##ing", "##g"};
  const auto ask = [&](const std::string& word, const std::string& expected, const std::string& hint) {
    g.check(word + " is " + expected, hint, [&] {
      std::string said;
      for (const std::string& piece : my_pieces(word, vocabulary)) said += (said.empty() ? "" : " ") + piece;
      orrery::check(said == expected, word, "is ", said, ", should be ", expected);
      return true;
    });
  };
  ask("play", "play", "The longest beginning comes first: may the whole word be a piece?");
  ask("aa", "a ##a", "In the vocabulary a piece that goes on with a word has ## before it.");
  ask("playing", "play ##ing", "Where does the rest begin after the first piece?");
  ask("ablea", "able ##a", "The first piece has no ##, whatever its length.");
  ask("unaffable", "un ##aff ##able", "Of the pieces that a rest begins with, the longest is taken.");
  ask("aaa", "a ##a ##a", "A piece may come more than once.");
  ask("plaing", "pla ##ing", "Which beginnings have you tried, and in what order?");
  ask("playxing", "[UNK]", "If a rest begins with no piece, what becomes of the pieces found before?");
  ask("plaff", "[UNK]", "pl ##aff would do, but what is the longest piece that the word begins with?");
}

#elif EXERCISE == 2  // hide words

void grade(Grader& g) {
  constexpr i32 first = 4, mask = 3, vocabulary = 24;
  constexpr i64 n = 40'000;
  Rng drawn(10);
  const Tensor ids = randint(0, vocabulary, {n}, drawn), given = ids.clone();
  double words = 0;
  for (i64 i = 0; i < n; ++i) words += ids.at(i) >= first;
  // The share of chosen places for which `is` is true, of all chosen ones or of `all`.
  const auto share = [&](const auto& is, double all = 0) {
    Rng rng(3);
    const MyHidden hidden = my_hidden_words(ids, first, mask, vocabulary, rng);
    double chosen = 0, found = 0;
    for (i64 i = 0; i < n; ++i) {
      if (hidden.labels.at(i) == -100) continue;
      ++chosen;
      found += is(i, hidden);
    }
    check(chosen > 0, "the labels", "are all -100: nothing is hidden");
    return found / (all > 0 ? all : chosen);
  };
  g.equal("15 % of the words are chosen", {0.15, 0.01}, "Each word is chosen by a draw of its own.",
          [&] { return share([&](i64 i, const MyHidden&) { return ids.at(i) >= first; }, words); });
  g.check("nothing but words is chosen", "[CLS], [SEP] and padding are no words: what is their id?",
          [&] { return share([&](i64 i, const MyHidden&) { return ids.at(i) < first; }) == 0; });
  g.check("a label is what stood there", "The label is taken before the word is replaced.",
          [&] { return share([&](i64 i, const MyHidden& h) { return h.labels.at(i) == given.at(i); }) == 1; });
  g.equal("8 in 10 are masked", {0.8, 0.02}, "One more draw decides what becomes of a chosen word.",
          [&] { return share([&](i64 i, const MyHidden& h) { return h.ids.at(i) == mask; }); });
  g.equal("1 in 10 stays, and a few are replaced by themselves", {0.1 + 0.1 / 20, 0.015},
          "Some chosen words are seen as they are, and must be found all the same.",
          [&] { return share([&](i64 i, const MyHidden& h) { return h.ids.at(i) == given.at(i); }); });
  g.check("a random word is a word", "From which id on are there words?", [&] {
    return share([&](i64 i, const MyHidden& h) { return h.ids.at(i) < first && h.ids.at(i) != mask; }) == 0;
  });
  g.check("what is not chosen stays, and so does what was given", "What must be a copy, and of what?", [&] {
    Rng rng(4);
    const MyHidden hidden = my_hidden_words(ids, first, mask, vocabulary, rng);
    bool chosen = false;
    for (i64 i = 0; i < n; ++i) {
      if (ids.at(i) != given.at(i)) return false;
      chosen = chosen || hidden.labels.at(i) != -100;
      if (hidden.labels.at(i) == -100 && hidden.ids.at(i) != given.at(i)) return false;
    }
    return chosen;
  });
}

#elif EXERCISE == 3  // the loss of hidden words

void grade(Grader& g) {
  constexpr i32 no = -100;
  const Tensor labels = Tensor::of<i32>({2, 4}, {no, 3, no, no, 1, no, 4, no});
  const auto inputs = [] {
    Rng rng(7);
    return std::vector<Variable>{parameter(randn({2, 4, 3}, rng, f64)), parameter(randn({5, 3}, rng, f64))};
  };
  const auto of_all = [](const Variable& x, const Tensor& wanted, const Variable& E) {
    const Variable rows = reshape(x, {wanted.count(), x.size(2)});
    return cross_entropy(matmul(rows, E, Trans::b), wanted.reshape({wanted.count()}), {.ignore_index = no});
  };
  const auto loss = [&](const Tensor& wanted, const auto& operation) {
    const std::vector<Variable> in = inputs();
    return operation(in[0], wanted, in[1]).item();
  };
  const auto gradient = [&](size_t which, const auto& operation) {
    const std::vector<Variable> in = inputs();
    backward(operation(in[0], labels, in[1]));
    return in[which].gradient();
  };
  const Tensor first_row = Tensor::of<i32>({2, 4}, {no, 3, 2, no, no, no, no, no});
  g.equal("hidden words in the first sentence", {loss(first_row, of_all), 1e-9},
          "Which rows of x have a label that counts?", [&] { return loss(first_row, my_word_loss); });
  g.equal("hidden words in both", {loss(labels, of_all), 1e-9}, "Sentence b begins at row b S of [B S, d].",
          [&] { return loss(labels, my_word_loss); });
  g.equal("dx", {gradient(0, of_all), 1e-9}, "What is not hidden does not count.",
          [&] { return gradient(0, my_word_loss); });
  g.equal("dE", {gradient(1, of_all), 1e-9}, "The table learns as the head's weight.",
          [&] { return gradient(1, my_word_loss); });
  g.check("no scores of what is not hidden", "How many rows has the product with E^T? A seventh of them counts.", [&] {
    Rng rng(8);
    const Variable x = parameter(randn({4, 64, 2}, rng, f64)), E = parameter(randn({500, 2}, rng, f64));
    Tensor few = full({4, 64}, no, Dtype::i32);
    for (i64 i = 0; i < 256; i += 7) few.write<i32>()[i] = static_cast<i32>(i);
    reset_peak();
    const i64 before = memory_counters().live_bytes;
    const double said = my_word_loss(x, few, E).item();
    const bool small = memory_counters().peak_bytes - before < 4 * 64 * 500 * bytes_of(f64) / 2;
    return small && std::fabs(said - of_all(x, few, E).item()) < 1e-9;
  });
}

#endif
