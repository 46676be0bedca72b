// Chapter 9. Tests of an installed copy, in a folder whose name has a space: the program, the library, the package.
//
// tests/outside is the project of somebody else's that takes in the library in each way, and has to get the same bits.
#include <set>

#include "apps/program/options.h"
#include "tests/apps/run_program.h"
#include "tests/apps/show/report/written_log.h"
#include "tests/text.h"

using namespace orrery;
using namespace orrery::style;
using program::contains;
using program::Result;
using program::shell;

namespace {

namespace fs = std::filesystem;

// A variable of the build folder's CMakeCache.txt.
std::string cached(const std::string& variable) {
  for (const std::string& line : lines_of(ORRERY_BUILD_FOLDER "/CMakeCache.txt"))
    if (line.starts_with(variable + ":")) return line.substr(line.find('=') + 1);
  return "";
}

// Runs a command that has to succeed.
std::string output_of(const std::string& command) {
  const Result result = shell(command + " 2>&1");
  CAPTURE(command);
  CAPTURE(result.text);
  CHECK(result.exit_code == 0);
  return result.text;
}

// The copy, installed when a test first asks for it.
const fs::path& prefix() {
  static const TemporaryFolder folder;
  static const fs::path path = [] {
    fs::path made = folder.path() / "a copy";
    output_of(shell_quoted(cached("CMAKE_COMMAND")) + " --install '" ORRERY_BUILD_FOLDER "' --prefix " +
              shell_quoted(made));
    return made;
  }();
  return path;
}

fs::path library_folder() { return prefix() / cached("CMAKE_INSTALL_LIBDIR"); }

Result installed_program(const std::string& arguments) {
  return shell("cd / && " + shell_quoted(prefix() / "bin/orrery") + " " + arguments + " 2>&1");
}

// The installed headers, as a user includes them.
std::set<std::string> installed_headers() {
  std::set<std::string> headers;
  const fs::path folder = prefix() / "include/orrery";
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) headers.insert(entry.path().lexically_relative(folder).generic_string());
  return headers;
}

// The headers that a user includes, from the rows "| headers | what for |" of the README.
std::set<std::string> public_headers() {
  static const std::regex row("^\\| (`[a-z_/]+\\.h`.*) \\| .* \\|$"), name("`([a-z_/]+/[a-z_]+\\.h)`");
  std::set<std::string> headers;
  for (const std::string& line : lines_of("apps/install/README.md"))
    if (std::smatch match; std::regex_match(line, match, row))
      for (const std::string& header : matches_in(match[1], name)) headers.insert(header);
  return headers;
}

// The headers of ours that an installed header includes.
std::vector<std::string> included_by(const std::string& header) {
  std::vector<std::string> included;
  constexpr std::string_view start = "#include \"";
  for (const std::string& line : split_lines(contents(prefix() / "include/orrery" / header)))
    if (line.starts_with(start)) included.push_back(line.substr(start.size(), line.rfind('"') - start.size()));
  return included;
}

// A compiler, by default that of this build, with every warning of ours an error; the headers are no system headers.
std::string strict_compiler(const std::string& compiler = cached("CMAKE_CXX_COMPILER")) {
  return shell_quoted(compiler) + " -std=c++20 -fopenmp -fsyntax-only -Werror -Wall -Wextra -Wconversion " + "-I " +
         shell_quoted(prefix() / "include/orrery") + " -x c++ ";
}

// The name, for a shell, of a source that includes all of them.
std::string source_with_all_headers(const TemporaryFolder& folder) {
  std::string all;
  for (const std::string& header : installed_headers()) all += "#include \"" + header + "\"\n";
  set_contents(folder / "all.cpp", all);
  return shell_quoted(folder / "all.cpp");
}

const std::string outside_training = "'" ORRERY_BUILD_FOLDER "/tests/outside_training' ";

// What tests/outside/trains.cpp prints, a training of its own, as it was built by us.
std::string expected_training() {
  const std::string trained = output_of(outside_training);
  CHECK(trained.ends_with(" learned\n"));
  return trained;
}

// Builds the outside project and runs it: its fingerprint. Its training has to be ours.
std::string built_with_cmake(const fs::path& folder, const std::string& options) {
  const std::string cmake = shell_quoted(cached("CMAKE_COMMAND")), build = shell_quoted(folder / "build");
  output_of(cmake + " -S '" ORRERY_SOURCE_DIR "/tests/outside' -B " + build + " -G '" + cached("CMAKE_GENERATOR") +
            "' -D CMAKE_CXX_COMPILER='" + cached("CMAKE_CXX_COMPILER") + "' " + options);
  output_of(cmake + " --build " + build + " -j 2");
  CHECK(output_of(shell_quoted(folder / "build/trains")) == expected_training());
  return output_of(shell_quoted(folder / "build/outside"));
}

// Makes the package in `folder`: its path.
fs::path made_package(const TemporaryFolder& folder) {
  const std::string cpack = (fs::path(cached("CMAKE_COMMAND")).parent_path() / "cpack").string();
  output_of(shell_quoted(cpack) + " --config '" ORRERY_BUILD_FOLDER "/CPackConfig.cmake' -B " +
            shell_quoted(folder.path()));
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (entry.path().extension() == ".deb") return entry.path();
  return "";
}

std::string expected_bits() {
  const std::string bits = output_of("'" ORRERY_OUTSIDE_PROGRAM "'");
  CHECK(bits.size() == 17);
  return bits;
}

}  // namespace

// Options of the compiler decide whether a multiplication and an addition are rounded once, and whether a loop becomes
// vector code.
TEST_CASE(
    "promise 29: a project that finds the installed copy with find_package gets the same bits, in an elementwise "
    "operation "
    "of its own too, unless the options are refused") {
  const TemporaryFolder folder;
  const std::string found = "-D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_FLAGS_RELEASE=" + cached("ORRERY_LEVEL") +
                            " -D CMAKE_PREFIX_PATH=" + shell_quoted(prefix());
  CHECK(built_with_cmake(folder.path() / "a build", found) == expected_bits());
  const bool native = cached("ORRERY_NATIVE") == "ON";
  const std::string compared = output_of(shell_quoted(folder / "a build/build/outside") + " own");
  MESSAGE(compared);
  CHECK(contains(compared, " ratio="));
  if (native) CHECK(compared.ends_with(" bits=equal\n"));
  const auto commands_with = [&](const std::string& name, const std::string& options) {
    output_of(shell_quoted(cached("CMAKE_COMMAND")) + " -S '" ORRERY_SOURCE_DIR "/tests/outside' -B " +
              shell_quoted(folder / name) + " -G Ninja -D CMAKE_EXPORT_COMPILE_COMMANDS=ON " + options + " " + found);
    return contents(folder / name + "/compile_commands.json");
  };
  CHECK(contains(commands_with("taken", ""), "-march=native") == native);
  CHECK(contains(commands_with("taken", ""), "-fno-trapping-math"));
  CHECK_FALSE(contains(commands_with("refused", "-D ORRERY_PLAIN=ON"), "-march=native"));
  CHECK_FALSE(contains(commands_with("refused", "-D ORRERY_PLAIN=ON"), "-fno-trapping-math"));
  if (!tools::are_there({"pkg-config"})) return;
  const std::string flags =
      "PKG_CONFIG_PATH=" + shell_quoted(library_folder() / "pkgconfig") + " pkg-config --cflags orrery ";
  CHECK(contains(output_of(flags), "-march=native") == native);
  CHECK(contains(output_of(flags), "-fno-trapping-math"));
  CHECK_FALSE(contains(output_of(flags), "$<"));  // CMake's, not a compiler's
  CHECK_FALSE(contains(output_of(flags + "--define-variable=loop_options="), "-march=native"));
}

TEST_CASE("promise 29: a version that is not there is not found") {
  const TemporaryFolder folder;
  for (const std::string version : {"0.1", "0.2"}) {
    set_contents(folder / "CMakeLists.txt",
                 "cmake_minimum_required(VERSION 3.22)\nproject(mine LANGUAGES CXX)\nfind_package(orrery " + version +
                     ")\nmessage(\"found: ${orrery_FOUND}\")\n");
    const std::string text =
        output_of(shell_quoted(cached("CMAKE_COMMAND")) + " -S " + shell_quoted(folder.path()) + " -B " +
                  shell_quoted(folder / "build") + " -D CMAKE_PREFIX_PATH=" + shell_quoted(prefix()));
    CAPTURE(version);
    CHECK(contains(text, version == "0.1" ? "found: 1\n" : "found: 0\n"));
  }
}

TEST_CASE("promise 29: a program compiled with the flags of pkg-config gets the same bits") {
  if (!tools::are_there({"pkg-config"})) return;
  const TemporaryFolder folder;
  const std::string program = shell_quoted(folder / "outside"),
                    found = "PKG_CONFIG_PATH=" + shell_quoted(library_folder() / "pkgconfig") + " pkg-config ";
  CHECK(output_of(found + "--modversion orrery") == "0.1\n");
  output_of("eval \"" + shell_quoted(cached("CMAKE_CXX_COMPILER")) + " -std=c++20 -o " + program +
            " '" ORRERY_SOURCE_DIR "/tests/outside/trains.cpp' $(" + found + "--cflags --libs orrery)\"");
  CHECK(output_of(program) == expected_training());
}

TEST_CASE("a training of somebody else's program keeps its model, and lets nobody else write it meanwhile") {
  const TemporaryFolder folder;
  const std::string model = folder / "model";
  CHECK(output_of(outside_training + shell_quoted(model)) == expected_training());
  CHECK(folder.count() == 1);
  CHECK(contains(program::run("inspect " + shell_quoted(model)).text, "linear1.weight"));
}

TEST_CASE("long: promise 29: a project that compiles the library with add_subdirectory gets the same bits") {
  const TemporaryFolder folder;
  fs::create_directory_symlink(ORRERY_SOURCE_DIR, folder.path() / "the sources");
  CHECK(built_with_cmake(folder.path() / "a build", "-D ORRERY_SOURCES=" + shell_quoted(folder.path() / "the sources") +
                                                        " -D ORRERY_NATIVE=" + cached("ORRERY_NATIVE")) ==
        expected_bits());
}

TEST_CASE("promise 29: the installed headers are those of the list and what they include, and warn nowhere") {
  const std::set<std::string> listed = public_headers();
  CHECK(listed.size() >= 15);
  std::set<std::string> needed;
  for (std::vector<std::string> found(listed.begin(), listed.end()); !found.empty();) {
    const std::string header = found.back();
    found.pop_back();
    if (!needed.insert(header).second) continue;
    for (const std::string& included : included_by(header)) found.push_back(included);
  }
  CHECK(installed_headers() == needed);
  const TemporaryFolder folder;
  CHECK(output_of(strict_compiler() + source_with_all_headers(folder)) == "");
}

TEST_CASE("long: promise 29: the installed headers warn nowhere under clang 14") {
  if (!tools::are_there({"clang++-14"})) return;
  const TemporaryFolder folder;
  CHECK(output_of(strict_compiler("clang++-14") + source_with_all_headers(folder)) == "");
}

TEST_CASE("long: promise 29: each installed header compiles alone, and warns nowhere") {
  const TemporaryFolder folder;
  int number = 0;
  for (const std::string& header : installed_headers())
    set_contents(folder / (std::to_string(++number) + ".cpp"), "#include \"" + header + "\"\n");
  CHECK(number > 50);
  CHECK(output_of("cd " + shell_quoted(folder.path()) + " && ls | xargs -n 1 -P 2 " + strict_compiler()) == "");
}

TEST_CASE("promise 29: the installed program reads the files that were installed, and no others") {
  const TemporaryFolder folder;
  const auto same_as_ours = [](const std::string& arguments) {
    CAPTURE(arguments);
    const Result ours = program::run(arguments, "2>&1");
    CHECK(ours.exit_code == 0);
    CHECK(installed_program(arguments).text == ours.text);
  };
  for (const std::string picture : {"speed", "attention", "toy_heads", "toy_loss"}) same_as_ours("figure " + picture);
  same_as_ours("trace");
  same_as_ours("report " + shell_quoted(written(folder / "a.log", small::log_text())));
  const std::string page = shell_quoted(folder / "page.html");
  for (const std::string& writes_page :
       {"trace --html " + page, "toy --steps 1 --attention " + page, "toy --steps 1 --page " + page}) {
    CHECK(installed_program(writes_page).exit_code == 0);
    CHECK(contains(contents(folder / "page.html"), "</html>"));
    fs::remove(folder / "page.html");
  }
  const Result trained = installed_program("lm train --steps 1 --batch 1 --block 8 --layers 1 --heads 1 --d-model 8");
  CHECK_MESSAGE(trained.exit_code == 0, trained.text);

  for (const std::string file : {"apps/data/speed.json", "apps/data/tinyshakespeare.txt"}) {
    const fs::path here = prefix() / "share/orrery" / file, aside = folder.path() / "aside";
    fs::rename(here, aside);
    const Result failed = installed_program(file.ends_with("json") ? "figure speed" : "lm train --steps 1");
    fs::rename(aside, here);
    CHECK(failed.exit_code == 1);
    CHECK_MESSAGE(contains(failed.text, here.string()), failed.text);
  }
}

TEST_CASE("promise 29: the manual page and the shells' completions are installed") {
  const fs::path share = prefix() / "share";
  if (tools::are_there({"help2man"})) CHECK(contains(contents(share / "man/man1/orrery.1"), "\nTrain "));
  CHECK(contents(share / "bash-completion/completions/orrery") == contents(root / "apps/install/orrery.bash"));
  CHECK(contents(share / "fish/vendor_completions.d/orrery.fish") == contents(root / "apps/install/orrery.fish"));
  for (const std::string folder : {"site-functions", "vendor-completions"})
    CHECK(contents(share / "zsh" / folder / "_orrery") == contents(root / "apps/install/orrery.zsh"));
  CHECK(contents(share / "doc/orrery/copyright") == contents(root / "LICENSE"));
}

TEST_CASE("slow: promise 29: cpack's package for Debian names what it needs, and has what an installation has") {
  if (!tools::are_there({"dpkg-deb", "dpkg-shlibdeps", "file"})) return;
  const TemporaryFolder folder;
  const fs::path package = made_package(folder), unpacked = folder.path() / "unpacked";
  CHECK(package.filename().string().starts_with("orrery_0.1_"));
  const std::string needed = output_of("dpkg-deb --field " + shell_quoted(package) + " Depends");
  for (const std::string library : {"libc6 (", "libgomp1", "libopenblas0-openmp", "libsentencepiece0", "libutf8proc"})
    CHECK_MESSAGE(contains(needed, library), needed);
  output_of("dpkg-deb --extract " + shell_quoted(package) + " " + shell_quoted(unpacked));
  const auto files_below = [](const fs::path& top) {
    std::set<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(top))
      if (!entry.is_directory()) files.insert(entry.path().lexically_relative(top).generic_string());
    return files;
  };
  CHECK(files_below(unpacked / "usr") == files_below(prefix()));
  CHECK(output_of(shell_quoted(unpacked / "usr/bin/orrery") + " figure speed") == program::run("figure speed").text);
}

// Needs root, the network for about 200 MB of packages, and a Debian that debootstrap knows.
TEST_CASE("long: promise 29: the package installs on a clean Debian of this release, and the program runs there" *
          doctest::skip()) {
  if (!tools::are_there({"debootstrap", "unshare", "chroot", "dpkg-shlibdeps", "file"})) return;
  const TemporaryFolder folder;
  const fs::path clean = folder.path() / "clean";
  const std::string release = output_of(". /etc/os-release && echo -n \"$VERSION_CODENAME\"");
  output_of("debootstrap --variant=minbase " + release + " " + shell_quoted(clean));
  fs::copy_file(made_package(folder), clean / "orrery.deb");
  const std::string train = "orrery toy --steps 3 --hash 2>/dev/null";
  set_contents(clean / "try",
               "set -e\nexport DEBIAN_FRONTEND=noninteractive\n"
               "apt-get install -y --no-install-recommends /orrery.deb >&2\n"
               "orrery --version\norrery figure speed > /speed.svg\norrery trace > /trace.txt\n"
               "orrery lm train --steps 1 --batch 1 --block 8 --layers 1 --heads 1 --d-model 8 >&2\n" +
                   train + "\n");
  // /proc is there for the new root alone, and goes with the last of its programs.
  const Result tried = shell("unshare --mount sh -c 'mount -t proc proc \"$0/proc\" && exec chroot \"$0\" sh /try' " +
                             shell_quoted(clean) + " 2>" + shell_quoted(folder / "errors"));
  CHECK_MESSAGE(tried.exit_code == 0, contents(folder / "errors"));
  CHECK(contains(tried.text, "orrery 0.1\n"));
  CHECK(contents(clean / "speed.svg") == program::run("figure speed").text);
  CHECK(contents(clean / "trace.txt") == program::run("trace").text);
  const std::string ours = shell("PATH='" ORRERY_BUILD_FOLDER "':$PATH " + train).text;
  CHECK(program::hash_in(ours).size() == 21);
  CHECK(program::hash_in(tried.text) == program::hash_in(ours));
}
