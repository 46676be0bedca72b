// Chapter 9. Joining gradients among ranks: which numbers travel together, and when.
#include "apps/training/joining.h"

#include <algorithm>
#include <utility>

#include "core/tensor_ops.h"

namespace orrery {
namespace {

// Numbers that a rank adds at once: few enough to stay in a core's cache. A message is as long, also among many ranks;
// the time of a much shorter one would be all latency.
constexpr i64 added_at_once = i64{1} << 16;

// Numbers that the ranks exchange at once. More ranks than these add fewer, so that memory has a bound.
i64 exchanged_at_once(const Ranks& ranks) { return added_at_once * std::min<i64>(ranks.size(), 64); }

// So many numbers of one gradient are not copied into a row with others. Many ranks ask for more, as each adds a part.
i64 enough_to_stay(const Ranks& ranks) {
  return std::clamp((i64{1} << 12) * ranks.size(), added_at_once, exchanged_at_once(ranks));
}

// Strips that are on their way at once: a megabyte or more each way, which a connection of 10 Gbit/s carries in a
// millisecond, so that latency costs time at the beginning and the end alone; few enough for a cache. During backward
// bytes travel only between operations, so more of them wait there, but fewer where each has several nodes.
size_t strips_under_way(const Ranks& ranks, i64 nodes, bool during_backward) {
  return static_cast<size_t>((during_backward ? std::max<i64>(16 / nodes, 2) : 2) * std::max<i64>(8 / ranks.size(), 1));
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

Joining::Row::Row(const Parameters& all, const Ranks& ranks) {
  std::vector<size_t> small;
  i64 waiting = 0;
  const auto append = [&](size_t i) {
    parameters.push_back(i);
    places.push_back(count() + all[i].value.value().count());
  };
  const auto append_small = [&] {
    std::for_each(small.begin(), small.end(), append);
    small.clear();
    waiting = 0;
  };
  for (size_t i = all.size(); i-- > 0;) {
    const Tensor& value = all[i].value.value();
    if (all[i].value.is_frozen()) continue;
    if (parameters.empty() && small.empty()) dtype = value.dtype();
    check(value.dtype() == dtype, "gradient tree", "parameter ", all[i].name, " is ", value.dtype(), ", others are ",
          dtype, ": ranks exchange one dtype");
    if (value.count() >= enough_to_stay(ranks)) {
      append(i);
      continue;
    }
    if (waiting + value.count() > exchanged_at_once(ranks)) append_small();
    small.push_back(i);
    waiting += value.count();
  }
  append_small();
}

std::vector<Joining::Strip> Joining::strips_of(const std::vector<i64>& places, const Ranks& ranks) {
  std::vector<Strip> strips;
  const auto cut = [&](i64 end, bool is_of_one) {
    for (i64 at = strips.empty() ? 0 : strips.back().end; at < end; at = strips.back().end)
      strips.push_back({{at, std::min(at + exchanged_at_once(ranks), end)}, is_of_one});
  };
  for (size_t i = 0; i + 1 < places.size(); ++i) {
    if (places[i + 1] - places[i] < enough_to_stay(ranks)) continue;
    cut(places[i], false);
    cut(places[i + 1], true);
  }
  cut(places.back(), false);
  return strips;
}

Joining::Joining(const Parameters& parameters, std::vector<GradientNode>& nodes, i64 count, Ranks& ranks)
    : parameters_(parameters),
      nodes_(nodes),
      count_(count),
      ranks_(ranks),
      row_(parameters, ranks),
      longest_(std::min(exchanged_at_once(ranks), row_.count())),
      strips_(strips_of(row_.places, ranks)),
      is_complete_(parameters.size(), 0),
      is_there_(parameters.size(), '0') {
  const i64 size = ranks.size(), me = ranks.rank();
  for (i64 r = 0; r < size; ++r) {
    const std::vector<Stretch>& own = nodes_of_rank_.emplace_back(nodes_of(part_of({0, count}, r, size), count));
    (r == me ? own_nodes_ : of_others_) += std::ssize(own);
  }
}

// After a failure some are under way, and others may not send or take the rest: nobody waits for them, and their memory
// stays until the process ends, as it soon will.
Joining::~Joining() {
  if (std::any_of(flights_->begin(), flights_->end(), [](const Flight& flight) { return !flight.arrived(); }))
    static_cast<void>(flights_.release());
}

// A gradient that is not there adds nothing: x + -0 is x, also where x is 0 or -0.
void Joining::pack(const GradientNode& node, Stretch part, Tensor& to, i64 at) const {
  dispatch_floating(row_.dtype, "gradient tree", [&](auto t) {
    using T = decltype(t);
    T* out = to.write<T>() + at;
    for_tensors(row_.places, part, [&](size_t i, i64 from, i64 place, i64 count) {
      const Tensor& g = node.gradients[row_.parameters[i]];
      if (g.defined())
        std::copy_n(g.data<T>() + from, count, out + place);
      else
        std::fill_n(out + place, count, static_cast<T>(-0.0));
    });
  });
}

void Joining::unpack(const Tensor& from, Stretch part) {
  dispatch_floating(row_.dtype, "gradient tree", [&](auto t) {
    using T = decltype(t);
    for_tensors(row_.places, part, [&](size_t i, i64 to, i64 place, i64 count) {
      Tensor& g = nodes_[0].gradients[row_.parameters[i]];
      const Shape& shape = parameters_[row_.parameters[i]].value.shape();
      if (count == shape.count()) {  // all of it is here, and need not be copied
        g = from.rows(place, place + count).reshape(shape);
        return;
      }
      // Strips of it that were not sent yet still have nothing to add.
      if (!g.defined()) g = full(shape, -0.0, row_.dtype);
      std::copy_n(from.data<T>() + place, count, g.write<T>() + to);
    });
  });
}

// These numbers where they are, if they are of one gradient of the only node; else a tensor that is not defined.
Tensor Joining::in_place(Stretch part) const {
  Tensor found;
  for_tensors(row_.places, part, [&](size_t i, i64 from, i64, i64 count) {
    const Tensor& g = nodes_[0].gradients[row_.parameters[i]];
    if (g.defined()) found = g.reshape({g.count()}).rows(from, from + count);
  });
  return own_nodes_ == 1 ? found : Tensor();
}

void Joining::start(const Strip& strip, Flight& flight) {
  const i64 size = ranks_.size(), me = ranks_.rank(), mine = part_of(strip, me, size).count();
  flight.own = strip.is_of_one ? in_place(strip) : Tensor();
  flight.packs = !flight.own.defined();
  if (!flight.received.defined()) flight.received = Tensor::empty({(longest_ / size + 1) * of_others_}, row_.dtype);
  if (flight.packs) flight.own = Tensor::empty({strip.count() * own_nodes_}, row_.dtype);
  flight.whole = own_nodes_ > 1 ? Tensor::empty({strip.count()}, row_.dtype) : flight.own;
  flight.back.clear();
  Ranks::Sent sent;
  Ranks::Received from;
  for (i64 r = 0, own_end = 0, received_end = 0; r < size; ++r) {
    const Stretch slice = part_of(strip, r, size);
    const i64 own_begin = own_end, received_begin = received_end;
    for (size_t node = 0; node < own_nodes(); ++node) {
      if (flight.packs) pack(nodes_[node], slice, flight.own, own_end);
      own_end += slice.count();
    }
    i64 at = r == me ? own_begin : received_begin;
    for (const Stretch& node : nodes_of_rank_[static_cast<size_t>(r)]) {
      flight.slices.push_back({node, (r == me ? flight.own : flight.received).rows(at, at + mine), r == me});
      at += mine;
    }
    if (r != me) received_end = at;
    sent.push_back(bytes(flight.own.rows(own_begin, own_end)));
    from.push_back(bytes(flight.received.rows(received_begin, received_end)));
    flight.back.push_back(bytes(flight.whole.rows(slice.begin - strip.begin, slice.end - strip.begin)));
  }
  flight.under_way = ranks_.start(0, sent, from);
}

void Joining::add(Flight& flight) {
  std::vector<Slice> sum;
  for (Slice& slice : flight.slices)
    append(sum, std::move(slice), count_, [](Slice& left, Slice& right) {
      if (right.is_own && !left.is_own) std::swap(left.numbers, right.numbers);  // a + b has the bits of b + a
      left.is_own |= right.is_own;
      add_in_place(left.numbers, right.numbers);
    });
  const std::span<std::byte> total = bytes(sum.at(0).numbers);
  if (own_nodes_ > 1) std::copy(total.begin(), total.end(), flight.back[static_cast<size_t>(ranks_.rank())].begin());
  flight.under_way = ranks_.start(1, Ranks::Sent(flight.back.size(), total), flight.back);
}

void Joining::end(const Strip& strip, Flight& flight) {
  flight.under_way.reset();
  if (flight.packs) unpack(flight.whole, strip);
  flight.own = flight.whole = Tensor();
  flight.slices.clear();
}

void Joining::complete(size_t i) {
  if (std::exchange(is_complete_[i], 1)) return;
  for (size_t node = 0; node < own_nodes(); ++node)
    if (nodes_[node].gradients[i].defined()) is_there_[i] = '1';
  while (complete_ < row_.parameters.size() && is_complete_[row_.parameters[complete_]]) ++complete_;
}

// What was begun first goes first, so that ranks whose transfers are over at once do all in the same order.
void Joining::advance(bool during_backward) {
  const size_t most = strips_under_way(ranks_, own_nodes_, during_backward);
  while (true) {
    if (ended_ < added_ && flight(ended_).arrived()) {
      end(strips_[ended_], flight(ended_));
      spare_.push_back(std::move(flights_->front()));
      flights_->pop_front();
      ++ended_;
    } else if (added_ < started_ && flight(added_).arrived()) {
      add(flight(added_++));
    } else if (started_ < strips_.size() && flights_->size() < most &&
               strips_[started_].end <= row_.places[complete_]) {
      flights_->push_back(spare_.empty() ? Flight() : std::move(spare_.back()));
      if (!spare_.empty()) spare_.pop_back();
      start(strips_[started_], flight(started_));
      ++started_;
    } else {
      return;
    }
  }
}

void Joining::finish() {
  for (size_t i = 0; i < is_complete_.size(); ++i) complete(i);
  if (ranks_.adds_fast())
    join_fast();
  else
    while (ended_ < strips_.size()) advance(false);
  std::vector<std::string> all(static_cast<size_t>(ranks_.size()), is_there_);
  Ranks::Received from;
  for (std::string& has : all) from.push_back(std::as_writable_bytes(std::span(has)));
  ranks_.exchange(Ranks::Sent(all.size(), std::as_bytes(std::span(is_there_))), from);
  for (size_t i = 0; i < is_there_.size(); ++i)
    if (std::none_of(all.begin(), all.end(), [&](const std::string& has) { return has[i] == '1'; }))
      nodes_[0].gradients[i] = Tensor();
  nodes_.resize(1);
  nodes_[0].begin = 0;
  nodes_[0].end = count_;
}

void Joining::join_fast() {
  for (; nodes_.size() > 1; nodes_.pop_back())
    for (size_t i = 0; i < parameters_.size(); ++i)
      add_gradient(nodes_[nodes_.size() - 2].gradients[i], nodes_.back().gradients[i]);
  Tensor packed = Tensor::empty({longest_}, row_.dtype);
  for (i64 begin = 0; begin < row_.count(); begin += longest_) {
    const Stretch part{begin, std::min(begin + longest_, row_.count())};
    Tensor numbers = packed.rows(0, part.count());
    pack(nodes_[0], part, numbers, 0);
    ranks_.sum(numbers);
    unpack(numbers, part);
  }
}

}  // namespace orrery
