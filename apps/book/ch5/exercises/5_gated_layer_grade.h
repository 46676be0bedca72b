// Chapter 5. Grades exercise 5.5.

void grade(Grader& g) {
  g.equal(
      "y of fixed weights",
      [] {
        Rng rng(1);
        GatedFeedForward layer(1, 1, rng);
        const auto set = [](nn::Linear& linear, double weight, double bias) {
          linear = nn::Linear(parameter(full({1, 1}, weight, f64)), parameter(full({1}, bias, f64)));
        };
        set(layer.linear1, 2, 1);
        set(layer.linear2, 1, 0);
        set(layer.linear3, 10, 5);
        return layer(constant(full({1, 1}, 1, f64))).item();
      },
      10 * 3 / (1 + std::exp(-1.0)) + 5, "silu(z) = z / (1 + e^-z) is applied to linear2's output alone.");
  g.check(
      "visit names every parameter",
      [] {
        Rng rng(1);
        GatedFeedForward layer(4, 6, rng);
        std::string names;
        for (const NamedParameter& p : layer.parameters()) names += p.name + " ";
        return names == "linear1.weight linear1.bias linear2.weight linear2.bias linear3.weight linear3.bias ";
      },
      "Each member needs its name, in the order of the members: what `visit` does not name is not trained.");
  g.prove(
      "the whole proof",
      [] {
        return nn::module_sample(
            "GatedFeedForward", "", {{3, 4}}, [](Rng& rng) { return GatedFeedForward(4, 6, rng); },
            [](const GatedFeedForward& layer, const Variable& x) { return layer(x); });
      },
      "The call and `visit` must speak of the same three parts.");
}
