// Chapter 9. `orrery bench decode`: how fast a GPT writes, compared with what memory allows.
//
// For each token, the model reads all its weights once, and the cache of keys and values once for each stream. With one
// stream, that is only two operations for each number read, so memory is the limit:
//   tokens per second <= streams * bandwidth / (bytes of weights + streams * bytes of one stream's cache)
// A batch of streams shares the weights. The bandwidth is measured between the tokens, by threads that only read
// memory, since that of a shared machine may double from one minute to the next. A model that fits into the caches may
// exceed this limit.
#pragma once

#include <string>
#include <vector>

#include "apps/measure/bench/bench.h"
#include "nn/models/gpt_config.h"

namespace orrery {

/// Models that can be measured: those of nn/models/gpt_config.h that fit into the memory of common machines.
std::vector<std::string> decode_config_names();

/// Bytes read for one more token in each of `streams` streams, after `positions` positions: weights and cache, in f32.
double bytes_of_step(const nn::GptConfig& config, i64 streams, double positions);

/// What was measured.
struct DecodeFigures {
  std::string config;
  i64 streams = 0;
  double step_seconds = 0;   ///< median, for one token of each stream
  double limit_seconds = 0;  ///< the time that memory needs for it
  double bandwidth = 0;      ///< bytes that memory delivers in a second, median
  double tokens_per_second() const { return static_cast<double>(streams) / step_seconds; }
  double limit() const { return static_cast<double>(streams) / limit_seconds; }
};

/// "gpt2 streams=1 tok/s=61.2 limit_tok/s=80.1 of_limit=76% GB/s=40.3"
std::string decode_line(const DecodeFigures& figures);

}  // namespace orrery
