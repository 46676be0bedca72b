// Chapter 9. The book's site, made by apps/run book: its links, and what headless Chromium makes of its pages.
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "tests/apps/chromium.h"
#include "tests/text.h"

using namespace orrery;
namespace fs = std::filesystem;

namespace {

bool can_make_site() {
  return tools::are_there({"pandoc"}) && tools::is_there(fs::exists("/usr/share/nodejs/prismjs"), "node-prismjs");
}

program::Result make_site(const std::string& folder, const std::string& from = ORRERY_SOURCE_DIR) {
  return program::shell("cd '" + from +
                        "' && ORRERY_BUILD='" ORRERY_BUILD_FOLDER "' '" ORRERY_SOURCE_DIR "/apps/run' book '" + folder +
                        "' 2>&1");
}

std::vector<std::string> texts() {
  std::vector<std::string> found{"README.md", "README.zh.md"};
  for (const std::string layer : {"core", "autograd", "nn", "optim", "apps", "tests"})
    for (const auto& entry : fs::recursive_directory_iterator(style::root / layer))
      if (const std::string path = entry.path().lexically_relative(style::root).generic_string();
          path.ends_with(".md") && !style::is_readers_own(path))
        found.push_back(path);
  return found;
}

// How many exercises the chapters have.
size_t exercises() {
  return static_cast<size_t>(std::count_if(style::tree().begin(), style::tree().end(), [](const style::Source& source) {
    return source.folder().starts_with("apps/book/ch") && source.folder().ends_with("/exercises") &&
           source.path.ends_with(".cpp");
  }));
}

// The pages of a site by their path in it.
std::map<std::string, std::string> pages_of(const fs::path& site) {
  std::map<std::string, std::string> pages;
  for (const auto& entry : fs::recursive_directory_iterator(site))
    if (entry.path().extension() == ".html")
      pages[entry.path().lexically_relative(site).generic_string()] = contents(entry.path().string());
  return pages;
}

// Links and pictures that lead nowhere: to no file of the site, or to no place on its page.
std::string broken_links(const fs::path& site, const std::map<std::string, std::string>& pages) {
  static const std::regex target("(?:href|src)=\"([^\"]*)\""), id("\\sid=\"([^\"]*)\"");
  std::map<std::string, std::set<std::string>> places;
  for (const auto& [path, page] : pages)
    for (const std::string& name : style::matches_in(page, id)) places[path].insert(name);
  std::string broken;
  for (const auto& [path, page] : pages) {
    for (const std::string& link : style::matches_in(page, target)) {
      if (link.starts_with("https://") || link.starts_with("data:")) continue;
      const std::string name = link.substr(0, link.find('#')),
                        anchor = link.substr(std::min(name.size() + 1, link.size()));
      const std::string to =
          name.empty() ? path : (fs::path(path).parent_path() / name).lexically_normal().generic_string();
      if (!fs::is_regular_file(site / to) || (!anchor.empty() && !places[to].contains(anchor)))
        broken += path + ": " + link + '\n';
    }
  }
  return broken;
}

// A page that opens others in a frame of a phone's width, one after another, and says what is wrong with them.
const std::string inspector = R"html(<!doctype html><p id="found"></p><script>
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const visit = (path) => new Promise((done) => {
    const frame = document.createElement("iframe");
    Object.assign(frame, {src: path, width: 420, height: 800, onload: () => done(frame)});
    document.body.append(frame);
  });
  async function inspect(path) {
    const frame = await visit(path), page = frame.contentDocument, wrong = [];
    const wide = page.documentElement.scrollWidth;
    if (wide > 420) wrong.push("is " + wide + " pixels wide");
    for (const picture of page.images) if (!picture.naturalWidth) wrong.push("does not show " + picture.src);
    for (const formula of page.querySelectorAll("math"))
      if (formula.getBoundingClientRect().height < 5) wrong.push("does not show " + formula.textContent);
    for (const formula of page.querySelectorAll(".math")) wrong.push("has no MathML for " + formula.textContent);
    for (const code of page.querySelectorAll("code.language-cpp"))
      if (!code.querySelector(".token")) wrong.push("has no colours in " + code.textContent);
    const lines = page.querySelector("pre.line-numbers")?.textContent.split("\n").length - 1;
    if (lines && lines !== page.querySelectorAll(".line-numbers-rows > span").length) wrong.push("numbers no lines");
    page.querySelectorAll("pre, code, annotation, script").forEach((element) => element.remove());
    if (page.body.textContent.includes("$")) wrong.push("has a $");
    frame.remove();
    return wrong.map((what) => path + " " + what + "\n").join("");
  }
  async function search(words, from = "index.html") {
    const frame = await visit(from), page = frame.contentDocument, field = page.getElementById("search");
    field.value = words;
    field.dispatchEvent(new Event("input"));
    const results = page.getElementById("results");
    for (let i = 0; i < 100 && !results.firstChild; ++i) await wait(50);
    return words + ": " + (results.querySelector("a")?.href.replace(/.*\/(?=apps)/, "") ?? results.textContent) + "\n";
  }
  (async () => {
    let found = "";
    for (const path of PATHS) found += await inspect(path);
    const english = ["length penalty", "square root of d_k", "Initialization", "vanishing gradients"];
    for (const words of [...english, "注意力头", "xyzzy"]) found += await search(words);
    for (const words of ["注意力头", "xyzzy"]) found += await search(words, "index.zh.html");
    document.getElementById("found").textContent = found + "inspected";
  })();
</script>)html";

}  // namespace

TEST_CASE("browser: the book's site has every text, its links resolve, and a phone shows its formulas and pictures") {
  if (!can_make_site()) return;
  const TemporaryFolder folder;
  const fs::path site = fs::path(folder.path()) / "the site";
  const program::Result made = make_site(site.string());
  REQUIRE_MESSAGE(made.exit_code == 0, made.text);
  const std::map<std::string, std::string> pages = pages_of(site);
  CHECK(broken_links(site, pages) == "");
  CHECK(broken_links(site, {{"index.html", "<a href=\"b.html\"> <a href=\"#c\"> <a id=\"d\" href=\"#d\">"}}) ==
        "index.html: b.html\nindex.html: #c\n");
  CHECK(contents((site / "index.js").string()).find("&#") == std::string::npos);
  CHECK(pages.at("trace.html").find("href=\"apps/book/index.html\"") != std::string::npos);
  CHECK(pages.at("apps/book/ch5/exercises/7_muon.cpp.html").find("ch5/optimisers.html#exercise-5.7\">") !=
        std::string::npos);
  std::string paths =
      "\"trace.html\", \"trace.zh.html\", \"core/tensor.h.html\", \"apps/book/ch4/exercises/2_softmax.cpp.html\"";
  size_t with_commands = 0, with_commands_in_chinese = 0, pictures_in_chinese = 0;
  for (const std::string& text : texts()) {
    std::string path = std::regex_replace(text, std::regex("README"), "index");
    path.replace(path.size() - 2, 2, "html");
    paths += ", \"" + path + '"';
    CAPTURE(path);
    REQUIRE(pages.contains(path));
    const std::string markdown = contents((style::root / text).string());
    CHECK(program::times(pages.at(path), "<math display=\"block\"") == program::times(markdown, "$$") / 2);
    const bool chinese = text.ends_with(".zh.md");
    static const std::regex picture("<img\\s+src=\"([^\"]+)\"");
    for (const std::string& name : style::matches_in(pages.at(path), picture)) {
      CHECK(name.ends_with(".zh.svg") == chinese);
      pictures_in_chinese += chinese;
    }
    const std::string other = chinese ? std::regex_replace(text, std::regex("\\.zh\\.md$"), ".md")
                                      : std::regex_replace(text, std::regex("\\.md$"), ".zh.md");
    const size_t twins = fs::exists(style::root / other) ? 1 : 0;  // named once, in the header
    CHECK(program::times(pages.at(path), chinese ? ">English</a>" : ">中文</a>") == twins);
    static const std::regex link_in_link("<a\\s[^>]*>[^<]*<a\\s");
    CHECK_FALSE(std::regex_search(pages.at(path), link_in_link));
    CHECK(pages.at(path).find(">warm-up</a>, <a") == std::string::npos);  // an exercise, not the learning rate's
    (chinese ? with_commands_in_chinese : with_commands) += program::times(pages.at(path), "<span class=\"command\">");
  }
  CHECK(pictures_in_chinese > 20);
  CHECK(with_commands == exercises());
  CHECK(with_commands_in_chinese == exercises());

  std::string page = inspector;
  page.replace(page.find("PATHS"), 5, "[" + paths + "]");
  set_contents((site / "inspector.html").string(), page);
  // Beside other programs, Chromium's time can run out before all pages are read.
  const std::string options = "--allow-file-access-from-files --virtual-time-budget=100000 --window-size=1000,800";
  std::string found;
  for (int attempt = 0; attempt < 3 && !found.ends_with("inspected"); ++attempt)
    found = browser::text_of_id(
        browser::chromium(options + " --dump-dom", "file://" + (site / "inspector.html").string()).text, "found");
  CHECK(found ==
        "length penalty: apps/book/glossary.html#length-penalty\n"
        "square root of d_k: apps/book/ch6/index.html#why-the-square-root-of-d_k\n"
        "Initialization: apps/book/glossary.html#initialisation\n"
        "vanishing gradients: apps/book/glossary.html#vanishing-gradient\n"
        "注意力头: apps/book/glossary.html#head\n"
        "xyzzy: Nothing found.\n"
        "注意力头: apps/book/glossary.zh.html#head\n"
        "xyzzy: 没有找到。\n"
        "inspected");
}

TEST_CASE("browser: the book's site replaces an earlier one, and no other folder") {
  if (!can_make_site()) return;
  const TemporaryFolder folder;
  set_contents(folder / "notes.txt", "mine");
  const program::Result refused = make_site(".", folder.path().string());
  CHECK(refused.exit_code == 2);
  CHECK(refused.text == "orrery: book: name one folder, new or empty or an earlier site, not '.'\n");
  CHECK(contents(folder / "notes.txt") == "mine");
}
