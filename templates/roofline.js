// The roofline chart: axes, roofs and ridges as SVG, a dot per row on a canvas, and below it the strip of rows without a dot. Geometry is
// in plane.js, labels in labels.js, what is shown for one launch in chosen.js, dots that lie together or beyond the edges in stacks.js, user
// input in pointer.js.

/** Marks of the verdicts, as paths of about unit radius around the origin; shapes carry the same information as colours. */
const MARKS = {
  memory: "M1,0A1,1 0 1 1 -1,0A1,1 0 1 1 1,0Z",
  compute: "M-0.9,-0.9H0.9V0.9H-0.9Z",
  balanced: "M0,-1.25L1.25,0L0,1.25L-1.25,0Z",
  latency: "M0,-1.15L1.15,0.85H-1.15Z",
  overhead: "M0,1.15L1.15,-0.85H-1.15Z",
  unknown: "M-1,-0.55L-0.55,-1L0,-0.45L0.55,-1L1,-0.55L0.45,0L1,0.55L0.55,1L0,0.45L-0.55,1L-1,0.55L-0.45,0Z",
};
const LEAST_RADIUS = 4.5;
const MOST_RADIUS = 14;
const FADED = 0.35; // opacity of the other dots while one is selected
const LEAST_ROOM_PX = 30; // around marks that are zoomed in on
const LEAST_SPREAD = 1.05; // launches whose rates differ by a smaller factor count as equal

class RooflineChart {
  /** `onZoom` is called after the reader changed the zoom. */
  constructor(root, onZoom) {
    Object.assign(this, { root, onZoom, undoable: [] });
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.back = draw("svg", { "aria-hidden": "true", focusable: "false", class: "back" });
    this.front = draw("svg", { "aria-hidden": "true", focusable: "false", class: "front" });
    this.gutters = make("div", { class: "gutters" });
    root.append(this.back, this.canvas, this.front, this.gutters);
    this.zoomed = new Map(); // ranges that the reader chose, by `key()`
    this.paths = Object.fromEntries(Object.entries(MARKS).map(([name, path]) => [name, new Path2D(path)]));
    const paper = matchMedia("print"); // has a width of its own
    new ResizeObserver(() => !paper.matches && this.width !== root.clientWidth && this.redraw()).observe(root);
  }

  /**
   * Show a `figure` of the data. `choice` also has the `key` under which its zoom is kept, its `view`, `level` of the dots, `sources` of the
   * roofs, visible `rows`, the `selected` launch as {position, points}, or null, and the position of the `pinned` one, or null.
   */
  show(choice) {
    this.choice = choice;
    this.redraw();
  }

  /** Draw at the width of the container, or at a given width. */
  redraw(width = this.root.clientWidth, { isLow = false } = {}) {
    if (!this.choice || !width) return; // a hidden chart has no width
    Object.assign(this, { width, isLow });
    this.place(width, this.zoomed.get(this.choice.key) ?? this.firstRanges());
    for (const svg of [this.back, this.front]) {
      svg.setAttribute("viewBox", `0 0 ${width} ${this.plane.height}`);
      svg.setAttribute("width", width);
      svg.setAttribute("height", this.plane.height);
    }
    this.back.replaceChildren(...this.backdrop());
    this.front.replaceChildren(...this.foreground());
    this.gutters.replaceChildren(...gutter(this));
    this.paint();
    judge(this);
  }

  firstRanges() {
    const { figure: { x, y }, level } = this.choice;
    return { x: x.ranges[level], y: y.ranges[level] };
  }

  /**
   * Show a part of the plane; null for the initial view. Changes of one `gesture`, such as the turns of a wheel, are undone together.
   */
  zoomTo(ranges, gesture = null) {
    const { figure: { x, y }, key } = this.choice;
    if (gesture === null || gesture !== this.gesture) this.undoable.push([key, this.zoomed.get(key)]);
    this.gesture = gesture;
    if (ranges) this.zoomed.set(key, keptNear(ranges, { x: x.reach, y: y.reach }));
    else this.zoomed.delete(key);
    this.redraw();
    this.onZoom();
  }

  /** Take back the last change of the zoom of this chart. */
  undoZoom() {
    const index = this.undoable.findLastIndex(([key]) => key === this.choice.key);
    if (index < 0) return;
    const [[key, ranges]] = this.undoable.splice(index);
    this.gesture = null;
    if (ranges) this.zoomed.set(key, ranges);
    else this.zoomed.delete(key);
    this.redraw();
    this.onZoom();
  }

  /** Show all dots of the level. */
  zoomToAll() {
    const { rows, view, level } = this.choice;
    this.zoomTo(rangesWithAll(this.firstRanges(), rows, view, level));
  }

  /** Zoom in on marks. */
  zoomToMarks(marks) {
    const ends = (values) => [Math.min(...values), Math.max(...values)];
    const [[left, right], [top, bottom]] = [ends(marks.map(({ px }) => px)), ends(marks.map(({ py }) => py))];
    const room = Math.max(0.3 * (right - left), 0.3 * (bottom - top), LEAST_ROOM_PX);
    this.zoomTo(this.plane.between({ x: left - room, y: top - room }, { x: right + room, y: bottom + room }));
  }

  /** The zoom of a chart as the address has it; empty for the initial view. */
  zoomAsText(key) {
    const ranges = this.zoomed.get(key);
    return ranges ? [...ranges.x, ...ranges.y].map((exponent) => exponent.toFixed(3)).join() : "";
  }

  /** Set the zoom of a chart, which the next drawing applies; return whether the text is one. */
  zoomByText(key, text) {
    const [x0, x1, y0, y1] = text.split(",").map(Number);
    const isKnown = x1 > x0 && y1 > y0 && [x0, x1, y0, y1].every((exponent) => Math.abs(exponent) < 40);
    if (isKnown) this.zoomed.set(key, { x: [x0, x1], y: [y0, y1] });
    else this.zoomed.delete(key);
    return isKnown || text === "";
  }

  /** Scale the ranges by a factor: around a mark, else the selected launch, else the middle. */
  zoomBy(factor, mark = null) {
    const { selected, view, level } = this.choice;
    const dot = selected && dotOf(selected.position, view, level);
    const own = dot ? { px: this.plane.x(dot.x), py: this.plane.y(dot.y) } : undefined;
    this.zoomTo(this.plane.grown(factor, mark?.isOnPlane ? mark : own));
  }

  /** Position the mark of every row: on the plane, or in a lane of the strip. */
  place(width, ranges) {
    const { rows, view, level } = this.choice;
    const longest = rows.reduce((most, row) => Math.max(most, row.time ?? 0), 0);
    const radius = (row) => LEAST_RADIUS + (MOST_RADIUS - LEAST_RADIUS) * Math.sqrt(longest ? (row.time ?? 0) / longest : 0);
    const marks = rows.map((row) => {
      const verdict = LAUNCHES.verdict[row.position];
      return { row, verdict, radius: radius(row), dot: dotOfRow(row, view, level) };
    });
    const off = marks.filter(({ dot }) => dot === null);
    this.lanes = Object.keys(DATA.verdicts).filter((verdict) => off.some((mark) => mark.verdict === verdict));
    this.plane = new Plane(width, ranges, this.lanes.length, { room: roomForRoofs(this.shownRoofs(), width), isLow: this.isLow });
    for (const mark of marks) {
      mark.isOnPlane = mark.dot !== null;
      mark.px = mark.isOnPlane ? this.plane.x(mark.dot.x) : this.plane.stripX(busier(mark.row.position) ?? 0);
      mark.py = mark.isOnPlane ? this.plane.y(mark.dot.y) : this.plane.laneY(this.lanes.indexOf(mark.verdict));
      if (!mark.isOnPlane) mark.radius = Math.min(mark.radius, LANE_PX / 2 - 3);
    }
    marks.sort((a, b) => b.radius - a.radius); // small marks go on top
    this.out = marks.filter((mark) => mark.isOnPlane && !this.plane.contains(mark.px, mark.py));
    const out = new Set(this.out);
    this.marks = marks.filter((mark) => !out.has(mark));
    const onPlane = this.marks.filter(({ isOnPlane }) => isOnPlane);
    this.isDense = onPlane.length > MOST_DOTS;
    const single = this.isDense ? new Set(onPlane.slice(0, LARGEST)) : null;
    this.drawn = this.isDense ? this.marks.filter((mark) => !mark.isOnPlane || single.has(mark) || this.isChosen(mark.row)) : this.marks;
    this.cells = this.isDense ? cellsOf(onPlane) : [];
    this.stacks = stacksOf(this.drawn);
  }

  /** Whether a row has the open launch, or the pinned one. */
  isChosen({ launches }) {
    const { selected, pinned } = this.choice;
    return [selected?.position, pinned].some((position) => position !== null && launches.includes(position));
  }

  shownRoofs() {
    return this.choice.figure.roofs.filter((roof) => roof.standsIn || this.choice.sources.has(roof.source));
  }

  /** Grid, ticks, roofs, ridges, spreads and the strip. */
  backdrop() {
    const { plane } = this;
    const { figure } = this.choice;
    this.drawnRoofs = []; // lines and labels, each with its roof
    const clip = draw("clipPath", { id: "plane" }, draw("rect", {
      x: plane.left, y: plane.top, width: plane.right - plane.left, height: plane.bottom - plane.top,
    }));
    const frame = draw("rect", {
      x: plane.left, y: plane.top, width: plane.right - plane.left, height: plane.bottom - plane.top, fill: "none", stroke: colour("line"),
    });
    return [
      draw("defs", {}, clip),
      ...plane.ticks(figure.x, "x").flatMap(({ exponent, text, isDecade }) => [
        this.line(plane.px(exponent), plane.top, plane.px(exponent), plane.bottom, colour(isDecade ? "line" : "grid")),
        this.tick(plane.px(exponent), plane.bottom + 16, text),
      ]),
      ...plane.ticks(figure.y, "y").flatMap(({ exponent, text, isDecade }) => [
        this.line(plane.left, plane.py(exponent), plane.right, plane.py(exponent), colour(isDecade ? "line" : "grid")),
        this.text(plane.left - 6, plane.py(exponent), text, { anchor: "end", fill: colour("soft") }),
      ]),
      this.xTitle(figure.x.titles[this.choice.level]),
      ...(figure.y.title ? [this.text(plane.left, plane.top - 8, figure.y.title, { anchor: "start", fill: colour("soft") })] : []),
      frame,
      draw("g", { "clip-path": "url(#plane)" }, ...this.shownRoofs().map((roof) => this.roofLine(roof)), ...this.ridges(), ...this.spreads()),
      ...this.strip(),
    ];
  }

  roofLine(roof) {
    const { plane } = this;
    const line = this.line(plane.x(roof.x[0]), plane.y(roof.y[0]), plane.x(roof.x[1]), plane.y(roof.y[1]), colour(roof.source === "counters" ? "ink" : "soft"));
    if (roof.source !== "counters") line.setAttribute("stroke-dasharray", "7 5");
    line.setAttribute("class", "roof");
    this.drawnRoofs.push({ roof, line });
    return line;
  }

  /** Where flat roofs meet the slopes of the chosen level, in pairs of one source; a roof with `standsIn` joins those from counters. */
  meetings() {
    const slopes = this.shownRoofs().filter((roof) => roof.kind === "bandwidth" && roof.names.includes(this.choice.level));
    const flats = this.shownRoofs().filter((roof) => roof.kind === "compute");
    const isCounted = (roofs) => roofs.some((roof) => roof.source === "counters");
    const sourceOf = (roof, others) => (roof.standsIn && isCounted(others) ? "counters" : roof.source);
    const meet = (slope, flat) => sourceOf(flat, slopes) === sourceOf(slope, flats);
    return slopes.flatMap((slope) => flats.filter((flat) => meet(slope, flat)).map((flat) => ({ intensity: flat.per_s / slope.per_s, flat })));
  }

  /** A ring where a flat roof meets the slope of the chosen level, and a dotted line down to its intensity. */
  ridges() {
    const { plane } = this;
    return this.meetings().flatMap(({ intensity, flat }) => {
      const [x, y] = [plane.x(intensity), plane.y(flat.per_s)];
      const fall = this.line(x, y, x, plane.bottom, colour("soft"));
      fall.setAttribute("stroke-dasharray", "1 4");
      return [fall, draw("circle", { cx: x, cy: y, r: 3, fill: colour("paper"), stroke: colour("soft") })];
    });
  }

  /** The range of rates of a row's launches, where they differ: a vertical line through its dot. */
  spreads() {
    const { view, level } = this.choice;
    return this.drawn.filter(({ row, isOnPlane }) => isOnPlane && row.launches.length > 1).flatMap(({ row, dot, px }) => {
      const dots = row.launches.map((position) => dotOf(position, view, level));
      const heights = dots.filter((each) => each?.precision === dot.precision).map(({ y }) => y);
      const [low, high] = [Math.min(...heights), Math.max(...heights)];
      if (high < low * LEAST_SPREAD) return [];
      const bar = this.line(px, this.plane.y(low), px, this.plane.y(high), colour(LAUNCHES.verdict[row.position]));
      bar.setAttribute("stroke-width", 2);
      bar.setAttribute("class", "spread");
      return [bar];
    });
  }

  strip() {
    const { plane, lanes } = this;
    if (!lanes.length) return [];
    const off = this.marks.filter(({ isOnPlane }) => !isOnPlane);
    const part = shareOfRun(timeOf(off.map(({ row }) => row)));
    const title = [`No dot here (${off.length}${part === null ? "" : `, ${share(part)} of ${DATA.gpuTime}`}):`, "by utilisation of the busier side"];
    const titleLines = plane.isNarrow ? title : [title.join(" ")];
    const ticks = (plane.isNarrow ? [0, 0.25, 0.5, 0.75, 1] : [0, 0.2, 0.4, 0.6, 0.8, 1]).map((frac) => ({ px: plane.stripX(frac), text: `${Math.round(frac * 100)} %` }));
    return [
      ...titleLines.map((text, index) =>
        this.text(plane.left, plane.stripTop - 12 - (titleLines.length - 1 - index) * LINE_PX, text, { anchor: "start", fill: colour("ink") }),
      ),
      ...ticks.flatMap(({ px, text }) => [
        this.line(px, plane.stripTop, px, plane.stripBottom, colour("line")),
        this.tick(px, plane.stripBottom + 14, text),
      ]),
      ...lanes.flatMap((verdict, lane) => [
        this.line(plane.left, plane.laneY(lane), plane.right, plane.laneY(lane), colour("grid")),
        this.text(plane.left - 6, plane.laneY(lane), DATA.verdicts[verdict].replace("-bound", ""), { anchor: "end", fill: colour("soft") }),
      ]),
    ];
  }

  /** Arrows, labels, the points of the selected launch, and the ring of a what-if. */
  foreground() {
    const { plane } = this;
    const roofs = this.shownRoofs();
    const onPlane = this.drawn.filter(({ isOnPlane }) => isOnPlane);
    const lines = linesInView(roofs, plane);
    const outer = outerRoofLabels(lines, plane);
    const inner = lines.filter(({ roof }) => !outer.some((label) => label.roof === roof));
    const ofRoofs = [...roofLabels(inner, plane, onPlane), ...outer];
    const boxesOfRoofs = [...ofRoofs.flatMap((label) => [...boxesOf(label), ...leaderBoxes(label)]), ...boxOfGutter(this)];
    const ofRidges = ridgeLabels(this.meetings(), plane, boxesOfRoofs, lines);
    const points = selectedPoints(this);
    const ofChains = chainLabels(this, points);
    const rings = points.map(({ x, y }) => ({ left: x - 20, right: x + 20, top: y - 20, bottom: y + 20 }));
    const hasFlats = roofs.filter(({ kind }) => kind === "compute").length > 1;
    const precision = ({ dot }) => (hasFlats && dot.precision ? ` · ${DATA.precisions[dot.precision]}` : "");
    const numbered = numberedMarks(this.drawn);
    const ofDots = dotLabels(onPlane, plane, [...boxesOfRoofs, ...[...ofRidges, ...ofChains].flatMap(boxesOf), ...rings, ...numbered.map(boxOfNumber), ...boxesOfArrow(this)], lines, precision);
    return [
      draw("g", { "clip-path": "url(#plane)" }, ...arrowsOf(this)),
      ...numbered.flatMap((mark) => numberOfMark(this, mark)),
      ...stackCounts(this, this.stacks),
      ...pinnedMark(this),
      ...ofRoofs.flatMap((label) => this.roofLabel(label)),
      ...ofRidges.map((label) => this.label(label, colour("soft"), "ridge")),
      ...ofDots.flatMap((label) => this.dotLabel(label)),
      ...selection(this, points),
      ...ofChains.map((label) => this.label(label, colour("ink"), "chain-label")),
      ...whatIfMarks(this),
    ];
  }

  dotLabel(label) {
    const text = this.label(label, colour("ink"), "dot-label");
    return label.leader ? [draw("line", { ...label.leader, stroke: colour("soft"), class: "leader" }), text] : [text];
  }

  roofLabel(label) {
    const { roof, leader } = label;
    const text = this.label(label, colour(roof.source === "counters" ? "ink" : "soft"), "roof-label");
    this.drawnRoofs.push({ roof, text });
    if (!leader) return [text];
    const end = draw("circle", { cx: leader.x1, cy: leader.y1, r: 2, fill: colour("soft") });
    return [draw("line", { ...leader, stroke: colour("soft") }), end, text];
  }

  /** Draw the dots on the canvas as copies of pre-rendered stamps, as filling ten thousand paths takes too long. */
  paint() {
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = this.width * scale;
    this.canvas.height = this.plane.height * scale;
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.plane.height}px`;
    const context = this.canvas.getContext("2d");
    paintCells(context, this.cells, scale);
    const stamps = new Map();
    for (const { row, px, py, radius, verdict } of this.drawn) {
      const alpha = this.opacity(row);
      const key = `${verdict} ${Math.round(2 * radius)} ${alpha}`;
      if (!stamps.has(key)) stamps.set(key, { stamp: this.stamp(verdict, Math.round(2 * radius) / 2, alpha, scale), places: new Set() });
      const { stamp, places } = stamps.get(key);
      const [x, y] = [Math.round(px * scale - stamp.width / 2), Math.round(py * scale - stamp.height / 2)];
      const place = x * this.canvas.height + y;
      if (!places.has(place)) context.drawImage(stamp, x, y); // an identical copy would change nothing visible
      places.add(place);
    }
  }

  opacity(row) {
    const { selected } = this.choice;
    return selected && !this.isChosen(row) ? FADED : 1;
  }

  stamp(verdict, radius, alpha, scale) {
    const half = Math.ceil((1.3 * radius + 1) * scale);
    const canvas = make("canvas", { width: 2 * half, height: 2 * half });
    const context = canvas.getContext("2d");
    context.setTransform(scale * radius, 0, 0, scale * radius, half, half);
    context.globalAlpha = alpha;
    context.fillStyle = colour(verdict);
    context.strokeStyle = colour("paper");
    context.lineWidth = 1 / radius;
    context.fill(this.paths[verdict]);
    context.stroke(this.paths[verdict]);
    return canvas;
  }

  line(x1, y1, x2, y2, stroke) {
    return draw("line", { x1, y1, x2, y2, stroke });
  }

  text(x, y, text, { anchor, fill, halo = false }) {
    const attributes = { x, y, "text-anchor": anchor, "dominant-baseline": "central", fill, "font-size": LABEL_PX };
    const outline = halo ? { stroke: colour("paper"), "stroke-width": 3, "paint-order": "stroke" } : {};
    return draw("text", { ...attributes, ...outline }, text);
  }

  /** The label of a tick on a horizontal axis: centred on its line, or right-aligned at the edge of the picture. */
  tick(px, y, text) {
    const isCut = px + textWidth(text) / 2 > this.width;
    return this.text(isCut ? this.width : px, y, text, { anchor: isCut ? "end" : "middle", fill: colour("soft") });
  }

  /** The title of the horizontal axis: centred below it, or shifted left and compressed where it would be cut off. */
  xTitle(title) {
    const { left, right, bottom } = this.plane;
    const length = Math.min(textWidth(title), this.width);
    const element = this.text(Math.min((left + right) / 2, this.width - length / 2), bottom + 37, title, { anchor: "middle", fill: colour("ink") });
    if (length === this.width) for (const [name, value] of [["textLength", length], ["lengthAdjust", "spacingAndGlyphs"]]) element.setAttribute(name, value);
    return element;
  }

  label({ x, y, angle, anchor, text }, fill, kind) {
    const element = this.text(x, y, text, { anchor, fill, halo: true });
    element.setAttribute("class", kind);
    if (angle) element.setAttribute("transform", `rotate(${angle} ${x} ${y})`);
    return element;
  }
}
