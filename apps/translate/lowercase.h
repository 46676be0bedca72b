// Chapter 9. Small letters for scores that do not tell capitals from them.
//
// Serves: nn/models/transformer.h
#pragma once

#include <string>
#include <string_view>

namespace orrery::translate {

/// The letters A to Z become small, and no others, as lc of Perl does on bytes.
std::string ascii_lowercase(std::string_view text);

/// All letters become small, as str.lower of Python does (Unicode 14; the language does not matter). A Greek sigma at
/// the end of a word becomes its final form. Error: text that is not UTF-8.
std::string lowercase(std::string_view text);

}  // namespace orrery::translate
