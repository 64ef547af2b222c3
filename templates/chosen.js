// What the chart shows for one launch: its points at all levels, the roofs by which its dot is judged, and where a what-if moves the dot.

const SLOWER_PATH = "_slower_path"; // SLOWER_PATH_SUFFIX in ncuroof/enums.py
const PALE = 0.3; // opacity of roofs by which a dot is not judged
const CROSSBAR_PX = 5;
const SMALL_RING_PX = 3;
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

/**
 * The visible points of the selected launch, with a line per precision through all its points. Rings and names of levels are on the line of
 * the dot alone; points of other precisions are small.
 */
function selection(chart, points) {
  const { plane, choice: { selected, view, level }, marks } = chart;
  const isInView = ({ x, y }) => plane.contains(x, y);
  const ring = (cx, cy, r) => draw("circle", { cx, cy, r, fill: "none", stroke: colour("ink"), "stroke-width": 1.6 });
  const first = (selected && dotOf(selected.position, view, level)?.precision) ?? points[0]?.precision;
  const lines = [...new Set(points.map(({ precision }) => precision))].map((precision) => {
    const joined = points.filter((point) => point.precision === precision).sort((a, b) => a.x - b.x);
    const line = draw("polyline", { points: joined.map(({ x, y }) => `${x},${y}`).join(" "), fill: "none", stroke: colour("ink"), "clip-path": "url(#plane)" });
    const seen = joined.filter(isInView);
    const isOwn = precision === first;
    return draw("g", { class: "selected" }, line, ...seen.map((point) => ring(point.x, point.y, isOwn ? RING_PX : SMALL_RING_PX)), ...(isOwn ? levelNames(chart, seen) : []));
  });
  const own = marks.find(({ row, isOnPlane }) => !isOnPlane && row.position === selected?.position);
  return [...lines, ...(own ? [ring(own.px, own.py, own.radius + 4)] : [])];
}

/** The names of the levels of points from left to right, each where it meets none before. */
function levelNames(chart, points) {
  const boxes = [];
  return points.flatMap(({ level, x, y }) => {
    const text = DATA.levels[level] ?? level;
    const places = [17, -16, 31, -30].map((shift) => ({ x, y: y + shift, anchor: "middle", angle: 0, length: textWidth(text) + 4, text }));
    const place = places.find((each) => isFree(each, boxes)) ?? places[0];
    boxes.push(...boxesOf(place));
    return [chart.text(x, place.y, text, { anchor: "middle", fill: colour("ink"), halo: true })];
  });
}

/** The area of the arrow from the selected dot to its roof, which names keep clear of. */
function boxesOfArrow({ choice: { selected, view, level }, plane }) {
  const dot = selected && dotOf(selected.position, view, level);
  if (!dot?.roof) return [];
  const [px, ...ends] = [plane.x(dot.x), plane.y(dot.y), plane.y(dot.y / dot.roof)];
  const middle = (ends[0] + ends[1]) / 2;
  return [
    { left: px - CROSSBAR_PX, right: px + CROSSBAR_PX, top: Math.min(...ends), bottom: Math.max(...ends) },
    { left: px, right: px + textWidth("100 µs above the roofline") + 8, top: middle - LINE_PX / 2, bottom: middle + LINE_PX / 2 },
  ];
}

/** Whether a dot at a level is judged by a roof: the slope of that level, or a flat roof of the dot's precision. */
function isJudgedBy(roof, { precision }, level) {
  if (roof.source !== "counters" && !roof.standsIn) return false;
  if (roof.kind === "bandwidth") return roof.names.includes(level);
  return !precision || roof.names.includes(precision) || roof.names.includes(precision + SLOWER_PATH);
}

/**
 * Show what a dot is judged by: its own roofs thick, the others pale, and an arrow from the dot to its roof at its intensity. The dot is
 * that of the mark, else of the selected launch; without either, all roofs look the same.
 */
function judge(chart, mark = null) {
  const { choice: { selected, view, level, rows } } = chart;
  const dot = mark ? mark.dot : selected && dotOf(selected.position, view, level);
  const rim = mark?.radius ?? RING_PX;
  for (const { roof, line, text } of chart.drawnRoofs) {
    const isOwn = dot && isJudgedBy(roof, dot, level);
    line?.setAttribute("stroke-width", isOwn ? 2.6 : roof.source === "counters" ? 1.3 : 1);
    for (const part of [line, text].filter(Boolean)) part.setAttribute("opacity", dot && !isOwn ? PALE : 1);
  }
  chart.toRoof?.remove();
  const row = mark?.row ?? rows.find(({ launches }) => launches.includes(selected?.position));
  const above = row?.recoverable ? `${duration(row.recoverable)} above the roofline` : "";
  chart.toRoof = dot?.roof ? arrowToRoof(dot, rim, chart, above) : null;
  if (chart.toRoof) chart.front.append(chart.toRoof);
}

/** An arrow from a dot to its roof, and how much of the row's time is above the roofline. The roof is that at the launch's own clock. */
function arrowToRoof({ x, y, roof }, rim, chart, above) {
  const { plane } = chart;
  const [px, to] = [plane.x(x), plane.y(y / roof)];
  const up = Math.sign(to - plane.y(y));
  const from = plane.y(y) + up * Math.min(rim, Math.abs(to - plane.y(y)));
  const barb = up * Math.min(CROSSBAR_PX, Math.abs(to - from));
  const path = `M${px} ${from}V${to}M${px - CROSSBAR_PX} ${to - barb}L${px} ${to}L${px + CROSSBAR_PX} ${to - barb}`;
  const arrow = draw("path", { d: path, stroke: colour("ink"), "stroke-width": 1.4, fill: "none" });
  const middle = Math.min(Math.max((from + to) / 2, plane.top + LINE_PX), plane.bottom - LINE_PX);
  const isAtEnd = px + textWidth(above) + 8 > plane.right;
  const label = above && Math.abs(to - from) > LINE_PX
    ? [chart.text(px + (isAtEnd ? -6 : 6), middle, above, { anchor: isAtEnd ? "end" : "start", fill: colour("ink"), halo: true })]
    : [];
  return draw("g", { class: "to-roof", "clip-path": "url(#plane)" }, arrow, ...label);
}

const NUMBER_PX = 7.5; // radius of the disc with the number of what to do

/** The numbered marks that are drawn: those of launches that a change of the list saves most in. */
function numberedMarks(marks) {
  const seen = new Set();
  return marks.flatMap((mark) => {
    const number = numberOf(mark.row.position);
    if (!number) return [];
    const isFirst = !seen.has(number);
    seen.add(number);
    return [Object.assign(mark, { number, isFirst })];
  });
}

/** The area of a mark's number. */
function boxOfNumber({ px, py, radius, isFirst }) {
  const [x, y] = [px, isFirst ? py - radius - NUMBER_PX - 2 : py];
  const reach = isFirst ? NUMBER_PX : radius + 2;
  return { left: x - reach, right: x + reach, top: y - reach, bottom: y + reach };
}

/** A ring around a mark that a change of the list is about; the largest of each change has its number above. */
function numberOfMark(chart, { px, py, radius, number, isFirst }) {
  const ring = draw("circle", { cx: px, cy: py, r: radius + 2, fill: "none", stroke: colour("ink"), "stroke-width": 1, class: "numbered" });
  if (!isFirst) return [ring];
  const y = py - radius - NUMBER_PX - 2;
  const disc = draw("circle", { cx: px, cy: y, r: NUMBER_PX, fill: colour("ink") });
  const text = chart.text(px, y, String(number), { anchor: "middle", fill: colour("paper") });
  text.setAttribute("font-weight", 700);
  return [ring, draw("g", { class: "number" }, disc, text)];
}

/** A dashed ring around the pinned launch. */
function pinnedMark(chart) {
  const { pinned } = chart.choice;
  const mark = pinned === null ? undefined : chart.drawn.find(({ row }) => row.launches.includes(pinned));
  if (!mark) return [];
  const ring = draw("circle", { cx: mark.px, cy: mark.py, r: mark.radius + 5, fill: "none", stroke: colour("ink"), "stroke-dasharray": "3 2", class: "pinned" });
  const text = chart.text(mark.px, mark.py + mark.radius + 13, `#${LAUNCHES.id[pinned]} pinned`, { anchor: "middle", fill: colour("ink"), halo: true });
  return [ring, text];
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
