// Chapter 5. Grades the exercises of this chapter: each part asks about the exercise of its number, EXERCISE, whose
// file was read before.
#if EXERCISE == 1  // how wide to draw

double mean_square(const Tensor& x) { return dot(x, x) / static_cast<double>(x.count()); }

// The mean square of z after ten maps z -> relu(z) W^T of `width` numbers, of 1 before.
double after_ten_maps(i64 width) {
  Rng rng(52);
  Tensor z = randn({64, width}, rng, f64);
  const double bound = relu_bound(width), start = mean_square(z);
  for (int map = 0; map < 10; ++map) {
    const Tensor W = rand_uniform({width, width}, -bound, bound, rng, f64);
    z = matmul(relu(constant(z)).value(), W, Trans::b);
  }
  return mean_square(z) / start;
}

void grade(Grader& g) {
  g.equal(
      "the bound of 64 to 128", std::sqrt(6.0 / 192),
      "The bound a is not the standard deviation. What is the variance of U(-a, a), the mean of w^2 between -a and a?",
      [] { return xavier_bound(64, 128); });
  g.equal("the variance of drawn weights of 50 to 150, times 100, to 5 %", {1, 0.05},
          "The bound of a uniform distribution is not its standard deviation.", [] {
            Rng rng(5);
            const double bound = xavier_bound(50, 150);
            return mean_square(rand_uniform({150, 50}, -bound, bound, rng, f64)) * 100;
          });
  g.equal("the bound with relu, of 96 inputs", 0.25,
          "What is the mean of relu(z)^2, if z and -z are equally likely, relative to the mean of z^2?",
          [] { return relu_bound(96); });
  g.equal("ten maps with relu keep a mean square of 1, roughly", {1, 0.5},
          "What is lost at one map is lost again at each of the others.", [] { return after_ten_maps(128); });
}

#elif EXERCISE == 2  // a layer of your own

// The names of all parameters, one after the other.
std::string names() {
  Rng rng(1);
  GatedFeedForward layer(4, 6, rng);
  std::string result;
  for (const NamedParameter& p : layer.parameters()) result += p.name + " ";
  return result;
}

void grade(Grader& g) {
  g.equal("y of fixed weights", 10 * 3 / (1 + std::exp(-1.0)) + 5,
          "silu(z) = z / (1 + e^-z) is applied to linear2's output alone.", [] {
            Rng rng(1);
            GatedFeedForward layer(1, 1, rng);
            const auto set = [](nn::Linear& linear, double weight, double bias) {
              linear = nn::Linear(parameter(full({1, 1}, weight, f64)), parameter(full({1}, bias, f64)));
            };
            set(layer.linear1, 2, 1);
            set(layer.linear2, 1, 0);
            set(layer.linear3, 10, 5);
            return layer(constant(full({1, 1}, 1, f64))).item();
          });
  g.check("visit gives names, and none twice", "Each part needs a name of its own.", [] { return !names().empty(); });
  g.check(
      "visit names every parameter",
      "What `visit` does not name is not trained. Are all members there, in their order and under their names?",
      [] { return names() == "linear1.weight linear1.bias linear2.weight linear2.bias linear3.weight linear3.bias "; });
  g.prove("the whole proof", "The call and `visit` must speak of the same three parts.", [] {
    return nn::module_sample(
        "GatedFeedForward", "", {{3, 4}}, [](Rng& rng) { return GatedFeedForward(4, 6, rng); },
        [](const GatedFeedForward& layer, const Variable& x) { return layer(x); });
  });
}

#elif EXERCISE == 3  // the paper's learning rate

void grade(Grader& g) {
  const auto is = [&](const char* question, i64 step, double expected, const char* hint) {
    g.equal(question, 1, hint, [=] { return my_noam(step, 64, 100) / expected; });
  };
  is("step 400: half of the peak", 400, 1.0 / 160,
     "After the warm-up the rate falls with the root of the step. Is that the smaller term, or the larger one?");
  is("step 1", 1, 1.0 / 8000,
     "During warm-up the rate grows in proportion to the step. Is -3 / 2 in C++ the number you mean?");
  is("step 50: half of the peak", 50, 1.0 / 160, "Between 1 and warmup the rate is a straight line through 0.");
  is("the peak, at step 100", 100, 1.0 / 80, "At step = warmup both terms are equal.");
  g.equal("d_model four times as large halves the rate", 0.5, "The factor d_model^(-1/2) belongs to both terms.",
          [] { return my_noam(7, 256, 100) / my_noam(7, 64, 100); });
}

#elif EXERCISE == 4  // Adam's step

void grade(Grader& g) {
  g.check("the first step is a finite number", "What is 1 - beta^t if t is 0? Who counts the steps, and from where?",
          [] { return std::isfinite(MyAdam().next(1, -20, 0.1)); });
  g.equal("with beta2 = 0, where v is g^2, the first step is one learning rate long", {1.1, 1e-7},
          "m_hat is g at the first step. By what must (1 - beta1) g be divided for that?",
          [] { return MyAdam{.beta2 = 0}.next(1, -20, 0.1); });
  g.equal("the first step is one learning rate long", {1.1, 1e-7},
          "sqrt(v_hat) is |g| at the first step. By what must (1 - beta2) g^2 be divided for that?",
          [] { return MyAdam().next(1, -20, 0.1); });
  g.equal("a gradient as small as eps makes half a step", {0.95, 1e-7},
          "eps is added to the root, not to what stands under it.", [] { return MyAdam().next(1, 1e-9, 0.1); });
  g.equal("m after a first step with g = 1 is still 1/10", 0.1, "The next step begins with the uncorrected m.", [] {
    MyAdam mine;
    mine.next(1, 1, 0.1);
    return mine.m;
  });
  g.equal(
      "six steps, as optim::Adam makes them",
      [] {
        const Variable p = parameter(Tensor::of<double>({1}, {1}), "p");
        optim::Adam adam({p}, {.beta1 = 0.9, .beta2 = 0.98, .eps = 1e-9});
        for (const double gradient : {0.5, 0.4, -0.2, 1.0, 0.0, -0.3}) {
          backward(sum(p * gradient));
          adam.step(0.1);
        }
        return p.value().item();
      }(),
      "The corrections depend on the number of the step, counted from 1, and fade with it.",
      [] {
        MyAdam mine;
        double p = 1;
        for (const double gradient : {0.5, 0.4, -0.2, 1.0, 0.0, -0.3}) p = mine.next(p, gradient, 0.1);
        return p;
      });
}

#elif EXERCISE == 5  // clip all gradients by their common norm

void grade(Grader& g) {
  const auto gradients = [] {
    return std::vector<Tensor>{Tensor::of<double>({1}, {3}), Tensor(), Tensor::of<double>({2}, {0, 4})};
  };
  g.equal("the norm of (3), an undefined gradient and (0, 4)", 5,
          "Add up the squares of everything that is defined, then take one root.", [=] {
            auto all = gradients();
            return my_clip(all, 100);
          });
  g.equal("the norm before clipping, where it is clipped to 1", 5, "Return what was measured, not what is left of it.",
          [=] {
            auto all = gradients();
            return my_clip(all, 1);
          });
  g.equal("the first gradient clipped to a norm of 1", {Tensor::of<double>({1}, {0.6}), 1e-5},
          "One factor for all: clipping keeps the direction of the step.", [=] {
            auto all = gradients();
            my_clip(all, 1);
            return all[0];
          });
  g.equal("the other one", {Tensor::of<double>({2}, {0, 0.8}), 1e-5},
          "One factor for all: clipping keeps the direction of the step.", [=] {
            auto all = gradients();
            my_clip(all, 1);
            return all[2];
          });
  g.equal("gradients within the bound stay as they are", Tensor::of<double>({2}, {0, 4}),
          "max_norm is a bound, not a length that every step should have.", [=] {
            auto all = gradients();
            my_clip(all, 10);
            return all[2];
          });
}

#elif EXERCISE == 6  // one batch in several parts

// Parts with these targets, and random numbers for x.
std::vector<Part> parts_of(const std::vector<std::vector<i32> >& targets) {
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
  const auto agree = [&](const char* question, const std::vector<std::vector<i32> >& targets, const char* hint) {
    const std::vector<Part> parts = parts_of(targets);
    const auto by_student = [=] {
      const nn::Linear layer = new_layer();
      my_backward(layer, parts);
      return layer.weight.gradient();
    };
    g.equal(question, gradient_at_once(parts), hint, by_student);
  };
  agree("two full parts of equal size", {{0, 1, 2}, {2, 2, 1}},
        "backward adds to the gradients that are there: what is the sum of two means?");
  agree("one part with padding", {{0, -100, 2, -100}}, "Which targets count, and which are padding?");
  agree("parts with 3 and 1 targets", {{0, 1, 2}, {2, -100, -100}},
        "Every target of the batch must weigh the same, whichever part it is in.");
  agree("a part of padding alone", {{0, 1, 2}, {-100, -100}},
        "A part in which nothing counts adds nothing, and is no error.");
}

#elif EXERCISE == 7  // directions of one length

void grade(Grader& g) {
  g.check("a gradient ten times as long gives the same",
          "Which length do the directions have at most, before the first of the five steps?", [] {
            const Tensor G = Tensor::of<double>({2, 2}, {3, 1, 1, 2}), O = my_orthogonal(G),
                         difference = my_orthogonal(G * 10.0) - O;
            return sum_of_squares(difference) < 1e-9 * sum_of_squares(O);
          });
  const auto is = [&](const char* question, const Tensor& G, const char* hint) {
    g.equal(question, optim::nearest_orthogonal(G), hint, [=] { return my_orthogonal(G); });
  };
  is("lengths 3 and 0.3", Tensor::of<double>({2, 2}, {3, 0, 0, 0.3}),
     "Follow 0.3 by hand: divide it by the norm. How long is it after one step, and after five? Is A that of the "
     "newest X?");
  Rng rng(57);
  is("a gradient of three rows and five columns", randn({3, 5}, rng, f64),
     "A has a row for each row of X. On which side of X does it stand?");
  is("a gradient of five rows and three columns", randn({5, 3}, rng, f64),
     "The same formula holds: A is X X^T here, too.");
}

#endif
