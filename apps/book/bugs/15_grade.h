// Chapter 6. Grades bug 15.

// The weights that one query gives to two keys. Only the first of the d_k numbers of the query and of the first key is
// not 0; the second key is 0. The values have d_v = 1, whatever d_k is.
Tensor weights_of(i64 d_k, double query, double first_key) {
  Tensor q = zeros({1, 1, 1, d_k}, f64), k = zeros({1, 1, 2, d_k}, f64);
  q.write<double>()[0] = query;
  k.write<double>()[0] = first_key;
  return my_attention(constant(q), constant(k), constant(zeros({1, 1, 2, 1}, f64)), Mask()).weights.value();
}

void grade(Grader& g) {
  g.equal(
      "the weights of two keys, d_k = 1", [] { return weights_of(1, 1, std::log(3.0)); },
      Tensor::of<double>({1, 1, 1, 2}, {0.75, 0.25}), "The scores are log 3 and 0.");
  g.equal(
      "the weights of two keys, d_k = 4", [] { return weights_of(4, 2, std::log(3.0)); },
      Tensor::of<double>({1, 1, 1, 2}, {0.75, 0.25}),
      "Compute the two scores by hand, from the paper's equation. Which of its parts does not matter for d_k = 1?");
  g.prove(
      "the whole proof",
      [] {
        const auto output = [](const Variable& Q, const Variable& K, const Variable& V) {
          return my_attention(Q, K, V, Mask::causal()).output;
        };
        return sample_of("attention", output, {{2, 1, 3, 4}, {2, 1, 3, 4}, {2, 1, 3, 2}});
      },
      "It passed before: let the tape differentiate.");
}
