// The dock: the detail of the open launch, beside the page on a wide window and below it on others, so that the chart stays in sight. It
// leads to the rows before and after in the table, closes on Escape, and compares the launch with one that is pinned.

const MOST_COMPARED = 14; // rows of the comparison with a pinned launch that are shown at first
const SIGHT_PX = 60; // from a dot that is in sight to the edges
const dock = document.getElementById("detail");
let openedFrom = null; // what had the focus when the dock was opened, which gets it back

/** Show or hide the dock. */
function showDock(isOpen) {
  dock.hidden = !isOpen;
  document.body.classList.toggle("docked", isOpen);
  document.documentElement.classList.toggle("with-detail", isOpen);
  if (isOpen) showDockButtons();
}

/** Open a launch: its detail beside the chart, marked on the chart and in the table. */
async function open(position, { isStep = false } = {}) {
  if (position < 0) return;
  if (dock.hidden) openedFrom = document.activeElement;
  state.section = "";
  const shown = select(position);
  remember({ isOpening: !isStep });
  await shown;
  if (chartRoot.contains(document.activeElement)) showDot();
  if (!isStep) document.getElementById("detail-title").focus({ preventScroll: true });
}

/** Where the dock lies below the page, scroll so that the dot of the open launch is above it. */
function showDot() {
  const mark = chart.marks?.find(({ row }) => row.launches.includes(state.selected));
  const { top } = dock.getBoundingClientRect();
  if (!mark || top <= 0) return;
  const y = chartRoot.getBoundingClientRect().top + mark.py;
  if (y < SIGHT_PX || y > top - SIGHT_PX) scrollBy({ top: y - top / 2, behavior: "instant" });
}

/** Close the dock; where it was opened gets the focus back. */
function close() {
  if (state.selected === null) return;
  const hadFocus = dock.contains(document.activeElement);
  const position = state.selected;
  select(null);
  remember({ isOpening: true });
  if (!hadFocus) return;
  if (openedFrom?.isConnected && openedFrom !== document.body) openedFrom.focus({ preventScroll: true });
  else if (table.indexOf(position) >= 0) table.focus(table.indexOf(position));
  else chartRoot.focus({ preventScroll: true });
}

/** Open the row `step` rows after that of the open launch, in the order of the table. */
function stepTo(step) {
  const index = table.indexOf(state.selected);
  const row = table.rows[index < 0 ? 0 : index + step];
  if (row) open(row.position, { isStep: true });
}

function pin(position) {
  state.pinned = position;
  remember({ isOpening: true });
  showDockButtons();
  showDetail(state.selected);
  showChart();
}

function showDockButtons() {
  const index = table.indexOf(state.selected);
  const previous = button("‹ Previous", () => stepTo(-1));
  const next = button("Next ›", () => stepTo(1));
  previous.disabled = index === 0;
  next.disabled = index === table.rows.length - 1;
  const place = index < 0 ? "" : `${index + 1} of ${table.rows.length}`;
  const { pinned, selected } = state;
  const pinning = pinned === null ? button("Pin to compare", () => pin(selected)) : button(`Unpin #${LAUNCHES.id[pinned]}`, () => pin(null));
  const closing = button("✕", close);
  closing.setAttribute("aria-label", "Close the detail");
  closing.className = "close";
  const had = [...document.getElementById("detail-buttons").children].indexOf(document.activeElement);
  document.getElementById("detail-buttons").replaceChildren(previous, next, pinning, make("span", { class: "soft" }, place), closing);
  const again = document.getElementById("detail-buttons").children[had];
  if (again) (again.disabled ? closing : again).focus({ preventScroll: true });
}

/** The open launch beside the pinned one: what differs as a table; nothing where no other one is pinned. */
async function besidePinned(position) {
  const { pinned } = state;
  if (pinned === null) return [];
  const name = (each) => `#${LAUNCHES.id[each]}`;
  if (pinned === position) return [make("p", { class: "soft" }, `${name(pinned)} is pinned: open another kernel to see it beside this one.`)];
  const [one, other] = (await Promise.all([pinned, position].map((each) => details.of(each)))).map(comparedOf);
  const labels = [...new Set([...one.keys(), ...other.keys()])];
  const differing = labels.filter((label) => one.get(label) !== other.get(label));
  const rows = differing.map((label) => [label, ...[one, other].map((each) => isolated(each.get(label) ?? MISSING))]);
  const verdicts = ["verdict", ...[pinned, position].map((each) => verdictMark(verdictOf(each)))];
  const titles = [pinned, position].map((each) => `${name(each)} ${words(LAUNCHES.short[each])}`);
  const tableOfBoth = makeTable(["", name(pinned), name(position)], [verdicts, ...rows], { label: `${titles.join(" beside ")}` });
  tableOfBoth.classList.add("both");
  const [body] = tableOfBoth.querySelector("table").tBodies;
  const rest = [...body.rows].slice(MOST_COMPARED);
  const more = rest.length > 1 ? [button(`${rest.length} more that differ`, (event) => {
    body.append(...rest);
    event.target.remove();
  })] : [];
  if (more.length) for (const row of rest) row.remove();
  const same = labels.length - differing.length;
  return [
    make("h3", {}, "Beside ", kernelLink(pinned)),
    tableOfBoth,
    ...(more.length ? [make("p", { class: "controls" }, ...more)] : []),
    ...(same ? [make("p", { class: "soft" }, `${counted(same, "other number is", "other numbers are")} the same.`)] : []),
  ];
}

/** The numbers of a launch that are compared, by their labels. */
function comparedOf({ detail, texts, quantities }) {
  const text = (cell) => words(cell, texts);
  const pairs = detail.facts.map(([label, value]) => [text(label), text(value)]);
  for (const group of ["utilisation", "stalls", "occupancy", "access"]) {
    const full = detail[group].filter((row) => row.length > 1);
    pairs.push(...full.map(([number, value]) => [text(quantities[number][1]), text(value)]));
  }
  pairs.push(...detail.traffic_bytes.filter((row) => row.length > 1).map(([level, value]) => [`bytes at ${text(level)}`, text(value)]));
  return new Map(pairs);
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || state.selected === null) return;
  if (event.target.matches?.("input, select, textarea") && !dock.contains(event.target)) return;
  event.preventDefault();
  close();
});
