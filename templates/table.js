// The table of rows: sortable, navigable by key, copyable as CSV. Of many rows, only those near the viewport are in the document.

const ROW_PX = 28; // row height, as in page.css
const MOST_WHOLE = 60; // up to this many rows, all are in the document, for printing and the browser's search
const BEYOND_VIEW = 20;

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

class RowTable {
  constructor(table) {
    this.table = table;
    this.body = table.tBodies[0];
    this.scroller = table.parentElement;
    this.headers = [...table.tHead.rows[0].cells];
    this.sorting = { key: "recoverable", order: "descending" };
    this.rows = [];
    this.selected = null;
    this.isWhole = false;
    this.headers.forEach((header) => header.querySelector("button").addEventListener("click", () => this.sortBy(header)));
    this.scroller.addEventListener("scroll", () => this.fill());
    this.body.addEventListener("keydown", (event) => this.typed(event));
  }

  show(rows) {
    this.rows = this.sorted(rows);
    this.table.setAttribute("aria-rowcount", this.rows.length + 1);
    this.scroller.scrollTop = 0;
    this.fill(true);
  }

  /** Sort by a column: numbers descending, texts ascending; the second click reverses the order. */
  sortBy(header) {
    const { key } = header.dataset;
    const first = header.classList.contains("number") ? "descending" : "ascending";
    const second = first === "descending" ? "ascending" : "descending";
    const isAgain = this.sorting.key === key && this.sorting.order === first;
    this.sorting = { key, order: isAgain ? second : first };
    for (const other of this.headers) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", this.sorting.order);
    this.show(this.rows);
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

  /** Put the rows near the viewport into the document. */
  fill(isAnew = false) {
    const n = this.rows.length;
    const isWhole = this.isWhole || n <= MOST_WHOLE;
    const first = isWhole ? 0 : Math.max(Math.floor(this.scroller.scrollTop / ROW_PX) - BEYOND_VIEW, 0);
    const last = isWhole ? n : Math.min(first + Math.ceil(this.scroller.clientHeight / ROW_PX) + 2 * BEYOND_VIEW, n);
    if (!isAnew && first === this.first && last === this.last) return;
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
    if (key === "name") return make("th", { scope: "row", class: "name" }, kernelLink(row.position));
    if (key === "verdict") return make("td", {}, verdictMark(verdictOf(row.position)));
    const text = key === "id" ? String(LAUNCHES.id[row.position]) : TEXTS[key](row);
    return make("td", { class: kind, title: key === "finding" ? text : null }, text);
  }

  /** Mark the row of the selected launch, and scroll to it within the table. */
  mark(position) {
    this.selected = position;
    const index = this.indexOf(position);
    if (index >= 0) this.scrollTo(index);
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
    const page = Math.max(Math.floor(this.scroller.clientHeight / ROW_PX) - 2, 1);
    const index = Number(row?.dataset.index);
    const targets = { ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + page, PageUp: index - page, Home: 0, End: this.rows.length - 1 };
    if (!(event.key in targets)) return;
    event.preventDefault();
    this.focus(Math.min(Math.max(targets[event.key], 0), this.rows.length - 1));
  }

  focus(index) {
    this.scrollTo(index);
    this.linkOf(index)?.focus({ preventScroll: true });
  }

  scrollTo(index) {
    const top = index * ROW_PX;
    const head = this.table.tHead.offsetHeight;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (top + ROW_PX + head > scrollTop + clientHeight) this.scroller.scrollTop = top + ROW_PX + head - clientHeight;
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

  /** Put all rows into the document, for printing, or only those near the viewport. */
  whole(isWhole) {
    this.isWhole = isWhole;
    this.fill(true);
  }
}
