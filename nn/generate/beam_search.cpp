// Chapter 7. Beam search: the likeliest next tokens of each hypothesis, and which hypotheses go on.
#include "nn/generate/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/ops/softmax_rows.h"
#include "core/tensor_ops.h"
#include "nn/generate/decoder_state.h"

namespace orrery::nn {
namespace {

constexpr std::string_view operation = "beam search";

// What the log-probability of a hypothesis of this length is divided by.
double length_divisor(i64 length, const BeamOptions& options) {
  return std::pow(static_cast<double>(length), options.length_penalty);
}

// Logits of a row that are looked at together. Most such parts hold none of the largest logits.
constexpr i64 looked_at_together = 64;

template <class T> struct Likely {
  T logit;
  i32 token;
};

// Writes the largest of x[0..n) to `largest`, in order, the smaller index first if two are equal. At most `most` are
// written, and none that are -infinity or NaN. Returns how many.
template <class T> i64 largest_of(const T* x, i64 n, i64 most, Likely<T>* largest) {
  i64 count = 0;
  T bound = -std::numeric_limits<T>::infinity();  // a number that is not larger does not belong to them
  for (i64 begin = 0; begin < n; begin += looked_at_together) {
    const i64 end = std::min(n, begin + looked_at_together);
    if (!(kernels::row_max(x + begin, end - begin) > bound)) continue;
    for (i64 i = begin; i < end; ++i) {
      if (!(x[i] > bound)) continue;
      i64 at = count < most ? count++ : most - 1;
      for (; at > 0 && largest[at - 1].logit < x[i]; --at) largest[at] = largest[at - 1];
      largest[at] = {x[i], static_cast<i32>(i)};
      if (count == most) bound = largest[most - 1].logit;
    }
  }
  return count;
}

// A hypothesis extended by one token.
struct Extension {
  i64 row;  // of the hypothesis
  i32 token;
  double log_probability;
};

bool comes_first(const Extension& a, const Extension& b) {
  if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
  return a.token != b.token ? a.token < b.token : a.row < b.row;
}

// The likeliest next tokens of each row. The log-probability is that of the token alone.
class NextTokens {
 public:
  // At most `most` tokens of each row of logits [R, K], of those whose logit in `permitted` is not -infinity.
  NextTokens(const Tensor& logits, const Tensor& permitted, i64 most)
      : most_(most), counts_(static_cast<size_t>(logits.size(0))) {
    const i64 R = logits.size(0), K = logits.size(1);
    extensions_.resize(static_cast<size_t>(R * most));
    std::vector<double> log_totals(static_cast<size_t>(R));
    dispatch_floating(logits.dtype(), operation, [&](auto t) {
      using T = decltype(t);
      std::vector<Likely<T>> likely(static_cast<size_t>(R * most));
      const T *x = logits.data<T>(), *choice = permitted.data<T>();
      kernels::for_rows(R, K, [&, x, choice](i64 row) {
        const T* of_row = x + row * K;
        Likely<T>* largest = likely.data() + row * most;
        const i64 count = largest_of(choice + row * K, K, most, largest);
        // log p_k = x_k - log sum_l e^{x_l}, with the largest logit subtracted before exp as in softmax
        const T shift = x != choice ? kernels::row_shift(of_row, K) : count > 0 ? largest[0].logit : T{0};
        const double total = kernels::chunked_sum<T>(K, [=](i64 k) { return math::exp(of_row[k] - shift); });
        const double log_total = static_cast<double>(shift) + std::log(total);
        for (i64 i = 0; i < count; ++i)
          extensions_[static_cast<size_t>(row * most + i)] = {row, largest[i].token,
                                                              static_cast<double>(largest[i].logit) - log_total};
        counts_[static_cast<size_t>(row)] = count;
        log_totals[static_cast<size_t>(row)] = log_total;
      });
    });
    for (const double log_total : log_totals) {
      check(!std::isnan(log_total), operation, "a logit is NaN or infinity");
      check(std::isfinite(log_total), operation, "no token is left: every logit of a row is -infinity");
    }
  }

  std::span<const Extension> of(i64 row) const {
    return {extensions_.data() + row * most_, static_cast<size_t>(counts_[static_cast<size_t>(row)])};
  }

 private:
  i64 most_;
  std::vector<i64> counts_;  // of each row
  std::vector<Extension> extensions_;
};

// The last token of a hypothesis, and the one before it. Hypotheses that begin alike share what they have in common.
struct Link {
  i64 before;  // the number of another link, or `none`
  i32 token;
};
constexpr i64 none = -1;

// A hypothesis that is not finished.
struct Live {
  i64 last;  // link
  i64 row;   // of the logits from which the last token was chosen
  double log_probability;
};

// A hypothesis that is finished.
struct Finished {
  i64 last;  // link
  double log_probability, score;
};

// The search for one source.
struct Search {
  size_t source;  // its number
  i64 limit;
  std::vector<Live> beam{{none, 0, 0.0}};  // the likeliest first
  i64 finished = 0;
  std::vector<Finished> best{};  // of these, the best first
};

class BeamSearch {
 public:
  BeamSearch(StepwiseDecoder& decoder, std::span<const i64> limits, const BeamOptions& options)
      : decoder_(decoder), options_(options), result_(limits.size()) {
    for (size_t source = 0; source < limits.size(); ++source) searches_.push_back({source, limits[source]});
  }

  std::vector<std::vector<Hypothesis>> run() {
    Tensor tokens = full({std::ssize(searches_), 1}, options_.bos, Dtype::i32);
    for (i64 length = 1; !searches_.empty(); ++length) {
      if (options_.stopped && options_.stopped()) return {};
      const NextTokens next = likeliest_after(tokens);
      i64 row = 0;
      for (Search& search : searches_) {
        const i64 rows = std::ssize(search.beam);
        extend(search, next, row, length);
        row += rows;
        if (is_done(search)) result_[search.source] = best_of(search);
      }
      std::erase_if(searches_, [this](const Search& search) { return is_done(search); });
      if (!searches_.empty()) tokens = chosen_tokens();
    }
    return std::move(result_);
  }

 private:
  // What constraints look at: the hypotheses of all sources, a row each.
  std::vector<WrittenSequence> written() const {
    std::vector<WrittenSequence> rows;
    for (const Search& search : searches_)
      for (const Live& hypothesis : search.beam) {
        rows.push_back({search.source, options_.constraints.prompt});
        const std::vector<i32> tokens = tokens_to(hypothesis.last);
        rows.back().tokens.insert(rows.back().tokens.end(), tokens.begin(), tokens.end());
      }
    return rows;
  }

  // The likeliest tokens after `tokens`, `beam` + 1 for each row. More are not needed: at most one of them is eos, and
  // the next beam has room for `beam` others.
  NextTokens likeliest_after(const Tensor& tokens) {
    const Tensor logits = decoder_.next_logits(tokens);
    const auto [R, K] = dims<2>(logits, "logits");
    check(R == tokens.size(0), operation, "the decoder returned logits ", logits.shape(), " for ", tokens.size(0),
          " sequences");
    check(options_.beam <= K, operation, "the beam must be from 1 to ", K, ", the size of the vocabulary, not ",
          options_.beam);
    const i64 most = std::min(K, options_.beam + 1);
    if (!options_.constraints.any()) return {logits, logits, most};
    const std::vector<WrittenSequence> rows = written();
    const bool penalizes = options_.constraints.repetition_penalty != 1;  // by the sign of log-probabilities
    const Tensor scores = penalizes ? penalized(kernels::map_rows(logits, operation, kernels::log_softmax_row), rows,
                                                options_.constraints)
                                    : logits;
    return {scores, permitted(scores, rows, options_.constraints, operation), most};
  }

  double score(double log_probability, i64 length) const { return log_probability / length_divisor(length, options_); }

  // Extends the hypotheses of one source, which have the rows from `first_row` on.
  void extend(Search& search, const NextTokens& next, i64 first_row, i64 length) {
    extensions_.clear();
    for (i64 row = first_row; row < first_row + std::ssize(search.beam); ++row) {
      for (Extension extension : next.of(row)) {
        extension.log_probability += search.beam[static_cast<size_t>(row - first_row)].log_probability;
        extensions_.push_back(extension);
      }
    }
    std::sort(extensions_.begin(), extensions_.end(), comes_first);
    const size_t beam = static_cast<size_t>(options_.beam);
    std::vector<Live> live;
    for (size_t rank = 0; rank < extensions_.size() && (rank < beam || live.size() < beam); ++rank) {
      const Extension& extension = extensions_[rank];
      const bool ends = extension.token == options_.eos || length == search.limit;
      const bool has_room = ends ? rank < beam : live.size() < beam;
      if (!has_room) continue;
      const i64 last = std::ssize(links_);
      links_.push_back({search.beam[static_cast<size_t>(extension.row - first_row)].last, extension.token});
      if (ends) {
        finish(search, last, extension.log_probability, length);
      } else {
        live.push_back({last, extension.row, extension.log_probability});
      }
    }
    search.beam = std::move(live);
  }

  // The decoder goes on with the hypotheses of all sources. Returns the last token of each.
  Tensor chosen_tokens() {
    std::vector<i64> chosen;
    std::vector<i32> last;
    for (const Search& search : searches_) {
      for (const Live& hypothesis : search.beam) {
        chosen.push_back(hypothesis.row);
        last.push_back(links_[static_cast<size_t>(hypothesis.last)].token);
      }
    }
    decoder_.choose(chosen);
    return Tensor::of<i32>({std::ssize(last), 1}, last);
  }

  void finish(Search& search, i64 last, double log_probability, i64 length) const {
    ++search.finished;
    const Finished found{last, log_probability, score(log_probability, length)};
    const auto place = std::upper_bound(search.best.begin(), search.best.end(), found,
                                        [](const Finished& a, const Finished& b) { return a.score > b.score; });
    search.best.insert(place, found);
    if (std::ssize(search.best) > options_.n_best) search.best.pop_back();
  }

  bool is_done(const Search& search) const {
    if (search.beam.empty() || search.finished >= options_.beam) return true;
    if (std::ssize(search.best) < options_.n_best) return false;
    return score(search.beam[0].log_probability, search.limit) <= search.best.back().score;
  }

  std::vector<Hypothesis> best_of(const Search& search) const {
    std::vector<Hypothesis> list;
    for (const Finished& found : search.best)
      list.push_back({tokens_to(found.last), found.log_probability, found.score});
    return list;
  }

  // The tokens of a hypothesis that ends with this link.
  std::vector<i32> tokens_to(i64 link) const {
    std::vector<i32> tokens;
    for (; link != none; link = links_[static_cast<size_t>(link)].before)
      tokens.push_back(links_[static_cast<size_t>(link)].token);
    std::reverse(tokens.begin(), tokens.end());
    return tokens;
  }

  StepwiseDecoder& decoder_;
  const BeamOptions& options_;
  std::vector<Search> searches_;  // of the sources that are not done
  std::vector<Link> links_;
  std::vector<std::vector<Hypothesis>> result_;
  std::vector<Extension> extensions_;
};

// A model with a state of its decoder.
template <class M> class DecoderWithState : public StepwiseDecoder {
 public:
  DecoderWithState(const M& model, DecoderState state) : model_(model), state_(std::move(state)) {}

  Tensor next_logits(const Tensor& tokens) override {
    const NoGradient nothing_recorded;
    if constexpr (std::is_same_v<M, Transformer>)
      return nn::next_logits(model_, tokens, state_).value().reshape({tokens.size(0), -1});
    else
      return model_.head(next_positions(model_, tokens, state_)).value().reshape({tokens.size(0), -1});
  }
  void choose(std::span<const i64> chosen) override { state_.choose(chosen); }

 private:
  const M& model_;
  DecoderState state_;
};

void check_options(const BeamOptions& options) {
  check(options.beam >= 1, operation, "the beam must be 1 or more, not ", options.beam);
  check(options.length_penalty >= 0 && std::isfinite(options.length_penalty), operation,
        "the length penalty must be 0 or more and finite, not ", options.length_penalty);
  check(options.n_best >= 1 && options.n_best <= options.beam, operation, "n_best must be from 1 to ", options.beam,
        ", the beam, not ", options.n_best);
}

}  // namespace

std::vector<Hypothesis> beam_search(StepwiseDecoder& decoder, std::span<const i64> limits, const BeamOptions& options) {
  BeamOptions best = options;
  best.n_best = 1;
  std::vector<Hypothesis> result;
  for (std::vector<Hypothesis>& list : n_best_search(decoder, limits, best)) result.push_back(std::move(list.at(0)));
  return result;
}

std::vector<std::vector<Hypothesis>> n_best_search(StepwiseDecoder& decoder, std::span<const i64> limits,
                                                   const BeamOptions& options) {
  check_options(options);
  options.constraints.check_options(operation, limits, options.eos);
  for (const i64 limit : limits) {
    check(limit >= 1, operation, "a limit must be 1 or more, not ", limit);
    check(std::isfinite(length_divisor(limit, options)), operation, "a length penalty of ", options.length_penalty,
          " is too large for ", limit, " tokens: ", limit, "^", options.length_penalty, " overflows");
  }
  return BeamSearch(decoder, limits, options).run();
}

std::unique_ptr<StepwiseDecoder> stepwise_decoder(const Transformer& model, const Tensor& source, i64 max_len) {
  const NoGradient nothing_recorded;
  Pass pass = Pass::inference();
  const Mask mask = model.padding(source);
  return std::make_unique<DecoderWithState<Transformer>>(
      model, decoder_state(model, model.encode(source, mask, pass), mask, max_len, source));
}

std::unique_ptr<StepwiseDecoder> stepwise_decoder(const CausalModel& model, std::span<const i32> read, i64 max_len) {
  const NoGradient nothing_recorded;
  DecoderState state = decoder_state(model, 1, max_len);
  if (!read.empty())
    next_positions(model, Tensor::of<i32>({1, std::ssize(read)}, std::vector<i32>(read.begin(), read.end())), state);
  return std::make_unique<DecoderWithState<CausalModel>>(model, std::move(state));
}

std::vector<Hypothesis> beam_search(const Transformer& model, const Tensor& source, const BeamOptions& options) {
  check_options(options);
  const auto [B, S] = dims<2>(source, "source");
  check(options.max_len >= 1 && options.max_len <= model.config.max_len, operation, "max_len must be from 1 to ",
        model.config.max_len, ", the model's positions, not ", options.max_len);
  check(options.beyond_source >= 1, operation, "beyond_source must be 1 or more, not ", options.beyond_source);
  check(options.beam <= model.config.tgt_vocab_size, operation, "the beam must be from 1 to ",
        model.config.tgt_vocab_size, ", the size of the vocabulary, not ", options.beam);
  const Mask mask = model.padding(source);
  std::vector<i64> limits;
  const i64 beyond = std::min(options.beyond_source, options.max_len);  // a larger number could overflow
  for (i64 b = 0; b < B; ++b) limits.push_back(std::min(options.max_len, mask.length(b, S) + beyond));
  if (limits.empty()) return {};
  const i64 longest = *std::max_element(limits.begin(), limits.end());
  return beam_search(*stepwise_decoder(model, source, longest), limits, options);
}

}  // namespace orrery::nn
