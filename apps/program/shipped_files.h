// Chapter 9. The files that come with the program: texts to learn from, pages, and its own sources.
//
// An installed program, in PREFIX/bin, has them in PREFIX/share/orrery, wherever PREFIX was moved to. One in a build
// folder reads them where they are written, in the sources.
// A page for a browser is written as two of them, FOLDER/page.html with its style, and page.js. The first has a place
// for the other and for the data. `html_page` fills them in, so that the page is one file, which needs no network.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace orrery {

/// The path of a file or folder that comes with the program; `name` is its path from the root of the repository, such
/// as "apps/data/speed.json".
std::string shipped_path(const std::string& name);
/// The text of such a file. Error: it cannot be read.
std::string shipped_text(const std::string& name);

/// The rule behind it, a separate function so that it can be tested: the folder of these files for a program that
/// stands at `program`. The path "" means that the system does not tell.
std::filesystem::path shipped_folder(const std::filesystem::path& program);

/// JSON as it can stand inside a <script> element: without '<', which could end the element.
std::string json_in_script(std::string json);

/// Puts `text` in the first place of `place` in `page`. Error: there is none.
void fill_in(std::string& page, std::string_view place, std::string_view text);

/// The page of `folder`, such as "apps/show/trace". `data` is what its script reads: JSON in the form of
/// `json_in_script`. Errors: a file is missing, or page.html lacks a place.
std::string html_page(const std::string& folder, std::string_view data);

}  // namespace orrery
