// Chapter 8. The rules of the house on who uses what: layers, chapters, rooms, threads, BLAS, products.
#include <doctest/doctest.h>

#include <regex>
#include <set>

#include "tests/style_source.h"

using namespace orrery::style;

namespace {

// What each layer may include besides itself.
bool may_include(const std::string& layer, const std::string& included) {
  static const std::vector<Words> below{{"core", "core"},
                                        {"autograd", "autograd", "core"},
                                        {"nn", "nn", "autograd", "core"},
                                        {"optim", "optim", "autograd", "core"},
                                        {"apps", "apps", "optim", "nn", "autograd", "core"},
                                        {"tests", "tests", "apps", "optim", "nn", "autograd", "core"}};
  for (const Words& row : below) {
    if (row[0] == layer) return std::find(row.begin() + 1, row.end(), included) != row.end();
  }
  return false;
}

constexpr std::string_view operations = "autograd/ops.h";  // the list of their headers

// What a line includes from the repository, "" if nothing.
std::string included_path(const std::string& line) {
  constexpr std::string_view start = "#include \"";
  return line.starts_with(start) ? line.substr(start.size(), line.rfind('"') - start.size()) : "";
}

// Rooms in the order in which they stand on one another, within autograd and within nn. A file includes its own room
// and those before it. The lists of headers, nn/nn.h and autograd/ops.h, may include every room but the checker's.
Words room_violations(const Sources& sources) {
  static const Words rooms{"core/machine", "core",      "autograd",     "autograd/ops",   "autograd/ops/fused",
                           "nn",           "nn/layers", "nn/positions", "nn/attention",   "nn/models",
                           "nn/generate",  "nn/files",  "optim",        "autograd/check", "nn/check"};
  const auto place = [&](std::string folder) {
    if (folder == "core/kernels" || folder == "core/products" || folder == "core/files") folder = "core";
    if (folder.starts_with("autograd/ops/fused/")) folder = "autograd/ops/fused";
    return std::find(rooms.begin(), rooms.end(), folder) - rooms.begin();
  };
  Words found;
  for (const Source& source : sources) {
    if (source.layer() == "tests" || source.layer() == "apps") continue;
    if (place(source.folder()) == std::ssize(rooms)) found.push_back(source.at(0) + source.folder() + " is no room");
    for (size_t i = 0; i < source.lines.size(); ++i) {
      const std::string path = included_path(source.lines[i]);
      if (path.empty()) continue;
      const Source* included = find_source(sources, path);
      static const std::set<std::string> below_all{"core/dtype.h", "core/error.h"};
      if (!included || below_all.contains(path)) continue;
      const std::string room = path == operations ? "autograd/ops/fused" : included->folder();
      const bool is_check = room == "autograd/check" || room == "nn/check";
      const bool is_list = source.path == "nn/nn.h" || source.path == operations;
      const bool allowed = is_list ? !is_check : place(room) <= place(source.folder());
      if (!allowed) found.push_back(source.at(i) + source.folder() + " must not include " + path);
    }
  }
  return found;
}

// Layers look down; a file includes its own and earlier chapters and the machine (8). The book, the toy (0) and
// tests may include every chapter.
Words include_violations(const Sources& sources) {
  Words found;
  for (const Source& source : sources) {
    for (size_t i = 0; i < source.lines.size(); ++i) {
      const std::string path = included_path(source.lines[i]);
      if (path.empty()) continue;
      const Source* included = find_source(sources, path);
      if (!included) {
        found.push_back(source.at(i) + "includes " + path + ", which is not a file from the root of the repository");
      } else if (!may_include(source.layer(), included->layer())) {
        found.push_back(source.at(i) + source.layer() + " must not include " + path);
      } else if (source.layer() != "tests" && !source.path.starts_with("apps/book/") && source.chapter > 0 &&
                 source.path != operations && included->chapter != 8 && included->chapter > source.chapter) {
        found.push_back(source.at(i) + "chapter " + std::to_string(source.chapter) + " includes " + path +
                        " of chapter " + std::to_string(included->chapter));
      }
    }
  }
  return found;
}

// OpenMP's threads come from core/machine/parallel.h alone; `omp simd` starts none.
Words pragma_violations(const Sources& sources) {
  Words found;
  for (const Source& source : sources) {
    for (size_t i = 0; i < source.code.size(); ++i) {
      const std::string &code = source.code[i], &line = source.lines[i];
      const size_t first = code.find_first_not_of(' '), omp = find_word(line, "omp");
      const bool directive = first != code.npos && code[first] == '#' && has_word(code, "pragma");
      if (source.path == "core/machine/parallel.h" || omp == line.npos || !(directive || has_word(code, "_Pragma")))
        continue;
      std::istringstream words(line.substr(omp + 3));
      std::string kind;
      words >> kind;
      if (kind != "simd") found.push_back(source.at(i) + "omp " + kind + " belongs to core/machine/parallel.h");
    }
  }
  return found;
}

// Others do not count what the machine sleeps.
Words clock_violations(const Sources& sources) {
  Words found;
  for (const Source& source : sources)
    for (size_t i = 0; i < source.code.size(); ++i)
      for (const char* other : {"steady_clock", "high_resolution_clock", "clock_gettime"})
        if (source.path != "core/machine/clock.h" && !source.path.starts_with("tests/") &&
            has_word(source.code[i], other))
          found.push_back(source.at(i) + "the clock is that of core/machine/clock.h");
  return found;
}

Words blas_violations(const Sources& sources) {
  Words found;
  for (const Source& source : sources) {
    for (size_t i = 0; i < source.code.size(); ++i) {
      // promises/no_blas.cpp takes the place of BLAS's products, so that calling one ends the program.
      if (source.path == "core/products/blas.cpp" || source.path == "tests/promises/no_blas.cpp" ||
          source.code[i].find("cblas") == std::string::npos)
        continue;
      found.push_back(source.at(i) + "BLAS is called in core/products/blas.cpp alone");
    }
  }
  return found;
}

// MPI_ begins the name of every function of MPI.
Words mpi_violations(const Sources& sources) {
  const std::regex function("\\bMPI_[A-Z]");
  Words found;
  for (const Source& source : sources)
    for (size_t i = 0; i < source.code.size(); ++i)
      if (source.path != "apps/training/mpi.cpp" && std::regex_search(source.code[i], function))
        found.push_back(source.at(i) + "MPI is called in apps/training/mpi.cpp alone");
  return found;
}

// Products are called through core/products/gemm.h, which picks the way. Programs ask BLAS what it is (blas_info).
Words product_violations(const Sources& sources) {
  static const std::set<std::string> ways{"small_product.h", "thin_product.h", "packed_product.h", "blas.h"};
  Words found;
  for (const Source& source : sources) {
    if (source.folder() == "core/products" || source.folder() == "apps/measure/bench" || source.layer() == "tests")
      continue;
    for (size_t i = 0; i < source.lines.size(); ++i) {
      constexpr std::string_view start = "#include \"core/products/";
      const std::string& line = source.lines[i];
      if (!line.starts_with(start)) continue;
      const std::string name = line.substr(start.size(), line.rfind('"') - start.size());
      const bool asks_blas = name == "blas.h" && source.layer() == "apps";
      if (ways.contains(name) && !asks_blas) found.push_back(source.at(i) + name + ": include core/products/gemm.h");
    }
  }
  return found;
}

}  // namespace

TEST_CASE("layers look down and chapters back") { CHECK(report(include_violations(tree())) == ""); }

TEST_CASE("rooms stand on one another without circles, and nothing includes the checker") {
  CHECK(report(room_violations(tree())) == "");
}

TEST_CASE("there is one clock") {
  CHECK(report(clock_violations(tree())) == "");
  CHECK(report_of(clock_violations, "nn/a.h", "\nstd::chrono::steady_clock::now();\n") ==
        "\nnn/a.h:2: the clock is that of core/machine/clock.h");
}

TEST_CASE("OpenMP's threads are started in core/machine/parallel.h alone") {
  CHECK(report(pragma_violations(tree())) == "");
  CHECK(report_of(pragma_violations, "nn/a.h", "\n#pragma omp simd\n  #pragma omp parallel for\n") ==
        "\nnn/a.h:3: omp parallel belongs to core/machine/parallel.h");
  CHECK(report_of(pragma_violations, "nn/a.h", "_Pragma(\"omp for\")\n// #pragma omp parallel\n") != "");
}

TEST_CASE("BLAS is called in core/products/blas.cpp alone") {
  CHECK(report(blas_violations(tree())) == "");
  CHECK(report_of(blas_violations, "nn/a.h", "#include <cblas.h>\n") != "");
  CHECK(report_of(blas_violations, "nn/a.h", "// not <cblas.h>\n") == "");
}

TEST_CASE("MPI is called in apps/training/mpi.cpp alone") {
  CHECK(report(mpi_violations(tree())) == "");
  CHECK(report_of(mpi_violations, "apps/a.cpp", "  MPI_Init(nullptr, nullptr);\n") != "");
}

TEST_CASE("products are called through core/products/gemm.h") {
  CHECK(report(product_violations(tree())) == "");
  const std::string small = "#include \"core/products/small_product.h\"\n",
                    blas = "#include \"core/products/blas.h\"\n";
  CHECK(report_of(product_violations, "nn/a.h", small) == "\nnn/a.h:1: small_product.h: include core/products/gemm.h");
  CHECK(report_of(product_violations, "nn/a.h", blas) != "");
  CHECK(report_of(product_violations, "apps/tasks/lm/a.h", small) != "");
  CHECK(report_of(product_violations, "apps/tasks/lm/a.h", blas) == "");
  CHECK(report_of(product_violations, "apps/measure/bench/a.h", small) == "");
  CHECK(report_of(product_violations, "nn/a.h", "#include \"core/products/gemm.h\"\n") == "");
}
