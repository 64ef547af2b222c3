// Dots that cannot be told apart: stacks have a count and open as a list; very many dots are drawn as cells, coloured by the verdict with the
// most time there. Dots beyond the edges are counted in gutters, which lead to them.

const STACK_PX = 6; // between the middles of dots that only a list tells apart
const TOUCH_PX = 14; // the same for a finger
const MOST_DOTS = 500; // with more in view, all but the largest are drawn as cells
const LARGEST = 40; // dots that are drawn on top of cells
const CELL_PX = 12;
const MOST_LISTED = 30;
const FAINTEST = 0.22; // opacity of a cell with next to no time
const PADDING_DECADES = 0.15; // around all dots, where a gutter is followed

/** The marks by the square of `size` pixels in which their middles are. */
function bySquare(marks, size) {
  const squares = new Map();
  for (const mark of marks) {
    const key = `${Math.floor(mark.px / size)} ${Math.floor(mark.py / size)}`;
    if (!squares.has(key)) squares.set(key, []);
    squares.get(key).push(mark);
  }
  return [...squares.values()];
}

/** The stacks among drawn marks, each with its marks, the largest first. */
function stacksOf(marks) {
  return bySquare(marks, STACK_PX).filter((stack) => stack.length > 1);
}

/** The cells of marks that are drawn together: place, marks, the verdict with the most time, and an opacity that grows with the time. */
function cellsOf(marks) {
  const cells = bySquare(marks, CELL_PX).map((own) => {
    const timeByVerdict = new Map();
    for (const { verdict, row } of own) timeByVerdict.set(verdict, (timeByVerdict.get(verdict) ?? 0) + (row.time ?? 0));
    const [verdict] = [...timeByVerdict].reduce((most, each) => (each[1] > most[1] ? each : most));
    const corner = (value) => Math.floor(value / CELL_PX) * CELL_PX;
    return { x: corner(own[0].px), y: corner(own[0].py), marks: own, time: timeOf(own.map(({ row }) => row)) ?? 0, verdict };
  });
  const most = cells.reduce((longest, { time }) => Math.max(longest, time), 0);
  return cells.map((cell) => ({ ...cell, opacity: most ? FAINTEST + (1 - FAINTEST) * Math.sqrt(cell.time / most) : 1 }));
}

function paintCells(context, cells, scale) {
  for (const { x, y, opacity, verdict } of cells) {
    context.globalAlpha = opacity;
    context.fillStyle = colour(verdict);
    context.fillRect(x * scale, y * scale, (CELL_PX - 1) * scale, (CELL_PX - 1) * scale);
  }
  context.globalAlpha = 1;
}

/** The number of dots in each stack, at its upper right. */
function stackCounts(chart, stacks) {
  return stacks.map((stack) => {
    const reach = stack[0].radius;
    const text = chart.text(stack[0].px + reach - 1, stack[0].py - reach, `×${stack.length}`, { anchor: "start", fill: colour("ink"), halo: true });
    text.setAttribute("class", "count");
    return text;
  });
}

const SIDES = [
  ["◀", "left", ({ px }, { left }) => px < left],
  ["▶", "right", ({ px }, { right }) => px > right],
  ["▲", "above", ({ py }, { top }) => py < top],
  ["▼", "below", () => true],
];

/** How many dots lie beyond each edge, and their share of the time; empty for none. */
function gutterText({ out, plane }) {
  const side = (mark) => SIDES.findIndex(([, , isThere]) => isThere(mark, plane));
  const counts = out.reduce((sums, mark) => sums.map((n, index) => n + (index === side(mark))), [0, 0, 0, 0]);
  const parts = SIDES.flatMap(([arrow, where], index) => (counts[index] ? [`${arrow} ${counts[index]} ${where}`] : []));
  const part = shareOfRun(timeOf(out.map(({ row }) => row)));
  return parts.length ? `${parts.join(", ")}: beyond this scale${part === null ? "" : ` · ${share(part)} of ${DATA.gpuTime}`}` : "";
}

/** A button at the lower left of the plane that says how many dots are beyond its edges, and shows them. */
function gutter(chart) {
  const text = gutterText(chart);
  if (!text) return [];
  const label = button(text, () => chart.zoomToAll());
  label.className = "gutter";
  const { left, bottom, height } = chart.plane;
  label.style.left = `${left + 6}px`;
  label.style.bottom = `${height - bottom + 5}px`;
  return [label];
}

/** The area of that button, which labels keep clear of. */
function boxOfGutter(chart) {
  const text = gutterText(chart);
  const { left, bottom } = chart.plane;
  return text ? [{ left, right: left + textWidth(text) * 1.12 + 28, top: bottom - 34, bottom }] : [];
}

/** These ranges, grown so that all dots of the level are within them, with some room. */
function rangesWithAll({ x, y }, rows, view, level) {
  const dots = rows.map((row) => dotOfRow(row, view, level)).filter(Boolean);
  const grown = ([low, high], values) => values.reduce(([least, most], value) => {
    const exponent = Math.log10(value);
    return [Math.min(least, exponent - PADDING_DECADES), Math.max(most, exponent + PADDING_DECADES)];
  }, [low, high]);
  return { x: grown(x, dots.map((dot) => dot.x)), y: grown(y, dots.map((dot) => dot.y)) };
}

/** A list of the launches at one place of the chart, to open one of them. */
class Chooser {
  /** `onChoose` is called with a position, `onZoom` with marks to zoom in to. */
  constructor(root, onChoose, onZoom) {
    Object.assign(this, { root, onChoose, onZoom });
    this.box = make("div", { class: "chooser", role: "group", "aria-label": "Kernels at this place" });
    this.box.hidden = true;
    this.box.addEventListener("keydown", (event) => this.typed(event));
    this.box.addEventListener("focusout", (event) => !this.box.contains(event.relatedTarget) && this.hide());
    root.append(this.box);
  }

  show(marks, { x, y }) {
    const byTime = [...marks].sort((a, b) => (b.row.time ?? 0) - (a.row.time ?? 0));
    const entries = byTime.slice(0, MOST_LISTED).map(({ row }) => {
      const { position } = row;
      const entry = button("", () => {
        this.hide();
        this.onChoose(position);
      });
      const name = make("span", { class: "name" }, isolated(words(LAUNCHES.short[position])));
      entry.append(verdictMark(verdictOf(position)), ` #${LAUNCHES.id[position]} `, name, ` ${duration(row.time)}`);
      return entry;
    });
    const isSpread = new Set(marks.map(({ px, py }) => `${Math.round(px)} ${Math.round(py)}`)).size > 1;
    const zooming = button(`Zoom in on these ${marks.length}`, () => {
      this.hide();
      this.onZoom(marks);
    });
    const rest = marks.length - entries.length;
    const more = rest > 0 ? [make("p", { class: "soft" }, `${rest} more, each shorter${isSpread ? "" : ": filter to see them"}`)] : [];
    this.box.replaceChildren(...(isSpread ? [zooming] : []), ...entries, ...more);
    this.box.hidden = false;
    const { clientWidth, clientHeight } = this.root;
    this.box.style.left = `${Math.max(Math.min(x + 8, clientWidth - this.box.offsetWidth), 0)}px`;
    this.box.style.top = `${Math.max(Math.min(y + 8, clientHeight - this.box.offsetHeight), 0)}px`;
    this.box.querySelector("button").focus({ preventScroll: true });
  }

  hide() {
    if (this.box.hidden) return;
    const hadFocus = this.box.contains(document.activeElement);
    this.box.hidden = true;
    if (hadFocus) this.root.focus({ preventScroll: true });
  }

  typed(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    event.stopPropagation();
    if (event.key === "Escape") {
      event.preventDefault();
      this.hide();
    }
    if (!step) return;
    event.preventDefault();
    const entries = [...this.box.querySelectorAll("button")];
    entries[(entries.indexOf(document.activeElement) + step + entries.length) % entries.length].focus();
  }
}
