// Chapter 10. Exercise 10.1: pieces of words.
//
// WordPiece cuts a word from left to right. Its first piece is the longest of the vocabulary that the word begins with,
// the next is the longest that the rest begins with, and so on. A piece that goes on with a word is written "##able",
// and stands so in the vocabulary. If some rest begins with no piece, the whole word is "[UNK]", and nothing else.
// Grade it:  apps/run exercise 10.1
#include <set>
#include <string>
#include <vector>

std::vector<std::string> my_pieces(const std::string& word, const std::set<std::string>& vocabulary) {
  std::vector<std::string> pieces;
  pieces.push_back(vocabulary.contains(word) ? word : "[UNK]");  // YOUR CODE: and if only parts of it are there?
  return pieces;
}
