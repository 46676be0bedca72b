// Chapter 9. The mistakes of the zoo under numbers, and in the table of proofs: `orrery gradcheck --bug NUMBER`.
//
// With a number a student can hunt a mistake without knowing its name. The order is fixed and mixed: neighbours are of
// different kinds. apps/book/bugs/README.md teaches the hunt.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "apps/check/table.h"
#include "apps/check/zoo/bug_zoo.h"
#include "autograd/check/proof.h"

namespace orrery {

/// A mistake with a number: its place in the list, from 1.
struct NumberedBug {
  std::string name;        ///< in the zoo: apps/check/zoo/bug_zoo.h
  int chapter;             ///< of the book, which explains what the program computes
  std::string difficulty;  ///< "easy", "medium" or "hard"
  std::string file;        ///< of the wrong code
  std::string code;        ///< what is wrong, in one line of that file

  static inline const std::string copies = "apps/book/bugs/";
  /// The file is one of those, for `apps/run exercise bug.NUMBER`.
  bool to_repair() const { return file.starts_with(copies); }
};
const std::vector<NumberedBug>& numbered_bugs();

/// Both for a number from 1 to numbered_bugs().size().
const NumberedBug& numbered_bug(i64 number);
const nn::Bug& bug_of(i64 number);

/// Prints each number, the chapter that it needs, its difficulty, and whether there is a copy to repair; nothing about
/// the mistakes.
void list_bugs(std::ostream& out);
/// Prints what is wrong with one, with its file and the wrong code.
void reveal_bug(std::ostream& out, i64 number);

/// A text in the reader's language, indented, in lines that fit; a translation in one, since Chinese has no spaces at
/// which to end a line.
std::string told(const std::string& text, size_t indent);

/// `rows`, where the mistake's samples replace those of the same name and variant. Error: there is no such row.
std::vector<Row> with_bug(std::vector<Row> rows, const nn::Bug& bug);

/// True if the mistake replaces `row`.
bool is_replaced(const Row& row, const nn::Bug& bug);

/// What failed in the proof of a row with a mistake, for a reader who hunts it. Guesses at the mistake are left out,
/// and so are the details of parts that only find the wrong gradients once more.
std::string symptoms(const Proof& proof);

}  // namespace orrery
