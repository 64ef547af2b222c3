// Where texts go on the chart so that they do not meet: along the slopes, at the right end of the flat roofs, and beside the largest dots.

const LABEL_PX = 11; // of a label's font
const LINE_PX = 15;
const LABEL_SHIFT_PX = 10; // from a line to the middle of its label
const MOST_NAMES = 14;
const MOST_RIDGES = 3;
const NAME_LENGTH = 30;

const measuring = make("canvas").getContext("2d");

/** How wide a text is in the font of the labels. */
function textWidth(text) {
  measuring.font = `${LABEL_PX}px ${getComputedStyle(document.body).fontFamily}`;
  return measuring.measureText(text).width;
}

/** Whether a label goes below its line: where the next line above would run through it, and none below would. */
function isLabelledBelow(height, heights, pxPerDecade) {
  const distances = heights.map((other) => (other - height) * pxPerDecade);
  const isClose = (px) => px > LINE_PX / 3 && px < LINE_PX + 3; // nearer lines are as good as one
  return distances.some(isClose) && !distances.some((px) => isClose(-px));
}

/** Text of a roof, short where there is little room. */
function roofText(roof, plane) {
  return plane.isNarrow ? roof.short : roof.label;
}

/** Labels of the slopes: along the line, just above it, moved on along the line where two would meet. */
function slopeLabels(roofs, plane) {
  const angle = Math.atan2(plane.pxPerY, plane.pxPerX);
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const lines = roofs.map((roof) => ({ roof, height: Math.log10(roof.y[0]) - Math.log10(roof.x[0]) }));
  lines.sort((a, b) => a.height - b.height);
  const heights = lines.map(({ height }) => height);
  const placed = [];
  const labels = [];
  for (const { roof, height } of lines) {
    const text = roofText(roof, plane);
    const offset = isLabelledBelow(height, heights, plane.pxPerY * cos) ? -LABEL_SHIFT_PX : LABEL_SHIFT_PX;
    const start = Math.max(plane.ranges.x[0], plane.ranges.y[0] - height);
    const length = textWidth(text);
    const across = height * plane.pxPerY * cos;
    let along = (start * plane.pxPerX) / cos + sin * across + 14 + length / 2;
    for (const other of placed) {
      const isNear = Math.abs(other.middle - across - offset) < LINE_PX;
      if (isNear && Math.abs(other.along - along) < (other.length + length) / 2 + 12) along = other.along + (other.length + length) / 2 + 14;
    }
    placed.push({ along, middle: across + offset, length });
    const exponent = ((along - sin * across) * cos) / plane.pxPerX;
    const [x, y] = [plane.px(exponent) - offset * sin, plane.py(exponent + height) - offset * cos];
    const reach = length / 2;
    const isInside = plane.contains(x + reach * cos, y - reach * sin, LINE_PX) && plane.contains(x - reach * cos, y + reach * sin, LINE_PX);
    const isOnLine = roof.x[0] < 10 ** exponent && 10 ** exponent < roof.x[1];
    if (isInside && isOnLine) labels.push({ roof, text, x, y, angle: (-angle * 180) / Math.PI, anchor: "middle", length });
  }
  return labels;
}

/** Labels of the flat roofs: above the line at its right end, or below it; moved left where two would meet. */
function flatLabels(roofs, plane) {
  const heights = roofs.map((roof) => Math.log10(roof.y[0]));
  const placed = [];
  const labels = [];
  for (const roof of [...roofs].sort((a, b) => b.y[0] - a.y[0])) {
    const exponent = Math.log10(roof.y[0]);
    const offset = isLabelledBelow(exponent, heights, plane.pxPerY) ? -LABEL_SHIFT_PX : LABEL_SHIFT_PX;
    const text = roofText(roof, plane);
    const y = plane.py(exponent) - offset;
    const length = textWidth(text);
    let right = plane.right - 6;
    for (const other of placed) {
      if (Math.abs(other.y - y) < LINE_PX && right > other.right - other.length) right = other.right - other.length - 14;
    }
    placed.push({ y, right, length });
    const isInside = plane.contains(right, y) && right - length > plane.left;
    const isOnLine = plane.x(roof.x[0]) < right - length / 2;
    if (isInside && isOnLine) labels.push({ roof, text, x: right, y, angle: 0, anchor: "end", length });
  }
  return labels;
}

/** Labels of the ridges above the horizontal axis: of all of them while they are few, else of the lowest roofs'; a row higher where two would meet. */
function ridgeLabels(meetings, plane) {
  const lowest = Math.min(...meetings.map(({ flat }) => flat.per_s));
  const told = meetings.filter(({ flat }) => meetings.length <= MOST_RIDGES || flat.per_s === lowest);
  const labels = [];
  for (const { intensity } of told.sort((a, b) => a.intensity - b.intensity)) {
    const [text, at] = [`ridge ${scaled(intensity)}`, plane.x(intensity)];
    const length = textWidth(text);
    const isCut = at + 4 + length > plane.right;
    const label = { x: isCut ? at - 4 : at + 4, y: plane.bottom - 8, anchor: isCut ? "end" : "start", angle: 0, text, length };
    while (labels.some((other) => boxesOf(other).some((box) => doMeet(box, boxesOf(label)[0])))) label.y -= LINE_PX;
    if (plane.contains(at, label.y)) labels.push(label);
  }
  return labels;
}

/** The room that a label takes, as boxes {left, top, right, bottom}: a slanted one is a row of small ones. */
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

/** Whether a roof's line runs through a box. */
function isCrossed(box, roof, plane) {
  const [left, right] = [Math.max(box.left, plane.x(roof.x[0])), Math.min(box.right, plane.x(roof.x[1]))];
  if (left > right) return false;
  const slope = (plane.y(roof.y[1]) - plane.y(roof.y[0])) / (plane.x(roof.x[1]) - plane.x(roof.x[0]));
  const [from, to] = [left, right].map((px) => plane.y(roof.y[0]) + slope * (px - plane.x(roof.x[0])));
  return Math.min(from, to) < box.bottom && box.top < Math.max(from, to);
}

/**
 * Names beside the dots that take the most time, where there is room, off the lines of `roofs` if that can be;
 * `taken` are the boxes of the labels that are there.
 */
function dotLabels(dots, plane, taken, roofs) {
  const largest = [...dots].sort((a, b) => (b.row.time ?? 0) - (a.row.time ?? 0));
  const boxOf = ({ px, py, radius }) => ({ left: px - radius, right: px + radius, top: py - radius, bottom: py + radius });
  const obstacles = [...taken, ...largest.slice(0, 200).map(boxOf)];
  const labels = [];
  for (const dot of largest.slice(0, plane.isNarrow ? MOST_NAMES / 2 : MOST_NAMES)) {
    const name = words(LAUNCHES.short[dot.row.position]);
    const text = name.length > NAME_LENGTH ? `${name.slice(0, NAME_LENGTH - 1)}…` : name;
    const length = textWidth(text);
    const places = [
      { x: dot.px + dot.radius + 4, y: dot.py, anchor: "start" },
      { x: dot.px - dot.radius - 4, y: dot.py, anchor: "end" },
      { x: dot.px, y: dot.py - dot.radius - 9, anchor: "middle" },
      { x: dot.px, y: dot.py + dot.radius + 9, anchor: "middle" },
      { x: dot.px + 4, y: dot.py + dot.radius + 8, anchor: "start" },
      { x: dot.px - 4, y: dot.py - dot.radius - 8, anchor: "end" },
    ].map((place) => ({ ...place, angle: 0, length, text }));
    const free = places.filter((place) => {
      const [box] = boxesOf(place);
      return plane.contains(box.left, box.top) && plane.contains(box.right, box.bottom) && !obstacles.some((other) => doMeet(box, other));
    });
    if (!free.length) continue;
    const chosen = free.find((place) => !roofs.some((roof) => isCrossed(boxesOf(place)[0], roof, plane))) ?? free[0];
    labels.push(chosen);
    obstacles.push(...boxesOf(chosen));
  }
  return labels;
}
