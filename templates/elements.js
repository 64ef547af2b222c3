// The page's data, and the few ways in which text gets into the document: always as text nodes, never as markup.

const DATA = JSON.parse(document.getElementById("data").textContent);

/** The text of a cell: a number stands for an entry of the table of texts. */
function words(cell) {
  return typeof cell === "number" ? DATA.texts[cell] : cell ?? "";
}

/** A new element; `attributes` are set as attributes, children are elements or texts. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== "") element.setAttribute(name, value);
  }
  element.append(...children.map((child) => (child instanceof Node ? child : document.createTextNode(words(child)))));
  return element;
}

/** Text of a report, kept from turning the direction of what surrounds it. */
function isolated(cell) {
  return make("bdi", {}, words(cell));
}

/** A verdict with its mark. */
function verdictMark(name) {
  const mark = make("span", { class: "mark", "aria-hidden": "true" });
  return make("span", { class: `verdict v-${name}` }, mark, DATA.verdicts[name] ?? name);
}

/** A link to a kernel's detail. */
function kernelLink(kernel) {
  return make("a", { class: "name", href: `#k${kernel.id}`, title: words(kernel.name) }, isolated(kernel.short));
}

/** A table in a container that scrolls by itself; cells are texts or elements. */
function makeTable(titles, rows, { numbers = [], wrap = [], height = "" } = {}) {
  const kind = (column) => (numbers.includes(column) ? "number" : wrap.includes(column) ? "wrap" : "");
  const head = make("tr", {}, ...titles.map((title, column) => make("th", { scope: "col", class: kind(column) }, title)));
  const body = rows.map((cells) => make("tr", {}, ...cells.map((cell, column) => make("td", { class: kind(column) }, cell))));
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
  return make("div", { class: `scroll ${height}`, tabindex: "0" }, table);
}

/** The value of a custom property of the style sheet, as it is in the present colour scheme. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
