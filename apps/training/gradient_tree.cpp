// Chapter 9. The tree of a step's gradients, in one process and among ranks.
#include "apps/training/gradient_tree.h"

#include <algorithm>
#include <bit>

#include "core/tensor_ops.h"

namespace orrery {
namespace {

// Numbers that a rank adds at once: few enough to stay in a core's cache. A message is as long, also among many ranks;
// the time of a much shorter one would be all latency.
constexpr i64 added_at_once = i64{1} << 16;
// Where a rank adds as many of one gradient, they are not copied into a row with others.
constexpr i64 enough_to_add = i64{1} << 12;

// Numbers that the ranks exchange at once. More ranks than these add fewer, so that memory has a bound.
i64 exchanged_at_once(const Ranks& ranks) { return added_at_once * std::min<i64>(ranks.size(), 64); }

// Strips whose slices are on their way while one is added, and whose sums are: a megabyte or more, which a connection
// of 10 Gbit/s carries in a millisecond. So latency should cost time at the beginning and the end alone; it was
// measured in shared memory only.
i64 strips_under_way(const Ranks& ranks) { return std::max<i64>(8 / ranks.size(), 1); }

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

// Numbers of a row that the ranks join at once. They are of one gradient, or of many small ones.
struct Strip : Stretch {
  bool is_of_one = false;
};
std::vector<Strip> strips_of(const std::vector<i64>& places, i64 large, i64 most) {
  std::vector<Strip> strips;
  const auto cut = [&](i64 end, bool is_of_one) {
    for (i64 at = strips.empty() ? 0 : strips.back().end; at < end; at = strips.back().end)
      strips.push_back({{at, std::min(at + most, end)}, is_of_one});
  };
  for (size_t i = 0; i + 1 < places.size(); ++i) {
    if (places[i + 1] - places[i] < large) continue;
    cut(places[i], false);
    cut(places[i + 1], true);
  }
  cut(places.back(), false);
  return strips;
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
    if (std::none_of(all.begin(), all.end(), [&](const std::string& has) { return has.at(i) == '1'; })) continue;
    check(parameters_[i].value.dtype() == row.dtype, "gradient tree", "parameter ", parameters_[i].name, " is ",
          parameters_[i].value.dtype(), ", others are ", row.dtype, ": ranks exchange one dtype");
    row.parameters.push_back(i);
  }
  const auto count = [&](size_t i) { return parameters_[i].value.value().count(); };
  row.large = enough_to_add * ranks.size();
  std::stable_partition(row.parameters.begin(), row.parameters.end(), [&](size_t i) { return count(i) < row.large; });
  for (const size_t i : row.parameters) row.places.push_back(row.count() + count(i));
  return row;
}

// A gradient that is not there adds nothing: x + -0 is x, also where x is 0 or -0.
void GradientTree::pack(const Node& node, const Row& row, Stretch part, Tensor& to, i64 at) const {
  dispatch_floating(row.dtype, "gradient tree", [&](auto t) {
    using T = decltype(t);
    T* out = to.write<T>() + at;
    for_tensors(row.places, part, [&](size_t i, i64 from, i64 place, i64 count) {
      const Tensor& g = node.gradients[row.parameters[i]];
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
      Tensor& g = nodes_[0].gradients[row.parameters[i]];
      if (!g.defined()) g = Tensor::empty(parameters_[row.parameters[i]].value.shape(), row.dtype);
      std::copy_n(from.data<T>() + place, count, g.write<T>() + to);
    });
  });
}

// These numbers where they are, if they are of one gradient of the only node; else a tensor that is not defined.
Tensor GradientTree::in_place(const Row& row, Stretch part) const {
  Tensor found;
  for_tensors(row.places, part, [&](size_t i, i64 from, i64, i64 count) {
    const Tensor& g = nodes_[0].gradients[row.parameters[i]];
    if (g.defined()) found = g.reshape({g.count()}).rows(from, from + count);
  });
  return nodes_.size() == 1 ? found : Tensor();
}

// Strip by strip: each rank gets a slice of it from all others, adds it up, and gives the sum to all. Meanwhile the
// slices of the next strips and the sums of those before are on their way.
void GradientTree::join(Ranks& ranks, const Row& row) {
  struct Slice : Stretch {
    Tensor numbers;
    bool is_own = false;
  };
  struct Flight {
    Tensor packed, received, sums;  // memory
    Tensor own, whole;              // this rank's numbers, in the order of the ranks; all sums
    std::vector<Slice> slices;      // what this rank adds, of every node, in the tree's order
    Ranks::Received back;           // where the sums of each rank belong
    std::shared_ptr<void> under_way;
  };
  const i64 size = ranks.size(), me = ranks.rank(), own_nodes = std::ssize(nodes_);
  const std::vector<Strip> strips = strips_of(row.places, row.large, exchanged_at_once(ranks));
  const i64 count = std::ssize(strips), ahead = strips_under_way(ranks);
  std::vector<std::vector<Stretch>> nodes;  // of each rank
  i64 of_others = 0, longest = 0;
  for (i64 r = 0; r < size; ++r) {
    nodes.push_back(nodes_of(part_of({0, count_}, r, size), count_));
    if (r != me) of_others += std::ssize(nodes.back());
  }
  for (const Strip& strip : strips) longest = std::max(longest, strip.count());
  std::vector<Flight> flights(static_cast<size_t>(std::min(2 * ahead, count)));
  for (Flight& flight : flights) {
    flight.packed = Tensor::empty({longest * own_nodes}, row.dtype);
    flight.received = Tensor::empty({(longest / size + 1) * of_others}, row.dtype);
    if (own_nodes > 1) flight.sums = Tensor::empty({longest}, row.dtype);
  }
  const auto start = [&](const Strip& strip, Flight& flight) {
    flight.own = strip.is_of_one ? in_place(row, strip) : Tensor();
    const bool packs = !flight.own.defined();
    if (packs) flight.own = flight.packed;
    flight.whole = (own_nodes > 1 ? flight.sums : flight.own).rows(0, strip.count());
    flight.slices.clear();
    flight.back.clear();
    Ranks::Sent sent;
    Ranks::Received from;
    const i64 mine = part_of(strip, me, size).count();
    for (i64 r = 0, own_end = 0, received_end = 0; r < size; ++r) {
      const Stretch slice = part_of(strip, r, size);
      const i64 own_begin = own_end, received_begin = received_end;
      for (const Node& node : nodes_) {
        if (packs) pack(node, row, slice, flight.packed, own_end);
        own_end += slice.count();
      }
      i64 at = r == me ? own_begin : received_begin;
      for (const Stretch& node : nodes[static_cast<size_t>(r)]) {
        flight.slices.push_back({node, (r == me ? flight.own : flight.received).rows(at, at + mine), r == me});
        at += mine;
      }
      if (r != me) received_end = at;
      sent.push_back(bytes(flight.own.rows(own_begin, own_end)));
      from.push_back(bytes(flight.received.rows(received_begin, received_end)));
      flight.back.push_back(bytes(flight.whole.rows(slice.begin - strip.begin, slice.end - strip.begin)));
    }
    flight.under_way = ranks.start(sent, from);
  };
  const auto add = [&](Flight& flight) {
    flight.under_way.reset();
    std::vector<Slice> sum;
    for (Slice& slice : flight.slices)
      append(sum, std::move(slice), count_, [](Slice& left, Slice& right) {
        if (right.is_own && !left.is_own) std::swap(left.numbers, right.numbers);  // a + b has the bits of b + a
        left.is_own |= right.is_own;
        add_in_place(left.numbers, right.numbers);
      });
    const std::span<std::byte> total = bytes(sum.at(0).numbers);
    if (own_nodes > 1) std::copy(total.begin(), total.end(), flight.back[static_cast<size_t>(me)].begin());
    flight.under_way = ranks.start(Ranks::Sent(flight.back.size(), total), flight.back);
  };
  const auto end = [&](const Strip& strip, Flight& flight) {
    flight.under_way.reset();
    if (!flight.own.shares_memory_with(flight.packed)) return;
    unpack(flight.whole, row, strip);
  };
  const auto flight = [&](i64 k) -> Flight& { return flights[static_cast<size_t>(k) % flights.size()]; };
  for (i64 k = 0; k < count + 2 * ahead; ++k) {
    if (const i64 i = k - 2 * ahead; i >= 0) end(strips[static_cast<size_t>(i)], flight(i));
    if (k < count) start(strips[static_cast<size_t>(k)], flight(k));
    if (const i64 i = k - ahead; i >= 0 && i < count) add(flight(i));
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
