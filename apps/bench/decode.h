// Chapter 9. `orrery bench decode`: how fast a GPT writes, beside what memory allows.
//
// For each token the model reads all its weights once, and each stream its cache of keys and values. With one stream
// that is two operations for every number read, so that memory is the limit:
//   tokens per second <= streams * bandwidth / (bytes of weights + streams * bytes of one stream's cache)
// A batch of streams shares the weights. The bandwidth is measured between the tokens, by reading memory and doing
// nothing else on the same threads: that of a shared machine may double from one minute to the next. A model that fits
// into the caches may be faster than this limit.
// Serves: core/machine/parallel.h
#pragma once

#include <string>
#include <vector>

#include "apps/bench/bench.h"
#include "nn/models/gpt_config.h"

namespace orrery {

/// Models that can be measured: those of nn/models/gpt_config.h that fit into common memory.
std::vector<std::string> decode_config_names();

/// Bytes read for one more token of each of `streams` streams that have `positions` positions: weights and cache, f32.
double bytes_of_step(const nn::GptConfig& config, i64 streams, double positions);

/// What was measured.
struct DecodeFigures {
  std::string config;
  i64 streams = 0;
  double step_seconds = 0;   ///< median, for one token of each stream
  double limit_seconds = 0;  ///< what memory takes for it
  double bandwidth = 0;      ///< bytes that memory delivered in a second meanwhile, median
  double tokens_per_second() const { return static_cast<double>(streams) / step_seconds; }
  double limit() const { return static_cast<double>(streams) / limit_seconds; }
};

/// "gpt2 streams=1 tok/s=61.2 limit_tok/s=80.1 of_limit=76% GB/s=40.3"
std::string decode_line(const DecodeFigures& figures);

}  // namespace orrery
