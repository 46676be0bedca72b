// Chapter 7. Grades exercise 7.4.

void grade(Grader& g) {
  constexpr i32 bos = 1, no_token = -1;
  constexpr i64 words = 12, max_len = 6;
  Rng rng(3);
  nn::Transformer model({.src_vocab_size = words,
                         .tgt_vocab_size = words,
                         .layer = {.d_model = 16, .num_heads = 2, .d_ff = 32},
                         .num_encoder_layers = 1,
                         .num_decoder_layers = 1},
                        rng);
  nn::to(model, f64);
  const Tensor source = Tensor::of<i32>({1, 4}, {3, 9, 4, 7});
  const Tensor expected = nn::greedy_decode(model, source, {.bos = bos, .eos = no_token, .max_len = max_len});
  const auto written = [&](i32 eos, i64 most) {
    const std::vector<i32> tokens = my_greedy_decode(model, source, bos, eos, most);
    return Tensor::of<i32>({1, static_cast<i64>(tokens.size())}, tokens);
  };
  g.equal(
      "one token", [&] { return written(no_token, 1); }, slice(expected, 1, 0, 1),
      "The target is bos alone; its row of the logits says what comes first. bos is not part of the answer.");
  g.equal(
      "six tokens", [&] { return written(no_token, max_len); }, expected,
      "All tokens written so far are the target. Which row of the logits says what comes after them?");
  g.check(
      "six tokens that are not all the same",
      [&] {
        const std::vector<i32> tokens = my_greedy_decode(model, source, bos, no_token, max_len);
        return std::set<i32>(tokens.begin(), tokens.end()).size() > 1;
      },
      "The first row of the logits always says what comes after bos.");
  i64 last = max_len - 1;  // the first place of the token that stands there
  for (i64 t = max_len - 1; t >= 0; --t) last = expected(0, t) == expected(0, max_len - 1) ? t : last;
  const i32 eos = expected.data<i32>()[last];
  g.equal(
      "it ends at eos", [&] { return written(eos, 2 * max_len); }, slice(expected, 1, 0, last + 1),
      "eos is the last token of the answer, and part of it.");
}
