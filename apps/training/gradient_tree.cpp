// Chapter 9. The tree of a step's gradients, in one process and among ranks.
#include "apps/training/gradient_tree.h"

#include <algorithm>
#include <bit>

#include "core/tensor_ops.h"

namespace orrery {
namespace {

// Numbers that a rank adds at once: few enough to stay in a core's cache. A message is as long, also among many ranks;
// the time of a much shorter one would be all latency.
constexpr i64 added_at_once = i64{1} << 17;

// Numbers that the ranks exchange at once. More ranks than these add fewer, so that memory has a bound.
i64 exchanged_at_once(const Ranks& ranks) { return added_at_once * std::min<i64>(ranks.size(), 64); }

// Whether two neighbours are the halves of a node of the tree over `count` leaves.
bool are_halves(const Stretch& left, const Stretch& right, i64 count) {
  const i64 half = left.count();
  return std::has_single_bit(static_cast<u64>(half)) && left.begin % (2 * half) == 0 &&
         right.end == std::min(left.begin + 2 * half, count);
}

// Appends a node to those on its left. Wherever two are halves, the left one becomes their sum.
template <class Node, class Add> void append(std::vector<Node>& nodes, Node next, i64 count, const Add& add_to_left) {
  nodes.push_back(std::move(next));
  while (nodes.size() > 1 && are_halves(nodes[nodes.size() - 2], nodes.back(), count)) {
    Node& left = nodes[nodes.size() - 2];
    add_to_left(left, nodes.back());
    left.end = nodes.back().end;
    nodes.pop_back();
  }
}

// Adds gradients to others of the same parameters; one that is not there adds nothing.
void add_gradients(std::vector<Tensor>& sums, std::vector<Tensor>& more) {
  for (size_t i = 0; i < sums.size(); ++i) {
    if (!sums[i].defined())
      sums[i] = std::move(more[i]);
    else if (more[i].defined())
      add_in_place(sums[i], more[i]);
  }
}

// The nodes that these leaves make by themselves.
std::vector<Stretch> nodes_of(const Stretch& leaves, i64 count) {
  std::vector<Stretch> nodes;
  for (i64 i = leaves.begin; i < leaves.end; ++i)
    append(nodes, Stretch{i, i + 1}, count, [](const Stretch&, const Stretch&) {});
  return nodes;
}

std::span<std::byte> bytes(const Tensor& numbers) {
  return {static_cast<std::byte*>(const_cast<void*>(address_of(numbers))), static_cast<size_t>(numbers.bytes())};
}

// Calls f(tensor, first element in it, first in the part, how many) for the tensors of a row that a part of it covers.
template <class F> void for_tensors(const std::vector<i64>& places, const Stretch& part, const F& f) {
  const auto first = std::upper_bound(places.begin(), places.end(), part.begin) - places.begin() - 1;
  for (size_t i = static_cast<size_t>(first); i + 1 < places.size() && places[i] < part.end; ++i) {
    const i64 begin = std::max(part.begin, places[i]), end = std::min(part.end, places[i + 1]);
    if (begin < end) f(i, begin - places[i], begin - part.begin, end - begin);
  }
}

}  // namespace

Stretch part_of(Stretch whole, i64 i, i64 parts) {
  return {whole.begin + whole.count() * i / parts, whole.begin + whole.count() * (i + 1) / parts};
}

void GradientTree::take(i64 micro_batch) {
  Node leaf{{micro_batch, micro_batch + 1}, {}};
  leaf.gradients.reserve(parameters_.size());
  for (NamedParameter& p : parameters_) leaf.gradients.push_back(std::exchange(p.value.mutable_gradient(), {}));
  append(nodes_, std::move(leaf), count_,
         [](Node& left, Node& right) { add_gradients(left.gradients, right.gradients); });
}

void GradientTree::finish(Ranks& ranks) {
  if (ranks.size() > 1) {
    const Row whole = row(ranks);
    if (ranks.adds_fast())
      join_fast(ranks, whole);
    else
      join(ranks, whole);
  }
  check(nodes_.size() == 1 && nodes_[0].begin == 0 && nodes_[0].end == count_, "gradient tree",
        "some micro-batches were not taken");
  for (size_t i = 0; i < parameters_.size(); ++i)
    parameters_[i].value.mutable_gradient() = std::move(nodes_[0].gradients[i]);
}

GradientTree::Row GradientTree::row(Ranks& ranks) const {
  std::string mine(parameters_.size(), '0');
  for (const Node& node : nodes_)
    for (size_t i = 0; i < mine.size(); ++i)
      if (node.gradients[i].defined()) mine[i] = '1';
  std::vector<std::string> all(static_cast<size_t>(ranks.size()), mine);
  Ranks::Received from;
  for (std::string& has : all) from.push_back(std::as_writable_bytes(std::span(has)));
  ranks.exchange(Ranks::Sent(all.size(), std::as_bytes(std::span(mine))), from);
  Row row{.dtype = parameters_.at(0).value.dtype()};
  for (size_t i = 0; i < mine.size(); ++i) {
    const Variable& p = parameters_[i].value;
    const bool is_there = std::any_of(all.begin(), all.end(), [&](const std::string& has) { return has.at(i) == '1'; });
    check(!is_there || p.dtype() == row.dtype, "gradient tree", "parameter ", parameters_[i].name, " is ", p.dtype(),
          ", others are ", row.dtype, ": ranks exchange one dtype");
    row.places.push_back(row.count() + (is_there ? p.value().count() : 0));
  }
  return row;
}

// A gradient that is not there adds nothing: x + -0 is x, also where x is 0 or -0.
void GradientTree::pack(const Node& node, const Row& row, Stretch part, Tensor& to, i64 at) const {
  dispatch_floating(row.dtype, "gradient tree", [&](auto t) {
    using T = decltype(t);
    T* out = to.write<T>() + at;
    for_tensors(row.places, part, [&](size_t i, i64 from, i64 place, i64 count) {
      const Tensor& g = node.gradients[i];
      if (g.defined())
        std::copy_n(g.data<T>() + from, count, out + place);
      else
        std::fill_n(out + place, count, static_cast<T>(-0.0));
    });
  });
}

void GradientTree::unpack(const Tensor& from, const Row& row, Stretch part) {
  dispatch_floating(row.dtype, "gradient tree", [&](auto t) {
    using T = decltype(t);
    for_tensors(row.places, part, [&](size_t i, i64 to, i64 place, i64 count) {
      Tensor& g = nodes_[0].gradients[i];
      if (!g.defined()) g = Tensor::empty(parameters_[i].value.shape(), row.dtype);
      std::copy_n(from.data<T>() + place, count, g.write<T>() + to);
    });
  });
}

// Part by part: each rank gets a slice of it from all others, adds it up, and gives the sum to all.
void GradientTree::join(Ranks& ranks, const Row& row) {
  struct Slice : Stretch {
    Tensor numbers;
  };
  const i64 size = ranks.size(), me = ranks.rank(), most = std::min(exchanged_at_once(ranks), row.count());
  std::vector<std::vector<Stretch>> nodes;  // of each rank
  i64 of_others = 0;
  for (i64 r = 0; r < size; ++r) {
    nodes.push_back(nodes_of(part_of({0, count_}, r, size), count_));
    if (r != me) of_others += std::ssize(nodes.back());
  }
  Tensor packed = Tensor::empty({most * std::ssize(nodes_)}, row.dtype), whole = Tensor::empty({most}, row.dtype);
  const Tensor received = Tensor::empty({(most / size + 1) * of_others}, row.dtype);
  for (i64 begin = 0; begin < row.count(); begin += most) {
    const Stretch part{begin, std::min(begin + most, row.count())};
    const i64 mine = part_of(part, me, size).count();
    std::vector<Slice> slices;  // of every node, in the tree's order
    Ranks::Sent sent;
    Ranks::Received from, back;
    for (i64 r = 0, packed_end = 0, received_end = 0; r < size; ++r) {
      const Stretch slice = part_of(part, r, size);
      const i64 packed_begin = packed_end, received_begin = received_end;
      for (const Node& node : nodes_) {
        pack(node, row, slice, packed, packed_end);
        packed_end += slice.count();
      }
      i64 at = r == me ? packed_begin : received_begin;
      for (const Stretch& node : nodes[static_cast<size_t>(r)]) {
        slices.push_back({node, (r == me ? packed : received).rows(at, at + mine)});
        at += mine;
      }
      if (r != me) received_end = at;
      sent.push_back(bytes(packed.rows(packed_begin, packed_end)));
      from.push_back(bytes(received.rows(received_begin, received_end)));
      back.push_back(bytes(whole.rows(slice.begin - begin, slice.end - begin)));
    }
    ranks.exchange(sent, from);
    std::vector<Slice> sum;
    for (Slice& slice : slices)
      append(sum, std::move(slice), count_,
             [](Slice& left, Slice& right) { add_in_place(left.numbers, right.numbers); });
    ranks.exchange(Ranks::Sent(sent.size(), bytes(sum.at(0).numbers)), back);
    std::ranges::copy(bytes(sum[0].numbers), back[static_cast<size_t>(me)].begin());
    unpack(whole, row, part);
  }
  nodes_.resize(1);
  nodes_[0].begin = 0;
  nodes_[0].end = count_;
}

void GradientTree::join_fast(Ranks& ranks, const Row& row) {
  while (nodes_.size() > 1) {
    add_gradients(nodes_[nodes_.size() - 2].gradients, nodes_.back().gradients);
    nodes_.pop_back();
  }
  const i64 most = std::min(exchanged_at_once(ranks), row.count());
  Tensor packed = Tensor::empty({most}, row.dtype);
  for (i64 begin = 0; begin < row.count(); begin += most) {
    const Stretch part{begin, std::min(begin + most, row.count())};
    Tensor numbers = packed.rows(0, part.count());
    pack(nodes_[0], row, part, numbers, 0);
    ranks.sum(numbers);
    unpack(numbers, row, part);
  }
  nodes_[0].begin = 0;
  nodes_[0].end = count_;
}

}  // namespace orrery
