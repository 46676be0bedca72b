// Chapter 9. OperationTimes: an observer with a stopwatch. It notes every operation's forward and backward.
//
// While the step runs it only appends to a list; names are summed up afterwards, so that looking on costs little.
// What an operation does is known from its shapes:
//   products     2 m n k operations forward, and twice as many backward (da and db); so for what is fused around them
//                Of attention these are all n x m pairs, whatever a mask leaves out, and what backward computes again
//                is not counted: its rate is that of a full product, not of the instructions that ran.
//   all others   forward the bytes of inputs and outputs, backward those of dL/dy and of dL/dx; what is only handed on
//                (a view, an adopted gradient) is no traffic, and what was saved for backward is not counted
// Serves: core/machine/parallel.h
#pragma once

#include <string>
#include <vector>

#include "apps/program/stopwatch.h"
#include "autograd/observer.h"

namespace orrery {

/// What one kind of operation did in all steps that were observed. Linear maps of different shapes are different kinds.
struct OperationTime {
  std::string name;
  std::string shape{};  ///< of a linear map, such as "[2048,128] to 10000"; "" for all others
  bool backward = false;
  i64 calls = 0;
  double seconds = 0;
  double flop = 0;   ///< multiplications and additions; 0 for what is no product
  double bytes = 0;  ///< 0 for products, and for what moves nothing
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

  /// Every kind with its direction once, the slowest first.
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

}  // namespace orrery
