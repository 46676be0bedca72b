// Chapter 9. Micro-benchmarks: small pieces of work, timed again and again beside another way to do them.
//
// Each bench of this kind is one table of entries. Google Benchmark decides how often an entry runs. Where it has a
// rival, the two take turns, so that neither a machine that slows down nor a single slow run changes their ratio, the
// median of the ratios of neighbours.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/measure/bench/bench.h"
#include "apps/measure/bench/training.h"
#include "autograd/variable.h"
#include "core/products/gemm.h"
#include "core/random.h"
#include "core/tensor.h"

namespace orrery {

/// What is timed.
struct Work {
  std::function<void()> run{};
  double amount = 0;                      ///< what one run does: operations, bytes, tokens; 0: it has no rate
  std::function<void()> prepare = [] {};  ///< before each run, not timed
};

/// An entry's work, with the tensors that it needs.
struct Trial {
  Work own;
  std::optional<Work> rival{};
  std::map<std::string, double> besides{};  ///< further columns
};

struct Entry {
  std::string name;
  std::function<Trial()> trial;  ///< called when the entry's turn comes
  double calls = 1;              ///< the time that is shown is that of so many runs
  std::string kind{};            ///< entries of one kind are summed up in a line below the table; "" for none
  double most = 0;               ///< a larger ratio of times is MISSED; 0: there is no bound
};

/// One sub-command of `orrery bench`.
struct MicroBench {
  std::string name, what, help;  ///< of the sub-command; `help` is the end of its help
  std::vector<Entry> (*entries)(const BenchOptions&);
  void (*add_options)(CLI::App&, BenchOptions&) = [](CLI::App&, BenchOptions&) {};
  /// Columns; "" for none. `ratio` is that of the rates if the bench has a rate, or else that of the times.
  std::string time{}, rate{}, rival{}, ratio{};
  double time_unit = 1e-6, rate_unit = 1e9;  ///< a microsecond; 10^9 operations or bytes per second
  double (*best)() = nullptr;                ///< the largest rate there is: the column "best" shows the share of it
  /// How many turns there are, of which the median counts. Without: kernels, of which the fastest run counts, and the
  /// faster of two in a row, since one may find its data in no cache.
  i64 (*turns)(const BenchOptions&) = nullptr;
  double seconds = 0.05;   ///< of all runs of a kernel, at least
  size_t rival_every = 1;  ///< the rival has a turn at every so many of the entry's
};

/// Runs the entries that match `options.names` and prints the table, or lists them if `options.list`. Returns `failed`
/// if one is MISSED. Errors: nothing matches; the program was built without Google Benchmark.
int run_micro(const MicroBench& bench, const BenchOptions& options);

/// `options.steps`, for `turns`.
i64 steps_of(const BenchOptions& options);

MicroBench gemm_bench();
MicroBench ops_bench();
MicroBench fused_bench();
MicroBench attention_bench();
MicroBench masks_bench();
MicroBench decode_bench();
MicroBench promises_bench();
MicroBench busy_bench();

/// No operation of a Transformer or a GPT saves more tensors for its backward, or uses one of them more often.
inline constexpr i64 most_saved = 4, most_uses = 10;

/// Fills `weight` with numbers of both signs that are too small to be normal.
void make_denormal(Tensor& weight, Rng& rng);

/// One computation in two forms: functions of the same leaves, whose gradients a backward pass fills.
struct FusedPair {
  std::string name;         ///< of the fused operation
  std::string composed_of;  ///< the operations of the composed form
  std::vector<Variable> leaves;
  std::function<Variable()> composed, fused;
};
/// Fused operations of autograd/ops.h, each as a decoder layer of this configuration calls it, or at the same sizes if
/// no decoder layer does. Not among them: convolution, and the feed-forward network with GELU's approximation.
std::vector<FusedPair> fused_pairs(const BenchConfig& config);

/// a_i = b_i + 3 c_i. It computes almost nothing, so memory limits its speed. All have the same shape, in f32.
void triad(const Tensor& b, const Tensor& c, Tensor& a);

/// Only reads memory, on all threads: 256 MB, which is more than the caches of most machines hold.
class MemoryReader {
 public:
  MemoryReader();
  double bytes() const { return static_cast<double>(numbers_.bytes()); }
  void read();

 private:
  Tensor numbers_, sums_;
};

/// What a product is for.
enum class ProductKind { linear, heads, few_rows };

/// C [m, n] = op(A) op(B) with inner size k, for `batch` products side by side.
struct Product {
  std::string what;  ///< the first use of the product, such as "feed-forward in, y"
  Trans trans;
  i64 m, n, k;
  i64 batch = 1;  ///< heads of a whole batch; 1 for products that are cut into tiles
  i64 calls = 1;  ///< in one step

  ProductKind kind() const {
    if (calls == 0) return ProductKind::few_rows;
    return batch > 1 ? ProductKind::heads : ProductKind::linear;
  }
  double flop() const { return 2.0 * static_cast<double>(m * n * k * batch); }
  bool same_work(const Product& other) const {
    return trans == other.trans && m == other.m && n == other.n && k == other.k && batch == other.batch;
  }
};

/// Every distinct product of a training step, with its number of calls; and two with few rows, with 0 calls.
std::vector<Product> products_of(const BenchConfig& config);

/// Makes the product once in each call, with numbers of its own. With `by_blas`, with OpenBLAS.
std::function<void()> product_call(const Product& product, bool by_blas = false);
/// Operations per second of one product in its fastest run, with its factors in the cache if they fit.
double measured_speed(const Product& product, bool by_blas = false);
/// The same for the fastest square products that all threads can do: a large one in tiles, or one on each thread.
double best_speed();

}  // namespace orrery
