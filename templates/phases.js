// The time inside a kernel: how busy its busiest unit was, its phases in the colours of their verdicts, and a table of them.

const STRIP = { width: 600, height: 64, band: 12 };

/** Title of a phase on hover and for screen readers. */
const phaseTitle = ({ when, limit, kind }) => `${when}: ${limit}, ${kind}`;

/** The course as columns, and below it the phases; widths are shares of the kernel's time. */
function phaseStrip({ course, parts, label }) {
  const { width, height, band } = STRIP;
  const step = width / course.length;
  const columns = course.map((share, index) => draw("rect", {
    x: index * step, width: step, y: height * (1 - (share ?? 0)), height: height * (share ?? 0), class: "course",
  }));
  const phases = parts.map((part) => {
    const rect = draw("rect", { x: width * part.start, width: width * part.length, y: height + 2, height: band, class: `v-${part.verdict}` });
    rect.append(draw("title", {}, phaseTitle(part)));
    return rect;
  });
  const bounds = parts.slice(1).map(({ start }) => draw("line", { x1: width * start, x2: width * start, y1: 0, y2: height + band + 2, class: "bound" }));
  return draw("svg", {
    viewBox: `0 0 ${width} ${height + band + 2}`, class: "phases", role: "img", "aria-label": label, preserveAspectRatio: "none",
  }, ...columns, ...phases, ...bounds);
}

/** The block of a launch's detail; nothing where its report holds no series. */
function timeInside(detail) {
  const { phases } = detail.detail;
  if (!phases) return [];
  const notes = phases.notes.map((note) => make("p", { class: "soft" }, detail.words(note)));
  if (!phases.parts.length) return [make("h3", {}, "Over its time"), ...notes];
  const rows = phases.parts.map(({ when, length_text, kind, limit, units }) => [when, length_text, kind, limit, units]);
  const table = makeTable(["of its time", "length", "kind", "verdict", "busiest units"], rows, { numbers: [1], label: "Phases" });
  return [make("h3", {}, "Over its time"), make("p", {}, detail.words(phases.sentence)), phaseStrip(phases), table, ...notes];
}
