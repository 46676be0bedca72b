// Chapter 4. Grades bug 7.

void grade(Grader& g) {
  Rng rng(7);
  const Variable x = constant(randn({3, 5}, rng, f64)), w = constant(randn({5}, rng, f64));
  const Variable b = constant(randn({5}, rng, f64));
  const Tensor dy = randn({3, 5}, rng, f64);
  g.equal(
      "its value", [&] { return my_layer_norm(x, w, b, 1e-5).value(); }, layer_norm(x, w, b, 1e-5).value(),
      "The forward was right.");
  g.equal(
      "the sum of each row of dx",
      [&] {
        const Variable in = parameter(x.value().clone());
        backward(my_layer_norm(in, w, b, 1e-5), dy);
        return sum(in.gradient(), {-1});
      },
      zeros({3}, f64), "Add 1 to every x of a row: what happens to y?");
  g.prove(
      "the whole proof",
      [] {
        const auto norm = [](const Variable& in, const Variable& weight, const Variable& bias) {
          return my_layer_norm(in, weight, bias, 1e-5);
        };
        return sample_of("layer_norm", norm, {{3, 5}, {5}, {5}});
      },
      "On how many ways does one x reach the outputs of its row? Each gives a term of dx.");
}
