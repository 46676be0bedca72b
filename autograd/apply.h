// Chapter 2. apply: runs an operation forward and puts it on the tape.
//
// An operation is a plain struct with a name, the values it saves, `forward` and `backward` side by side:
//   struct Square {                                            // y = x^2
//     static constexpr std::string_view name = "square";
//     Saved x;
//     Tensor forward(const Tensor& in) { x = in; return in * in; }
//     void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy * x.get() * 2.0); }     // dx = 2 x dy
//   };
//   Variable square(const Variable& x) { return apply(Square{}, x); }
// forward may return std::array<Tensor, N>; backward then takes std::array<Tensor, N>, in which the gradient of an
// unused output is undefined. An operation on a list of inputs takes a std::span<const Tensor>.
// Read next: apps/book/ch2/tape.cpp
#pragma once

#include <array>
#include <concepts>
#include <optional>

#include "autograd/grads.h"
#include "autograd/saved.h"

namespace orrery {

template <class T> struct OutputsOf {
  static constexpr size_t count = 0;  // not a valid result of forward
};
template <> struct OutputsOf<Tensor> {
  static constexpr size_t count = 1;
  using Gradient = Tensor;
};
template <size_t N> struct OutputsOf<std::array<Tensor, N>> {
  static constexpr size_t count = N;
  using Gradient = std::array<Tensor, N>;
};

template <class T, class... Inputs>
using OutputsFrom =
    OutputsOf<std::remove_cvref_t<decltype(std::declval<T&>().forward(std::declval<const Inputs&>()...))>>;

/// A differentiable operation taking `Inputs` (Tensors, or one std::span<const Tensor>).
template <class T, class... Inputs>
concept Operation = (OutputsFrom<T, Inputs...>::count > 0) &&
                    requires(T op, const typename OutputsFrom<T, Inputs...>::Gradient& dy, Grads& dx) {
  { T::name } -> std::convertible_to<std::string_view>;
  op.backward(dy, dx);
};

/// A node that holds an operation with its saved values until its backward has run.
template <class Op, size_t Outputs> class OperationNode final : public Node {
 public:
  explicit OperationNode(Op&& op) : Node(Op::name), op_(std::move(op)) {}
  void release() override { op_.reset(); }
  void backward(Grads& dx) override {
    std::optional<Op> copy;  // a second owner of each saved tensor, so that none is overwritten or given away
    Op& op = dx.keeps() ? copy.emplace(*op_) : *op_;
    if constexpr (Outputs == 1) {
      op.backward(dx.dy(0), dx);
    } else {
      std::array<Tensor, Outputs> dy;
      for (size_t i = 0; i < Outputs; ++i) dy[i] = dx.dy(i);
      op.backward(dy, dx);
    }
  }

 private:
  std::optional<Op> op_;
};

namespace tape {
using Inputs = std::span<const Variable* const>;

/// Throws `error` again, with the name of the operation and the shape and origin of its inputs (of the first 8).
[[noreturn]] void explain(std::string_view name, const Error& error, Inputs inputs);
/// Runs `rules`, the checks of a function that is made of several operations, and explains their errors in the same
/// way.
template <class Rules> auto explained(std::string_view name, Inputs inputs, const Rules& rules) {
  try {
    return rules();
  } catch (const Error& error) { explain(name, error, inputs); }
}
/// Errors: an input that is not floating, or inputs of different dtypes.
void check_inputs(std::string_view name, Inputs inputs);
/// True if the operation must be recorded: recording is on, and some input needs a gradient.
bool records(Inputs inputs);
/// Gives the node its edges and output slots.
void connect(Node& node, Inputs inputs, std::span<const Tensor> outputs);
/// Tell the observer, if there is one, that a forward begins or has ended.
void announce_begin(std::string_view name, Inputs inputs);
void announce_end(std::string_view name, Inputs inputs, std::span<const Tensor> outputs);

template <size_t N> std::span<const Tensor> outputs_of(const std::array<Tensor, N>& y) { return y; }
inline std::span<const Tensor> outputs_of(const Tensor& y) { return {&y, 1}; }

/// Runs `forward` on the operation and wraps what it returns; the common part of both forms of `apply`.
template <class Op, class Forward> auto run(Op& op, Inputs inputs, const Forward& forward) {
  using Result = std::remove_cvref_t<decltype(forward(op))>;
  constexpr size_t count = OutputsOf<Result>::count;
  try {
    check_inputs(Op::name, inputs);
    announce_begin(Op::name, inputs);
    Result y = forward(op);
    announce_end(Op::name, inputs, outputs_of(y));
    std::shared_ptr<Node> node;
    if (records(inputs)) {
      using Recorded = OperationNode<Op, count>;
      node = std::make_shared<Recorded>(std::move(op));
      connect(*node, inputs, outputs_of(y));
    }
    if constexpr (count == 1 && std::is_same_v<Result, Tensor>) {
      return Variable(std::move(y), std::move(node));
    } else {
      std::array<Variable, count> result;
      for (size_t i = 0; i < count; ++i) result[i] = Variable(std::move(y[i]), node, static_cast<int>(i));
      return result;
    }
  } catch (const Error& error) { explain(Op::name, error, inputs); }
}
}  // namespace tape

/// Runs op.forward on the values of `inputs` and records it. Returns a Variable, or std::array<Variable, N>.
template <class Op, std::same_as<Variable>... In> auto apply(Op op, const In&... inputs) {
  static_assert(Operation<Op, decltype(inputs.value())...>,
                "an operation needs a name, forward and backward; see above");
  const std::array<const Variable*, sizeof...(In)> list{&inputs...};
  return tape::run(op, list, [&](Op& o) { return o.forward(inputs.value()...); });
}

/// The same for an operation with any number of inputs.
template <class Op> auto apply(Op op, std::span<const Variable> inputs) {
  static_assert(Operation<Op, std::span<const Tensor>>, "an operation needs a name, forward and backward; see above");
  std::vector<const Variable*> list;
  std::vector<Tensor> values;
  for (const Variable& input : inputs) {
    list.push_back(&input);
    values.push_back(input.value());
  }
  return tape::run(op, list, [&](Op& o) { return o.forward(std::span<const Tensor>(values)); });
}

}  // namespace orrery
