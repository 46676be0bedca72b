// Chapter 5. Grades bug 6.

// The gradient of the sum of all outputs, for a weight of 4 rows of 2 numbers.
Tensor gradient_for(const std::vector<i32>& tokens) {
  const Variable weight = parameter(zeros({4, 2}, f64));
  const i64 n = static_cast<i64>(tokens.size());
  backward(my_embedding(weight, Tensor::of<i32>({1, n}, tokens)), full({1, n, 2}, 1.0, f64));
  return weight.gradient();
}

void grade(Grader& g) {
  g.equal(
      "the gradient for the tokens 1 and 3",
      [] {
        return gradient_for({1, 3});
      },
      Tensor::of<double>({4, 2}, {0, 0, 1, 1, 0, 0, 1, 1}), "A row that no token reads has a gradient of 0.");
  g.equal(
      "the gradient for the tokens 1, 1, 3 and 1",
      [] {
        return gradient_for({1, 1, 3, 1});
      },
      Tensor::of<double>({4, 2}, {0, 0, 3, 3, 0, 0, 1, 1}),
      "What becomes of the gradients of a value that is used more than once?");
  g.prove(
      "the whole proof",
      [] {
        const auto embed = [](const Variable& w) {
          return my_embedding(w, Tensor::of<i32>({2, 3}, {1, 0, 1, 3, 1, 0}));
        };
        return sample_of("embedding", embed, {{4, 3}});
      },
      "Compare the wrong rows with how often their tokens occur.");
}
