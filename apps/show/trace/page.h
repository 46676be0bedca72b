// Chapter 9. The pass as one page for a browser, with everything in it: no network is needed.
#pragma once

#include <string>

#include "apps/show/trace/model_pass.h"

namespace orrery {

/// The pass as JSON that can stand inside a <script> element: it has no '<'.
std::string trace_json(const ModelPass& pass);

/// The page: apps/show/trace/page.html with the style, the script and the pass in their places.
std::string trace_page(const ModelPass& pass);

}  // namespace orrery
