// The state of the page, and what depends on it: the open launch, GPU, view, level and sources of roofs. What the address says of it is in
// address.js, opening and closing in dock.js.

const state = { selected: null, pinned: null, section: "", view: null, level: null, sources: new Set() };
const BARS = "bars";
const SHEET_PX = 680;
const A_POINT = 0.01;

const chartRoot = document.getElementById("chart");
const chart = new RooflineChart(chartRoot, remember);
new ChartPointer(chart, tell, open, close);
const table = new RowTable(document.getElementById("table"));
const ranges = DATA.ranges.length > 1 ? new Icicle(document.getElementById("icicle"), (line) => {
  filter.range = line === null ? "" : String(line);
  showRows();
  remember({ isOpening: true });
}) : null;
let rows = [];

/** The tooltip lines of a mark. */
function tell({ row, dot }) {
  const { position } = row;
  const { level, view } = state;
  const many = row.n === 1 ? "" : ` in ${launchCount(row.n)} launches`;
  const limiter = words(LAUNCHES.limiter[position]);
  const bound = [verdictTitle(verdictOf(position)), limiter].filter(Boolean).join(", ");
  const units = DATA.units[view];
  const lines = [
    `#${LAUNCHES.id[position]} ${words(LAUNCHES.short[position])}`,
    `${duration(row.time)}${many}, ${share(VALUES.share(row))} of ${DATA.gpuTime}; ${bound}`,
  ];
  if (dot) {
    const roof = dot.roof === null ? "" : `, ${share(dot.roof)} of its roof`;
    const where = [DATA.levels[level], DATA.precisions[dot.precision] ?? ""].filter(Boolean).join(", ");
    const place = `${scaled(dot.x, units.intensity)}, ${scaled(dot.y, units.rate)}`;
    lines.push(`${where}: ${DATA.integers.includes(dot.precision) ? place.replaceAll("FLOP", "OP") : place}${roof}`);
  } else {
    const [memory, compute] = [VALUES.memory(row), VALUES.compute(row)];
    lines.push(`memory ${share(memory)}, compute ${share(compute)}; ${words(DATA.off[view][position]) || figure().noLevel}`);
  }
  if (row.recoverable !== null) lines.push(`above the roofline: ${duration(row.recoverable)}${setBy(position, dot)}`);
  return lines;
}

/** Which roof sets a launch's roofline time, where that is not its dot's; else empty. */
function setBy(position, dot) {
  const efficiency = LAUNCHES.efficiency[position];
  const by = words(LAUNCHES.min_time_by[position]);
  if (!dot || !by || efficiency === null || Math.abs(efficiency - dot.roof) <= A_POINT) return "";
  return `; roofline time is ${share(efficiency)} of its duration, set by ${by}`;
}

/** The charts of the current GPU, or null. */
function deviceChart() {
  return DATA.charts.find((each) => each.device === filter.device) ?? null;
}

/** The roofline shown, or null. */
function figure() {
  return deviceChart()?.views[state.view] ?? null;
}

/** Name of the chart shown, under which its zoom is kept. */
function chartKey() {
  return `${filter.device} ${state.view} ${state.level}`;
}

/** The view that a GPU opens with. */
function firstView() {
  return deviceChart()?.opens ?? BARS;
}

/** The sources of roofs that are shown at first. */
function firstSources() {
  return (figure()?.sources ?? []).filter(([, isShown]) => isShown).map(([source]) => source);
}

/** Switch to a GPU; keep the view if it has dots there. */
function chooseDevice(device) {
  filter.device = device;
  const own = deviceChart();
  if (own && state.view !== BARS && !own.views[state.view]?.levels.length) state.view = own.opens;
  chooseView(state.view);
}

/** Switch to a view; keep the level if it has dots there, and the sources of roofs if any exists there, else those shown initially. */
function chooseView(view) {
  state.view = view;
  const shown = figure();
  if (!shown) return;
  if (!shown.levels.includes(state.level)) state.level = shown.levels[0] ?? null;
  if (!shown.sources.some(([source]) => state.sources.has(source))) {
    state.sources = new Set(firstSources());
  }
}

/** The switch between views. It is not redrawn when used, so that the arrow keys keep working on it. */
function showViews() {
  const views = { ...(deviceChart() ? DATA.views : {}), [BARS]: "Utilisation" };
  if (!(state.view in views)) state.view = BARS;
  const choices = Object.entries(views).map(([view, label]) =>
    control("radio", label, view === state.view, { name: "view", value: view }, () => {
      chooseView(view);
      showControls();
      showDotsAnew();
    }),
  );
  const legend = make("legend", { class: "unseen" }, "View");
  document.getElementById("chart-views").replaceChildren(make("fieldset", { class: "switch" }, legend, ...choices));
}

function showControls() {
  const shown = figure();
  const controls = [];
  if (shown?.levels.length) {
    const levels = shown.levels.map((level) =>
      control("radio", ` ${DATA.levels[level]}`, level === state.level, { name: "level", value: level }, () => {
        state.level = level;
        showDotsAnew();
      }),
    );
    const sources = shown.sources.map(([source]) =>
      control("checkbox", ` ${source}`, state.sources.has(source), { name: "source", value: source }, (isChecked) => {
        if (isChecked) state.sources.add(source);
        else state.sources.delete(source);
        showChart();
        remember();
      }),
    );
    controls.push(make("fieldset", {}, make("legend", {}, shown.counted), ...levels), make("fieldset", {}, make("legend", {}, "Roofs of"), ...sources));
  }
  document.getElementById("chart-controls").replaceChildren(...controls);
}

/** Show another view or level; with it changes which launches have no dot. */
function showDotsAnew() {
  if (filter.dot) showRows();
  else showChart();
  remember();
}

async function showChart() {
  const shown = figure();
  const hasDots = Boolean(shown?.levels.length);
  chartRoot.hidden = !hasDots;
  document.getElementById("chart-buttons").hidden = !hasDots;
  document.getElementById("chart-legend").replaceChildren(...(hasDots ? verdictsOf(rows).map((verdict) => make("li", {}, verdictMark(verdict))) : []));
  document.getElementById("chart-note").textContent = hasDots
    ? "Dot size: time. Numbers: what to do. Click a dot for its detail. Drag, pinch or Ctrl with the wheel zooms, double-click resets, Backspace undoes. Arrow keys move between dots (with Shift: pan), Enter opens a dot, Escape closes it."
    : state.view === BARS ? "" : shown?.noChart ?? "No chart: the report names no GPU.";
  document.getElementById("without").replaceChildren(...(hasDots ? withoutDot() : []));
  const hasBars = state.view === BARS || !hasDots;
  document.getElementById("bars").replaceChildren(...(hasBars ? [utilisationBars(rows)] : []));
  if (!hasDots) return;
  const { view, level, sources } = state;
  chartRoot.setAttribute("aria-label", `${shown.label} of ${inWords(rows)}; the table of kernels below holds the same numbers`);
  const isInView = rows.some(({ launches }) => launches.includes(state.selected));
  const selected = isInView ? await pointsOf(state.selected) : null;
  chart.show({ figure: shown, key: chartKey(), view, level, sources, rows, selected, pinned: state.pinned });
}

/** A link to the rows in view that have no dot, with their share of the time; nothing where all have one. */
function withoutDot() {
  const off = rows.filter((row) => dotOfRow(row, state.view, state.level) === null);
  if (!off.length || filter.dot) return [];
  const part = shareOfRun(timeOf(off));
  const text = `${counted(off.length, "kernel has", "kernels have")} no dot here${part === null ? "" : `: ${share(part)} of ${DATA.gpuTime}`}`;
  const link = make("a", { href: "#kernels", id: "without-dot" }, text);
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const others = Object.fromEntries(Object.keys(NO_FILTER).map((key) => [key, filter[key]]));
    setFilters({ ...others, dot: NO_DOT });
    showRows();
    state.section = "kernels";
    remember({ isOpening: true });
    glideTo("kernels", document.getElementById("kernels-title"));
  });
  return [link];
}

/** The heading of a saved picture: report, then GPU, level and launches. */
function headingOfChart() {
  const { label, counted } = figure();
  const report = document.querySelector("h1").textContent.split(/[\\/]/).pop();
  return [`${label}: ${report}`, [words(deviceChart().label), `${counted} ${DATA.levels[state.level]}`, inWords(rows)].join(" · ")];
}

async function pointsOf(position) {
  if (position === null || LAUNCHES.device[position] !== filter.device) return null;
  const { detail } = await details.of(position);
  return { position, points: detail.points_by_view };
}

/** Show the rows that pass the filters. */
function showRows() {
  rows = rowsInView();
  document.getElementById("in-view").textContent = inWords(rows);
  document.getElementById("table-device").textContent = allDevices().length > 1 ? `on ${deviceLabel(filter.device)}` : "";
  const isWholeRun = !isFiltering();
  clear.hidden = isWholeRun;
  for (const place of others) place.replaceChildren(...elsewhere());
  for (const place of backs) place.replaceChildren(...wayBack());
  inTable.textContent = isWholeRun ? "" : inWords(rows);
  ranges?.mark(filter.range === "" ? null : Number(filter.range));
  table.show(rows);
  showHidden();
  return showChart();
}

/** A link to where the reader came from to the launches of a thing to do or of a range; nothing otherwise. */
function wayBack() {
  if (filter.finding) return [make("a", { href: "#actions" }, "Back to what to do first")];
  return filter.range === "" ? [] : [make("a", { href: "#ranges" }, "Back to NVTX ranges")];
}

/** Say that the filters hide the row of the open launch, if they do. */
function showHidden() {
  const position = state.selected;
  const isHidden = position !== null && LAUNCHES.device[position] === filter.device && !rows.some(({ launches }) => launches.includes(position));
  const show = () => {
    clearFilters();
    table.focus(table.indexOf(position));
  };
  hidden.replaceChildren(...(isHidden ? [`#${LAUNCHES.id[position]} is hidden by the filters. `, button("Clear filters", show)] : []));
}

function clearFilters() {
  setFilters({});
  showRows();
  remember({ isOpening: true });
}

/**
 * Show only some launches on the chart and in the table, on the GPU where they save or take most. Of an action, go to the chart; of a
 * range, to the table, as it says.
 */
function showOnly(filters) {
  setFilters(filters);
  const [[device] = [filter.device]] = inViewByDevice();
  changeDevice(device);
  state.section = filter.range === "" && !filter.dot ? "roofline" : "kernels";
  remember({ isOpening: true });
  glideTo(state.section, document.getElementById(`${state.section}-title`));
}

/** Show a launch's detail, and mark the launch on the chart and in the table; null closes the detail. */
async function select(position) {
  state.selected = position;
  if (position !== null && LAUNCHES.device[position] !== filter.device) changeDevice(LAUNCHES.device[position]);
  showDock(position !== null);
  table.mark(position);
  showHidden();
  if (position === null) showWhatIf(chart, null, null);
  else await showDetail(position);
  await showChart();
}

function button(label, onClick) {
  const element = make("button", { type: "button" }, label);
  element.addEventListener("click", onClick);
  return element;
}

const FIRST = { device: deviceWithMostTime() };
filter.device = FIRST.device;
chooseView(firstView());
const clear = button("Clear filters", () => {
  clearFilters();
  document.getElementById("search").focus();
});
const hidden = make("span", { role: "status", class: "soft" });
// Where else, and the way back: beside the filters, and at the table, where links from the ranges lead.
const others = [make("span", { id: "elsewhere", class: "soft" }), make("span", { class: "soft" })];
const backs = [make("span"), make("span")];
const inTable = make("span", { class: "soft" });
const narrow = (isTyping) => {
  showRows();
  remember({ isOpening: !isTyping });
};
document.getElementById("find").append(searchField(() => narrow(true)));
document.getElementById("filters").append(...deviceControl(), ...filterControls(() => narrow(false)), make("span", { id: "in-view", role: "status", class: "soft" }), others[0], clear, backs[0]);
for (const link of document.querySelectorAll("[data-finding], [data-range], [data-verdict], [data-dot]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    showOnly({ ...link.dataset });
  });
}
document.getElementById("chart-buttons").append(
  button("Zoom in", () => chart.zoomBy(KEY_ZOOM)),
  button("Zoom out", () => chart.zoomBy(1 / KEY_ZOOM)),
  button("Reset zoom", () => chart.zoomTo(null)),
  button("Undo zoom", () => chart.undoZoom()),
  button("Save SVG", () => save("roofline.svg", new Blob([chartAsSvg(chart, headingOfChart())], { type: "image/svg+xml" }))),
  button("Save PNG", () => saveAsPng(chartAsSvg(chart, headingOfChart()), "roofline.png")),
);
document.getElementById("table-buttons").append(
  button("Copy as CSV", async (event) => {
    const isCopied = await copy(table.csv());
    if (!isCopied) save("kernels.csv", new Blob([table.csv()], { type: "text/csv" }));
    event.target.textContent = isCopied ? "Copied" : "Saved";
    setTimeout(() => (event.target.textContent = "Copy as CSV"), 2000);
  }),
  inTable,
  others[1],
  backs[1],
  hidden,
);
window.addEventListener("popstate", ({ state: entry }) => restore(location.hash, entry === null));
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='#']");
  if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  follow(link.getAttribute("href"));
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => chart.redraw());
document.getElementById("print-buttons").append(button("Print all", () => {
  document.documentElement.classList.add("print-all");
  window.print();
  document.documentElement.classList.remove("print-all");
}));
const isOneSheet = () => !document.documentElement.classList.contains("print-all");
window.addEventListener("beforeprint", () => {
  chart.redraw(SHEET_PX, { isLow: isOneSheet() }); // sheets are counted before the print colours apply
  if (isOneSheet()) return; // without the table
  table.whole(table.rows.length <= 2000);
  for (const part of document.querySelectorAll("#methods details, #range-list, #families")) part.open = true;
});
window.addEventListener("afterprint", () => table.whole(false));
// The print colours apply from here on; no event gives the width of the paper, so use that of a common sheet.
matchMedia("print").addEventListener("change", ({ matches }) => {
  if (!matches) return chart.redraw();
  chart.redraw(SHEET_PX, { isLow: isOneSheet() });
  return chart.choice && chart.back.append(...dotsAsSvg(chart)); // in place of the canvas, which prints coarsely
});
showExplanations(document.getElementById("explained"));
// Ready: what the address says is shown.
restore(location.hash, location.hash !== "").finally(() => (document.documentElement.dataset.ready = "true"));
