// Chapter 9. A page for a browser in one file, with its style, its script and its data: no network is needed.
//
// A page is written as three files of the repository, FOLDER/page.html, page.css and page.js. The first has a place for
// each of the others and for the data; `html_page` fills them in.
#pragma once

#include <string>
#include <string_view>

namespace orrery {

/// JSON as it can stand inside a <script> element: without '<', which could end the element.
std::string json_in_script(std::string json);

/// Puts `text` in the first place of `place` in `page`. Error: there is none.
void fill_in(std::string& page, std::string_view place, std::string_view text);

/// The page of `folder`, such as "apps/show/trace". `data` is what its script reads: JSON in the form of
/// `json_in_script`. Errors: a file is missing, or page.html lacks a place.
std::string html_page(const std::string& folder, std::string_view data);

}  // namespace orrery
