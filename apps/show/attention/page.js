// The page: one attention of one pair, all its heads small and one of them large. All text is set as text, never as
// HTML. A weight is a whole number of 1/10,000.
const data = JSON.parse(document.getElementById("page-data").textContent);
const one = 10000;
const view = {sentence: 0, attention: 0, layer: 0, head: 0};  // numbers from 0
const pairShown = () => data.pairs[view.sentence];
const attentionShown = () => pairShown().attentions[view.attention];
const layersShown = () => attentionShown().layers;
const headName = (layer, head) => "layer " + layer + ", head " + head;

// All heads, small. The strength of a pixel's colour is the weight.

function draw(canvas, weights) {
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").split(",").map(Number);
  canvas.height = weights.length;
  canvas.width = weights[0].length;
  const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
  weights.flat().forEach((weight, i) => image.data.set([...ink, Math.round(255 * weight / one)], 4 * i));
  context.putImageData(image, 0, 0);
}

function headButton(layer, head, weights) {
  const canvas = element("canvas");
  draw(canvas, weights);
  const button = element("button", {"aria-label": headName(layer, head)}, canvas);
  button.dataset.layer = layer;
  button.dataset.head = head;
  button.addEventListener("click", () => go({layer, head}));
  return button;
}

function showHeads() {
  const layers = layersShown(), names = element("tr", {}, element("th"));
  for (let head = 0; head < layers[0].length; ++head) names.append(element("th", {scope: "col"}, "head " + head));
  const rows = layers.map((heads, layer) => {
    const row = element("tr", {}, element("th", {scope: "row"}, "layer " + layer));
    heads.forEach((weights, head) => row.append(element("td", {}, headButton(layer, head, weights))));
    return row;
  });
  byId("heads").style.setProperty("--map", layers[0].length > 6 ? "38px" : "64px");
  byId("heads").replaceChildren(names, ...rows);
  byId("overview-title").textContent = "All heads";
}

// One head, large.

// Large cells have room for a number.
const large = 30;
const cellSize = (columns) => (columns <= 16 ? large : columns <= 36 ? 18 : 11);

function cell(attention, i, j, weight, size) {
  const result = element("td"), names = attention.rows[i] + " reads " + attention.columns[j];
  const hidden = attention.causal && j > i;
  const tip = hidden ? attention.rows[i] + " cannot see " + attention.columns[j] : names + ": " +
      (weight / one).toFixed(4);
  result.dataset.tip = tip;
  result.setAttribute("aria-label", tip);
  if (hidden) {
    result.className = "hidden";
    return result;
  }
  result.style.background = "rgba(var(--ink), " + weight / one + ")";
  if (weight > 0.55 * one) result.className = "strong";
  if (size === large && weight >= 0.005 * one) result.textContent = Math.round(100 * weight / one);
  return result;
}

function showWeights() {
  const attention = attentionShown(), weights = layersShown()[view.layer][view.head];
  const size = cellSize(attention.columns.length), names = element("tr", {}, element("th"));
  for (const token of attention.columns) names.append(element("th", {scope: "col"}, element("span", {}, token)));
  const rows = weights.map((row, i) => element("tr", {}, element("th", {scope: "row"}, attention.rows[i]),
                                               ...row.map((weight, j) => cell(attention, i, j, weight, size))));
  const table = byId("weights");
  table.style.setProperty("--cell", size + "px");
  table.replaceChildren(names, ...rows);
  byId("chosen-title").textContent = attention.name + ", " + headName(view.layer, view.head);
  byId("note").textContent = attention.note;
  byId("percent").hidden = size !== large;
}

// Moving.

function showPair() {
  byId("source").textContent = pairShown().source;
  byId("target").textContent = pairShown().target;
  for (const part of [byId("target"), byId("target").previousElementSibling]) part.hidden = pairShown().target === "";
  byId("attentions").replaceChildren(...pairShown().attentions.map((attention, i) => {
    const button = element("button", {}, attention.name);
    button.addEventListener("click", () => go({attention: i}));
    return button;
  }));
  byId("sentence").value = view.sentence;
}

const pressed = (button, is) => button.setAttribute("aria-pressed", is);
const inside = (number, count) => Math.min(Math.max(0, number || 0), count - 1);

// Changes part of what is shown; numbers beyond the ends become the last or the first.
function go(change) {
  const before = {...view}, drawn = byId("heads").childElementCount > 0;
  Object.assign(view, change);
  view.sentence = inside(view.sentence, data.pairs.length);
  view.attention = inside(view.attention, pairShown().attentions.length);
  view.layer = inside(view.layer, layersShown().length);
  view.head = inside(view.head, layersShown()[view.layer].length);
  const otherPair = !drawn || before.sentence !== view.sentence;
  if (otherPair) showPair();
  if (otherPair || before.attention !== view.attention) showHeads();
  showWeights();
  [...byId("attentions").children].forEach((button, i) => pressed(button, i === view.attention));
  for (const button of byId("heads").querySelectorAll("button"))
    pressed(button, Number(button.dataset.layer) === view.layer && Number(button.dataset.head) === view.head);
  hideTip();
  const hash = "#sentence=" + (view.sentence + 1) + "&attention=" + (view.attention + 1) + "&layer=" + view.layer +
               "&head=" + view.head;
  if (location.hash !== hash) history.replaceState(null, "", hash);
}

function viewOfHash() {
  const part = (name) => {
    const match = new RegExp("[#&]" + name + "=(\\d+)").exec(location.hash);
    return match ? Number(match[1]) : null;
  };
  const attention = part("attention");
  return {
    sentence: (part("sentence") || 1) - 1, layer: part("layer"), head: part("head"),
    attention: attention === null ? pairShown().attentions.length - 1 : attention - 1,
  };
}

// A heatmap that is larger than its frame takes the keys that move through it.
function scrolls(target) {
  const area = target.closest(".scroll");
  return area !== null && (area.scrollWidth > area.clientWidth || area.scrollHeight > area.clientHeight);
}

document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("select")) return;
  const actions = {
    ArrowRight: {head: view.head + 1}, ArrowLeft: {head: view.head - 1},
    ArrowDown: {layer: view.layer + 1}, ArrowUp: {layer: view.layer - 1},
    n: {sentence: view.sentence + 1}, p: {sentence: view.sentence - 1},
  };
  pairShown().attentions.forEach((_, i) => { actions[i + 1] = {attention: i}; });
  if (event.key === "Escape") hideTip();
  const change = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!change || (event.key.startsWith("Arrow") && scrolls(event.target))) return;
  event.preventDefault();
  go(change);
});
byId("sentence").addEventListener("change", (event) => go({sentence: Number(event.target.value)}));
window.addEventListener("hashchange", () => go(viewOfHash()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { showHeads(); go({}); });

// The weight beside the mouse; its tokens stand out.

function hideTip() {
  byId("tip").hidden = true;
  for (const label of document.querySelectorAll("th.read")) label.classList.remove("read");
}

document.addEventListener("mousemove", (event) => {
  hideTip();
  const pointed = event.target.closest("[data-tip]");
  if (!pointed) return;
  const tip = byId("tip"), row = pointed.parentElement;
  tip.textContent = pointed.dataset.tip;
  tip.hidden = false;
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8)) + "px";
  const below = event.clientY + 14, fits = below + tip.offsetHeight + 8 <= window.innerHeight;
  tip.style.top = (fits ? below : event.clientY - tip.offsetHeight - 10) + "px";
  row.firstElementChild.classList.add("read");
  byId("weights").rows[0].cells[pointed.cellIndex].classList.add("read");
});

document.title = data.title;
byId("title").textContent = data.title;
byId("about").textContent = data.about;
data.pairs.forEach((pair, i) => byId("sentence").append(element("option", {value: i}, (i + 1) + ": " + pair.source)));
go(viewOfHash());
