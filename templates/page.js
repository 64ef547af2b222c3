// The state of the page, and what depends on it: selected launch (also by #k12 in the address), GPU, view, level and sources of roofs.

const state = { selected: null, isMarked: false, view: null, level: null, sources: new Set() };
const BARS = "bars";
const SHEET_PX = 680;
const HERE = location.href.split("#")[0];
const A_POINT = 0.01;

const chartRoot = document.getElementById("chart");
const outOfView = make("span", { role: "status", class: "soft" });
const chart = new RooflineChart(chartRoot, (n, all) => {
  outOfView.textContent = n ? `${n} of ${counted(all, "dot", "dots")} out of view` : "";
});
new ChartPointer(chart, tell, open, deselect);
const table = new RowTable(document.getElementById("table"));
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
    state.sources = new Set(shown.sources.filter(([, isShown]) => isShown).map(([source]) => source));
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
      showChart();
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
        showChart();
      }),
    );
    const sources = shown.sources.map(([source]) =>
      control("checkbox", ` ${source}`, state.sources.has(source), { name: "source", value: source }, (isChecked) => {
        if (isChecked) state.sources.add(source);
        else state.sources.delete(source);
        showChart();
      }),
    );
    controls.push(make("fieldset", {}, make("legend", {}, shown.counted), ...levels), make("fieldset", {}, make("legend", {}, "Roofs of"), ...sources));
  }
  document.getElementById("chart-controls").replaceChildren(...controls);
}

async function showChart() {
  const shown = figure();
  const hasDots = Boolean(shown?.levels.length);
  chartRoot.hidden = !hasDots;
  document.getElementById("chart-buttons").hidden = !hasDots;
  document.getElementById("chart-legend").replaceChildren(...(hasDots ? verdictsOf(rows).map((verdict) => make("li", {}, verdictMark(verdict))) : []));
  document.getElementById("chart-note").textContent = hasDots
    ? "Dot size: time. Click a dot for its detail. Drag to zoom, double-click to reset. Arrow keys move between dots (with Shift: pan), Enter opens a dot, Escape deselects it."
    : state.view === BARS ? "" : shown?.noChart ?? "No chart: the report names no GPU.";
  const hasBars = state.view === BARS || !hasDots;
  document.getElementById("bars").replaceChildren(...(hasBars ? [utilisationBars(rows)] : []));
  if (!hasDots) return;
  const { view, level, sources } = state;
  chartRoot.setAttribute("aria-label", `${shown.label} of ${inWords(rows)}; the table of kernels below holds the same numbers`);
  const isInView = state.isMarked && rows.some(({ launches }) => launches.includes(state.selected));
  const selected = isInView ? await pointsOf(state.selected) : null;
  chart.show({ figure: shown, device: filter.device, view, level, sources, rows, selected });
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
  table.show(rows);
  showHidden();
  return showChart();
}

/** A link to where the reader came from to the launches of a thing to do or of a range; nothing otherwise. */
function wayBack() {
  if (filter.finding) return [make("a", { href: "#actions" }, "Back to what to do first")];
  return filter.range === "" ? [] : [make("a", { href: "#ranges" }, "Back to NVTX ranges")];
}

/** Say that the filters hide the row of the launch that the reader chose, if they do. */
function showHidden() {
  const position = state.isMarked ? state.selected : null;
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
}

/**
 * Show only the launches that an action counts, or of an NVTX range, on the chart and in the table: of the GPU where they save or take
 * most. Of an action, go to the chart; of a range, to the table, as it says.
 */
function showOnly(filters) {
  setFilters(filters);
  const [[device] = [filter.device]] = inViewByDevice();
  changeDevice(device);
  const section = filter.range === "" ? "roofline" : "kernels";
  glideTo(section, document.getElementById(`${section}-title`));
}

/** Select a launch and put it into the address, so that links to it can be shared. */
function choose(position) {
  try {
    history.replaceState(null, "", `${HERE}#k${LAUNCHES.id[position]}`);
  } catch { // a frame whose content another page wrote has no address of its own
  }
  return select(position);
}

/** Select a launch on the chart and go to its detail. */
function open(position) {
  choose(position).then(() => glideTo("detail", document.getElementById("detail-title")));
}

/** Deselect the selected launch. */
function deselect() {
  if (!state.isMarked && !chart.imaginary) return;
  state.isMarked = false;
  table.mark(null);
  showHidden();
  showWhatIf(chart, null, null);
  showChart();
}

/** Show a launch's detail; if `isMarked`, that is, chosen by the reader, mark it on the chart and in the table. */
async function select(position, isMarked = true) {
  state.selected = position;
  state.isMarked = isMarked;
  if (isMarked && LAUNCHES.device[position] !== filter.device) changeDevice(LAUNCHES.device[position]);
  if (isMarked) table.mark(position);
  showHidden();
  await showDetail(position);
  await showChart();
}

function button(label, onClick) {
  const element = make("button", { type: "button" }, label);
  element.addEventListener("click", onClick);
  return element;
}

filter.device = deviceWithMostTime();
state.view = deviceChart()?.opens ?? BARS;
chooseView(state.view);
const clear = button("Clear filters", () => {
  clearFilters();
  document.getElementById("search").focus();
});
const hidden = make("span", { role: "status", class: "soft" });
// Where else, and the way back: beside the filters, and at the table, where links from the ranges lead.
const others = [make("span", { id: "elsewhere", class: "soft" }), make("span", { class: "soft" })];
const backs = [make("span"), make("span")];
const inTable = make("span", { class: "soft" });
document.getElementById("filters").append(...deviceControl(), ...filterControls(showRows), make("span", { id: "in-view", role: "status", class: "soft" }), others[0], clear, backs[0]);
for (const link of document.querySelectorAll("[data-finding], [data-range]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    showOnly({ ...link.dataset });
  });
}
document.getElementById("chart-buttons").append(
  button("Zoom in", () => chart.zoomBy(KEY_ZOOM)),
  button("Zoom out", () => chart.zoomBy(1 / KEY_ZOOM)),
  button("Reset zoom", () => chart.zoomTo(null)),
  button("Save SVG", () => save("roofline.svg", new Blob([chartAsSvg(chart, headingOfChart())], { type: "image/svg+xml" }))),
  button("Save PNG", () => saveAsPng(chartAsSvg(chart, headingOfChart()), "roofline.png")),
  outOfView,
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
document.getElementById("detail-buttons").append(button("Back to the chart", () => glideTo("roofline", chartRoot)));
showViews();
showControls();
showRows();
window.addEventListener("hashchange", () => followAddress());
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='#']");
  if (!link || event.defaultPrevented) return;
  const hash = link.getAttribute("href");
  unfold(document.querySelector(hash));
  // In a frame that another page wrote, or with a base URL from it, the link would lead to that page or nowhere.
  if (location.protocol === "blob:" || link.href !== HERE + hash) {
    event.preventDefault();
    document.querySelector(hash)?.scrollIntoView();
    followAddress(hash);
  } else if (hash === location.hash) followAddress(); // no hashchange event follows, but the link must still work
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => chart.redraw());
window.addEventListener("beforeprint", () => {
  table.whole(table.rows.length <= 2000);
  for (const part of document.querySelectorAll("#methods details")) part.open = true;
});
window.addEventListener("afterprint", () => table.whole(false));
// The print colours apply from here on; no event gives the width of the paper, so use that of a common sheet.
matchMedia("print").addEventListener("change", ({ matches }) => (matches ? chart.redraw(SHEET_PX) : chart.redraw()));
showExplanations(document.getElementById("explained"));
// Ready: the first detail is shown and the address has been followed.
openFirst().finally(() => (document.documentElement.dataset.ready = "true"));
