// The table of rows: sortable, navigable by key, copyable as CSV. It scrolls with the page; of many rows, only those near the window are in
// the document.

const ROW_PX = 28; // row height, as in page.css
const MOST_WHOLE = 60; // up to this many rows, all are in the document, for printing and the browser's search
const BEYOND_VIEW = 40;
const LEAST_BEYOND = 8; // rows around the window; where fewer are in the document, others are put into it

/** Shares of a cell's width that its bar takes: times of the longest row, utilisations of 1. */
const BARS_IN_CELLS = {
  time: (row, longest) => (longest ? (row.time ?? 0) / longest : 0),
  recoverable: (row, longest) => (longest ? (row.recoverable ?? 0) / longest : 0),
  memory: (row) => VALUES.memory(row) ?? 0,
  compute: (row) => VALUES.compute(row) ?? 0,
};

/** Where a launch belongs, in further columns of the CSV: they tell launches of one name apart. */
const PLACES = {
  grid: (position) => words(LAUNCHES.grid[position]),
  block: (position) => words(LAUNCHES.block[position]),
  nvtx_range: (position) => words(LAUNCHES.range[position]),
  gpu: (position) => deviceLabel(LAUNCHES.device[position]),
  report: (position) => DATA.reports[LAUNCHES.source[position]] ?? "",
};
const MOST_PLACES = 10; // of a row of several launches

/** The different texts among these, as one. */
function eachOnce(texts) {
  const met = [...new Set(texts)];
  return met.length > MOST_PLACES ? `${met.slice(0, MOST_PLACES).join("; ")}; ${met.length - MOST_PLACES} more` : met.join("; ");
}

const SORTED_FIRST = "recoverable descending";
const TAIL = 14; // characters of a name's end, which stay where there is no room for all of it

/** How much of the window's edge, in pixels, what is scrolled to keeps clear of. */
function paddingOfScroll(edge) {
  return parseFloat(getComputedStyle(document.documentElement)[`scrollPadding${edge}`]) || 0;
}

class RowTable {
  constructor(table) {
    this.table = table;
    this.body = table.tBodies[0];
    this.headers = [...table.tHead.rows[0].cells];
    this.rows = [];
    this.selected = null;
    this.isWhole = false;
    this.sortByText("");
    this.headers.forEach((header) => header.querySelector("button").addEventListener("click", () => this.sortBy(header)));
    window.addEventListener("scroll", () => this.fill(), { passive: true });
    window.addEventListener("resize", () => this.fill());
    this.body.addEventListener("keydown", (event) => this.typed(event));
    this.body.addEventListener("click", (event) => this.clicked(event));
    document.addEventListener("copy", (event) => this.copied(event));
  }

  show(rows) {
    this.rows = this.sorted(rows);
    this.longest = this.rows.reduce((most, { time }) => Math.max(most, time ?? 0), 0);
    this.table.setAttribute("aria-rowcount", this.rows.length + 1);
    this.focusable = Math.max(this.indexOf(this.selected), 0);
    this.fill(true);
  }

  /** Sort by a column: numbers descending, texts ascending; the second click reverses the order. */
  sortBy(header) {
    const { key } = header.dataset;
    const first = header.classList.contains("number") ? "descending" : "ascending";
    const second = first === "descending" ? "ascending" : "descending";
    const isAgain = this.sorting.key === key && this.sorting.order === first;
    this.sortByText(`${key} ${isAgain ? second : first}`);
    this.show(this.rows);
    remember();
  }

  /** The order as the address has it; empty for that at first. */
  sortingAsText() {
    const text = `${this.sorting.key} ${this.sorting.order}`;
    return text === SORTED_FIRST ? "" : text;
  }

  /** Set the order, which the next call of `show` applies; return whether there is such an order. */
  sortByText(text) {
    const [key, order] = (text || SORTED_FIRST).split(" ");
    const isKnown = key in VALUES && ["ascending", "descending"].includes(order);
    this.sorting = isKnown ? { key, order } : { key: "recoverable", order: "descending" };
    for (const header of this.headers) {
      if (header.dataset.key === this.sorting.key) header.setAttribute("aria-sort", this.sorting.order);
      else header.removeAttribute("aria-sort");
    }
    return isKnown;
  }

  /** Rows in sort order; unknown values come last in both orders, ties are sorted by time. */
  sorted(rows) {
    const { key, order } = this.sorting;
    const sign = order === "ascending" ? 1 : -1;
    const keyed = rows.map((row) => ({ row, value: VALUES[key](row) }));
    const compare = (a, b) => {
      if (a.value === null || b.value === null) return (a.value === null) - (b.value === null);
      return a.value < b.value ? -sign : a.value > b.value ? sign : 0;
    };
    keyed.sort((a, b) => compare(a, b) || (b.row.time ?? -1) - (a.row.time ?? -1) || a.row.position - b.row.position);
    return keyed.map(({ row }) => row);
  }

  /** The rows that are in the window, as indices. */
  inWindow() {
    const top = this.body.getBoundingClientRect().top;
    return [Math.floor(-top / ROW_PX), Math.ceil((innerHeight - top) / ROW_PX)];
  }

  /** Put the rows near the window into the document, with more than can be seen, so that few scrolls change anything. */
  fill(isAnew = false) {
    const n = this.rows.length;
    const isWhole = this.isWhole || n <= MOST_WHOLE;
    const [top, bottom] = isWhole ? [0, n] : this.inWindow().map((index) => Math.min(Math.max(index, 0), n));
    const isThere = this.first <= Math.max(top - LEAST_BEYOND, 0) && this.last >= Math.min(bottom + LEAST_BEYOND, n);
    if (!isAnew && isThere) return;
    const [first, last] = [Math.max(top - BEYOND_VIEW, 0), Math.min(bottom + BEYOND_VIEW, n)];
    Object.assign(this, { first, last });
    const gap = (rows) => {
      const row = make("tr", { "aria-hidden": "true", class: "gap" });
      row.style.height = `${rows * ROW_PX}px`;
      return rows ? [row] : [];
    };
    const focused = this.body.contains(document.activeElement) ? document.activeElement.closest("tr").dataset.index : null;
    const shown = this.rows.slice(first, last).map((row, index) => this.row(row, first + index));
    this.body.replaceChildren(...gap(first), ...shown, ...gap(n - last), ...(n ? [] : [this.nothing()]));
    if (focused !== null) this.linkOf(focused)?.focus({ preventScroll: true });
  }

  nothing() {
    const elsewhere = linksToOtherDevices(() => this.focus(0)).flatMap((link) => [" ", link]);
    const said = isFiltering() ? `Nothing matches the filters${elsewhere.length ? " here:" : "."}` : "No kernel.";
    return make("tr", {}, make("td", { colspan: this.headers.length, class: "soft" }, said, ...elsewhere));
  }

  row(row, index) {
    const cells = this.headers.map((header) => this.cell(row, header));
    const isCurrent = row.launches.includes(this.selected);
    return make("tr", { "aria-rowindex": index + 2, "data-index": index, "aria-current": isCurrent ? "true" : null }, ...cells);
  }

  cell(row, header) {
    const { key } = header.dataset;
    const kind = header.className;
    if (key === "name") return make("th", { scope: "row", class: kind }, this.name(row));
    if (key === "verdict") return make("td", { class: kind }, verdictMark(verdictOf(row.position)));
    if (key === "finding") return make("td", { class: kind }, ...this.finding(row));
    const text = key === "id" ? String(LAUNCHES.id[row.position]) : TEXTS[key](row);
    const cell = make("td", { class: kind }, text);
    const bar = BARS_IN_CELLS[key]?.(row, this.longest);
    if (bar) cell.style.setProperty("--bar", `${(100 * Math.min(bar, 1)).toFixed(1)}%`);
    if (bar) cell.classList.add("bar-cell", ...(key === "recoverable" || key === "time" ? [`v-${verdictOf(row.position)}`] : []));
    return cell;
  }

  /** A row's name as a link, whole in the document; where there is no room, its middle gives way. */
  name(row) {
    const link = kernelLink(row.position);
    const text = words(LAUNCHES.short[row.position]);
    if (text.length > 2 * TAIL) {
      const parts = [text.slice(0, -TAIL), text.slice(-TAIL)].map((part, index) => make("span", { class: index ? "tail" : "head" }, part));
      link.replaceChildren(make("bdi", { class: "middle" }, ...parts));
    }
    link.setAttribute("tabindex", this.rows[this.focusable] === row ? "0" : "-1");
    return link;
  }

  /** A row's first finding, with its number in the list of what to do. */
  finding(row) {
    const number = numberOf(row.position);
    return [...(number ? [make("span", { class: "no" }, number), " "] : []), TEXTS.finding(row)];
  }

  /** A click anywhere in a row opens it, unless it ends the selection of a text. */
  clicked(event) {
    const index = event.target.closest("tr")?.dataset.index;
    if (index === undefined || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || !getSelection().isCollapsed) return;
    event.preventDefault();
    this.setFocusable(Number(index));
    this.linkOf(index).focus({ preventScroll: true });
    open(this.rows[index].position);
  }

  /** A copy of a selection beyond the rows in the document takes all rows along. */
  copied(event) {
    const selection = getSelection();
    const isBeyond = [...this.body.querySelectorAll(".gap")].some((gap) => selection.containsNode(gap, true));
    if (!isBeyond) return;
    event.clipboardData.setData("text/plain", this.csv());
    event.preventDefault();
    tellOf(`Copied: all ${this.rows.length} rows, as CSV.`);
  }

  /** Mark the row of the open launch; null for none. */
  mark(position) {
    this.selected = position;
    const index = this.indexOf(position);
    if (index >= 0) this.setFocusable(index);
    for (const row of this.body.rows) {
      const isCurrent = this.rows[Number(row.dataset.index)]?.launches.includes(position);
      if (isCurrent) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
  }

  /** The place of the row with a launch; -1 where the filters hide it. */
  indexOf(position) {
    return this.rows.findIndex(({ launches }) => launches.includes(position));
  }

  /** Arrow, Page, Home and End keys move between rows; Enter follows the focused link, as the browser does. */
  typed(event) {
    const row = event.target.closest("tr");
    const page = Math.max(Math.floor(innerHeight / ROW_PX) - 4, 1);
    const index = Number(row?.dataset.index);
    const targets = { ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + page, PageUp: index - page, Home: 0, End: this.rows.length - 1 };
    if (!(event.key in targets)) return;
    event.preventDefault();
    this.focus(Math.min(Math.max(targets[event.key], 0), this.rows.length - 1));
  }

  /** Make one row's link the only one that the Tab key reaches. */
  setFocusable(index) {
    this.linkOf(this.focusable)?.setAttribute("tabindex", "-1");
    this.focusable = index;
    this.linkOf(index)?.setAttribute("tabindex", "0");
  }

  focus(index) {
    this.scrollTo(index);
    this.setFocusable(index);
    this.linkOf(index)?.focus({ preventScroll: true });
  }

  /** Scroll the window to a row, if it is out of sight below the sticky heads, and put it into the document. */
  scrollTo(index) {
    const head = this.table.tHead.getBoundingClientRect().height + paddingOfScroll("Top");
    const top = this.body.getBoundingClientRect().top + index * ROW_PX;
    const foot = innerHeight - ROW_PX - paddingOfScroll("Bottom");
    if (top < head) scrollBy({ top: top - head, behavior: "instant" });
    else if (top > foot) scrollBy({ top: top - foot, behavior: "instant" });
    this.fill();
  }

  linkOf(index) {
    return this.body.querySelector(`tr[data-index="${index}"] a`);
  }

  /** All rows as CSV, in their order; numbers in base units. */
  csv() {
    const quoted = (value) => {
      const text = value === null || value === undefined ? "" : String(value);
      const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text; // keeps spreadsheets from running it as a formula
      return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
    };
    const units = { time: "time_ns", share: "share_frac", recoverable: "recoverable_ns", intensity: "dram_flop_per_byte" };
    const keys = this.headers.map((header) => header.dataset.key);
    const value = (row, key) => (key === "name" ? words(LAUNCHES.name[row.position]) : VALUES[key](row));
    const lines = this.rows.map((row) => [...keys.map((key) => value(row, key)), ...Object.values(PLACES).map((of) => eachOnce(row.launches.map(of)))].map(quoted).join(","));
    return [[...keys.map((key) => units[key] ?? key), ...Object.keys(PLACES)].join(","), ...lines].join("\n");
  }

  /** Put all rows into the document, for printing, or only those near the window. */
  whole(isWhole) {
    this.isWhole = isWhole;
    this.fill(true);
  }
}
