// The page: shows one step of the recorded pass, and moves between the steps. All text is set as text, never as HTML.
const data = JSON.parse(document.getElementById("pass-data").textContent);
const steps = data.steps, boxes = new Map(data.boxes.map((box) => [box.id, box]));
const parameters = new Map(data.parameters.map((parameter) => [parameter.name, parameter]));
const isBackward = (step) => step.number !== step.forward;
let current = 1, timer = 0;

// The language is that of <html lang>. What page.html, the boxes and this file say in English, in Chinese.
const inChinese = document.documentElement.lang === "zh";
const texts = new Map(!inChinese ? [] : Object.entries({
  "The Transformer, step by step": "逐步看 Transformer", "Steps": "各步", "Step": "步", "Back": "后退", "On": "前进",
  "The Transformer, as in Figure 1 of the paper": "论文图 1 中的 Transformer", "Play": "播放", "Pause": "暂停",
  "One step back (left arrow)": "后退一步（左箭头）", "One step on (right arrow)": "前进一步（右箭头）",
  "Play or pause (space)": "播放或暂停（空格）", "step,": "步，", "box,": "框，", "space": "空格", "play": "播放",
  "Positional": "位置", "encoding": "编码", "Input": "输入", "Output": "输出", "embedding": "词嵌入", "attention": "注意力",
  "Multi-head": "多头", "Masked multi-head": "带掩码的多头", "Add & norm": "相加与归一化", "Feed forward": "前馈网络",
  "Linear": "线性映射", "forward: values": "前向：值", "backward: gradients": "反向：梯度", "Code": "代码",
  "What it computes inside": "内部还算出什么", "All steps": "所有的步", "Operation": "运算", "Source": "源文件",
  "Equation and shapes": "公式和形状", "First values": "前几个数", "Parameters and their gradients": "参数及其梯度",
  "head %1": "%1 号头", "%1, of the label": "%1，属于标签", "%1 is hidden by the mask": "%1 被掩码遮住",
  "step %1": "第 %1 步", "step %1 of %2": "第 %1 步，共 %2 步", "loss %1": "损失 %1", "inside: %1": "内部：%1",
  "parameter ": "参数 ", "to the gradient of ": "加到这个参数的梯度：", "the sum of ": "相加：", "from ": "来自",
  "to what ": "传给", " computed": "的结果", "a constant": "常数", "what the model is to say at each position": "模型应当说出的词",
  "dL/dL = 1, where the backward pass begins": "dL/dL = 1，反向传播由此开始", "not reached yet": "还没有算到",
  "each row adds up to 1; framed: the labels": "每一行的总和为 1；加框的是标签", "output probabilities": "输出的概率",
  "Forward": "前向", "Backward": "反向", "%1, backward": "%1，反向", "Backward: %1": "反向：%1", "What comes out": "输出",
  "What goes in": "输入", "The gradients it passes on": "传下去的梯度", "The gradient that arrives": "传来的梯度",
  "The operation: ": "这个运算：", "The derivative of ": "求导的是", "The box in the model: ": "模型中的这一框：",
  "Encoder layer %1: %2": "编码器 %1 号层：%2", "Decoder layer %1: %2": "解码器 %1 号层：%2", "feed forward": "前馈网络",
  "Input embedding and positional encoding": "输入的词嵌入和位置编码", "Linear: a score for each word": "线性映射：每个词一个分数",
  "Output embedding and positional encoding": "输出的词嵌入和位置编码", "Softmax and loss": "Softmax 与损失",
  "multi-head self-attention": "多头自注意力", "masked multi-head self-attention": "带掩码的多头自注意力",
  "multi-head attention to the encoder": "读取编码器的多头注意力", "add & norm after feed forward": "前馈网络之后，相加与归一化",
  "add & norm after self-attention": "自注意力之后，相加与归一化",
  "add & norm after attention to the encoder": "读取编码器之后，相加与归一化",
  "introduction": "论文的模型的一次前向传播和一次反向传播，小得可以跟踪每一个数。源序列是 %1，模型要把它倒过来写：由目标序列 %2" +
    " 预测出 %3。B = %4 个序列，S = %5 个源词元，T = %6 个目标词元，K = %7 个词，h = %8 个头，d_model = %9，d_k = d_v = %10，" +
    "d_ff = %11，编码器和解码器各有一层。各个大小互不相同，所以由形状就看得出每个轴是什么。权重是随机的，舍入到两位小数；" +
    "计算用 f64，没有随机失活和填充，显示四位小数。dx 表示 dL/dx。",
}));
const say = (english, ...values) => (texts.get(english) ?? english).replace(/%(\d+)/g, (_, i) => values[i - 1]);
// Words in equations.
const wordings = [
  [": every number goes back to its place", "：每个数回到原来的位置"], ["for each head", "每个头各算各的"], ["l allowed", "l 取看得见的"],
  ["sum of dy with that id", "这个编号的各 dy 之和"], [/sum of (\w+( n)?)/g, "各行 $1 之和"], ["mean of -log P[label]", "-log P[label] 的平均"],
  ["if a > 0, else 0", "（a > 0），否则 0"], [/rows (.*) of W/, "取 W 的 $1 各行"], ["] as [", "] 看作 ["], ["] to [", "] 变为 ["]];
const equationOf = ({equation}) =>
    inChinese ? wordings.reduce((text, [from, to]) => text.replace(from, to), equation) : equation;
function titleOf(box) {
  const [, layer, number, part] = /^(.*layer) (\d+): (.*)$/.exec(box.title) ?? [];
  return layer ? say(layer + " %1: %2", number, say(part)) : say(box.title);
}

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
  if (size === data.sizes.h) return Array.from({length: size}, (_, i) => say("head %1", i));
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
  const held = withNumbers(value), numbers = textsOf(held), masked = new Set(held.masked);
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
      const cell = element("td", {}, small || hidden ? "" : numbers[at]);
      if (hidden) cell.classList.add("masked");
      else if (held.words) cell.classList.add("word");
      else cell.style.background = colour(held.values[at], largest);
      if (marked.includes(at)) cell.classList.add("label");
      const place = value.shape.length > 1 ? [...index, i, j] : [j];
      const name = value.name + "[" + place.join(", ") + "]", number = name + " = " + numbers[at];
      cell.dataset.tip = hidden ? say("%1 is hidden by the mask", name)
                                : marked.includes(at) ? say("%1, of the label", number) : number;
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
  const link = element("button", {className: "link"}, say("step %1", number));
  link.addEventListener("click", () => go(number));
  return link;
}

function separated(nodes, word) {
  return nodes.flatMap((node, i) => (i === 0 ? [node] : [word, node]));
}

function origin(step, value, goesIn) {
  const result = element("span", {className: "origin"});
  if (value.parameter) {
    result.append(say(goesIn ? "parameter " : "to the gradient of "), element("code", {}, value.parameter));
  } else if (value.steps && isBackward(step) && goesIn) {
    result.append(say(value.steps.length > 1 ? "the sum of " : "from "));
    result.append(...separated(value.steps.map(stepLink), " + "));
  } else if (value.steps && isBackward(step)) result.append(say("to what "), stepLink(value.steps[0]), say(" computed"));
  else if (value.steps) result.append(say("from "), stepLink(value.steps[0]));
  else if (goesIn && isBackward(step)) result.append(say("dL/dL = 1, where the backward pass begins"));
  else if (goesIn) result.append(say(value.words ? "what the model is to say at each position" : "a constant"));
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
  const note = element("span", {className: "origin"}, say("each row adds up to 1; framed: the labels"));
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
  const step = latestIn(id), title = titleOf(boxes.get(id));
  if (!step) return title + "\n" + say("not reached yet");
  const lines = [...step.outputs, ...step.inside].map(
      (value) => value.name + " " + shapeText(value.shape) + firstValues(value));
  const operation = isBackward(step) ? say("%1, backward", step.operation) : step.operation;
  return title + "\n" + say("step %1", step.number) + ": " + operation + "\n" + lines.join("\n");
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
  byId("loss").textContent = current >= lossStep.number ? say("loss %1", digits(data.loss)) : say("output probabilities");
}

// Moving.

function show(number) {
  current = Math.min(Math.max(1, number), steps.length);
  const step = steps[current - 1], back = isBackward(step);
  document.body.classList.toggle("going-back", back);
  document.body.dataset.step = current;
  showFigure(step);
  byId("pass").textContent = say(back ? "Backward" : "Forward");
  byId("box").textContent = titleOf(boxes.get(step.box));
  byId("operation").textContent = step.operation;
  byId("equation").replaceChildren(formula(equationOf(step)));
  byId("out-title").textContent = say(back ? "The gradients it passes on" : "What comes out");
  byId("in-title").textContent = say(back ? "The gradient that arrives" : "What goes in");
  byId("outputs").replaceChildren(...step.outputs.map((value) => valueElement(step, value, false)));
  byId("inside").replaceChildren(...step.inside.map(insideElement));
  byId("inside-section").hidden = step.inside.length === 0;
  byId("inputs").replaceChildren(...step.inputs.map((value) => valueElement(step, value, true)));
  const what = back ? [say("The derivative of "), stepLink(step.forward), ": "] : [say("The operation: ")];
  byId("code").replaceChildren(...sourceElements(what, step.source),
                               ...sourceElements([say("The box in the model: ")], boxes.get(step.box).source));
  byId("slider").value = current;
  byId("position").textContent = say("step %1 of %2", current, steps.length);
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
  byId("play").textContent = say(on ? "Pause" : "Play");
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
      const title = titleOf(boxes.get(box));
      rows.append(element("tr", {className: "box-row"}, element("th", {colSpan: 4}, back ? say("Backward: %1", title) : title),
                          sourceCell("th", boxes.get(box).source)));
    }
    const operation = step.operation + (back ? " (" + step.forward + ")" : "");
    const inside = step.inside.map((value) => element("span", {className: "inside"}, say(
        "inside: %1", value.name + " " + shapeText(value.shape) + firstValues(value))));
    const number = element("button", {className: "link number", "aria-label": say("step %1", step.number)},
                           String(step.number));
    const row = element("tr", {className: back ? "backward" : "forward"},
                        element("td", {}, number),
                        element("td", {className: "operation"}, operation),
                        element("td", {}, element("span", {className: "equation"}, equationOf(step)),
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
    box.setAttribute("aria-label", titleOf(boxes.get(box.dataset.box)));
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

function translate() {
  document.title = say(document.title);
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const text = node.data.trim();
    if (texts.has(text)) node.data = node.data.replace(text, say(text));
  }
  for (const name of ["title", "aria-label"])
    for (const each of document.querySelectorAll("[" + name + "]"))
      each.setAttribute(name, say(each.getAttribute(name)));
}

translate();
// Three sequences in quotation marks, then what stands behind the signs =.
byId("intro").textContent =
    inChinese ? say("introduction", ...data.intro.match(/"[^"]*"|(?<== )\d+/g)) : data.intro;
byId("slider").max = steps.length;
fillFigure();
fillRows();
fillParameters();
show(stepOfHash());
