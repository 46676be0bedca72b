// Chapter 9. Lower case, for scores that do not distinguish capital from small letters.
//
// Serves: nn/models/transformer.h
#pragma once

#include <string>
#include <string_view>

namespace orrery::translate {

/// The letters A to Z become small, and no others, as Perl's lc does on bytes.
std::string ascii_lowercase(std::string_view text);

/// All letters become small, as Python's str.lower does (Unicode 14; the language does not matter). A Greek sigma at
/// the end of a word becomes its final form. Error: text that is not UTF-8.
std::string lowercase(std::string_view text);

}  // namespace orrery::translate
