// Chapter 9. The picture of attention in tiles: which scores of a causal head exist at one time, and which never.
//
// Serves: autograd/ops/fused/tiled_attention.h
#include <array>

#include "apps/figure/figures.h"
#include "apps/figure/svg.h"

namespace orrery {
namespace {

class TilesPicture {
 public:
  std::string draw() {
    svg_.text(14, 24, "One tile of scores at a time: 16 queries and 16 keys, causal, tiles of 4 x 4", Ink::text, 15);
    draw_scores();
    draw_what_is_kept();
    draw_steps();
    return svg_.str();
  }

 private:
  // In cells, one for each score; `now_i` and `now_j` are the tile that is being computed.
  static constexpr int n = 16, tile = 4, tiles = n / tile, now_i = 2, now_j = 1;
  static constexpr double cell = 17, left = 76, top = 78, side = n * cell, right = left + side + 70;

  void draw_scores() {
    for (int i = 0; i < tiles; ++i) {
      const double middle = (i + 0.5) * tile * cell;
      svg_.text(left - 10, top + middle + 5, "Q_" + std::to_string(i), i == now_i ? Ink::mark : Ink::note, 13,
                Anchor::end);
      svg_.text(left + middle, top - 10, "K_" + std::to_string(i) + ", V_" + std::to_string(i),
                i == now_j ? Ink::mark : Ink::note, 13, Anchor::middle);
      for (int j = 0; j < tiles; ++j) draw_tile(i, j);
    }
    svg_.text(left, top + side + 20, "Empty tiles are hidden from all their queries: never computed.", Ink::note, 12);
    svg_.text(left, top + side + 37, "Tiles go by from left to right; no other scores exist meanwhile.", Ink::note, 12);
  }

  void draw_tile(int i, int j) {
    const bool now = i == now_i && j == now_j;
    for (int q = i * tile; q < (i + 1) * tile; ++q) {
      for (int k = j * tile; k < (j + 1) * tile; ++k) {
        const bool hidden = k > q;
        if (!hidden) draw_cell(left + k * cell, top + q * cell, now ? Ink::mark : Ink::beside, now ? 1 : 0.35);
      }
    }
    svg_.box(left + j * tile * cell, top + i * tile * cell, tile * cell, tile * cell, now ? Ink::mark : Ink::frame,
             {.width = now ? 2.5 : 1});
  }

  void draw_cell(double x, double y, Ink ink, double opacity) {
    svg_.rectangle(x + 1, y + 1, cell - 2, cell - 2, ink, opacity);
  }

  void draw_what_is_kept() {
    svg_.text(right, top + 12, "kept for the four queries of Q_2", Ink::text, 13);
    constexpr std::array<std::pair<const char*, int>, 3> kept{{{"largest", 1}, {"sum", 1}, {"O, undivided", 6}}};
    double x = right;
    for (const auto& [name, columns] : kept) {
      const double width = columns * cell;
      for (int q = 0; q < tile; ++q)
        for (int c = 0; c < columns; ++c) draw_cell(x + c * cell, top + 26 + q * cell, Ink::second, 0.75);
      svg_.box(x, top + 26, width, tile * cell);
      svg_.text(x + width / 2, top + 26 + tile * cell + 17, name, Ink::note, 12, Anchor::middle);
      x += width + 40;
    }
  }

  void draw_steps() {
    const auto line = [&](double row, double indent, const std::string& words, Ink ink = Ink::note) {
      svg_.text(right + indent, top + 152 + 21 * row, words, ink, 13);
    };
    line(0, 0, "with the tile Q_2, K_1:", Ink::text);
    line(1, 0, "1. a larger score? multiply sum and O");
    line(2, 16, "by e^(old largest - new largest)");
    line(3, 0, "2. add the weights e^(S - largest) to sum,");
    line(4, 16, "and the weights times V_1 to O");
    line(5, 0, "after the last tile: O / sum");
  }

  Svg svg_{720, top + side + 48, "Attention in tiles: 16 queries and 16 keys with a causal mask, in tiles of 4 by 4"};
};

}  // namespace

std::string draw_tiles() { return TilesPicture().draw(); }

}  // namespace orrery
