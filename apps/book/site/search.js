// Searches the site: every word that is asked for has to be in a section. The index is a script, since a page that was
// opened as a file may not fetch; it is read when somebody begins to type.
const field = document.getElementById("search"), results = document.getElementById("results");
const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
function item([address, page, section, text], word) {
  const from = Math.max(0, text.toLowerCase().indexOf(word) - 50), line = make("li");
  line.append(make("a", {href: field.dataset.root + address, textContent: section || page}),
              make("small", {textContent: (section && page + ": ") + text.slice(from, from + 160)}));
  return line;
}
field.addEventListener("input", function show() {
  if (!document.getElementById("index"))
    document.body.append(make("script", {id: "index", src: field.dataset.root + "index.js", onload: show}));
  const asked = field.value.toLowerCase().trim(), words = asked.split(/\s+/), found = Array.from({length: 8}, () => []);
  for (const entry of asked && typeof siteIndex !== "undefined" ? siteIndex : []) {
    const title = (entry[2] || entry[1]).toLowerCase(), text = entry.slice(1).join(" ").toLowerCase();
    const rank = title === asked ? 0 : title.includes(asked) ? 1 : text.includes(asked) ? 2 : 3;
    const isOther = /\.zh\./.test(entry[0]) !== (document.documentElement.lang === "zh");  // the other language is later
    if (words.every((word) => text.includes(word))) found[rank + (isOther ? 4 : 0)].push(entry);
  }
  results.replaceChildren(...found.flat().slice(0, 20).map((entry) => item(entry, words[0])));
  results.hidden = !asked;
});
Prism.languages.bash.string[2].pattern = /"(?:\\.|[^"\\\n])*"/;  // ends with its line, since "$(a "$b")" confuses Prism
