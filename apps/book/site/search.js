// Searches the site for sections with every word. The index is a script, as an opened file may not fetch; typing reads it.
const field = document.getElementById("search"), results = document.getElementById("results");
const {lang} = document.documentElement, make = (tag, values) => Object.assign(document.createElement(tag), values);
const fold = (text) => text.toLowerCase().replace(/([iy])z(?=ation|e|ing)/g, "$1s");  // initialization, analyze
function item([address, page, section, text], word) {
  const from = Math.max(0, fold(text).indexOf(word) - 50), line = make("li");
  line.append(make("a", {href: field.dataset.root + address, textContent: section || page}),
              make("small", {textContent: (section && page + ": ") + text.slice(from, from + 160)}));
  return line;
}
field.addEventListener("input", function show() {
  if (!document.getElementById("index"))
    document.body.append(make("script", {id: "index", src: field.dataset.root + "index.js", onload: show}));
  const known = typeof siteIndex === "undefined" ? [] : siteIndex, found = Array.from({length: 8}, () => []);
  const asked = fold(field.value).trim(), words = asked.split(/\s+/).map((word) => word.replace(/(..)s$/, "$1"));
  for (const entry of asked ? known : []) {
    const title = fold(entry[2] || entry[1]), text = fold(entry.slice(1).join(" "));
    const rank = title === asked ? 0 : title.includes(asked) ? 1 : text.includes(asked) ? 2 : 3;
    const isOther = /\.zh\./.test(entry[0]) !== (lang === "zh");  // the other language is later
    if (words.every((word) => text.includes(word))) found[rank + (isOther ? 4 : 0)].push(entry);
  }
  results.replaceChildren(...found.flat().slice(0, 20).map((entry) => item(entry, words[0])));
  if (known.length && !results.firstChild) results.append(lang === "zh" ? "没有找到。" : "Nothing found.");
  results.hidden = !asked;
});
Prism.languages.bash.string[2].pattern = /"(?:\\.|[^"\\\n])*"/;  // ends with its line, since "$(a "$b")" confuses Prism
