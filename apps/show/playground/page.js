// The page around the model of model.js: a question, the answer step by step, what every head reads, and how many
// answers of an exam are right once heads or positions are off. All text is set as text, never as HTML.

// What the page says, in English and in Chinese; `say` puts its further arguments in place of %1, %2, ...
const texts = new Map([
  ["A Transformer to touch", "可以动手玩的 Transformer"],
  ["It has learned to %1 sequences of %2 symbols, %3. Its %4 parameters are in this page, which computes with them.",
   "它学会了把 %2 个符号（%3）的序列%1。它的 %4 个参数都在这个网页里，由网页自己计算。"],
  ["reverse", "倒过来写"], ["sort", "从小到大排好"], ["copy", "照原样抄写"], [" to ", " 到 "],
  ["Question and answer", "提问与回答"], ["Ask", "提问"], ["Another", "换一个"],
  ["A sequence that it never saw in its training", "训练时从没见过的一个序列"],
  ["%1 is not one of %2", "%1 不在 %2 之中"], ["1 to %1 symbols, not %2", "应当有 1 到 %1 个符号，现在有 %2 个"],
  ["begin with %1", "开头应当是 %1"], ["It was trained on %1 symbols.", "它训练时用的是 %1 个符号。"],
  ["reads", "读入"], ["What the encoder reads", "编码器读入的内容"],
  ["writes", "写出"], ["What the decoder writes", "解码器写出的内容"],
  ["should be %1", "应当是 %1"], ["too much", "多余的"],
  ["Steps", "步骤"], ["◀ Back", "◀ 后退"], ["One step back (left arrow)", "后退一步（左方向键）"],
  ["Play", "播放"], ["Pause", "暂停"], ["Play or pause (space)", "播放或暂停（空格键）"],
  ["Step ▶", "前进 ▶"], ["Write one token (right arrow)", "写出一个词元（右方向键）"],
  ["right", "正确"], ["right so far", "到目前为止正确"],
  ["%1 of %2 right; it should be %3", "%2 个中对了 %1 个；应当是 %3"],
  ["Scores of the next token", "下一个词元的分数"], ["Scores of the last token", "最后一个词元的分数"],
  ["%1: score %2, probability %3", "%1：分数 %2，概率 %3"],
  ["Switch off heads below, or the positions, and see what breaks: in the answer, and in an exam of 100 sequences " +
   "that it never saw.", "关掉下面的某些头，或者关掉位置，看看什么会出错：既看回答，也看一场用 100 个新序列的考试。"],
  ["positions", "位置"], ["Right answers in the exam", "考试中正确的回答"], ["%1 of %2 right", "%2 个中对了 %1 个"],
  ["All on", "全部打开"],
  ["Encoder self-attention", "编码器的自注意力"], ["Decoder self-attention", "解码器的自注意力"],
  ["Cross-attention", "交叉注意力"],
  ["A row is a symbol of the question; its columns are the symbols that it reads.",
   "每一行是问题中的一个符号，各列是它读取的符号。"],
  ["A row is a token that the decoder has before it; it reads itself and what stands to its left.",
   "每一行是解码器已经得到的一个词元，它读取自己和左边的词元。"],
  ["A row is a token at the moment it is written; its columns are the symbols of the question that are read for it.",
   "每一行是正要写出的一个词元，各列是为它读取的问题中的符号。"],
  ["%1, layer %2, head %3", "%1，第 %2 层，%3 号头"], ["layer %1", "第%1层"], ["head %1", "%1 号头"],
  ["%1 is on", "%1：打开"], ["Switch all heads of this layer", "开关这一层的所有头"],
  ["this head is on", "打开这个头"],
  ["Each row adds up to 1. A number is a weight in percent; point at a cell for four digits.",
   "每一行加起来是 1。数字是百分比形式的权重；指着一格，就显示四位小数。"],
  ["Click a small map to see it large, and a token of the answer to go back to the moment before it was written.",
   "点一张小图，就把它放大；点回答中的一个词元，就回到写它之前的那一刻。"],
  ["step,", "单步，"], ["space", "空格"], ["plays.", "播放。"],
  ["not written yet", "还没有写出"], ["%1 cannot see %2", "%1 看不到 %2"],
  ["%1 reads %2: %3", "%1 读取 %2：%3"], ["to write %1, it reads %2: %3", "要写 %1，它读取 %2：%3"],
]);
let inChinese = false;
const say = (text, ...values) =>
    (inChinese ? texts.get(text) : text).replace(/%(\d)/g, (_, number) => values[number - 1]);

const data = JSON.parse(byId("page-data").textContent);
const model = new Transformer(data);
const word = (token) => data.words[token];
const range = (text) => text.replace(" to ", say(" to "));

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
  if (wrong >= 0) return {problem: say("%1 is not one of %2", parts[wrong], range(data.alphabet))};
  if (tokens.length < 1 || tokens.length > data.max_length)
    return {problem: say("1 to %1 symbols, not %2", data.max_length, tokens.length)};
  if (data.begin_is_symbol && tokens[0] !== data.begin) return {problem: say("begin with %1", word(data.begin))};
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
const nameOf = ({kind, layer, head}) => say("%1, layer %2, head %3", say(kinds[kind].title), layer, head);

// Small maps of all heads, each with a switch.

function headPart(kind, layer, head) {
  const place = {kind, layer, head}, name = nameOf(place);
  const map = element("button", {type: "button", className: "map", "aria-label": name}, element("canvas"));
  const on = element("input", {type: "checkbox", checked: true, "aria-label": say("%1 is on", name)});
  Object.assign(map.dataset, place);
  map.addEventListener("click", () => { Object.assign(chosen, place); show(); });
  on.addEventListener("change", () => switchHeads([place], on.checked));
  const label = element("label", {}, on, " " + (model.heads > 4 ? head : say("head %1", head)));
  const part = element("div", {className: "head"}, map, label);
  part.dataset.name = headName(kind, layer, head);
  return part;
}

function layerPart(kind, layer) {
  const heads = Array.from({length: model.heads}, (_, head) => ({kind, layer, head}));
  const all = element("button", {type: "button", title: say("Switch all heads of this layer")}, say("layer %1", layer));
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
  byId("note").textContent = say(kinds[kind].note);
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
    if (isWrong) result.title = i < right.length ? say("should be %1", word(right[i])) : say("too much");
    result.addEventListener("click", () => go(i));
    return result;
  }));
  const count = run.tokens.filter((token, i) => i < step && token === right[i]).length;
  const isDone = step === run.tokens.length, isRight = count === (isDone ? right.length : step);
  const should = textOf(right.filter((token) => token !== data.end));
  byId("verdict").className = isRight ? "good" : "bad";
  byId("verdict").textContent = step === 0 ? "" : isRight ? say(isDone ? "right" : "right so far") :
      say("%1 of %2 right; it should be %3", count, isDone ? right.length : step, should);
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
  byId("scores-title").textContent = say(isDone ? "Scores of the last token" : "Scores of the next token");
  byId("scores").replaceChildren(...shown.map((token) => {
    const bar = element("span", {className: "bar"});
    bar.style.setProperty("--p", p[token]);
    const result = element("li", {className: token === best ? "best" : ""}, element("span", {className: "room"}, bar),
                           word(token), element("small", {}, logits[token].toFixed(1)));
    result.dataset.tip =
        say("%1: score %2, probability %3", word(token), logits[token].toFixed(4), p[token].toFixed(4));
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
    byId("exam-result").textContent = say("%1 of %2 right", right, done);
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
  byId("problem").textContent = !valid ? problem :
      valid.length < data.min_length ? say("It was trained on %1 symbols.", range(data.lengths)) : "";
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
  byId("play").textContent = say("Play");
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
  byId("play").textContent = say("Pause");
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
  if (row >= rowsSeen(place.kind)) return say("not written yet");
  const weight = weightsOf(place)[row][column];
  if (weight === undefined) return say("%1 cannot see %2", reader, seen);
  return say(place.kind === "cross" ? "to write %1, it reads %2: %3" : "%1 reads %2: %3", reader, seen,
             weight.toFixed(4));
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

// The language: that of the browser, until somebody follows the link to the other one.

// What page.html says in English: where it stands, and what.
const written = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walk.nextNode(); node; node = walk.nextNode()) {
  const text = node.data, english = text.trim().replace(/\s+/g, " ");
  const set = (said) => { node.data = text.match(/^\s*/)[0] + said + text.match(/\s*$/)[0]; };
  if (texts.has(english)) written.push([set, english]);
}
for (const name of ["title", "aria-label"])
  for (const each of document.querySelectorAll("[" + name + "]"))
    written.push([(said) => each.setAttribute(name, said), each.getAttribute(name)]);

function showLanguage() {
  inChinese = location.hash ? location.hash === "#zh" : navigator.language.startsWith("zh");
  document.documentElement.lang = inChinese ? "zh" : "en";
  document.title = say("A Transformer to touch");
  byId("language").textContent = inChinese ? "English" : "中文";
  byId("language").href = inChinese ? "#en" : "#zh";
  for (const [set, english] of written) set(say(english));
  const parameters = Object.values(model.weights).reduce((total, values) => total + values.length, 0);
  byId("about").textContent = say(
      "It has learned to %1 sequences of %2 symbols, %3. Its %4 parameters are in this page, which computes with them.",
      say(data.name), range(data.lengths), range(data.alphabet), parameters);
  byId("attentions").replaceChildren(...Object.entries(kinds).map(([kind, {title, layers}]) =>
      element("section", {}, element("h2", {}, say(title)),
              ...Array.from({length: layers}, (_, layer) => layerPart(kind, layer)))));
  if (run) ask(null, byId("question").value);
  else ask(source);
  change();
}
window.addEventListener("hashchange", showLanguage);
showLanguage();
