// Chapter 9. What the ranks have of a step's gradients becomes their sum, while backward goes on (chapter 11).
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "apps/training/gradient_tree.h"

namespace orrery {

/// Strip by strip: each rank gets a slice of it from all others, adds it up, and gives the sum to all. Meanwhile the
/// slices of the next strips and the sums of those before are on their way.
class Joining {
 public:
  Joining(const Parameters& parameters, std::vector<GradientNode>& nodes, i64 count, Ranks& ranks);
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
  // Gradients as one row of numbers: of parameter parameters[i] from places[i] to places[i + 1]. The last parameters
  // come first, since backward reaches them first; small ones wait until there are enough for a strip.
  struct Row {
    Row(const Parameters& all, const Ranks& ranks);
    i64 count() const { return places.back(); }

    std::vector<size_t> parameters{};
    std::vector<i64> places{0};
    Dtype dtype = f32;
  };

  struct Slice : Stretch {
    Tensor numbers{};                   // of the node; none: they stay where its gradients are
    const GradientNode* own = nullptr;  // this rank's
  };
  struct Flight {
    bool packs = false;           // the numbers that it sends are copies
    Tensor own{}, received{};     // what it sends, in the order of the ranks, and what it gets
    Tensor sum{}, whole{};        // of its own slice; of all others
    std::vector<Slice> slices{};  // what this rank adds, of every node, in the tree's order
    Ranks::Received back{};       // where the sums of each rank belong
    std::unique_ptr<Ranks::Transfer> under_way{};
    bool arrived() const { return !under_way || under_way->is_over(); }
  };
  // What must stay where it is until it has arrived, also after a failure. What is declared last ends first.
  struct UnderWay {
    std::deque<Flight> flights{};    // from ended_ to started_
    std::string is_there{};          // '1' for each parameter of which this rank has a gradient, else '0'
    std::vector<std::string> all{};  // the same of each rank
    std::unique_ptr<Ranks::Transfer> telling{};
    bool arrived() const;
  };
  // Numbers of a row that the ranks join at once: they are of one gradient, or of many small ones.
  static std::vector<Stretch> strips_of(const std::vector<i64>& places, const Ranks& ranks);
  template <class F> void for_gradients(const GradientNode& node, Stretch part, const F& f) const;
  void pack(const GradientNode& node, Stretch part, const Tensor& to) const;
  void unpack(const Tensor& from, Stretch part);
  Tensor in_place(Stretch strip) const;
  void start(Stretch strip, Flight& flight);
  void add(Stretch strip, Flight& flight);
  void end(Stretch strip, Flight& flight);
  void join_fast();
  Flight& flight(size_t k) { return under_way_->flights[k - ended_]; }

  const Parameters& parameters_;
  std::vector<GradientNode>& nodes_;
  const i64 count_;
  Ranks& ranks_;
  const Row row_;
  const std::vector<Stretch> strips_;
  std::vector<std::vector<Stretch>> nodes_of_rank_;
  i64 own_nodes_ = 0, of_others_ = 0;
  std::vector<char> is_complete_;
  size_t complete_ = 0;                         // so many parameters at the start of the row are
  size_t started_ = 0, added_ = 0, ended_ = 0;  // strips
  std::unique_ptr<UnderWay> under_way_ = std::make_unique<UnderWay>();
};

}  // namespace orrery
