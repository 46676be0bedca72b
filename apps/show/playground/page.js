// The page around the model of model.js: a question, the answer step by step, what every head reads, and how many
// answers of an exam are right once heads or positions are off. All text is set as text, never as HTML.
const data = JSON.parse(byId("page-data").textContent);
const model = new Transformer(data);
const word = (token) => data.words[token];

const kinds = {
  encoder: {title: "Encoder self-attention", layers: model.encoderLayers,
            note: "A row is a symbol of the question; its columns are the symbols that it reads."},
  decoder: {title: "Decoder self-attention", layers: model.decoderLayers,
            note: "A row is a token that the decoder has before it; it reads itself and what stands to its left."},
  cross: {title: "Cross-attention", layers: model.decoderLayers,
          note: "A row is a token at the moment it is written; its columns are the symbols of the question that are " +
                "read for it."},
};
const off = {heads: new Set(), positions: false};
const chosen = {kind: "cross", layer: model.decoderLayers - 1, head: 0};
let source = data.exam[0], run, step;  // run: {tokens, logits, maps}; `step` tokens are written
let asked = 0, playing = null;

// The question, and the right answer to it.

// The tokens of a text, or what is wrong with it.
function parsed(text) {
  const parts = data.as_letters ? [...text.replace(/\s/g, "")] : text.split(/\s+/).filter((part) => part);
  const tokens = parts.map((part) => data.words.indexOf(part.toLowerCase(), data.first_symbol));
  const wrong = tokens.indexOf(-1);
  if (wrong >= 0) return {problem: parts[wrong] + " is not one of " + data.alphabet};
  if (tokens.length < 1 || tokens.length > data.max_length)
    return {problem: "1 to " + data.max_length + " symbols, not " + tokens.length};
  if (data.begin_is_symbol && tokens[0] !== data.begin) return {problem: "begin with " + word(data.begin)};
  return {tokens};
}

const textOf = (tokens) => tokens.map(word).join(data.as_letters ? "" : " ");

// With the begin and end marks, if the task has them.
function targetOf(tokens) {
  const answer = [...tokens];
  if (data.name === "reverse") answer.reverse();
  if (data.name === "sort") answer.sort((a, b) => a - b);
  return [...(data.begin_is_symbol ? [] : [data.begin]), ...answer, ...(data.end < 0 ? [] : [data.end])];
}

// What the rows and columns of a map are; how many rows are there at this step, and which one is read right now.
const read = () => [data.begin, ...run.tokens.slice(0, -1)];
const rowsOf = {encoder: () => source, decoder: read, cross: () => run.tokens};
const columnsOf = {encoder: () => source, decoder: read, cross: () => source};
const rowNow = (kind) => (kind === "encoder" || step === run.tokens.length ? -1 : step);
const rowsSeen = (kind) => (kind === "encoder" ? source.length : Math.min(step + 1, run.tokens.length));
const weightsOf = ({kind, layer, head}) => run.maps[kind][layer][head];
const nameOf = ({kind, layer, head}) => kinds[kind].title + ", layer " + layer + ", head " + head;

// Small maps of all heads, each with a switch.

function headPart(kind, layer, head) {
  const place = {kind, layer, head}, name = nameOf(place);
  const map = element("button", {type: "button", className: "map", "aria-label": name}, element("canvas"));
  const on = element("input", {type: "checkbox", checked: true, "aria-label": name + " is on"});
  Object.assign(map.dataset, place);
  map.addEventListener("click", () => { Object.assign(chosen, place); show(); });
  on.addEventListener("change", () => switchHeads([place], on.checked));
  const label = element("label", {}, on, model.heads > 4 ? " " + head : " head " + head);
  const part = element("div", {className: "head"}, map, label);
  part.dataset.name = headName(kind, layer, head);
  return part;
}

function layerPart(kind, layer) {
  const heads = Array.from({length: model.heads}, (_, head) => ({kind, layer, head}));
  const all = element("button", {type: "button", title: "Switch all heads of this layer"}, "layer " + layer);
  all.addEventListener("click", () => switchHeads(heads, heads.every(({head}) =>
      off.heads.has(headName(kind, layer, head)))));
  const maps = element("div", {className: "maps"}, ...heads.map(({head}) => headPart(kind, layer, head)));
  maps.style.setProperty("--in-line", Math.min(model.heads, 8));
  return element("div", {className: "layer"}, all, maps);
}

function draw(canvas, place) {
  const rows = rowsOf[place.kind]().length, columns = columnsOf[place.kind]().length, now = rowNow(place.kind);
  const cell = Math.max(1, Math.min(16, Math.floor(256 / Math.max(rows, columns)))), gap = cell > 3 ? 1 : 0;
  const style = getComputedStyle(document.documentElement), context = canvas.getContext("2d");
  canvas.width = columns * cell;
  canvas.height = rows * cell;
  context.fillStyle = "rgb(" + style.getPropertyValue("--ink") + ")";
  weightsOf(place).slice(0, rowsSeen(place.kind)).forEach((row, i) => row.forEach((weight, j) => {
    context.globalAlpha = weight;
    context.fillRect(j * cell, i * cell, cell - gap, cell - gap);
  }));
  context.globalAlpha = 1;
  context.strokeStyle = style.getPropertyValue("--note");
  if (now >= 0 && cell > 3) context.strokeRect(0.5, now * cell - 0.5, canvas.width - 1, cell);
}

function showMaps() {
  for (const part of document.querySelectorAll(".head")) {
    const map = part.firstElementChild, isOff = off.heads.has(part.dataset.name);
    const {kind, layer, head} = map.dataset;
    draw(map.firstElementChild, {kind, layer, head});
    part.classList.toggle("off", isOff);
    part.querySelector("input").checked = !isOff;
    map.setAttribute("aria-pressed", part.dataset.name === headName(chosen.kind, chosen.layer, chosen.head));
  }
}

// One head, large.

function showChosen() {
  const {kind, layer, head} = chosen, rows = rowsOf[kind](), columns = columnsOf[kind]();
  const isOff = off.heads.has(headName(kind, layer, head));
  const size = columns.length <= 10 ? 26 : columns.length <= 18 ? 20 : columns.length <= 40 ? 12 : 6, withLabels = size > 6;
  const table = weightsOf(chosen).map((weights, i) => {
    const cells = columns.map((_, j) => {
      const cell = element("td"), weight = i < rowsSeen(kind) ? weights[j] : 0;
      Object.assign(cell.dataset, {row: i, column: j});
      if (weight === undefined) cell.className = "hidden";
      cell.style.setProperty("--weight", weight || 0);
      if (weight > 0.75) cell.className = "strong";
      if (size > 12 && weight >= 0.005) cell.textContent = Math.round(100 * weight);
      return cell;
    });
    return element("tr", {className: i === rowNow(kind) ? "now" : ""},
                   element("th", {scope: "row"}, withLabels && i < rowsSeen(kind) ? word(rows[i]) : ""), ...cells);
  });
  byId("weights").style.setProperty("--cell", size + "px");
  byId("weights").className = isOff ? "off" : "";
  byId("weights").replaceChildren(
      element("tr", {}, element("th"), ...columns.map((token) =>
          element("th", {scope: "col"}, withLabels ? word(token) : ""))), ...table);
  byId("chosen-title").textContent = nameOf(chosen);
  byId("note").textContent = kinds[kind].note;
  byId("chosen-on").checked = !isOff;
}

// The tokens, and how strongly one of them reads the others.

function chip(token, classes = "") {
  const isMark = token < data.first_symbol || token === data.end;
  return element("li", {className: classes + (isMark && !data.begin_is_symbol ? " mark" : "")}, word(token));
}

function showTokens() {
  const right = targetOf(source).slice(1);
  byId("source").replaceChildren(...source.map((token) => chip(token)));
  byId("answer").replaceChildren(chip(data.begin), ...run.tokens.map((token, i) => {
    const isWrong = i < step && token !== right[i];
    const result = chip(token, i === step ? "later coming" : i > step ? "later" : isWrong ? "wrong" : "");
    if (isWrong) result.title = i < right.length ? "should be " + word(right[i]) : "too much";
    result.addEventListener("click", () => go(i));
    return result;
  }));
  const count = run.tokens.filter((token, i) => i < step && token === right[i]).length;
  const isDone = step === run.tokens.length, isRight = count === (isDone ? right.length : step);
  const should = textOf(right.filter((token) => token !== data.end));
  byId("verdict").className = isRight ? "good" : "bad";
  byId("verdict").textContent = step === 0 ? "" : isRight ? (isDone ? "right" : "right so far") :
      count + " of " + (isDone ? right.length : step) + " right; it should be " + should;
}

// Shades what row `row` of a head reads; without a row, what the chosen head reads now.
function shade(place = chosen, row = rowNow(chosen.kind)) {
  const weights = row < 0 ? [] : weightsOf(place)[row], ofAnswer = place.kind === "decoder";
  for (const [id, isRead] of [["source", !ofAnswer], ["answer", ofAnswer]]) {
    [...byId(id).children].forEach((each, j) => {
      const weight = isRead && weights[j] || 0;
      each.style.setProperty("--weight", weight);
      each.classList.toggle("strong", weight > 0.75);
      const reader = place.kind === "encoder" ? id === "source" && j === row :
          id === "answer" && j === row + (place.kind === "cross" ? 1 : 0);
      each.classList.toggle("reads", row >= 0 && reader);
    });
  }
}

function showScores() {
  const isDone = step === run.tokens.length, logits = run.logits[isDone ? step - 1 : step];
  const all = [...logits.keys()], p = softmax(logits), best = argmax(logits), most = 20;
  const shown = all.length <= most ? all : all.sort((a, b) => logits[b] - logits[a]).slice(0, 16);
  byId("scores-title").textContent = isDone ? "Scores of the last token" : "Scores of the next token";
  byId("scores").replaceChildren(...shown.map((token) => {
    const bar = element("span", {className: "bar"});
    bar.style.setProperty("--p", p[token]);
    const result = element("li", {className: token === best ? "best" : ""}, element("span", {className: "room"}, bar),
                           word(token), element("small", {}, logits[token].toFixed(1)));
    result.dataset.tip = word(token) + ": score " + logits[token].toFixed(4) + ", probability " + p[token].toFixed(4);
    return result;
  }));
}

function show() {
  showTokens();
  shade();
  showScores();
  showMaps();
  showChosen();
  hideTip();
  byId("back").disabled = step === 0;
  byId("step").disabled = step === run.tokens.length;
}

// Computing: the answer to the question, and the exam, a few sequences at a time.

function compute(keepStep) {
  const wasDone = !run || step === run.tokens.length;
  run = model.answer(source, data, newPass(model, off));
  step = keepStep && !wasDone ? Math.min(step, run.tokens.length) : run.tokens.length;
  show();
}

let examNumber = 0;
function examine() {
  const number = ++examNumber;
  let right = 0, done = 0;
  const some = () => {
    if (number !== examNumber) return;
    for (const until = performance.now() + 15; done < data.exam.length;) {
      right += model.answers(data.exam[done], targetOf(data.exam[done]), newPass(model, off));
      ++done;
      if (performance.now() > until) break;
    }
    byId("exam").firstElementChild.style.width = 100 * right / data.exam.length + "%";
    byId("exam").className = right < 0.9 * done ? "bad" : "";
    byId("exam").setAttribute("aria-valuemax", done);
    byId("exam").setAttribute("aria-valuenow", right);
    byId("exam-result").textContent = right + " of " + done + " right";
    if (done < data.exam.length) setTimeout(some);
  };
  some();
}

function change() {
  const count = off.heads.size + (off.positions ? 1 : 0);
  byId("positions").checked = !off.positions;
  byId("restore").disabled = count === 0;
  compute(true);
  examine();
}

function switchHeads(places, on) {
  for (const {kind, layer, head} of places) off.heads[on ? "delete" : "add"](headName(kind, layer, head));
  change();
}

function ask(tokens, text) {
  const {problem} = tokens ? {} : parsed(text), valid = tokens || parsed(text).tokens;
  byId("question").setAttribute("aria-invalid", !valid);
  byId("ask").className = valid ? "" : "wrong";
  byId("problem").textContent = valid ? (valid.length < data.min_length ? "It was trained on " + data.lengths +
      " symbols." : "") : problem;
  if (!valid) return;
  source = valid;
  if (tokens) byId("question").value = textOf(tokens);
  pause();
  compute(false);
}

// Moving.

function pause() {
  clearInterval(playing);
  playing = null;
  byId("play").textContent = "Play";
}

function go(to) {
  step = Math.max(0, Math.min(to, run.tokens.length));
  if (step === run.tokens.length) pause();
  show();
}

function play() {
  if (playing) return pause();
  if (step === run.tokens.length) go(0);
  playing = setInterval(() => go(step + 1), 700);
  byId("play").textContent = "Pause";
}

byId("question").addEventListener("input", (event) => ask(null, event.target.value));
byId("ask").addEventListener("submit", (event) => { event.preventDefault(); play(); });
byId("another").addEventListener("click", () => ask(data.exam[++asked % data.exam.length]));
byId("back").addEventListener("click", () => { pause(); go(step - 1); });
byId("step").addEventListener("click", () => { pause(); go(step + 1); });
byId("play").addEventListener("click", play);
byId("positions").addEventListener("change", (event) => { off.positions = !event.target.checked; change(); });
byId("restore").addEventListener("click", () => { off.heads.clear(); off.positions = false; change(); });
byId("chosen-on").addEventListener("change", (event) => switchHeads([{...chosen}], event.target.checked));
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input:not([type=checkbox])")) return;
  if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
    pause();
    go(step + (event.key === "ArrowRight" ? 1 : -1));
  } else if (event.key === " " && !event.target.closest("input, button")) {
    event.preventDefault();
    play();
  }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);

// The weight under the mouse or the finger.

function hideTip() {
  byId("tip").hidden = true;
  for (const label of document.querySelectorAll("th.read")) label.classList.remove("read");
}

// The head, row and column at a place of the page; null if there is none.
function cellAt(event) {
  const map = event.target.closest(".map"), cell = event.target.closest("#weights td");
  if (cell) return {place: chosen, row: Number(cell.dataset.row), column: Number(cell.dataset.column)};
  if (!map) return null;
  const {kind, layer, head} = map.dataset, box = map.firstElementChild.getBoundingClientRect();
  const row = Math.floor((event.clientY - box.top) / box.height * rowsOf[kind]().length);
  const column = Math.floor((event.clientX - box.left) / box.width * columnsOf[kind]().length);
  const isInside = row >= 0 && column >= 0 && row < rowsOf[kind]().length && column < columnsOf[kind]().length;
  return isInside ? {place: {kind, layer, head}, row, column} : null;
}

function tipOf({place, row, column}) {
  const reader = word(rowsOf[place.kind]()[row]), seen = word(columnsOf[place.kind]()[column]);
  if (row >= rowsSeen(place.kind)) return "not written yet";
  const weight = weightsOf(place)[row][column];
  if (weight === undefined) return reader + " cannot see " + seen;
  return (place.kind === "cross" ? "to write " + reader + ", it reads " : reader + " reads ") + seen + ": " +
         weight.toFixed(4);
}

function point(event) {
  hideTip();
  const cell = cellAt(event), other = event.target.closest("[data-tip]"), tip = byId("tip");
  const isSeen = cell && cell.row < rowsSeen(cell.place.kind);
  if (isSeen) shade(cell.place, cell.row);
  else shade();
  if (!cell && !other) return;
  tip.textContent = cell ? (cell.place === chosen ? "" : nameOf(cell.place) + "\n") + tipOf(cell) : other.dataset.tip;
  tip.hidden = false;
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8)) + "px";
  const below = event.clientY + 18, fits = below + tip.offsetHeight + 8 <= window.innerHeight;
  tip.style.top = (fits ? below : event.clientY - tip.offsetHeight - 12) + "px";
  if (cell && cell.place === chosen) {
    byId("weights").rows[cell.row + 1].cells[0].classList.add("read");
    byId("weights").rows[0].cells[cell.column + 1].classList.add("read");
  }
}
document.addEventListener("pointermove", point);
document.addEventListener("pointerdown", point);

byId("about").textContent = data.about;
byId("attentions").replaceChildren(...Object.entries(kinds).map(([kind, {title, layers}]) =>
    element("section", {}, element("h2", {}, title),
            ...Array.from({length: layers}, (_, layer) => layerPart(kind, layer)))));
ask(source);
change();
