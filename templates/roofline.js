// The roofline chart: roofs, a dot per kernel, and the points of the selected kernel. Geometry and sizes come with the data;
// what is computed here is where labels go in the part of the chart that is in view.

const SYMBOLS = {
  memory: "circle", compute: "square", balanced: "diamond", latency: "triangle-up", overhead: "triangle-down", unknown: "x",
};
const MARGIN = { l: 84, r: 18, t: 34, b: 48 };
const NARROW_MARGIN = { l: 82, r: 8, t: 56, b: 48 };
const CHARACTER_PX = 6.3; // of a label's font
const LINE_PX = 15;
const LABEL_SHIFT_PX = 10; // from a line to the middle of its label
const FINE_TICKS_BELOW_DECADES = 2.2;

/** Text for plotly, which reads a part of HTML in its labels. */
function plotlyText(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

/** Ticks of an axis for the decades in view. */
function axisTicks(axis, range) {
  const isFine = range[1] - range[0] < FINE_TICKS_BELOW_DECADES;
  return { tickvals: axis.ticks.values, ticktext: isFine ? axis.ticks.fine : axis.ticks.coarse };
}

/** Whether a label goes below its line: where the next line above would run through it, and none below would. */
function isLabelledBelow(height, heights, pxPerDecade) {
  const distances = heights.map((other) => (other - height) * pxPerDecade);
  const isClose = (px) => px > LINE_PX / 3 && px < LINE_PX + 3; // nearer lines are as good as one
  return distances.some(isClose) && !distances.some((px) => isClose(-px));
}

/** Labels of the slopes: along the line, just above it, moved on along the line where two would meet. */
function slopeLabels(roofs, view) {
  const angle = Math.atan2(view.yPx, view.xPx);
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const placed = [];
  const lines = roofs.map((roof) => ({ roof, height: Math.log10(roof.y[0]) - Math.log10(roof.x[0]) }));
  lines.sort((a, b) => a.height - b.height);
  const heights = lines.map(({ height }) => height);
  for (const { roof, height } of lines) {
    const offset = isLabelledBelow(height, heights, view.yPx * cos) ? -LABEL_SHIFT_PX : LABEL_SHIFT_PX;
    const start = Math.max(view.x[0], view.y[0] - height);
    const length = view.text(roof).length * CHARACTER_PX;
    const across = height * view.yPx * cos;
    let along = (start * view.xPx) / cos + sin * across + 14 + length / 2;
    for (const other of placed) {
      const isNear = Math.abs(other.middle - across - offset) < LINE_PX;
      if (isNear && Math.abs(other.along - along) < (other.length + length) / 2 + 12) {
        along = other.along + (other.length + length) / 2 + 14;
      }
    }
    placed.push({ along, middle: across + offset, length });
    const x = ((along - sin * across) * cos) / view.xPx;
    const isVisible = x < view.x[1] && x + height < view.y[1] && 10 ** x < roof.x[1];
    if (!isVisible) continue;
    const shift = { xshift: -offset * sin, yshift: offset * cos };
    roof.labelAt = { x, y: x + height, textangle: (-angle * 180) / Math.PI, ...shift };
  }
}

/** Labels of the flat roofs: above the line at its right end, or below it; moved left where two would meet. */
function flatLabels(roofs, view) {
  const placed = [];
  const heights = roofs.map((roof) => Math.log10(roof.y[0]));
  for (const roof of [...roofs].sort((a, b) => b.y[0] - a.y[0])) {
    const y = Math.log10(roof.y[0]);
    const offset = isLabelledBelow(y, heights, view.yPx) ? -LABEL_SHIFT_PX : LABEL_SHIFT_PX;
    const middle = y * view.yPx + offset;
    const length = view.text(roof).length * CHARACTER_PX;
    let right = 6;
    for (const other of placed) {
      const isNear = Math.abs(other.middle - middle) < LINE_PX;
      if (isNear && right < other.right + other.length) right = other.right + other.length + 14;
    }
    placed.push({ middle, right, length });
    if (y < view.y[0] || y > view.y[1]) continue;
    roof.labelAt = { x: view.x[1], y, xanchor: "right", xshift: -right, yshift: offset };
  }
}

/** Where the names of joined points go: below and above in turn from left to right, as neighbours may lie on each other. */
function alternating(points) {
  const fromLeft = [...points].sort((a, b) => a.dot[0] - b.dot[0]);
  return points.map((point) => (fromLeft.indexOf(point) % 2 ? "top center" : "bottom center"));
}

class RooflineChart {
  /** `onSelect` is called with the position of a kernel whose dot was clicked. */
  constructor(root, onSelect) {
    this.root = root;
    this.onSelect = onSelect;
    this.isListening = false;
    this.width = 0;
    new ResizeObserver(() => this.width !== root.clientWidth && this.draw()).observe(root);
  }

  /**
   * Show a `figure` of the data: `device` and `view` that it is of, `level` of the dots, `sources` of the roofs, `selected`
   * position of a kernel or null.
   */
  show(choice) {
    this.choice = choice;
    this.draw();
  }

  /** Draw as wide as the container is, or as told. */
  draw(width = this.root.clientWidth) {
    if (!this.choice || !width) return; // a hidden chart has no width
    this.width = width;
    const layout = this.layout();
    const config = {
      displaylogo: false,
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]], // none that knows a server
    };
    Plotly.react(this.root, this.traces(), layout, config);
    if (this.isListening) return;
    this.isListening = true;
    this.root.on("plotly_click", (event) => {
      const position = event.points[0]?.customdata;
      if (position !== undefined) this.onSelect(position);
    });
    this.root.on("plotly_relayout", (change) => {
      if (Object.keys(change).some((key) => /axis.*(range|autorange)/.test(key))) this.draw();
    });
  }

  /** The ranges in view: what the reader zoomed to, or those of the data. */
  ranges() {
    const { figure } = this.choice;
    const isSame = this.root.layout?.meta === this.shownNow();
    const zoomed = (axis, own) => (isSame && !axis?.autorange && axis?.range ? [...axis.range] : [...own]);
    return { x: zoomed(this.root.layout?.xaxis, figure.x.range), y: zoomed(this.root.layout?.yaxis, figure.y.range) };
  }

  /** Name of what is shown, by which a zoom of one chart is told from that of another. */
  shownNow() {
    return `${this.choice.device} ${this.choice.view}`;
  }

  layout() {
    const { figure } = this.choice;
    const isNarrow = this.width < 600;
    const margin = isNarrow ? NARROW_MARGIN : MARGIN;
    const height = isNarrow ? 420 : 540;
    const ranges = this.ranges();
    const axis = (own, range, title) => ({
      type: "log", range, title: { text: title, standoff: 8 }, tickmode: "array", ...axisTicks(own, range), zeroline: false,
      gridcolor: colour("grid"), linecolor: colour("line"), showline: true, mirror: true, ticks: "",
    });
    return {
      width: this.width, height, margin, meta: this.shownNow(),
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("ink") },
      xaxis: axis(figure.x, ranges.x, figure.x.title),
      yaxis: axis(figure.y, ranges.y, ""),
      hovermode: "closest",
      hoverlabel: { bgcolor: colour("panel"), bordercolor: colour("line"), font: { color: colour("ink"), size: 12 }, align: "left" },
      dragmode: isNarrow ? false : "zoom",
      showlegend: true,
      legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", itemsizing: "constant" },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("soft"), activecolor: colour("ink") },
      annotations: this.labels(ranges, margin, height, isNarrow),
    };
  }

  shownRoofs() {
    return this.choice.figure.roofs.filter((roof) => roof.standsIn || this.choice.sources.has(roof.source));
  }

  labels(ranges, margin, height, isNarrow) {
    const view = {
      ...ranges,
      xPx: (this.width - margin.l - margin.r) / (ranges.x[1] - ranges.x[0]),
      yPx: (height - margin.t - margin.b) / (ranges.y[1] - ranges.y[0]),
      text: (roof) => (isNarrow ? roof.short : roof.label),
    };
    const roofs = this.shownRoofs().map((roof) => ({ ...roof, labelAt: null }));
    slopeLabels(roofs.filter((roof) => roof.kind === "bandwidth"), view);
    flatLabels(roofs.filter((roof) => roof.kind === "compute"), view);
    return roofs.filter((roof) => roof.labelAt).map((roof) => ({
      ...roof.labelAt, text: plotlyText(view.text(roof)), showarrow: false, yanchor: "middle",
      font: { size: 11, color: colour(roof.source === "counters" ? "ink" : "soft") },
    }));
  }

  traces() {
    return [...this.shownRoofs().map((roof) => this.roofTrace(roof)), ...this.dotTraces(), ...this.selectedTraces()];
  }

  roofTrace(roof) {
    const isCounted = roof.source === "counters";
    return {
      x: roof.x, y: roof.y, mode: "lines", hoverinfo: "skip", showlegend: false,
      line: { color: colour(isCounted ? "ink" : "soft"), width: isCounted ? 1.3 : 1, dash: isCounted ? "solid" : "dash" },
    };
  }

  /** The kernels of the chart's device that have a dot at the chosen level, by verdict. */
  dotTraces() {
    const { device, view, level } = this.choice;
    const traces = [];
    for (const [verdict, title] of Object.entries(DATA.verdicts)) {
      const positions = [...DATA.kernels.keys()].filter((position) => {
        const kernel = DATA.kernels[position];
        return kernel.device === device && kernel.verdict === verdict && kernel.dots[view][level];
      });
      if (positions.length === 0) continue;
      const kernels = positions.map((position) => DATA.kernels[position]);
      const dots = kernels.map((kernel) => kernel.dots[view][level][0]);
      traces.push({
        name: plotlyText(title), mode: "markers", customdata: positions,
        x: dots.map((dot) => dot[0]),
        y: dots.map((dot) => dot[1]),
        marker: {
          symbol: SYMBOLS[verdict], size: kernels.map((kernel) => kernel.size), opacity: 0.8,
          color: colour(verdict), line: { color: colour("paper"), width: 1 },
        },
        hoverinfo: "text", hovertext: kernels.map((kernel, index) => this.hover(kernel, dots[index])),
      });
    }
    return traces;
  }

  hover(kernel, dot) {
    const bound = `${DATA.verdicts[kernel.verdict]}, ${kernel.limiter}`;
    return [`#${kernel.id} ${words(kernel.short)}`, `${kernel.time}, ${bound}`, dot[3]].map(plotlyText).join("<br>");
  }

  /** The points of the selected kernel at all levels, a line per precision. */
  selectedTraces() {
    const { device, view, selected } = this.choice;
    const kernel = DATA.kernels[selected];
    if (!kernel || kernel.device !== device) return [];
    const byPrecision = new Map();
    for (const [level, dots] of Object.entries(kernel.dots[view])) {
      for (const dot of dots) byPrecision.set(dot[2], [...(byPrecision.get(dot[2]) ?? []), { level, dot }]);
    }
    return [...byPrecision.values()].map((points) => ({
      mode: "lines+markers+text", showlegend: false, cliponaxis: false,
      x: points.map(({ dot }) => dot[0]), y: points.map(({ dot }) => dot[1]),
      text: points.map(({ level }) => plotlyText(DATA.levels[level] ?? level)), textposition: alternating(points),
      textfont: { size: 11, color: colour("ink") },
      line: { color: colour("ink"), width: 1 },
      marker: { symbol: "circle-open", size: Math.max(kernel.size + 6, 12), color: colour("ink"), line: { width: 1.5 } },
      hoverinfo: "text", hovertext: points.map(({ dot }) => this.hover(kernel, dot)),
    }));
  }
}
