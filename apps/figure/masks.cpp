// Chapter 9. The picture of masks: who may attend to whom, for the masks of apps/book/ch6/masks.cpp.
//
// Serves: core/mask.h
#include "core/mask.h"

#include "apps/figure/figures.h"
#include "apps/figure/svg.h"

namespace orrery {

std::string draw_masks() {
  constexpr i64 n = 8;
  constexpr double cell = 18, gap = 2, panel = 186, left = 34, top = 74, bottom = 46;
  const Mask padding = Mask::padding(Tensor::of<i32>({1}, {5})), causal = Mask::causal(), window = Mask::window(2);
  const std::vector<std::pair<std::string, Mask>> masks{{"padding: 5 tokens of 8", padding},
                                                        {"causal", causal},
                                                        {"window of 2", window},
                                                        {"all three", padding & causal & window}};
  Svg svg(4 * panel + 12, top + n * cell + bottom,
          "Four masks over eight queries and eight keys: padding, causal, window, and their combination");
  svg.text(14, 22, "Who may attend to whom: a row for each query, a column for each key", Ink::text, 15);
  for (size_t k = 0; k < masks.size(); ++k) {
    const double x0 = left + static_cast<double>(k) * panel;
    svg.text(x0, 46, masks[k].first, Ink::text, 13);
    for (i64 i = 0; i < n; ++i) {
      const double at = static_cast<double>(i) * cell;
      svg.text(x0 + at + (cell - gap) / 2, top - 6, std::to_string(i), Ink::note, 11, Anchor::middle);
      svg.text(x0 - 7, top + at + 12, std::to_string(i), Ink::note, 11, Anchor::end);
      for (i64 j = 0; j < n; ++j) {
        const double x = x0 + static_cast<double>(j) * cell;
        svg.box(x, top + at, cell - gap, cell - gap);
        if (masks[k].second.allowed(0, 0, i, j, n, n)) svg.rectangle(x, top + at, cell - gap, cell - gap, Ink::mark);
      }
    }
  }
  svg.text(14, top + n * cell + 20, "Filled: the query may attend to the key.", Ink::note, 12);
  svg.text(14, top + n * cell + 38, "Under all three, query 7 sees no key: its weights and its output are 0.",
           Ink::note, 12);
  return svg.str();
}

}  // namespace orrery
