// The icicle: the GPU time of the NVTX ranges, each above those within it, as wide as its share of the run. Colour and mark tell the verdict of most
// of its time, the dark line the share above the roofline. Choosing a range shows only its launches on the chart and in the table.

const MOST_ROWS_OF_RANGES = 6;
const LEAST_WIDTH_FRAC = 0.002; // of the icicle; narrower ranges are left to the list
const [NAMES_OF, , SHARE_OF, ABOVE_OF, VERDICT_OF, SAID_OF] = [0, 1, 2, 3, 4, 5]; // in an entry of DATA.ranges; 1 is OUTER

/** The ranges within one, or the outermost ones for null. */
function rangesWithin(outer) {
  return DATA.ranges.flatMap((range, line) => (range[OUTER] === outer ? [line] : []));
}

/** The boxes of the ranges: line, row from the top, left edge and width as shares of the run. */
function boxesOfRanges(outer = null, row = 0, left = 0) {
  if (row >= MOST_ROWS_OF_RANGES) return [];
  let at = left;
  return rangesWithin(outer).flatMap((line) => {
    const width = DATA.ranges[line][SHARE_OF] ?? 0;
    const start = at;
    at += width;
    return width < LEAST_WIDTH_FRAC ? [] : [{ line, row, left: start, width }, ...boxesOfRanges(line, row + 1, start)];
  });
}

class Icicle {
  /** `onChoose` is called with the line of a range, or with null to show all again. */
  constructor(root, onChoose) {
    Object.assign(this, { root, onChoose, boxes: boxesOfRanges(), buttons: new Map() });
    this.said = make("p", { class: "soft", id: "range-said" });
    const rows = this.boxes.reduce((most, { row }) => Math.max(most, row + 1), 0);
    this.box = make("div", { class: "icicle", role: "group", "aria-label": "Time by NVTX range" });
    this.box.style.setProperty("--rows", rows);
    for (const each of this.boxes) this.box.append(this.button(each));
    this.box.addEventListener("keydown", (event) => this.typed(event));
    this.box.addEventListener("pointerleave", () => this.say(null));
    root.append(this.box, this.said);
    this.say(null);
  }

  button({ line, row, left, width }) {
    const range = DATA.ranges[line];
    const name = range[NAMES_OF].at(-1);
    const element = make("button", { type: "button", class: `v-${range[VERDICT_OF]}`, tabindex: this.buttons.size ? "-1" : "0", "aria-pressed": "false", "aria-label": `${rangePath(line)}: ${range[SAID_OF]}` });
    element.append(make("span", { class: "mark", "aria-hidden": "true" }), isolated(name));
    const style = { "--row": row, "--left": `${100 * left}%`, "--span": `${100 * width}%`, "--above": `${100 * (range[ABOVE_OF] ?? 0)}%` };
    for (const [property, value] of Object.entries(style)) element.style.setProperty(property, value);
    element.addEventListener("click", () => this.onChoose(this.chosen === line ? null : line));
    for (const type of ["focus", "pointerenter"]) element.addEventListener(type, () => this.say(line));
    this.buttons.set(line, element);
    return element;
  }

  /** Say what is known of a range; for null, of the chosen one. */
  say(line) {
    const shown = line ?? this.chosen ?? null;
    this.said.replaceChildren(...(shown === null ? ["Choose a range to see only its launches."] : [...isolatedNames(rangePath(shown)), `: ${DATA.ranges[shown][SAID_OF]}`]));
  }

  /** Mark the range that the filters show; null for none. */
  mark(line) {
    this.chosen = line;
    for (const [each, element] of this.buttons) element.setAttribute("aria-pressed", String(each === line));
    this.say(null);
  }

  /** Arrow keys move to the range beside, around or within; the Tab key reaches one range alone. */
  typed(event) {
    const here = this.boxes.find(({ line }) => this.buttons.get(line) === event.target);
    const beside = this.boxes.filter(({ row }) => row === here?.row);
    const index = beside.indexOf(here);
    const targets = {
      ArrowRight: () => beside[index + 1]?.line, ArrowLeft: () => beside[index - 1]?.line, ArrowUp: () => DATA.ranges[here.line][OUTER],
      ArrowDown: () => this.boxes.find(({ line }) => DATA.ranges[line][OUTER] === here.line)?.line,
    };
    const line = here && targets[event.key]?.();
    if (line === undefined || line === null) return;
    event.preventDefault();
    for (const element of this.buttons.values()) element.setAttribute("tabindex", "-1");
    this.buttons.get(line).setAttribute("tabindex", "0");
    this.buttons.get(line).focus();
  }
}
