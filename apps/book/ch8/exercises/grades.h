// Chapter 8. Grades the exercises of this chapter: each part asks about the exercise of its number, EXERCISE, whose
// file was read before.
#if EXERCISE == 1  // a sum in fixed chunks

struct Work {
  std::vector<int> added;   // how often each element was added
  std::vector<i64> shares;  // elements that each thread added
  std::set<i64> borders;    // between parts that are not empty
  float total = 0;
};

// What the student's threads do to sum up 1, 1/2, ..., 1/n.
Work work_of(i64 n, i64 threads) {
  Work work{std::vector<int>(static_cast<size_t>(n)), std::vector<i64>(static_cast<size_t>(threads)), {}, 0};
  work.total = my_sum(n, threads, [&](i64 t, i64 begin, i64 end) {
    check(t >= 0 && t < threads, "part", "there is no thread ", t, " of ", threads);
    check(begin >= 0 && begin <= end && end <= n, "part", begin, " to ", end, " is no part of ", n, " elements");
    float sum = 0;
    for (i64 i = begin; i < end; ++i) {
      sum += 1 / static_cast<float>(i + 1);
      ++work.added[static_cast<size_t>(i)];
    }
    work.shares[static_cast<size_t>(t)] += end - begin;
    if (begin < end) work.borders.insert({begin, end});
    return sum;
  });
  return work;
}

double total_of(i64 n, i64 threads) { return static_cast<double>(work_of(n, threads).total); }

void grade(Grader& g) {
  g.check("each of 10,000 elements is added once", "Where does the last chunk end?", [&] {
    const Work work = work_of(10'000, 3);
    return std::all_of(work.added.begin(), work.added.end(), [](int times) { return times == 1; });
  });
  g.equal("sums of no, of one and of five elements", {Tensor::of<float>({3}, {0, 1, 137.0F / 60}), 1e-6},
          "What becomes of your chunks if there are fewer elements than in one of them?", [&] {
            return Tensor::of<float>({3}, {work_of(0, 4).total, work_of(1, 4).total, work_of(5, 4).total});
          });
  g.ask("the borders between the parts, on 2 and on 3 threads",
        "Does a border between two parts depend on the number of threads?", [&] {
          return work_of(10'000, 2).borders == work_of(10'000, 3).borders
                     ? ""
                     : "Parts begin or end elsewhere with 3 threads than with 2.";
        });
  g.equal("10,000 elements on 2, 3, 4 or 7 threads, beside one thread: the largest difference", {0, 0},
          "Does the order in which the parts are added depend on the number of threads?", [&] {
            double largest = 0;
            for (const i64 threads : {2, 3, 4, 7})
              largest = std::max(largest, std::fabs(total_of(10'000, threads) - total_of(10'000, 1)));
            return largest;
          });
  for (const i64 threads : {4, 7})
    g.at_most(std::to_string(threads) + " threads share 100,000 elements: the largest share",
              140'000.0 / static_cast<double>(threads), "No thread should compute much more than its equal share.",
              [&, threads] {
                const std::vector<i64> shares = work_of(100'000, threads).shares;
                return static_cast<double>(*std::max_element(shares.begin(), shares.end()));
              });
}

#elif EXERCISE == 2  // a product in blocks

void grade(Grader& g) {
  const auto run = [](i64 m, i64 n, i64 k, i64& reads) {
    Rng rng(8);
    const Matrix a{randint(-9, 10, {m, k}, rng).to(f64)}, b{randint(-9, 10, {k, n}, rng).to(f64)};
    Matrix c{full({m, n}, -1e6, f64)};
    my_product(a, b, c, m, n, k);
    reads = a.reads + b.reads;
    return c.x;
  };
  const auto expected = [](i64 m, i64 n, i64 k) {
    Rng rng(8);
    const Tensor a = randint(-9, 10, {m, k}, rng).to(f64), b = randint(-9, 10, {k, n}, rng).to(f64);
    return matmul(a, b);
  };
  i64 reads = 0;
  g.equal("24 x 24, k = 24", expected(24, 24, 24),
          "Do the sums of a block begin at 0, and does each block write only its own part of c?",
          [&] { return run(24, 24, 24, reads); });
  g.at_most("at most one read for two multiply-adds", 24 * 24 * 24 / 2.0,
            "A number that is read should be multiplied with all it meets in the block, then forgotten.", [&] {
              run(24, 24, 24, reads);
              return static_cast<double>(reads);
            });
  g.equal("5 x 7, k = 3", expected(5, 7, 3), "The last block of a row or a column may be smaller than the others.",
          [&] { return run(5, 7, 3, reads); });
  g.equal("1 x 9, k = 2", expected(1, 9, 2), "A matrix may be smaller than a block.",
          [&] { return run(1, 9, 2, reads); });
}

#elif EXERCISE == 3  // softmax of a stream

void grade(Grader& g) {
  const double hidden = -std::numeric_limits<double>::infinity(), ln2 = std::log(2.0);
  const auto ask = [&](const std::string& question, const std::vector<std::pair<double, double> >& stream,
                       double expected, const std::string& hint) {
    g.equal(question, expected, hint, [&] {
      MyRunningSoftmax mine;
      for (const auto& [score, value] : stream) mine.add(score, value);
      return mine.result();
    });
  };
  ask("nothing yet", {}, 0, "What is the sum before the first score?");
  ask("falling scores", {{2 * ln2, 10}, {ln2, 20}, {0, 40}}, 120.0 / 7,
      "The first score stays the largest. What does each later one weigh beside it?");
  ask("rising scores of equal values", {{0, 5}, {ln2, 5}, {2 * ln2, 5}}, 5,
      "The mean of equal values is that value. Do the sum and the output always belong to the same largest score?");
  ask("rising scores", {{0, 40}, {ln2, 20}, {2 * ln2, 10}}, 120.0 / 7,
      "When a larger score comes, does what you have count for more beside it, or for less?");
  ask("scores in the thousands", {{-5000, 3}, {5000, 10}, {5000 + ln2, 40}}, 30,
      "Which number may stand under e so that the result is never above 1?");
  ask("hidden first", {{hidden, 7}, {hidden, 8}, {1, 5}, {1, 9}}, 7,
      "-infinity - (-infinity) is no number. What does a hidden key add?");
  ask("all hidden", {{hidden, 7}, {hidden, 8}}, 0, "Where everything is hidden, all weights are 0.");
  g.check("three numbers, whatever the length",
          "What was kept of the scores so far? A stream may be longer than any memory.", [] {
            return std::is_trivially_copyable_v<MyRunningSoftmax> && sizeof(MyRunningSoftmax) <= 3 * sizeof(double);
          });
}

#elif EXERCISE == 4  // the backward of attention in tiles

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
    g.equal(question, gradients(m, which, composed), hint,
            [&, m, which] { return gradients(m, which, my_tiled_attention); });
  };
  ask("dV", 7, 2, "Compute the weights of a tile's keys again from the saved numbers: their shape is [n, keys].");
  ask("dQ, one tile of keys", 4, 0, "The scores have a factor beside Q K^T. Does it come back?");
  ask("dK, two tiles of keys", 7, 1, "Is your D a sum over all keys, or over those of one tile?");
  ask("dQ, two tiles of keys", 7, 0, "What becomes of the dQ of the first tile when the second comes?");
  g.prove("the whole proof", "The message names the part that failed. What does that part do besides comparing slopes?",
          sample_of("my_tiled_attention", my_tiled_attention, {{3, 2}, {9, 2}, {9, 2}}));
  g.check("no table of 64 queries and 512 keys",
          "At least half of the table existed at one time. How many keys does your largest tensor have?", [&] {
            const Variable Q = parameter(randn({64, 1}, rng, f64)), K = parameter(randn({512, 1}, rng, f64)),
                           V = parameter(randn({512, 1}, rng, f64));
            const Variable O = my_tiled_attention(Q, K, V);
            reset_peak();
            const i64 before = memory_counters().live_bytes;
            backward(O, full({64, 1}, 1, f64));
            return memory_counters().peak_bytes - before < 64 * 512 * bytes_of(f64) / 2;
          });
}

#endif
