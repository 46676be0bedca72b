// Chapter 7. Leak check: move one input, compare every output.
#include "nn/check/leakcheck.h"

#include <algorithm>
#include <cstring>
#include <iomanip>
#include <limits>

#include "core/tensor_ops.h"

namespace orrery::nn {
namespace {

i64 length_of(const Tensor& lengths, i64 row) {
  return lengths.defined() ? static_cast<i64>(lengths.at(row)) : std::numeric_limits<i64>::max();
}

// Whether a and b [B, T, ...] have the same bytes at one position, counted over all rows.
bool same_at(const Tensor& a, const Tensor& b, i64 position) {
  const i64 positions = a.size(0) * a.size(1), count = positions == 0 ? 0 : a.count() / positions;
  return dispatch(a.dtype(), [&](auto t) {
    using T = decltype(t);
    const T *x = a.data<T>() + position * count, *y = b.data<T>() + position * count;
    return std::memcmp(x, y, static_cast<size_t>(count) * sizeof(T)) == 0;
  });
}

// The input with another token, or another vector, at one position.
Tensor moved_input(const LeakCheck& c, i64 position, i64 variant) {
  Tensor input = c.input.clone();
  if (input.dtype() == Dtype::i32) {
    i32* id = input.write<i32>() + position;
    const i64 step = variant == 0 ? 1 : std::max<i64>(2, c.vocabulary / 2);
    *id = static_cast<i32>((*id + step) % c.vocabulary);
    return input;
  }
  const i64 D = input.size(2);
  Rng rng(static_cast<u64>(position), static_cast<u64>(variant) << 32);
  const Tensor other = randn({1, D}, rng, input.dtype());
  Tensor rows = input.reshape({input.size(0) * input.size(1), D}), row = rows.rows(position, position + 1);
  copy_into(row, other);
  return input;
}

// The inputs to move, as positions counted over all rows.
std::vector<i64> inputs_of(const LeakReport& report) {
  std::vector<i64> inputs;
  for (i64 row = 0; row < report.B; ++row)
    for (const i64 position : report.positions) inputs.push_back(row * report.S + position);
  return inputs;
}

// Moves one input, and records which outputs move.
void move(const LeakCheck& c, i64 input, const Tensor& before, LeakReport& report) {
  constexpr i64 variants = 2;
  for (i64 variant = 0; variant < variants; ++variant) {
    const Tensor after = c.output(moved_input(c, input, variant));
    check(after.shape() == before.shape(), "leakcheck", "the output's shape changed from ", before.shape(), " to ",
          after.shape());
    for (i64 output = 0; output < report.B * report.T; ++output) {
      if (same_at(before, after, output)) continue;
      report.moved[static_cast<size_t>(output * report.B * report.S + input)] = true;
    }
  }
}

std::string text_of(const std::string& what, const Place& place) {
  return what + " position " + std::to_string(place.position) + " of row " + std::to_string(place.row);
}

}  // namespace

MayMove within_sequence(bool causal, const Tensor& lengths) {
  return [=](Place input, Place output) {
    if (input.row != output.row || (causal && input.position > output.position)) return false;
    return input.position == output.position || input.position < length_of(lengths, input.row);
  };
}

MayMove across_sequences(const Tensor& lengths) {
  return [=](Place input, Place output) {
    return input.row == output.row && input.position < length_of(lengths, input.row);
  };
}

namespace {

// Compares what has moved with what may move.
void judge(const LeakCheck& c, const std::vector<i64>& inputs, LeakReport& report) {
  const i64 S = report.S, T = report.T;
  for (i64 output = 0; output < report.B * T; ++output) {
    const Place to{output / T, output % T};
    bool any_allowed = false, any_moved = false;
    for (const i64 input : inputs) {
      const Place from{input / S, input % S};
      const size_t at = static_cast<size_t>(output * report.B * S + input);
      report.forbidden[at] = !c.may_move(from, to);
      if (report.moved[at] && report.forbidden[at]) report.leaks.push_back({from, to});
      if (c.all_must_move && !report.moved[at] && !report.forbidden[at]) report.idle.push_back({from, to});
      any_allowed |= !report.forbidden[at];
      any_moved |= report.moved[at];
    }
    if (any_allowed && !any_moved) report.unmoved.push_back(to);
  }
}

}  // namespace

LeakReport leakcheck(const LeakCheck& c) {
  const bool ids = c.input.defined() && c.input.dtype() == Dtype::i32;
  check(c.input.defined() && c.input.rank() == (ids ? 2 : 3), "leakcheck",
        "needs token ids [B, S] or vectors [B, S, D]");
  check(!ids || c.vocabulary >= 2, "leakcheck", "moving a token takes a vocabulary of at least 2, not ", c.vocabulary);
  const i64 B = c.input.size(0), S = c.input.size(1);
  check(B > 0 && S > 0, "leakcheck", "an input of shape ", c.input.shape(), " has nothing to move: nothing is checked");
  std::vector<i64> positions = c.positions;
  for (i64 s = 0; c.positions.empty() && s < S; ++s) positions.push_back(s);
  for (const i64 s : positions) check(0 <= s && s < S, "leakcheck", "there is no position ", s, " to move");
  const Tensor before = c.output(c.input).clone();
  check(before.rank() >= 2 && before.size(0) == B && before.size(1) > 0, "leakcheck", "the output needs shape [", B,
        ", T, ...], has ", before.shape());
  const i64 T = before.size(1);
  LeakReport report{
      .name = c.name, .inputs = c.inputs, .outputs = c.outputs, .B = B, .S = S, .T = T, .positions = positions};
  report.moved.resize(static_cast<size_t>(B * T * B * S));
  report.forbidden.resize(report.moved.size());

  const std::vector<i64> inputs = inputs_of(report);
  for (const i64 input : inputs) move(c, input, before, report);
  judge(c, inputs, report);
  return report;
}

std::string LeakReport::message() const {
  if (!leaks.empty()) {
    const std::string more = leaks.size() == 1 ? "" : ", and " + std::to_string(leaks.size() - 1) + " more";
    return "LEAK: " + text_of(inputs, leaks[0].input) + " -> " + text_of(outputs, leaks[0].output) + more;
  }
  if (!unmoved.empty()) return "nothing was checked: no input moves " + text_of(outputs, unmoved[0]);
  if (!idle.empty())
    return "idle: " + text_of(inputs, idle[0].input) + " may move " + text_of(outputs, idle[0].output) +
           ", and does not; such pairs: " + std::to_string(idle.size());
  size_t closed = 0, touching = 0;
  for (const bool pair : forbidden) closed += pair;
  for (const bool pair : moved) touching += pair;
  const size_t pairs = static_cast<size_t>(B * T * B) * positions.size();
  return "no leak: " + std::to_string(closed) + " of " + std::to_string(pairs) +
         " pairs must not touch, and do not; of the other " + std::to_string(pairs - closed) + ", " +
         std::to_string(touching) + " do";
}

std::ostream& operator<<(std::ostream& out, const LeakReport& report) {
  const i64 B = report.B, S = report.S, T = report.T;
  constexpr i64 most_shown = 32;
  out << harmless(report.name) << ": which " << report.inputs << " (across) moves which " << report.outputs
      << " (down)\n";
  if (std::max(S, T) > most_shown)
    return out << B << " rows, " << report.positions.size() << " of " << S << " inputs by " << T
               << " outputs each: too many to draw\n"
               << report.message() << '\n';
  out << std::string(10, ' ') << "row 0";
  for (i64 b = 1; b < B; ++b) out << std::right << std::setw(static_cast<int>(2 * S + 2)) << "row " + std::to_string(b);
  out << '\n';
  for (i64 output = 0; output < B * T; ++output) {
    if (output > 0 && output % T == 0) out << '\n';
    out << std::left << std::setw(7) << (output % T == 0 ? "row " + std::to_string(output / T) : "") << std::right
        << std::setw(2) << output % T;
    for (i64 input = 0; input < B * S; ++input) {
      const size_t at = static_cast<size_t>(output * B * S + input);
      const bool tried =
          std::find(report.positions.begin(), report.positions.end(), input % S) != report.positions.end();
      const char still = report.forbidden[at] ? '.' : '-', seen = report.forbidden[at] ? 'X' : '#';
      const char moved_or_not = report.moved[at] ? seen : still;
      out << (input > 0 && input % S == 0 ? "   " : " ") << (tried ? moved_or_not : ' ');
    }
    out << '\n';
  }
  return out << report.message() << '\n';
}

}  // namespace orrery::nn
