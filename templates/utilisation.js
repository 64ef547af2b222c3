// The utilisation view: a row of bars per row of the table, a column per resource, and the time-weighted average of visible rows on top.

const MOST_BARS = 30;

/** A share as a bar with its percentage. */
function meter(frac) {
  if (frac === null) return make("span", { class: "soft" }, MISSING);
  const fill = make("span", { class: "meter-fill" });
  fill.style.width = `${100 * Math.min(Math.max(frac, 0), 1)}%`;
  return make("span", { class: "meter" }, fill, make("span", { class: "meter-text" }, share(frac)));
}

/** The time-weighted average over the launches of rows; null where no value is known. */
function averageByTime(rows, column) {
  let [weight, sum] = [0, 0];
  for (const position of rows.flatMap((row) => row.launches)) {
    const time = weighted(LAUNCHES.duration_ns, position);
    if (column[position] === null || !time) continue;
    weight += time;
    sum += time * column[position];
  }
  return weight ? sum / weight : null;
}

/** The bars of the visible rows with the most time. */
function utilisationBars(rows) {
  const resources = Object.keys(LAUNCHES.utilisation).filter((name) => rows.some((row) => LAUNCHES.utilisation[name][row.position] !== null));
  if (rows.length && rows.every((row) => LAUNCHES.failed[row.position])) return make("p", { class: "soft" }, "Utilisation is not known: profiling failed.");
  if (!resources.length) return make("p", { class: "soft" }, "Utilisation was not collected; --section SpeedOfLight collects it.");
  const byTime = [...rows].sort((a, b) => (b.time ?? 0) - (a.time ?? 0));
  const average = ["all in view, time-weighted", "", ...resources.map((name) => meter(averageByTime(rows, LAUNCHES.utilisation[name])))];
  const lines = byTime.slice(0, MOST_BARS).map((row) => [
    kernelLink(row.position), TEXTS.share(row), ...resources.map((name) => meter(LAUNCHES.utilisation[name][row.position])),
  ]);
  const table = makeTable(["Kernel", "Share", ...resources.map((name) => DATA.resources[name])], [average, ...lines], {
    numbers: [1], label: "Utilisation per resource",
  });
  table.classList.add("meters");
  if (rows.length > MOST_BARS) table.append(make("p", { class: "soft" }, `The ${MOST_BARS} longest of ${rows.length}; filter to see others.`));
  return table;
}
