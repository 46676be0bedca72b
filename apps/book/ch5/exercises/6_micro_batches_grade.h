// Chapter 5. Grades exercise 5.6.

// Parts with these targets, and random numbers for x.
std::vector<Part> parts_of(const std::vector<std::vector<i32>>& targets) {
  Rng rng(56);
  std::vector<Part> parts;
  for (const std::vector<i32>& some : targets) {
    const i64 rows = static_cast<i64>(some.size());
    parts.push_back({randn({rows, 4}, rng, f64), Tensor::of<i32>({rows}, some)});
  }
  return parts;
}

nn::Linear new_layer() {
  Rng rng(65);
  return nn::Linear(parameter(randn({3, 4}, rng, f64)), Variable());
}

// The gradient of the layer's weight, of all parts in one batch.
Tensor gradient_at_once(const std::vector<Part>& parts) {
  std::vector<Tensor> x;
  std::vector<i32> targets;
  for (const Part& part : parts) {
    x.push_back(part.x);
    for (i64 row = 0; row < part.targets.count(); ++row) targets.push_back(part.targets.data<i32>()[row]);
  }
  const nn::Linear layer = new_layer();
  const i64 rows = static_cast<i64>(targets.size());
  backward(cross_entropy(layer(constant(concat(x, 0))), Tensor::of<i32>({rows}, targets)));
  return layer.weight.gradient();
}

void grade(Grader& g) {
  const auto agree = [&](const char* question, const std::vector<std::vector<i32>>& targets, const char* hint) {
    const std::vector<Part> parts = parts_of(targets);
    const auto by_student = [=] {
      const nn::Linear layer = new_layer();
      my_backward(layer, parts);
      return layer.weight.gradient();
    };
    g.equal(question, by_student, gradient_at_once(parts), hint);
  };
  agree("two full parts of equal size", {{0, 1, 2}, {2, 2, 1}},
        "backward adds to the gradients that are there: what is the sum of two means?");
  agree("one part with padding", {{0, -100, 2, -100}}, "Which targets count, and which are padding?");
  agree("parts with 3 and 1 targets", {{0, 1, 2}, {2, -100, -100}},
        "Every target of the batch must weigh the same, whichever part it is in.");
  agree("a part of padding alone", {{0, 1, 2}, {-100, -100}},
        "A part in which nothing counts adds nothing, and is no error.");
}
