// Chapter 8. Grades exercise 8.1.

struct Work {
  std::vector<int> added;   // how often each element was added
  std::vector<i64> shares;  // elements that each thread added
  float total = 0;
};

// What the student's threads do to sum up 1, 1/2, ..., 1/n.
Work work_of(i64 n, i64 threads) {
  Work work{std::vector<int>(static_cast<size_t>(n)), std::vector<i64>(static_cast<size_t>(threads)), 0};
  work.total = my_sum(n, threads, [&](i64 t, i64 begin, i64 end) {
    check(t >= 0 && t < threads, "part", "there is no thread ", t, " of ", threads);
    check(begin >= 0 && begin <= end && end <= n, "part", begin, " to ", end, " is no part of ", n, " elements");
    float sum = 0;
    for (i64 i = begin; i < end; ++i) {
      sum += 1 / static_cast<float>(i + 1);
      ++work.added[static_cast<size_t>(i)];
    }
    work.shares[static_cast<size_t>(t)] += end - begin;
    return sum;
  });
  return work;
}

double total_of(i64 n, i64 threads) { return static_cast<double>(work_of(n, threads).total); }

void grade(Grader& g) {
  g.check(
      "each of 10,000 elements is added once",
      [&] {
        const Work work = work_of(10'000, 3);
        return std::all_of(work.added.begin(), work.added.end(), [](int times) { return times == 1; });
      },
      "Where does the last chunk end?");
  g.equal(
      "sums of no, of one and of five elements",
      [&] {
        return Tensor::of<float>({3}, {work_of(0, 4).total, work_of(1, 4).total, work_of(5, 4).total});
      },
      Tensor::of<float>({3}, {0, 1, 137.0F / 60}),
      "What becomes of your chunks if there are fewer elements than in one of them?", 1e-6);
  for (const i64 threads : {2, 3, 4, 7})
    g.equal(
        "10,000 elements on " + std::to_string(threads) + " threads, beside one thread",
        [&] { return total_of(10'000, threads) - total_of(10'000, 1); }, 0,
        "Does a border between two parts depend on the number of threads? And the order in which parts are added?", 0);
  for (const i64 threads : {4, 7})
    g.at_most(
        std::to_string(threads) + " threads share 100,000 elements: the largest share",
        [&, threads] {
          const std::vector<i64> shares = work_of(100'000, threads).shares;
          return static_cast<double>(*std::max_element(shares.begin(), shares.end()));
        },
        140'000.0 / static_cast<double>(threads), "No thread should compute much more than its equal share.");
}
