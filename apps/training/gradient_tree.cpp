// Chapter 9. The tree of a step's gradients, in one process and among ranks.
#include "apps/training/gradient_tree.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <exception>
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

// Adds a gradient to another of the same parameter; one that is not there adds nothing.
void add_gradient(Tensor& sum, Tensor& more) {
  if (!sum.defined())
    sum = std::move(more);
  else if (more.defined())
    add_in_place(sum, more);
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

// Named, since g++ warns of a class that has fields of unnamed namespaces where it compiles several files as one.
namespace joining {

// Gradients as one row of numbers: of parameter parameters[i] from places[i] to places[i + 1]. The last parameters come
// first, since backward reaches them first; small ones wait until there are enough for a strip.
struct Row {
  Row(const Parameters& all, const Ranks& ranks);
  i64 count() const { return places.back(); }

  std::vector<size_t> parameters{};
  std::vector<i64> places{0};
  Dtype dtype = f32;
};
Row::Row(const Parameters& all, const Ranks& ranks) {
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

// Numbers of a row that the ranks join at once. They are of one gradient, or of many small ones.
struct Strip : Stretch {
  bool is_of_one = false;
};
std::vector<Strip> strips_of(const std::vector<i64>& places, const Ranks& ranks) {
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

}  // namespace joining
using joining::Row, joining::Strip;

Stretch part_of(Stretch whole, i64 i, i64 parts) {
  return {whole.begin + whole.count() * i / parts, whole.begin + whole.count() * (i + 1) / parts};
}

// Strip by strip: each rank gets a slice of it from all others, adds it up, and gives the sum to all. Meanwhile the
// slices of the next strips and the sums of those before are on their way.
class GradientTree::Joining {
 public:
  Joining(const Parameters& parameters, std::vector<Node>& nodes, i64 count, Ranks& ranks);
  ~Joining();
  Joining(const Joining&) = delete;
  Joining& operator=(const Joining&) = delete;

  /// So many nodes this rank has; those behind them are not added to yet.
  size_t own_nodes() const { return static_cast<size_t>(own_nodes_); }
  /// Whether there is something to gain during backward: of three strips, little was complete before its end.
  bool is_long() const { return strips_.size() > 3; }
  bool is_complete(size_t i) const { return is_complete_[i] != 0; }
  /// The gradients of parameter i in these nodes will not change any more.
  void complete(size_t i);
  /// Does what can be done without waiting.
  void advance(bool during_backward);
  /// All gradients are complete. Leaves one node, the sum over all ranks.
  void finish();

 private:
  struct Slice : Stretch {
    Tensor numbers;
    bool is_own = false;
  };
  struct Flight {
    Tensor received{};            // memory, for as many numbers as the longest strip needs
    bool packs = false;           // the numbers are copies
    Tensor own{}, whole{};        // this rank's numbers, in the order of the ranks; all sums
    std::vector<Slice> slices{};  // what this rank adds, of every node, in the tree's order
    Ranks::Received back{};       // where the sums of each rank belong
    std::unique_ptr<Ranks::Transfer> under_way{};
    bool arrived() const { return !under_way || under_way->is_over(); }
  };
  void pack(const Node& node, Stretch part, Tensor& to, i64 at) const;
  void unpack(const Tensor& from, Stretch part);
  Tensor in_place(Stretch part) const;
  void start(const Strip& strip, Flight& flight);
  void add(Flight& flight);
  void end(const Strip& strip, Flight& flight);
  void join_fast();
  Flight& flight(size_t k) { return (*flights_)[k - ended_]; }

  const Parameters& parameters_;
  std::vector<Node>& nodes_;
  const i64 count_;
  Ranks& ranks_;
  const Row row_;
  const i64 longest_;  // no strip has more numbers
  const std::vector<Strip> strips_;
  std::vector<std::vector<Stretch>> nodes_of_rank_;
  i64 own_nodes_ = 0, of_others_ = 0;
  std::vector<char> is_complete_;
  std::string is_there_;                        // '1' for each parameter of which this rank has a gradient, else '0'
  size_t complete_ = 0;                         // so many parameters at the start of the row are
  size_t started_ = 0, added_ = 0, ended_ = 0;  // strips
  std::unique_ptr<std::deque<Flight>> flights_ = std::make_unique<std::deque<Flight>>();  // from ended_ to started_
  std::vector<Flight> spare_;  // the last one was used last, and is in the cache
};

GradientTree::Joining::Joining(const Parameters& parameters, std::vector<Node>& nodes, i64 count, Ranks& ranks)
    : parameters_(parameters),
      nodes_(nodes),
      count_(count),
      ranks_(ranks),
      row_(parameters, ranks),
      longest_(std::min(exchanged_at_once(ranks), row_.count())),
      strips_(joining::strips_of(row_.places, ranks)),
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
GradientTree::Joining::~Joining() {
  if (std::any_of(flights_->begin(), flights_->end(), [](const Flight& flight) { return !flight.arrived(); }))
    static_cast<void>(flights_.release());
}

// A gradient that is not there adds nothing: x + -0 is x, also where x is 0 or -0.
void GradientTree::Joining::pack(const Node& node, Stretch part, Tensor& to, i64 at) const {
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

void GradientTree::Joining::unpack(const Tensor& from, Stretch part) {
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
Tensor GradientTree::Joining::in_place(Stretch part) const {
  Tensor found;
  for_tensors(row_.places, part, [&](size_t i, i64 from, i64, i64 count) {
    const Tensor& g = nodes_[0].gradients[row_.parameters[i]];
    if (g.defined()) found = g.reshape({g.count()}).rows(from, from + count);
  });
  return own_nodes_ == 1 ? found : Tensor();
}

void GradientTree::Joining::start(const Strip& strip, Flight& flight) {
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

void GradientTree::Joining::add(Flight& flight) {
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

void GradientTree::Joining::end(const Strip& strip, Flight& flight) {
  flight.under_way.reset();
  if (flight.packs) unpack(flight.whole, strip);
  flight.own = flight.whole = Tensor();
  flight.slices.clear();
}

void GradientTree::Joining::complete(size_t i) {
  if (std::exchange(is_complete_[i], 1)) return;
  for (size_t node = 0; node < own_nodes(); ++node)
    if (nodes_[node].gradients[i].defined()) is_there_[i] = '1';
  while (complete_ < row_.parameters.size() && is_complete_[row_.parameters[complete_]]) ++complete_;
}

// What was begun first goes first, so that ranks whose transfers are over at once do all in the same order.
void GradientTree::Joining::advance(bool during_backward) {
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

void GradientTree::Joining::finish() {
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

void GradientTree::Joining::join_fast() {
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

GradientTree::GradientTree(Parameters parameters, i64 count) : parameters_(std::move(parameters)), count_(count) {}
GradientTree::~GradientTree() = default;

void GradientTree::take(i64 micro_batch) {
  Node leaf{{micro_batch, micro_batch + 1}, {}};
  leaf.gradients.reserve(parameters_.size());
  for (NamedParameter& p : parameters_) leaf.gradients.push_back(std::exchange(p.value.mutable_gradient(), {}));
  append(nodes_, std::move(leaf), count_, [](Node& left, Node& right) {
    for (size_t i = 0; i < left.gradients.size(); ++i) add_gradient(left.gradients[i], right.gradients[i]);
  });
}

void GradientTree::take_last(i64 micro_batch, Ranks& ranks, const std::function<void()>& pass) {
  if (ranks.size() == 1 || ranks.adds_fast()) {
    pass();
    return take(micro_batch);
  }
  nodes_.push_back({{micro_batch, micro_batch + 1}, std::vector<Tensor>(parameters_.size())});
  joining_ = std::make_unique<Joining>(parameters_, nodes_, count_, ranks);
  const auto take = [&](size_t i) {  // makes the sums of `take`: the last node stands behind those that it completes
    if (joining_->is_complete(i)) return;
    nodes_.back().gradients[i] = std::exchange(parameters_[i].value.mutable_gradient(), {});
    for (size_t k = nodes_.size() - 1; k >= joining_->own_nodes(); --k)
      add_gradient(nodes_[k - 1].gradients[i], nodes_[k].gradients[i]);
    joining_->complete(i);
  };
  std::exception_ptr failure;  // of the ranks, and not of the operation in whose backward it came up
  CompleteGradients observer(parameters_, take, [&] {
    try {
      if (!failure) joining_->advance(true);
    } catch (...) { failure = std::current_exception(); }
  });
  if (joining_->is_long()) {
    const ObserverScope scope(observer);
    pass();
  } else {
    pass();
  }
  if (failure) std::rethrow_exception(failure);
  for (size_t i = 0; i < parameters_.size(); ++i) take(i);
  joining_->advance(true);  // each rank has begun as much as the others before it does anything else
  nodes_.resize(joining_->own_nodes());
  nodes_.back().end = micro_batch + 1;
}

void GradientTree::finish(Ranks& ranks) {
  if (ranks.size() > 1) {
    if (!joining_) joining_ = std::make_unique<Joining>(parameters_, nodes_, count_, ranks);
    joining_->finish();
  }
  check(nodes_.size() == 1 && nodes_[0].begin == 0 && nodes_[0].end == count_, "gradient tree",
        "some micro-batches were not taken");
  for (size_t i = 0; i < parameters_.size(); ++i)
    parameters_[i].value.mutable_gradient() = std::move(nodes_[0].gradients[i]);
}

}  // namespace orrery
