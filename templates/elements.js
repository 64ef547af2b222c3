// The only ways in which text gets into the document: as text nodes, never as markup.

/** A new element; empty attributes are left out, children are nodes or texts. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== "") element.setAttribute(name, value);
  }
  element.append(...children.map((child) => (child instanceof Node ? child : document.createTextNode(String(child)))));
  return element;
}

/** A new SVG element. */
function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Text of a report, isolated so that it cannot change the writing direction of what surrounds it. */
function isolated(text) {
  return make("bdi", {}, text);
}

/** Names joined by " › ", such as nested NVTX ranges, each isolated: one in Arabic does not reverse their order. */
function isolatedNames(text) {
  return text.split(" › ").flatMap((name, index) => [...(index ? [" › "] : []), isolated(name)]);
}

/** The title of a verdict with its mark. */
function verdictMark(name) {
  const mark = make("span", { class: "mark", "aria-hidden": "true" });
  return make("span", { class: `verdict v-${name}` }, mark, verdictTitle(name));
}

/** A link to a launch's detail. */
function kernelLink(position) {
  return make("a", { class: "name", href: `#k${LAUNCHES.id[position]}` }, isolated(words(LAUNCHES.short[position])));
}

/** A table in its own scroll container; cells are texts or elements. */
function makeTable(titles, rows, { numbers = [], wrap = [], label = titles.join(", ") } = {}) {
  const kind = (column) => (numbers.includes(column) ? "number" : wrap.includes(column) ? "wrap" : "");
  const head = make("tr", {}, ...titles.map((title, column) => make("th", { scope: "col", class: kind(column) }, title)));
  const body = rows.map((cells) => make("tr", {}, ...cells.map((cell, column) => make("td", { class: kind(column) }, cell))));
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);
}

/** The value of a custom property of the style sheet in the current colour scheme. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** A checkbox or radio button with its label. */
function control(type, label, isChecked, attributes, onChange) {
  const input = make("input", { type, ...attributes });
  input.checked = isChecked;
  input.addEventListener("change", () => onChange(input.checked));
  return make("label", {}, input, make("span", {}, label));
}

/** A labelled select element; options are [value, text]. */
function choice(label, options, chosen, attributes, onChange) {
  const select = make("select", attributes, ...options.map(([value, text]) => new Option(text, value)));
  select.value = chosen;
  select.addEventListener("change", () => onChange(select.value));
  return make("label", {}, `${label} `, select);
}
