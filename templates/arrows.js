// Arrows on the page of a comparison: from a kernel's position before to that after, on the FLOP roofline at DRAM.

const ARROW_HEAD_PX = 7;
const LEAST_ARROW_PX = 3;

/** The arrows of the visible rows. */
function arrowsOf(chart) {
  const { view, level } = chart.choice;
  if (view !== "flop" || level !== "dram") return [];
  const markByPosition = new Map();
  for (const mark of chart.marks) for (const position of mark.row.launches) if (mark.isOnPlane) markByPosition.set(position, mark);
  return DATA.arrows.flatMap(([position, x, y, isChanged]) => {
    const mark = markByPosition.get(position);
    return mark ? arrow(chart, mark, chart.plane.x(x), chart.plane.y(y), isChanged) : [];
  });
}

function arrow(chart, mark, fromX, fromY, isChanged) {
  const length = Math.hypot(mark.px - fromX, mark.py - fromY);
  if (length < LEAST_ARROW_PX + mark.radius) return [];
  const [unitX, unitY] = [(mark.px - fromX) / length, (mark.py - fromY) / length];
  const [tipX, tipY] = [mark.px - unitX * (mark.radius + 1), mark.py - unitY * (mark.radius + 1)];
  const head = Math.min(ARROW_HEAD_PX, length - mark.radius);
  const side = (sign) => {
    const [backX, backY] = [tipX - unitX * head, tipY - unitY * head];
    return `${backX + sign * unitY * (head / 2)},${backY - sign * unitX * (head / 2)}`;
  };
  const stroke = colour(isChanged ? mark.verdict : "soft");
  const halo = chart.line(fromX, fromY, tipX, tipY, colour("paper")); // tells the arrow from dots and roofs that it crosses
  halo.setAttribute("stroke-width", isChanged ? 5 : 3);
  const line = chart.line(fromX, fromY, tipX, tipY, stroke);
  line.setAttribute("stroke-width", isChanged ? 2.5 : 1);
  line.setAttribute("class", "arrow");
  const start = draw("circle", { cx: fromX, cy: fromY, r: isChanged ? 4 : 3, fill: colour("paper"), stroke, "stroke-width": isChanged ? 2 : 1 });
  return [halo, line, start, draw("polygon", { points: `${tipX},${tipY} ${side(1)} ${side(-1)}`, fill: stroke, stroke: colour("paper") })];
}
