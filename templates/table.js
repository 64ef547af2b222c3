// The table of kernels: sorting by a column's button, filters by name and verdict. Rows are written by the page itself.

class KernelTable {
  constructor(table) {
    this.body = table.tBodies[0];
    this.headers = [...table.tHead.rows[0].cells];
    this.rows = [...this.body.rows].map((row) => ({ row, kernel: DATA.kernels[Number(row.dataset.position)] }));
    for (const { row, kernel } of this.rows) row.querySelector("th a").title = words(kernel.name);
    this.headers.forEach((header, column) => {
      header.querySelector("button").addEventListener("click", () => this.sortBy(header, column));
    });
    this.nameFilter = document.getElementById("name-filter");
    this.verdictFilter = document.getElementById("verdict-filter");
    this.nameFilter.addEventListener("input", () => this.filter());
    this.verdictFilter.addEventListener("change", () => this.filter());
    this.filter();
  }

  /** Sort by a column: numbers the largest first, texts from A; the other way round on the second click. */
  sortBy(header, column) {
    const isNumber = header.classList.contains("number");
    const first = isNumber ? "descending" : "ascending";
    const second = isNumber ? "ascending" : "descending";
    const order = header.getAttribute("aria-sort") === first ? second : first;
    for (const other of this.headers) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const key = header.dataset.key;
    const value = ({ row, kernel }) => (isNumber ? kernel.sort[key] : row.cells[column].textContent.toLowerCase() || null);
    const keyed = this.rows.map((entry) => ({ entry, value: value(entry) }));
    keyed.sort((a, b) => this.compare(a.value, b.value, sign));
    this.rows = keyed.map(({ entry }) => entry);
    this.body.append(...this.rows.map(({ row }) => row));
  }

  /** Order of two values; what is not known comes last both ways. */
  compare(a, b, sign) {
    if (a === null || b === null) return (a === null) - (b === null);
    return a < b ? -sign : a > b ? sign : 0;
  }

  filter() {
    const wanted = this.nameFilter.value.trim().toLowerCase();
    const verdict = this.verdictFilter.value;
    let nShown = 0;
    for (const { row, kernel } of this.rows) {
      const hasName = !wanted || words(kernel.name).toLowerCase().includes(wanted) || words(kernel.short).toLowerCase().includes(wanted);
      row.hidden = !(hasName && (!verdict || kernel.verdict === verdict));
      nShown += row.hidden ? 0 : 1;
    }
    document.getElementById("n-shown").textContent = `${nShown} of ${this.rows.length}`;
  }

  /** Mark the row of the selected kernel. */
  mark(position) {
    for (const { row } of this.rows) {
      if (Number(row.dataset.position) === position) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
  }
}
