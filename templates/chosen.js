// What the chart shows for one launch: its points at all levels, the roofs by which its dot is judged, and where a what-if moves the dot.

const SLOWER_PATH = "_slower_path"; // SLOWER_PATH_SUFFIX in ncuroof/enums.py
const PALE = 0.3; // opacity of roofs by which a dot is not judged
const CROSSBAR_PX = 5;
const RING_PX = 7; // radius of the ring around a point of the selected launch

/** The points of the selected launch, in pixels. */
function selectedPoints({ choice: { selected, view }, plane }) {
  return (selected?.points[view] ?? []).map(([level, precision, x, y]) => ({ level, precision, x: plane.x(x), y: plane.y(y) }));
}

/** The visible points of each precision, from left to right; precisions whose points lie in one place are one chain. */
function chainsInView(points, plane) {
  const chains = [];
  for (const precision of new Set(points.map((point) => point.precision))) {
    const inView = points.filter((point) => point.precision === precision && plane.contains(point.x, point.y)).sort((a, b) => a.x - b.x);
    if (!inView.length) continue;
    const isAtEndOf = (other) => Math.hypot(other.inView.at(-1).x - inView.at(-1).x, other.inView.at(-1).y - inView.at(-1).y) < LINE_PX;
    const same = chains.find(isAtEndOf);
    if (same) same.precisions.push(precision);
    else chains.push({ inView, precisions: [precision] });
  }
  return chains;
}

/** Where the selected launch has points at several precisions: its name and the precision, at an end of their line. */
function chainLabels({ choice: { selected }, plane }, points) {
  if (new Set(points.map(({ precision }) => precision)).size < 2) return [];
  const name = words(LAUNCHES.short[selected.position]);
  return chainsInView(points, plane).flatMap(({ inView, precisions }) => {
    const [left, right] = [inView[0], inView.at(-1)];
    const ends = [{ x: right.x + RING_PX + 4, y: right.y, anchor: "start" }, { x: left.x - RING_PX - 4, y: left.y, anchor: "end" }];
    const of = precisions.map((precision) => DATA.precisions[precision] ?? precision).join(", ");
    const texts = NAME_LENGTHS.map((most) => `${name.length > most ? `${name.slice(0, most - 1)}…` : name} · ${of}`);
    const places = texts.flatMap((text) => ends.map((end) => ({ ...end, text, angle: 0, length: textWidth(text) })));
    return places.filter((place) => isWithin(boxesOf(place)[0], plane)).slice(0, 1);
  });
}

/** The visible points of the selected launch, with a line per precision through all its points. */
function selection(chart, points) {
  const { plane, choice, marks } = chart;
  const isInView = ({ x, y }) => plane.contains(x, y);
  const ring = (cx, cy, r) => draw("circle", { cx, cy, r, fill: "none", stroke: colour("ink"), "stroke-width": 1.6 });
  const lines = [...new Set(points.map(({ precision }) => precision))].map((precision) => {
    const joined = points.filter((point) => point.precision === precision).sort((a, b) => a.x - b.x);
    const names = joined.filter(isInView).map(({ level, x, y }, index) =>
      chart.text(x, y + (index % 2 ? -16 : 17), DATA.levels[level] ?? level, { anchor: "middle", fill: colour("ink"), halo: true }),
    );
    const line = draw("polyline", { points: joined.map(({ x, y }) => `${x},${y}`).join(" "), fill: "none", stroke: colour("ink"), "clip-path": "url(#plane)" });
    return draw("g", { class: "selected" }, line, ...joined.filter(isInView).map(({ x, y }) => ring(x, y, RING_PX)), ...names);
  });
  const own = marks.find(({ row, isOnPlane }) => !isOnPlane && row.position === choice.selected?.position);
  return [...lines, ...(own ? [ring(own.px, own.py, own.radius + 4)] : [])];
}

/** Whether a dot at a level is judged by a roof: the slope of that level, or a flat roof of the dot's precision. */
function isJudgedBy(roof, { precision }, level) {
  if (roof.source !== "counters" && !roof.standsIn) return false;
  if (roof.kind === "bandwidth") return roof.names.includes(level);
  return !precision || roof.names.includes(precision) || roof.names.includes(precision + SLOWER_PATH);
}

/**
 * Show what a dot is judged by: its own roofs thick, the others pale, and a tick from the dot to its roof at its intensity. The dot is
 * that of the mark, else of the selected launch; without either, all roofs look the same.
 */
function judge(chart, mark = null) {
  const { choice: { selected, view, level }, plane } = chart;
  const dot = mark ? mark.dot : selected && dotOf(selected.position, view, level);
  const rim = mark?.radius ?? RING_PX;
  for (const { roof, line, text } of chart.drawnRoofs) {
    const isOwn = dot && isJudgedBy(roof, dot, level);
    line?.setAttribute("stroke-width", isOwn ? 2.6 : roof.source === "counters" ? 1.3 : 1);
    for (const part of [line, text].filter(Boolean)) part.setAttribute("opacity", dot && !isOwn ? PALE : 1);
  }
  chart.toRoof?.remove();
  chart.toRoof = dot?.roof ? tickTo(dot, rim, plane) : null;
  if (chart.toRoof) chart.front.append(chart.toRoof);
}

/** A line from a dot to its roof, with a crossbar at the end. The roof is that at the launch's own clock. */
function tickTo({ x, y, roof }, rim, plane) {
  const [px, to] = [plane.x(x), plane.y(y / roof)];
  const from = plane.y(y) + Math.sign(to - plane.y(y)) * Math.min(rim, Math.abs(to - plane.y(y)));
  const attributes = { d: `M${px} ${from}V${to}M${px - CROSSBAR_PX} ${to}H${px + CROSSBAR_PX}`, stroke: colour("ink"), fill: "none" };
  return draw("g", { class: "to-roof", "clip-path": "url(#plane)" }, draw("path", attributes));
}

/** Show where a launch's dot would move: `moved` holds the factors {x, y} of its intensity and rate; null removes the ring. */
function showWhatIf(chart, position, moved) {
  if (!chart.imaginary && !moved) return;
  chart.imaginary = moved && { position, ...moved };
  chart.redraw();
}

/** A ring where the dot would move, and a line to it from the dot. */
function whatIfMarks({ imaginary, choice: { rows, view, level }, plane }) {
  const isInView = imaginary && rows.some(({ launches }) => launches.includes(imaginary.position));
  const dot = isInView && view === "flop" && level === "dram" ? dotOf(imaginary.position, view, level) : null;
  if (!dot) return [];
  const [x1, y1] = [plane.x(dot.x), plane.y(dot.y)];
  const [x2, y2] = [plane.x(dot.x * imaginary.x), plane.y(dot.y * imaginary.y)];
  const line = draw("line", { x1, y1, x2, y2, stroke: colour("ink"), "stroke-dasharray": "3 3" });
  const ring = draw("circle", { cx: x2, cy: y2, r: 6, fill: colour("paper"), stroke: colour("ink"), "stroke-width": 1.6, class: "imagined" });
  return [draw("g", { "clip-path": "url(#plane)" }, line, ring)];
}
