// What is chosen, and what follows from it: a kernel (also by #k12 in the address), the charts of a GPU, a view (which of its
// rooflines), a level, sources of roofs.

const state = { selected: null, isMarked: false, chart: null, view: null, level: null, sources: new Set() };

const table = new KernelTable(document.getElementById("table"));
const roofline = new RooflineChart(document.getElementById("chart"), (position) => {
  history.replaceState(null, "", `#k${DATA.kernels[position].id}`);
  select(position);
});

/** The roofline that is shown, or null. */
function figure() {
  return state.chart?.views[state.view] ?? null;
}

/** Take the charts of a GPU: the view that was chosen if it has dots there, the roofs that are shown at first. */
function chooseChart(chart) {
  state.chart = chart;
  state.sources = new Set();
  if (chart) chooseView(figure()?.levels.length ? state.view : chart.opens);
}

/** Take a view: the level that was chosen if it has dots there, and of the roofs those chosen, else those shown at first. */
function chooseView(view) {
  state.view = view;
  const { levels, sources } = figure();
  if (!levels.includes(state.level)) state.level = levels[0] ?? null;
  if (!sources.some(([source]) => state.sources.has(source))) {
    state.sources = new Set(sources.filter(([, isShown]) => isShown).map(([source]) => source));
  }
}

/** A control with its label. */
function control(type, label, isChecked, attributes, onChange) {
  const input = make("input", { type, ...attributes });
  input.checked = isChecked;
  input.addEventListener("change", () => onChange(input.checked));
  return make("label", {}, input, ` ${label}`);
}

/** The switch between the rooflines. It is not drawn anew when it is used, so that the arrow keys go on from there. */
function showViews() {
  if (!state.chart) return;
  const choices = Object.entries(DATA.views).map(([view, label]) => {
    const input = make("input", { type: "radio", name: "view", value: view });
    input.checked = view === state.view;
    input.addEventListener("change", () => {
      chooseView(view);
      showControls();
      showChart();
    });
    return make("label", {}, input, make("span", {}, label));
  });
  const legend = make("legend", { class: "unseen" }, "Kind of roofline");
  document.getElementById("chart-views").replaceChildren(make("fieldset", { class: "switch" }, legend, ...choices));
}

function showControls() {
  const { chart } = state;
  const controls = [];
  if (DATA.charts.length > 1) {
    const options = DATA.charts.map((each, index) => make("option", { value: String(index) }, each.label));
    const choice = make("select", { id: "device-choice" }, ...options);
    choice.selectedIndex = DATA.charts.indexOf(chart);
    choice.addEventListener("change", () => {
      chooseChart(DATA.charts[choice.selectedIndex]);
      showViews();
      showControls();
      showChart();
      document.getElementById("device-choice").focus();
    });
    controls.push(make("label", {}, "GPU ", choice));
  }
  const shown = figure();
  if (shown?.levels.length) {
    const levels = shown.levels.map((level) =>
      control("radio", DATA.levels[level], level === state.level, { name: "level", value: level }, () => {
        state.level = level;
        showChart();
      }),
    );
    controls.push(make("fieldset", {}, make("legend", {}, shown.counted), ...levels));
    for (const [source, isShown] of shown.sources) {
      if (isShown) continue;
      controls.push(
        control("checkbox", `roofs of the ${source}`, state.sources.has(source), { name: "source", value: source }, (isChecked) => {
          if (isChecked) state.sources.add(source);
          else state.sources.delete(source);
          showChart();
        }),
      );
    }
  }
  document.getElementById("chart-controls").replaceChildren(...controls);
}

/** The kernels of the chart's device without a dot at the chosen level: never dropped, placed by utilisation. */
function showOffChart() {
  const { view, level } = state;
  const hasNoDot = (kernel) => !kernel.dots[view]?.[level];
  const kernels = DATA.kernels.filter((kernel) => kernel.device === (state.chart?.device ?? null) && hasNoDot(kernel));
  const parts = [];
  if (kernels.length) {
    const rows = kernels.map((kernel) => [
      `#${kernel.id}`, kernelLink(kernel), kernel.time, ...kernel.busy, verdictMark(kernel.verdict),
      kernel.off[view ?? "flop"] ?? figure()?.noLevel,
    ]);
    const titles = ["#", "Kernel", "Time", "Memory", "Compute", "Verdict", "Why it has no dot"];
    parts.push(
      make("h3", {}, `Without a dot: placed by utilisation (${kernels.length})`),
      makeTable(titles, rows, { numbers: [0, 2, 3, 4], height: "short" }),
    );
  }
  document.getElementById("off-chart").replaceChildren(...parts);
}

function showChart() {
  const shown = figure();
  const hasDots = shown !== null && state.level !== null;
  const root = document.getElementById("chart");
  root.hidden = !hasDots;
  document.getElementById("chart-note").textContent = hasDots
    ? "Size: duration. Select a dot or a kernel to see its points at all levels. Drag to zoom, double-click to go back."
    : shown?.noChart ?? "There is no chart: no GPU is known.";
  if (hasDots) {
    const { view, level, sources, selected, isMarked } = state;
    root.setAttribute("aria-label", `${shown.label} chart; the details of the kernels below hold the same numbers`);
    roofline.show({ figure: shown, device: state.chart.device, view, level, sources, selected: isMarked ? selected : null });
  }
  showOffChart();
}

/** Select a kernel; one that the reader chose is marked on the chart and in the table. */
function select(position, isMarked = true) {
  const kernel = DATA.kernels[position];
  if (!kernel) return;
  state.selected = position;
  state.isMarked = isMarked;
  if (isMarked) {
    table.mark(position);
    const own = DATA.charts.find((chart) => chart.device === kernel.device);
    if (own && own !== state.chart) {
      chooseChart(own);
      showViews();
      showControls();
    }
  }
  showDetail(kernel);
  showChart();
}

/** Follow #k12 in the address: show that kernel's detail and go there. */
function followAddress() {
  const match = /^#k(\d+)$/.exec(location.hash);
  const position = match ? DATA.kernels.findIndex((kernel) => kernel.id === Number(match[1])) : -1;
  if (position < 0) return false;
  select(position);
  document.getElementById("detail").scrollIntoView();
  document.getElementById("detail-title").focus({ preventScroll: true });
  return true;
}

chooseChart(DATA.charts[0] ?? null);
showViews();
showControls();
if (!followAddress()) {
  const first = table.rows[0];
  if (first) select(Number(first.row.dataset.position), false);
  else showChart();
}
window.addEventListener("hashchange", followAddress);
// A link to the kernel that the address already names changes nothing, and still has to lead there.
document.addEventListener("click", (event) => {
  if (event.target.closest?.("a")?.getAttribute("href") === location.hash) followAddress();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => roofline.draw());
window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("#methods details")) details.open = true;
});
// Colours are those of paper from this moment on; the width is that of a sheet, which no event tells.
const SHEET_PX = 680;
matchMedia("print").addEventListener("change", ({ matches }) => (matches ? roofline.draw(SHEET_PX) : roofline.draw()));
