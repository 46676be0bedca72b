// Chapter 9. Sentences with a tag for each token, as CoNLL's shared tasks write them.
//
// A line has a token and what is known of it, in columns; an empty line ends a sentence:
//   EU      NNP  B-NP  B-ORG
//   rejects VBZ  B-VP  O
#pragma once

#include <string>
#include <vector>

#include "core/dtype.h"

namespace orrery {

struct TaggedSentence {
  std::vector<std::string> tokens, tags;  ///< as many of both
  i64 line = 0;                           ///< of the file, counted from 1, in which it begins
};

struct TaggedText {
  std::vector<TaggedSentence> sentences;
  i64 marks = 0;  ///< lines "-DOCSTART- ...", and CoNLL-U's "# key = value" or "# newpar" above sentences: left out
};

/// Columns are counted from 0, or with negative numbers from the last one, -1.
struct ConllColumns {
  i64 token = 0, tag = -1;
};

/// Columns are separated by tabs if the first line with a token has a tab, or else by spaces. A line of nothing but
/// white space is empty. The text is UTF-8, with or without a byte order mark. Errors, each naming file and line: text
/// that is not UTF-8; a line with more or fewer columns than the first; an empty token or tag; a column that is not
/// there. Others: no sentence, and those of `read_text`.
TaggedText read_conll(const std::string& path, const ConllColumns& columns = {});

}  // namespace orrery
