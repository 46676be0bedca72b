// Chapter 8. Grades exercise 8.4.

void grade(Grader& g) {
  Rng rng(8);
  const auto gradients = [&](i64 m, size_t which, const auto& operation) {
    Rng numbers(m);
    std::vector<Variable> in;
    for (const i64 rows : {i64{3}, m, m}) in.push_back(parameter(randn({rows, 2}, numbers, f64)));
    backward(operation(in[0], in[1], in[2]), randn({3, 2}, numbers, f64));
    return in[which].gradient();
  };
  const auto composed = [](const Variable& Q, const Variable& K, const Variable& V) {
    return matmul(softmax(matmul(Q, K, Trans::b) * (1 / std::sqrt(2.0))), V);
  };
  const auto ask = [&](const std::string& question, i64 m, size_t which, const std::string& hint) {
    g.equal(
        question, [&, m, which] { return gradients(m, which, my_tiled_attention); }, gradients(m, which, composed),
        hint);
  };
  ask("dV", 7, 2, "Compute the weights of a tile's keys again from the saved numbers: their shape is [n, keys].");
  ask("dQ, one tile of keys", 4, 0, "The scores have a factor beside Q K^T. Does it come back?");
  ask("dQ, two tiles of keys", 7, 0, "Is your D the one of all keys? And dQ a sum over the tiles?");
  ask("dK, two tiles of keys", 7, 1, "Each tile writes its own rows of dK. Is your D the one of all keys?");
  g.prove(
      "the whole proof",
      [] {
        return sample_of("my_tiled_attention", my_tiled_attention, {{3, 2}, {9, 2}, {9, 2}});
      },
      "The message names the part that failed. What does that part do besides comparing slopes?");
  g.check(
      "no table of 64 queries and 512 keys",
      [&] {
        const Variable Q = parameter(randn({64, 1}, rng, f64)), K = parameter(randn({512, 1}, rng, f64)),
                       V = parameter(randn({512, 1}, rng, f64));
        const Variable O = my_tiled_attention(Q, K, V);
        reset_peak();
        const i64 before = memory_counters().live_bytes;
        backward(O, full({64, 1}, 1, f64));
        return memory_counters().peak_bytes - before < 64 * 512 * bytes_of(f64) / 2;
      },
      "At least half of the table existed at one time. How many keys does your largest tensor have?");
}
