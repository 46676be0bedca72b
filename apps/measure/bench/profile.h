// Chapter 9. `orrery bench profile`: where the time of a training step goes.
//
// Every other step is observed. The medians of observed and other steps show what observing costs. The rest of a step,
// besides its operations, is clipping, Adam, and the tape: making nodes and visiting them.
//
// OperationTimes is an observer with a stopwatch, which times the forward and backward of every operation. While a step
// runs, it only appends to a list, so it costs little. Afterwards it adds up the times of equal names. The
// work of an operation follows from its shapes:
//   products     2 m n k operations forward, and twice as many backward (da and db), also if other work is fused with
//                them. Attention counts all n x m pairs, even those that a mask excludes, but not what backward
//                computes again: its rate is that of a full product, not of the instructions that ran. The head that
//                is fused with its loss (linear_cross_entropy) computes three products forward and none backward.
//                Recurrence and convolution, which no configuration has, count as "all others".
//   all others   forward the bytes of inputs and outputs, backward those of dL/dy and of dL/dx. A tensor that is only
//                passed on (a view, an adopted gradient) does not count, nor does a tensor saved for backward.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "apps/measure/bench/bench.h"
#include "apps/measure/bench/training.h"
#include "apps/program/stopwatch.h"
#include "autograd/observer.h"

namespace orrery {

/// The work of one kind of operation in all observed steps. Linear maps of different shapes are different kinds.
struct OperationTime {
  std::string name;
  std::string shape{};  ///< of a linear map, such as "[2048,128] to 10000"; "" for all others
  bool backward = false;
  i64 calls = 0;
  double seconds = 0;
  double flop = 0;   ///< multiplications and additions; 0 for operations other than products
  double bytes = 0;  ///< 0 for products, and for operations that move nothing
};

/// A linear map of `rows` rows; all 0 for any other operation.
struct LinearSizes {
  i64 rows = 0, in = 0, out = 0;
  auto operator<=>(const LinearSizes&) const = default;
};

class OperationTimes final : public Observer {
 public:
  void forward_begins(std::string_view, std::span<const Variable* const>) override { watch_ = {}; }
  void forward_ended(std::string_view name, std::span<const Variable* const> inputs,
                     std::span<const Tensor> outputs) override;
  void backward_begins(const Node& node) override;
  void backward_ended(const Node& node) override;

  /// Every kind, forward and backward separately, the slowest first.
  std::vector<OperationTime> summed_up() const;

 private:
  struct Event {
    std::string_view name;
    LinearSizes sizes;
    bool backward;
    double seconds, flop, bytes;
  };
  std::vector<Event> events_;
  Stopwatch watch_;
  u64 changes_before_ = 0;  // of dL/dy, before its backward
};

/// A part of a step. All parts together make up the step.
struct ProfileRow {
  std::string name;
  std::string direction;                             ///< "forward" or "backward"; "" for anything but operations
  double calls = 0;                                  ///< per step
  double seconds = 0;                                ///< per step, the mean over all observed steps
  double share = 0;                                  ///< of the step, 0 to 1
  double flop_per_second = 0, bytes_per_second = 0;  ///< 0 where unknown
};

struct Profile {
  std::vector<ProfileRow> rows{};       ///< the slowest first
  double seconds = 0;                   ///< of an observed step: the mean, and the sum of all rows
  double observed = 0, unobserved = 0;  ///< medians of steps with and without an observer
  double noise = 0;                     ///< by how many seconds their difference varies by chance
  double overhead() const { return observed / unobserved - 1; }
};

/// How far the median of these numbers may be from that of many more: their middle half, over the root of their count.
double noise_of_median(std::vector<double> values);

Profile measure_profile(const BenchConfig& config, const BenchOptions& options);

/// At most 100 columns wide. The last line says what observing cost, or that noise hides it.
void print_profile(std::ostream& out, const Profile& profile);

}  // namespace orrery
