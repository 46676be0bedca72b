// The page: shows one step of the recorded pass, and moves between the steps. All text is set as text, never as HTML.
const data = JSON.parse(document.getElementById("pass-data").textContent);
const steps = data.steps, boxes = new Map(data.boxes.map((box) => [box.id, box]));
const parameters = new Map(data.parameters.map((parameter) => [parameter.name, parameter]));
const isBackward = (step) => step.number !== step.forward;
let current = 1, timer = 0;

// Elements.

// "x W^T", "d_k" with raised and lowered letters, and the usual signs of roots and sums.
function formula(text) {
  const result = document.createDocumentFragment();
  for (const piece of text.replaceAll("sqrt(", "\u221a(").replaceAll("sum_", "\u03a3_").split(/([\^_][A-Za-z0-9]+)/)) {
    if (piece.startsWith("^")) result.append(element("sup", {}, piece.slice(1)));
    else if (piece.startsWith("_")) result.append(element("sub", {}, piece.slice(1)));
    else result.append(piece);
  }
  return result;
}

const digits = (x) => x.toFixed(4);
const shapeText = (shape) => "[" + shape.join(", ") + "]";
const namesAndShapes = (values) => values.map((value) => value.name + " " + shapeText(value.shape)).join(" ");
const stepShapes = (step) => namesAndShapes(step.inputs) + " -> " + namesAndShapes(step.outputs);
// Each number of a value as text: a word where it counts words, a dash where a mask hides it.
function textsOf(value) {
  const masked = new Set(value.masked);
  return value.words || value.values.map((x, i) => (masked.has(i) ? "-" : digits(x)));
}
function firstValues(value) {
  const texts = textsOf(value);
  return texts.slice(0, 4).map((x) => x.padStart(8)).join("") + (texts.length > 4 ? " .." : "");
}

// Values. Inputs of the forward pass stand with the step or the parameter that they come from.

function withNumbers(value) {
  if (value.values) return value;
  if (value.parameter) return parameters.get(value.parameter);
  return steps[value.steps[0] - 1].outputs[value.output];
}

// Of the probabilities of all words at each position: the places of those of the labels.
const labelPlaces = data.labels.map((word, i) => i * data.words.length + data.words.indexOf(word));

// All sizes differ, so a size tells what an axis counts.
function axisLabels(size) {
  if (size === data.sizes.h) return Array.from({length: size}, (_, i) => "head " + i);
  if (size === data.sizes.S) return data.source;
  if (size === data.sizes.T) return data.target;
  if (size === data.sizes.K) return data.words;
  return null;
}

function colour(x, largest) {
  const strength = largest > 0 ? Math.abs(x) / largest : 0;
  return "rgba(var(" + (x < 0 ? "--minus" : "--plus") + "), " + (0.06 + 0.64 * strength).toFixed(3) + ")";
}

// Too many numbers to write them out: a tip says the number below the mouse.
const isLarge = (columns) => columns > 16;

// One matrix of a tensor: `index` are the axes before the last two, `marked` the places of cells with a frame.
function grid(value, offset, rows, columns, index, marked) {
  const held = withNumbers(value), texts = textsOf(held), masked = new Set(held.masked);
  const largest = Math.max(...held.values.map(Math.abs));
  const small = isLarge(columns), rowLabels = axisLabels(rows), columnLabels = small ? null : axisLabels(columns);
  const table = element("table", {className: small ? "grid small" : "grid"});
  if (columnLabels) {
    const head = element("tr", {}, element("th"));
    for (const label of columnLabels) head.append(element("th", {}, label));
    table.append(head);
  }
  for (let i = 0; i < rows; ++i) {
    const row = element("tr");
    if (rowLabels || columnLabels) row.append(element("th", {}, rowLabels ? rowLabels[i] : ""));
    for (let j = 0; j < columns; ++j) {
      const at = offset + i * columns + j, hidden = masked.has(at);
      const cell = element("td", {}, small || hidden ? "" : texts[at]);
      if (hidden) cell.classList.add("masked");
      else if (held.words) cell.classList.add("word");
      else cell.style.background = colour(held.values[at], largest);
      if (marked.includes(at)) cell.classList.add("label");
      const place = value.shape.length > 1 ? [...index, i, j] : [j];
      const number = texts[at] + (marked.includes(at) ? ", of the label" : "");
      const says = hidden ? " is hidden by the mask" : " = " + number;
      cell.dataset.tip = value.name + "[" + place.join(", ") + "]" + says;
      row.append(cell);
    }
    table.append(row);
  }
  return table;
}

// A tensor as one matrix, or as a row of matrices. It can be focused, and then says its numbers.
function picture(value, marked = []) {
  const texts = textsOf(withNumbers(value)), shape = value.shape, rank = shape.length;
  const columns = rank > 0 ? shape[rank - 1] : 1, rows = rank > 1 ? shape[rank - 2] : 1;
  const blocks = element("div", {className: "blocks", tabIndex: 0});
  blocks.setAttribute("aria-label", value.name + " " + shapeText(shape) + ": " + texts.join(" "));
  const count = texts.length / (rows * columns), labels = rank === 4 ? axisLabels(shape[1]) : null;
  const lines = [];
  for (let block = 0; block < count; ++block) {
    const part = element("div", {className: "block"});
    if (labels) part.append(element("p", {}, labels[block]));
    const index = rank === 4 ? [0, block] : rank === 3 ? [block] : [];
    part.append(grid(value, block * rows * columns, rows, columns, index, marked));
    blocks.append(part);
    for (let i = 0; i < rows && columns <= 10; ++i) {
      const begin = (block * rows + i) * columns;
      lines.push(texts.slice(begin, begin + columns).map((x) => x.padStart(8)).join(""));
    }
  }
  if (lines.length === 0)
    for (let i = 0; i < texts.length; i += 10)
      lines.push(texts.slice(i, i + 10).map((x) => x.padStart(8)).join(""));
  const most = 16;
  blocks.dataset.focusTip = lines.slice(0, most).join("\n") + (lines.length > most ? "\n      .." : "");
  return blocks;
}

function stepLink(number) {
  const link = element("button", {className: "link"}, "step " + number);
  link.addEventListener("click", () => go(number));
  return link;
}

function separated(nodes, word) {
  return nodes.flatMap((node, i) => (i === 0 ? [node] : [word, node]));
}

function origin(step, value, goesIn) {
  const result = element("span", {className: "origin"});
  if (value.parameter) {
    result.append(goesIn ? "parameter " : "to the gradient of ", element("code", {}, value.parameter));
  } else if (value.steps && isBackward(step) && goesIn) {
    result.append(value.steps.length > 1 ? "the sum of " : "from ");
    result.append(...separated(value.steps.map(stepLink), " + "));
  } else if (value.steps && isBackward(step)) result.append("to what ", stepLink(value.steps[0]), " computed");
  else if (value.steps) result.append("from ", stepLink(value.steps[0]));
  else if (goesIn && isBackward(step)) result.append("dL/dL = 1, where the backward pass begins");
  else if (goesIn) result.append(value.words ? "what the model is to say at each position" : "a constant");
  return result;
}

function valueElement(step, value, goesIn) {
  const name = element("span", {className: "name"}, value.name);
  const shape = element("span", {className: "shape"}, shapeText(value.shape));
  const title = element("p", {}, name, " ", shape, " ", origin(step, value, goesIn));
  return element("div", {className: "value"}, title, picture(value));
}

// What a step computes on its way: of the loss, the probabilities; a frame shows those of the labels.
function insideElement(value) {
  const note = element("span", {className: "origin"}, "each row adds up to 1; framed: the labels");
  const title = element("p", {}, element("span", {className: "name"}, value.name), " ",
                        element("span", {className: "shape"}, shapeText(value.shape)), " ", note);
  return element("div", {className: "value"}, title, picture(value, labelPlaces));
}

function sourceElements(what, source) {
  return [element("p", {}, ...what, element("code", {}, source.path + ":" + source.line)),
          element("pre", {tabIndex: 0}, source.code.join("\n"))];
}

// The figure.

// A step computes with values of other boxes: these flow. Backward, gradients flow against the arrows.
function flows(step, edge) {
  const {from, to} = edge.dataset;
  if (!isBackward(step)) {
    if (from === "" || to === "") return from === "" ? to === step.box && step.operation === "embedding_sum" : false;
    return to === step.box && step.inputs.some((value) => value.steps && steps[value.steps[0] - 1].box === from);
  }
  const arrives = from === step.box && step.inputs.some((value) => (value.steps || []).some(
      (number) => steps[number - 1].box === to));
  const leaves = to === step.box && step.outputs.some((value) => value.steps && steps[value.steps[0] - 1].box === from);
  return from !== to && (arrives || leaves);
}

function latestIn(box) {
  for (let i = current; i > 0; --i)
    if (steps[i - 1].box === box) return steps[i - 1];
  return null;
}

function boxTip(id) {
  const step = latestIn(id), title = boxes.get(id).title;
  if (!step) return title + "\nnot reached yet";
  const lines = [...step.outputs, ...step.inside].map(
      (value) => value.name + " " + shapeText(value.shape) + firstValues(value));
  return title + "\nstep " + step.number + ": " + step.operation + (isBackward(step) ? ", backward" : "") + "\n" +
         lines.join("\n");
}

function showFigure(step) {
  for (const box of document.querySelectorAll(".box")) {
    const latest = latestIn(box.dataset.box);
    box.classList.toggle("active", box.dataset.box === step.box);
    box.classList.toggle("computed", latest !== null && !isBackward(latest));
    box.classList.toggle("returned", latest !== null && isBackward(latest));
  }
  for (const edge of document.querySelectorAll(".edge")) edge.classList.toggle("flows", flows(step, edge));
  const lossStep = steps.find((other) => other.box === "loss");
  byId("loss").textContent = current >= lossStep.number ? "loss " + digits(data.loss) : "output probabilities";
}

// Moving.

function show(number) {
  current = Math.min(Math.max(1, number), steps.length);
  const step = steps[current - 1], back = isBackward(step);
  document.body.classList.toggle("going-back", back);
  document.body.dataset.step = current;
  showFigure(step);
  byId("pass").textContent = back ? "Backward" : "Forward";
  byId("box").textContent = boxes.get(step.box).title;
  byId("operation").textContent = step.operation;
  byId("equation").replaceChildren(formula(step.equation));
  byId("out-title").textContent = back ? "The gradients it passes on" : "What comes out";
  byId("in-title").textContent = back ? "The gradient that arrives" : "What goes in";
  byId("outputs").replaceChildren(...step.outputs.map((value) => valueElement(step, value, false)));
  byId("inside").replaceChildren(...step.inside.map(insideElement));
  byId("inside-section").hidden = step.inside.length === 0;
  byId("inputs").replaceChildren(...step.inputs.map((value) => valueElement(step, value, true)));
  const what = back ? ["The derivative of ", stepLink(step.forward), ": "] : ["The operation: "];
  byId("code").replaceChildren(...sourceElements(what, step.source),
                               ...sourceElements(["The box in the model: "], boxes.get(step.box).source));
  byId("slider").value = current;
  byId("position").textContent = "step " + current + " of " + steps.length;
  byId("previous").disabled = current === 1;
  byId("next").disabled = current === steps.length;
  for (const row of document.querySelectorAll("tr.current")) row.classList.remove("current");
  document.querySelector("tr[data-step='" + current + "']").classList.add("current");
  hideTip();
  if (location.hash !== "#step=" + current) history.replaceState(null, "", "#step=" + current);
}

function play(on) {
  clearInterval(timer);
  timer = 0;
  if (on && current === steps.length) show(1);
  if (on) timer = setInterval(() => (current < steps.length ? show(current + 1) : play(false)), 1100);
  byId("play").textContent = on ? "Pause" : "Play";
}

function go(number) {
  play(false);
  show(number);
}

// The first step of the next or the previous stay in a box.
function otherBox(direction) {
  const sameStay = (a, b) => a.box === b.box && isBackward(a) === isBackward(b);
  const first = (i) => i === 0 || !sameStay(steps[i - 1], steps[i]);
  let i = current - 1 + direction;
  while (i > 0 && i < steps.length - 1 && !first(i)) i += direction;
  go(i + 1);
}

function stepOfHash() {
  const match = /^#step=(\d+)$/.exec(location.hash);
  return match ? Number(match[1]) : 1;
}

// Code and matrices that are larger than their frame take the keys that move through them.
function scrolls(target) {
  const area = target.closest("pre, .blocks");
  return area !== null && (area.scrollWidth > area.clientWidth || area.scrollHeight > area.clientHeight);
}

document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key !== "Escape" && scrolls(event.target)) return;
  const actions = {
    ArrowRight: () => go(current + 1), ArrowLeft: () => go(current - 1),
    ArrowDown: () => otherBox(1), ArrowUp: () => otherBox(-1),
    Home: () => go(1), End: () => go(steps.length), Escape: hideTip,
  };
  // A button or a box that has the focus is pressed by space itself.
  if (!event.target.closest("button, summary, .box")) actions[" "] = () => play(timer === 0);
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
});
byId("previous").addEventListener("click", () => go(current - 1));
byId("next").addEventListener("click", () => go(current + 1));
byId("play").addEventListener("click", () => play(timer === 0));
byId("slider").addEventListener("input", (event) => go(Number(event.target.value)));
window.addEventListener("hashchange", () => go(stepOfHash()));

// Tips: for the mouse beside it, for the keyboard below what has the focus.

function showTip(text, x, y, mono) {
  const tip = byId("tip");
  tip.textContent = text;
  tip.classList.toggle("mono", mono);
  tip.hidden = false;
  tip.style.left = Math.max(4, Math.min(x, window.innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.max(4, y + tip.offsetHeight + 8 > window.innerHeight ? y - tip.offsetHeight - 24 : y) + "px";
}

function hideTip() {
  byId("tip").hidden = true;
}

document.addEventListener("mousemove", (event) => {
  const box = event.target.closest(".box"), cell = event.target.closest("[data-tip]");
  if (cell) showTip(cell.dataset.tip, event.clientX + 14, event.clientY + 14, true);
  else if (box) showTip(boxTip(box.dataset.box), event.clientX + 14, event.clientY + 14, true);
  else hideTip();
});
document.addEventListener("focusin", (event) => {
  if (!event.target.matches(":focus-visible")) return;
  const place = event.target.getBoundingClientRect(), box = event.target.closest(".box");
  if (box) showTip(boxTip(box.dataset.box), place.left, place.bottom + 6, true);
  else if (event.target.dataset.focusTip) showTip(event.target.dataset.focusTip, place.left, place.bottom + 6, true);
});
document.addEventListener("focusout", hideTip);

// What stays the same for all steps.

function sourceCell(tag, source) {
  return element(tag, {className: "source"}, source.path + ":" + source.line);
}

function fillRows() {
  const rows = byId("rows");
  let box = "", back = false;
  for (const step of steps) {
    if (step.box !== box || isBackward(step) !== back) {
      box = step.box, back = isBackward(step);
      const title = (back ? "Backward: " : "") + boxes.get(box).title;
      rows.append(element("tr", {className: "box-row"}, element("th", {colSpan: 4}, title),
                          sourceCell("th", boxes.get(box).source)));
    }
    const operation = step.operation + (back ? " (" + step.forward + ")" : "");
    const inside = step.inside.map((value) => element("span", {className: "inside"}, "inside: " + value.name + " " +
                                                      shapeText(value.shape) + firstValues(value)));
    const number = element("button", {className: "link number", "aria-label": "step " + step.number},
                           String(step.number));
    const row = element("tr", {className: back ? "backward" : "forward"},
                        element("td", {}, number),
                        element("td", {className: "operation"}, operation),
                        element("td", {}, element("span", {className: "equation"}, step.equation),
                                element("span", {className: "shapes"}, stepShapes(step)), ...inside),
                        element("td", {className: "values"}, firstValues(step.outputs[0])),
                        sourceCell("td", step.source));
    row.dataset.step = step.number;
    row.addEventListener("click", () => { go(step.number); window.scrollTo({top: 0}); });
    rows.append(row);
  }
}

function fillParameters() {
  for (const p of data.parameters) {
    const value = {name: p.name, shape: p.shape, values: p.values};
    const gradient = {name: "d(" + p.name + ")", shape: p.shape, values: p.gradient};
    for (const each of [value, gradient])
      byId("parameters").append(element("div", {className: "value"},
                                        element("p", {}, element("code", {}, each.name), " ",
                                                element("span", {className: "shape"}, shapeText(each.shape))),
                                        picture(each)));
  }
}

function fillFigure() {
  byId("source").textContent = data.source.join(" ");
  byId("target").textContent = data.target.join(" ");
  byId("labels").textContent = data.labels.join(" ");
  for (const box of document.querySelectorAll(".box")) {
    box.setAttribute("tabindex", "0");
    box.setAttribute("role", "button");
    box.setAttribute("aria-label", boxes.get(box.dataset.box).title);
    const first = () => {
      const back = isBackward(steps[current - 1]);
      go(steps.find((step) => step.box === box.dataset.box && isBackward(step) === back).number);
    };
    box.addEventListener("click", first);
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      first();
    });
  }
}

byId("intro").textContent = data.intro;
byId("slider").max = steps.length;
fillFigure();
fillRows();
fillParameters();
show(stepOfHash());
