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

std::vector<Stretch> Joining::strips_of(const std::vector<i64>& places, const Ranks& ranks) {
  std::vector<Stretch> strips;
  const auto cut = [&](i64 end) {
    for (i64 at = strips.empty() ? 0 : strips.back().end; at < end; at = strips.back().end)
      strips.push_back({at, std::min(at + exchanged_at_once(ranks), end)});
  };
  for (size_t i = 0; i + 1 < places.size(); ++i) {
    if (places[i + 1] - places[i] < enough_to_stay(ranks)) continue;
    cut(places[i]);
    cut(places[i + 1]);
  }
  cut(places.back());
  return strips;
}

Joining::Joining(const Parameters& parameters, std::vector<GradientNode>& nodes, i64 count, Ranks& ranks)
    : parameters_(parameters),
      nodes_(nodes),
      count_(count),
      ranks_(ranks),
      row_(parameters, ranks),
      strips_(strips_of(row_.places, ranks)),
      is_complete_(parameters.size(), 0) {
  under_way_->is_there.assign(parameters.size(), '0');
  const i64 size = ranks.size(), me = ranks.rank();
  for (i64 r = 0; r < size; ++r) {
    const std::vector<Stretch>& own = nodes_of_rank_.emplace_back(nodes_of(part_of({0, count}, r, size), count));
    (r == me ? own_nodes_ : of_others_) += std::ssize(own);
  }
}

bool Joining::UnderWay::arrived() const {
  return (!telling || telling->is_over()) &&
         std::all_of(flights.begin(), flights.end(), [](const Flight& flight) { return flight.arrived(); });
}

// After a failure some are under way, and others may not send or take the rest: nobody waits for them, and their memory
// stays until the process ends, as it soon will.
Joining::~Joining() {
  if (!under_way_->arrived()) static_cast<void>(under_way_.release());
}

// Calls f(numbers, place) for the gradients of a node that a part of the row covers: those of their numbers that it
// covers, and where these stand in it.
template <class F> void Joining::for_gradients(const GradientNode& node, Stretch part, const F& f) const {
  for_tensors(row_.places, part, [&](size_t i, i64 from, i64 place, i64 count) {
    const Tensor& g = node.gradients[row_.parameters[i]];
    f(g.defined() ? g.reshape({g.count()}).rows(from, from + count) : Tensor(), Stretch{place, place + count});
  });
}

void Joining::pack(const GradientNode& node, Stretch part, const Tensor& to) const {
  for_gradients(node, part, [&](const Tensor& numbers, Stretch place) {
    Tensor there = to.rows(place.begin, place.end);  // -0 adds nothing: x + -0 is x, also where x is 0 or -0
    numbers.defined() ? copy_into(there, numbers) : fill(there, -0.0);
  });
}

void Joining::unpack(const Tensor& from, Stretch part) {
  for_tensors(row_.places, part, [&](size_t i, i64 to, i64 place, i64 count) {
    Tensor& g = nodes_[0].gradients[row_.parameters[i]];
    const Shape& shape = parameters_[row_.parameters[i]].value.shape();
    const Tensor numbers = from.rows(place, place + count);
    if (count == shape.count()) {  // all of it is here, and need not be copied
      g = numbers.reshape(shape);
      return;
    }
    // Parts of it that were not sent yet still have nothing to add.
    if (!g.defined()) g = full(shape, -0.0, row_.dtype);
    Tensor there = g.reshape({g.count()}).rows(to, to + count);
    copy_into(there, numbers);
  });
}

// These numbers where they are, if they are of one gradient of the only node; else a tensor that is not defined.
Tensor Joining::in_place(Stretch strip) const {
  Tensor found;
  if (own_nodes_ == 1)
    for_gradients(nodes_[0], strip, [&](const Tensor& numbers, Stretch place) {
      found = place.count() == strip.count() ? numbers : Tensor();
    });
  return found;
}

void Joining::start(Stretch strip, Flight& flight) {
  const i64 size = ranks_.size(), me = ranks_.rank(), mine = part_of(strip, me, size).count();
  flight.own = in_place(strip);
  flight.packs = !flight.own.defined();
  if (flight.packs) flight.own = Tensor::empty({strip.count() * own_nodes_}, row_.dtype);
  flight.whole = own_nodes_ > 1 ? Tensor::empty({strip.count()}, row_.dtype) : flight.own;
  flight.received = Tensor::empty({mine * of_others_}, row_.dtype);
  Ranks::Sent sent;
  Ranks::Received from;
  for (i64 r = 0, own_end = 0, received_end = 0; r < size; ++r) {
    const Stretch slice = part_of(strip, r, size);
    const i64 own_begin = own_end, received_begin = received_end;
    for (size_t node = 0; node < own_nodes(); ++node, own_end += slice.count()) {
      const Tensor numbers = flight.own.rows(own_end, own_end + slice.count());
      if (r == me)
        flight.slices.push_back(
            {nodes_of_rank_[static_cast<size_t>(me)][node], flight.packs ? Tensor() : numbers, &nodes_[node]});
      else if (flight.packs)
        pack(nodes_[node], slice, numbers);
    }
    for (const Stretch& node : nodes_of_rank_[static_cast<size_t>(r)]) {
      if (r == me) break;
      flight.slices.push_back({node, flight.received.rows(received_end, received_end + mine)});
      received_end += mine;
    }
    sent.push_back(bytes(flight.own.rows(own_begin, own_end)));
    from.push_back(bytes(flight.received.rows(received_begin, received_end)));
    flight.back.push_back(bytes(flight.whole.rows(slice.begin - strip.begin, slice.end - strip.begin)));
  }
  flight.under_way = ranks_.start(0, sent, from);
}

void Joining::add(Stretch strip, Flight& flight) {
  std::vector<Slice> sum;
  for (Slice& slice : flight.slices)
    append(sum, std::move(slice), count_, [&](Slice& left, Slice& right) {
      if (right.own) {  // a + b has the bits of b + a
        std::swap(left.numbers, right.numbers);
        std::swap(left.own, right.own);
      }
      if (left.numbers.defined()) return add_in_place(left.numbers, right.numbers);
      left.numbers = std::move(right.numbers);
      for_gradients(*std::exchange(left.own, nullptr), part_of(strip, ranks_.rank(), ranks_.size()),
                    [&](const Tensor& numbers, Stretch place) {
                      Tensor there = left.numbers.rows(place.begin, place.end);
                      if (numbers.defined()) add_in_place(there, numbers);
                    });
    });
  flight.sum = sum.at(0).numbers;
  flight.under_way = ranks_.start(1, Ranks::Sent(flight.back.size(), bytes(flight.sum)), flight.back);
}

void Joining::end(Stretch strip, Flight& flight) {
  for (i64 r = 0; flight.packs && r < ranks_.size(); ++r) {
    const Stretch slice = part_of(strip, r, ranks_.size());
    unpack(r == ranks_.rank() ? flight.sum : flight.whole.rows(slice.begin - strip.begin, slice.end - strip.begin),
           slice);
  }
}

void Joining::complete(size_t i) {
  if (std::exchange(is_complete_[i], 1)) return;
  for (size_t node = 0; node < own_nodes(); ++node)
    if (nodes_[node].gradients[i].defined()) under_way_->is_there[i] = '1';
  while (complete_ < row_.parameters.size() && is_complete_[row_.parameters[complete_]]) ++complete_;
}

// Numbers leave before it is asked what has arrived, since others wait for them meanwhile. Ranks whose transfers are
// over at once do all in the same order.
void Joining::advance(bool during_backward) {
  const size_t most = strips_under_way(ranks_, own_nodes_, during_backward);
  std::deque<Flight>& flights = under_way_->flights;
  while (true) {
    if (started_ < strips_.size() && flights.size() < most && strips_[started_].end <= row_.places[complete_] &&
        (flights.empty() || flights.back().under_way)) {
      start(strips_[started_++], flights.emplace_back());
    } else if (ended_ < added_ && flights.front().arrived()) {
      end(strips_[ended_++], flights.front());
      flights.pop_front();
    } else if (added_ < started_ && flight(added_).arrived()) {
      add(strips_[added_], flight(added_));
      ++added_;
    } else {
      return;
    }
  }
}

void Joining::finish() {
  for (size_t i = 0; i < is_complete_.size(); ++i) complete(i);
  auto& [flights, is_there, all, telling] = *under_way_;
  all.assign(static_cast<size_t>(ranks_.size()), is_there);
  Ranks::Received from;
  for (std::string& has : all) from.push_back(std::as_writable_bytes(std::span(has)));
  telling = ranks_.start(2, Ranks::Sent(all.size(), std::as_bytes(std::span(is_there))), from);
  if (ranks_.adds_fast())
    join_fast();
  else
    while (ended_ < strips_.size()) advance(false);
  telling.reset();
  for (size_t i = 0; i < is_there.size(); ++i)
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
  own_nodes_ = 1;
  for (const Stretch& strip : strips_) {
    Tensor numbers = in_place(strip);
    const bool packs = !numbers.defined();
    if (packs) pack(nodes_[0], strip, numbers = Tensor::empty({strip.count()}, row_.dtype));
    ranks_.sum(numbers);
    if (packs) unpack(numbers, strip);
  }
}

}  // namespace orrery
