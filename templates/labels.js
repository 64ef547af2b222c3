// Places labels on the chart so that no line crosses them and they do not overlap: along the roofs, at the ridges, and beside the
// largest dots.

const LABEL_PX = 11; // font size
const LINE_PX = 15;
const GLYPH_PX = 6.5; // from the middle of a label to where a line would touch its letters
const LABEL_SHIFT_PX = 10; // from a line to the middle of its label
const STEP_PX = 12; // along a line, between candidate places for its label
const MOST_ROWS = 12; // between a flat roof and a label that a leader line connects to it
const MOST_NAMES = 10;
const MOST_RIDGES = 3;
const GAP_PX = 8; // between labels on one line
const NAME_LENGTHS = [30, 18, 10];
const MOST_OBSTACLES = 200; // dots that labels avoid

const measuring = make("canvas").getContext("2d");

/** Width of a text in the labels' font. */
function textWidth(text) {
  measuring.font = `${LABEL_PX}px ${getComputedStyle(document.body).fontFamily}`;
  return measuring.measureText(text).width;
}

/** The part of a line {x1, y1, x2, y2} within a box; null where none is. */
function partWithin({ x1, y1, x2, y2 }, { left, right, top, bottom }) {
  let [from, to] = [0, 1];
  for (const [start, length, low, high] of [[x1, x2 - x1, left, right], [y1, y2 - y1, top, bottom]]) {
    if (length === 0 && (start < low || start > high)) return null;
    if (length === 0) continue;
    const ends = [(low - start) / length, (high - start) / length];
    from = Math.max(from, Math.min(...ends));
    to = Math.min(to, Math.max(...ends));
  }
  const at = (frac) => [x1 + frac * (x2 - x1), y1 + frac * (y2 - y1)];
  if (from >= to) return null;
  const [[left1, top1], [left2, top2]] = [at(from), at(to)];
  return { x1: left1, y1: top1, x2: left2, y2: top2 };
}

/** The visible parts of the roofs' lines, in pixels, each with its roof. */
function linesInView(roofs, plane) {
  return roofs.flatMap((roof) => {
    const [x1, x2] = roof.x.map((x) => plane.x(x));
    const [y1, y2] = roof.y.map((y) => plane.y(y));
    const part = partWithin({ x1, y1, x2, y2 }, plane);
    return part ? [{ roof, ...part }] : [];
  });
}

/** Whether a line crosses the letters of a label. */
function isCrossed(label, line) {
  const [x, y] = middleOf(label);
  const turn = (-label.angle * Math.PI) / 180;
  const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
  const turned = (px, py) => [(px - x) * cos - (py - y) * sin, (px - x) * sin + (py - y) * cos];
  const [[x1, y1], [x2, y2]] = [turned(line.x1, line.y1), turned(line.x2, line.y2)];
  return partWithin({ x1, y1, x2, y2 }, { left: -label.length / 2, right: label.length / 2, top: -GLYPH_PX, bottom: GLYPH_PX }) !== null;
}

function middleOf({ x, y, anchor, length }) {
  return [x + { start: length / 2, middle: 0, end: -length / 2 }[anchor], y];
}

/** The area of a label, as boxes {left, top, right, bottom}: several small ones along a slanted label. */
function boxesOf({ x, y, angle, anchor, length }) {
  const start = { start: 0, middle: -length / 2, end: -length }[anchor];
  const [cos, sin] = [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)];
  const step = angle ? LINE_PX : length;
  const boxes = [];
  for (let at = start; at < start + length; at += step) {
    const [from, to] = [at, Math.min(at + step, start + length)];
    const [xs, ys] = [[x + from * cos, x + to * cos], [y + from * sin, y + to * sin]];
    boxes.push({ left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys) - LINE_PX / 2, bottom: Math.max(...ys) + LINE_PX / 2 });
  }
  return boxes;
}

function doMeet(a, b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

function isFree(label, taken) {
  return !boxesOf(label).some((box) => taken.some((other) => doMeet(box, other)));
}

function boxOfDot({ px, py, radius }) {
  return { left: px - radius, right: px + radius, top: py - radius, bottom: py + radius };
}

const MOST_OUTER_FRAC = 0.27; // of the chart's width that labels at the right of the plane take
const OUTER_GAP_PX = 8; // from the plane to them

/** The width that labels of flat roofs need at the right of a wide plane, of a chart of some width. */
function roomForRoofs(roofs, width) {
  const widths = roofs.filter(({ kind }) => kind === "compute").map(({ label }) => textWidth(label));
  return widths.length ? Math.min(Math.max(...widths), MOST_OUTER_FRAC * width) + OUTER_GAP_PX + 4 : 0;
}

/** Labels of the flat roofs that reach the right edge of a wide plane: outside of it, apart from each other, with leaders to their lines. */
function outerRoofLabels(lines, plane) {
  if (plane.isNarrow) return [];
  const flats = lines.filter(({ roof, x2 }) => roof.kind === "compute" && x2 >= plane.right - 1).sort((a, b) => a.y1 - b.y1);
  let above = -Infinity;
  return flats.map(({ roof, y1 }) => {
    const y = Math.max(y1, above + LINE_PX);
    above = y;
    const room = plane.width - plane.right - OUTER_GAP_PX;
    const text = textWidth(roof.label) <= room ? roof.label : fitted(roof.label, room);
    const leader = { x1: plane.right, y1, x2: plane.right + OUTER_GAP_PX - 2, y2: y };
    return { roof, text, length: textWidth(text), x: plane.right + OUTER_GAP_PX, y, angle: 0, anchor: "start", leader };
  });
}

/**
 * Labels of the roofs, just above or below their lines: slopes are labelled from their lower end, flat roofs from their right end. Where
 * the full label does not fit, the short one is used; where lines are too crowded, a leader line connects the label of a flat roof to it,
 * and as a last resort that label may be crossed by another line.
 */
function roofLabels(lines, plane, dots) {
  const ofKind = (kind) => lines.filter(({ roof }) => roof.kind === kind);
  const slopes = ofKind("bandwidth").sort((a, b) => a.roof.per_s - b.roof.per_s);
  const flats = ofKind("compute").sort((a, b) => b.roof.per_s - a.roof.per_s);
  const dotBoxes = dots.slice(0, MOST_OBSTACLES).map(boxOfDot);
  const labelBoxes = [];
  const taken = []; // boxes of labels and leaders
  return [...slopes, ...flats].flatMap((line) => {
    const others = lines.filter((other) => other !== line);
    const found = {}; // the first place of each quality
    for (const place of placesAlong(line, plane)) {
      if (!isFree(place, taken) || leaderBoxes(place).some((box) => labelBoxes.some((other) => doMeet(box, other)))) continue;
      if (others.some((other) => isCrossed(place, other))) {
        if (place.leader) found.crossed ??= place;
      } else if (isFree(place, dotBoxes)) {
        found.best = place;
        break;
      } else found.onDots ??= place;
    }
    const chosen = found.best ?? found.onDots ?? found.crossed;
    if (!chosen) return [];
    labelBoxes.push(...boxesOf(chosen));
    taken.push(...boxesOf(chosen), ...leaderBoxes(chosen));
    return [chosen];
  });
}

/** The box of a label's leader line {x1, y1, x2, y2}, if it has one. */
function leaderBoxes({ leader }) {
  if (!leader) return [];
  const { x1, y1, x2, y2 } = leader;
  return [{ left: Math.min(x1, x2) - 1, right: Math.max(x1, x2) + 1, top: Math.min(y1, y2), bottom: Math.max(y1, y2) }];
}

/** Candidate places for a line's label, the best first: along the line; for a flat roof, then left of its start, then above and below. */
function* placesAlong(line, plane) {
  const { roof } = line;
  const isFlat = roof.kind === "compute";
  const angle = isFlat ? 0 : Math.atan2(line.y2 - line.y1, line.x2 - line.x1);
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const reach = Math.hypot(line.x2 - line.x1, line.y2 - line.y1);
  const isInside = ({ x, y, length }) => [-1, 1].every((end) => plane.contains(x + (end * cos * length) / 2, y + (end * sin * length) / 2, -GLYPH_PX / 2));
  const labels = [...new Set(plane.isNarrow ? [roof.short] : [roof.label, roof.short])].map((text) => {
    return { roof, text, length: textWidth(text) + GAP_PX, angle: (angle * 180) / Math.PI, anchor: "middle" };
  });
  for (const label of labels) {
    for (let along = 4 + label.length / 2; along + label.length / 2 < reach; along += STEP_PX) {
      const from = isFlat ? reach - along : along + 8;
      for (const shift of [-LABEL_SHIFT_PX, LABEL_SHIFT_PX]) {
        const place = { ...label, x: line.x1 + from * cos - shift * sin, y: line.y1 + from * sin + shift * cos };
        if (isInside(place)) yield place;
      }
    }
  }
  if (isFlat) for (const label of labels) for (const place of [...placesLeftOf(line, label), ...placesOff(line, label)]) if (isInside(place)) yield place;
}

/** Row offsets in pixels, the nearest first: 0, 1 up, 1 down, 2 up and so on. */
const ROWS_PX = Array.from({ length: 2 * MOST_ROWS + 1 }, (_, row) => (row % 2 ? -1 : 1) * Math.ceil(row / 2) * LINE_PX);

/** Places to the left of a flat line's start, above the slopes. */
function placesLeftOf({ x1, y1 }, label) {
  return ROWS_PX.flatMap((row) => [16, 60].map((away) => {
    const [x2, y2] = [x1 - away, y1 + row];
    return { ...label, x: x2 - label.length / 2, y: y2, leader: { x1, y1, x2, y2 } };
  }));
}

/** Places above and below a flat line, farther away than a label along it, with a leader line. */
function* placesOff(line, label) {
  for (const row of ROWS_PX.slice(1)) {
    const shift = row + Math.sign(row) * LABEL_SHIFT_PX;
    for (let x = line.x2 - 6; x > line.x1; x -= STEP_PX) {
      yield { ...label, x: x - label.length / 2 + 6, y: line.y1 + shift, leader: { x1: x, y1: line.y1, x2: x, y2: line.y1 + shift - Math.sign(row) * GLYPH_PX } };
    }
  }
}

/**
 * Labels of the ridges above the horizontal axis: of all ridges if they are few, else of those of the lowest flat roof. Where a label or
 * a roof is in the way, a label goes to the other side of its line, or a row higher.
 */
function ridgeLabels(meetings, plane, taken, lines) {
  const lowest = Math.min(...meetings.map(({ flat }) => flat.per_s));
  const shown = meetings.filter(({ flat }) => meetings.length <= MOST_RIDGES || flat.per_s === lowest);
  const labels = [];
  for (const { intensity } of shown.sort((a, b) => a.intensity - b.intensity)) {
    const [text, at] = [`ridge ${scaled(intensity)}`, plane.x(intensity)];
    const length = textWidth(text) + GAP_PX / 2;
    const free = [...placesAbove(at, plane.bottom - 8, plane.top)]
      .map((place) => ({ ...place, angle: 0, text, length }))
      .filter((label) => isWithin(boxesOf(label)[0], plane) && isFree(label, [...taken, ...labels.flatMap(boxesOf)]));
    const chosen = free.find((label) => !lines.some((line) => isCrossed(label, line))) ?? free[0];
    if (chosen) labels.push(chosen);
  }
  return labels;
}

function* placesAbove(at, bottom, top) {
  for (let y = bottom; y > top; y -= LINE_PX) yield* [{ x: at + 4, y, anchor: "start" }, { x: at - 4, y, anchor: "end" }];
}

function isWithin(box, plane) {
  return plane.contains(box.left, box.top) && plane.contains(box.right, box.bottom);
}

/**
 * Names beside the dots with the most time, where there is room: away from the `lines` of roofs if possible, and shortened where the
 * whole name does not fit. `taken` are the boxes of existing labels, `remark` returns the text after a dot's name.
 */
function dotLabels(dots, plane, taken, lines, remark) {
  const largest = [...dots].sort((a, b) => (b.row.time ?? 0) - (a.row.time ?? 0));
  const obstacles = [...taken, ...largest.slice(0, MOST_OBSTACLES).map(boxOfDot)];
  const labels = [];
  for (const dot of largest.slice(0, plane.isNarrow ? MOST_NAMES / 2 : MOST_NAMES)) {
    const name = words(LAUNCHES.short[dot.row.position]);
    const texts = new Set(NAME_LENGTHS.map((most) => (name.length > most ? `${name.slice(0, most - 1)}…` : name) + remark(dot)));
    const free = [...texts].flatMap((text) => placesBeside(dot, text)).filter((place) => isWithin(boxesOf(place)[0], plane) && isFree(place, obstacles));
    const uncrossedBy = (roofLines) => [...free, ...led].find((place) => !roofLines.some((line) => isCrossed(place, line)));
    const led = placesAway(dot, [...texts]).filter((place) => isWithin(boxesOf(place)[0], plane) && isFree(place, obstacles) && !isLeaderCrossing(place, labels));
    const struck = dot === largest[0] ? free[0] : undefined; // only the largest dot: along a flat roof, a name is hard to read
    const chosen = uncrossedBy(lines) ?? uncrossedBy(lines.filter(({ roof }) => roof.kind === "compute")) ?? struck;
    if (!chosen) continue;
    labels.push(chosen);
    obstacles.push(...boxesOf(chosen));
  }
  return labels;
}

const AWAY_PX = [34, 58, 86]; // from a dot to where a leader to its name ends
const TURNS = [-0.125, 0.125, -0.375, 0.375, 0, 0.5, -0.25, 0.25]; // directions of leaders, the best first

/** Places of a dot's name away from it, with a leader; the nearest and longest texts first. */
function placesAway({ px, py, radius }, texts) {
  return AWAY_PX.flatMap((away) => texts.flatMap((text) => TURNS.map((turn) => {
    const [cos, sin] = [Math.cos(2 * Math.PI * turn), Math.sin(2 * Math.PI * turn)];
    const [x2, y2] = [px + away * cos, py + away * sin];
    const leader = { x1: px + (radius + 1) * cos, y1: py + (radius + 1) * sin, x2, y2 };
    return { x: x2 + (cos < 0 ? -3 : 3), y: y2, anchor: cos < 0 ? "end" : "start", angle: 0, length: textWidth(text), text, leader };
  })));
}

/** Whether a label's leader meets another label, or its text another leader. */
function isLeaderCrossing(place, labels) {
  const [own] = boxesOf(place);
  return labels.some((other) => partWithin(place.leader, boxesOf(other)[0]) || (other.leader && partWithin(other.leader, own)));
}

function placesBeside({ px, py, radius }, text) {
  const length = textWidth(text);
  return [
    { x: px + radius + 4, y: py, anchor: "start" },
    { x: px - radius - 4, y: py, anchor: "end" },
    { x: px, y: py - radius - 9, anchor: "middle" },
    { x: px, y: py + radius + 9, anchor: "middle" },
    { x: px + 4, y: py + radius + 8, anchor: "start" },
    { x: px - 4, y: py - radius - 8, anchor: "end" },
  ].map((place) => ({ ...place, angle: 0, length, text }));
}
