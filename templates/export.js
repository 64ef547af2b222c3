// Export: text to the clipboard, files, and the chart as a picture with a heading that says what it shows, dots as paths, and a legend.

const MARGIN_PX = 12;
const HEAD_PX = 48;
const LEGEND_MARK_PX = 5;
const LEGEND_GAP_PX = 18;

/** The verdicts of the visible rows, in the order of DATA.verdicts. */
function verdictsOf(rows) {
  const met = new Set(rows.map((row) => LAUNCHES.verdict[row.position]));
  return Object.keys(DATA.verdicts).filter((verdict) => met.has(verdict));
}

/** A text cut to fit a width in pixels, with an ellipsis if cut. */
function fitted(text, width) {
  let cut = text;
  while (cut && textWidth(cut) > width) cut = cut.slice(0, -1);
  return cut === text ? text : `${cut.slice(0, -1)}…`;
}

/** The legend as SVG elements starting at `top`, and its height. */
function legendAsSvg(chart, top) {
  let [x, y] = [MARGIN_PX, top + LINE_PX / 2];
  const items = verdictsOf(chart.choice.rows).flatMap((verdict) => {
    const text = DATA.verdicts[verdict];
    const width = 4 * LEGEND_MARK_PX + textWidth(text);
    if (x + width > chart.width - MARGIN_PX) [x, y] = [MARGIN_PX, y + LINE_PX + 3];
    const mark = draw("path", { d: MARKS[verdict], transform: `translate(${x + LEGEND_MARK_PX} ${y}) scale(${LEGEND_MARK_PX})`, fill: colour(verdict) });
    const name = chart.text(x + 3 * LEGEND_MARK_PX, y, text, { anchor: "start", fill: colour("ink") });
    x += width + LEGEND_GAP_PX;
    return [mark, name];
  });
  return { items, height: y + LINE_PX - top };
}

/** The dots of a chart, or its cells, as SVG elements. */
function dotsAsSvg(chart) {
  const cells = chart.cells.map(({ x, y, verdict, opacity }) => draw("rect", { x, y, width: CELL_PX - 1, height: CELL_PX - 1, fill: colour(verdict), opacity }));
  const dots = chart.drawn.map(({ row, px, py, radius, verdict }) =>
    draw("path", {
      class: "dot", d: MARKS[verdict], transform: `translate(${px} ${py}) scale(${radius})`, opacity: chart.opacity(row),
      fill: colour(verdict), stroke: colour("paper"), "stroke-width": 1 / radius,
    }),
  );
  return [...cells, ...dots];
}

/** The chart as the text of an SVG file; `heading` has two lines: what it shows, and what is in view. */
function chartAsSvg(chart, heading) {
  const { width, plane } = chart;
  const legend = legendAsSvg(chart, HEAD_PX + plane.height);
  const height = HEAD_PX + plane.height + legend.height;
  const font = getComputedStyle(document.body).fontFamily;
  const whole = draw("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${height}`, width, height, "font-family": font });
  const [title, scope] = heading.map((text, line) =>
    chart.text(MARGIN_PX, 16 + 18 * line, fitted(text, (width - 2 * MARGIN_PX) / (line ? 1 : 1.15)), { anchor: "start", fill: colour(line ? "soft" : "ink") }),
  );
  title.setAttribute("font-weight", 600);
  const paper = draw("rect", { width, height, fill: colour("paper") });
  const copies = (svg) => [...svg.childNodes].map((node) => node.cloneNode(true));
  const drawn = draw("g", { transform: `translate(0 ${HEAD_PX})` }, ...copies(chart.back), ...dotsAsSvg(chart), ...copies(chart.front));
  whole.append(paper, title, scope, drawn, ...legend.items);
  return new XMLSerializer().serializeToString(whole);
}

/** Copy a text and return whether that worked; where a frame is denied the clipboard, copying a selection may still work. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // not allowed by the browser, the user or the embedding page
    const field = make("textarea", { class: "unseen" }, text);
    const { activeElement } = document;
    document.body.append(field);
    field.focus({ preventScroll: true });
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    activeElement.focus({ preventScroll: true });
    return isCopied;
  }
}

/** Save a blob as a file with a name. */
function save(name, blob) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Save SVG text as a PNG file, at twice its resolution. */
async function saveAsPng(svg, name) {
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await picture.decode();
  const canvas = make("canvas", { width: 2 * picture.naturalWidth, height: 2 * picture.naturalHeight });
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => save(name, blob));
}
