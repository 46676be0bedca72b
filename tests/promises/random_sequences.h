// Chapter 8. The functions of autograd/ops.h along sequences with shapes drawn at random.
#pragma once

#include "tests/promises/random_calls.h"

namespace orrery::promises {

inline Mask draw_lengths(Rng& rng, i64 B, i64 T) { return rng.integer(0, 2) == 0 ? Mask() : draw_padding(rng, B, T); }

inline void add_convolutions(std::vector<RandomOperation>& table) {
  table.push_back({"convolution", [](Rng& rng) -> Call {
                     const i64 B = rng.integer(1, 8), T = rng.integer(5, 60), in = rng.integer(1, 40),
                               out = rng.integer(1, 40);
                     const auto padding = static_cast<ConvolutionPadding>(rng.integer(0, 3));
                     const i64 width = 2 * rng.integer(0, 3) + 1;
                     const Mask mask = draw_lengths(rng, B, T);
                     return {{{{B, T, in}}, {{out, in, width}}, {{out}}},
                             [=](const Variables& x) { return convolution(x[0], x[1], x[2], padding, mask); },
                             gradient_tiles(B * T, out, in * width)};
                   }});
  table.push_back({"glu", [](Rng& rng) -> Call {
                     const i64 C = rng.integer(1, 200), rows = std::max<i64>(1, draw_count(rng) / C);
                     return {{{{rows, 2 * C}}}, [](const Variables& x) { return glu(x[0]); }};
                   }});
}

}  // namespace orrery::promises
