// The page's data. The index holds, column by column, what the chart, the table and the filters show of every launch. Details come in
// parts of several launches; a part is unpacked when one of its launches is opened.

/** Unpacks a block of the page: JSON, compressed with gzip, written as base64. */
async function unpack(id) {
  const packed = atob(document.getElementById(id).textContent.trim());
  const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

if (!("DecompressionStream" in window)) return; // leave the note that the page needs scripts
document.getElementById("unscripted").hidden = true;
const DATA = await unpack("index");
const LAUNCHES = DATA.launches;
const FAILED = "failed";

/** The text of a cell: a number is the position of an entry in a table of texts, by default the index's. */
function words(cell, texts = DATA.texts) {
  return typeof cell === "number" ? texts[cell] : cell ?? "";
}

/**
 * The rows of the page: groups of equal launches, or single launches. `position` is the launch that represents the row, as an index
 * into the columns; `launches` are its profiled launches, `n` is how many launches these represent, and times are sums over all of them.
 */
const ROWS = {
  groups: DATA.groups.map(({ position, launches, n_launches: n, duration_ns: time, recoverable_ns: recoverable }) => ({ position, launches, n, time, recoverable })),
  launches: LAUNCHES.id.map((_, position) => ({
    position, launches: [position], n: representedBy([position]), time: weighted(LAUNCHES.duration_ns, position), recoverable: weighted(LAUNCHES.recoverable_ns, position),
  })),
};

/** A launch's time in sums: multiplied by its weight where a counting run exists; null stays null. */
function weighted(column, position) {
  return column[position] === null || !LAUNCHES.weight ? column[position] : column[position] * LAUNCHES.weight[position];
}

/** How many launches these represent; without a counting run, each represents itself. */
function representedBy(positions) {
  return LAUNCHES.n_represented ? positions.reduce((sum, position) => sum + LAUNCHES.n_represented[position], 0) : positions.length;
}

/** The total time of rows in nanoseconds; null where none is known. */
function timeOf(rows) {
  return rows.reduce((sum, { time }) => (time === null ? sum : (sum ?? 0) + time), null);
}

const RUN_NS = { groups: timeOf(ROWS.groups), launches: timeOf(ROWS.launches) };

/** A time as a share of the run, or null. The whole is the sum over all rows of the kind shown, so that they add up to exactly 1. */
function shareOfRun(time) {
  const whole = filter.isGrouped ? RUN_NS.groups : RUN_NS.launches;
  return whole && time !== null ? time / whole : null;
}

const details = {
  parts: new Map(),

  /** The detail of a launch, with the texts and quantities that it refers to. */
  async of(position) {
    const part = Math.floor(position / DATA.details_per_part);
    if (!this.parts.has(part)) this.parts.set(part, unpack(`details-${part}`));
    const { kernels, texts, quantities } = await this.parts.get(part);
    return { detail: kernels[position % DATA.details_per_part], texts, quantities };
  },
};

/** The recorded counters of a launch, each as [name, value, unit]; null where the page has none. */
async function countersOf(position) {
  const id = `counters-${Math.floor(position / DATA.details_per_part)}`;
  if (!document.getElementById(id)) return null;
  const { names, units, values } = await unpack(id);
  const own = values[position % DATA.details_per_part];
  return names.map((name, index) => [name, own[index], units[index]]).filter(([, value]) => value !== null);
}

/** The dot of a launch in a view at a level as {x, y, precision, roof}; null where it has none. */
function dotOf(position, view, level) {
  const columns = DATA.dots[view]?.[level];
  const x = columns?.x[position] ?? null;
  if (x === null) return null;
  return { x, y: columns.y[position], precision: columns.precision[position], roof: columns.roof[position] };
}

/** The number in the list of what to do first of the change that is expected to save a launch the most; null where none there does. */
function numberOf(position) {
  return DATA.actions[LAUNCHES.worth[position]] ?? null;
}

/** The longest launch; undefined for none. */
function longestOf(positions) {
  const time = (position) => LAUNCHES.duration_ns[position] ?? -1;
  return positions.reduce((longest, position) => (longest === undefined || time(position) > time(longest) ? position : longest), undefined);
}

/** The dot of a row: that of its representative launch, else of its longest launch with a dot. */
function dotOfRow(row, view, level) {
  const own = dotOf(row.position, view, level);
  if (own) return own;
  const other = longestOf(row.launches.filter((position) => dotOf(position, view, level)));
  return other === undefined ? null : dotOf(other, view, level);
}

/** Utilisation of the busier side of a launch; null where none is known. */
function busier(position) {
  const sides = [LAUNCHES.utilisation.memory[position], LAUNCHES.utilisation.compute[position]].filter((side) => side !== null);
  return sides.length ? Math.max(...sides) : null;
}

/** The verdict on a launch; FAILED where its collection failed. */
function verdictOf(position) {
  return LAUNCHES.failed[position] ? FAILED : LAUNCHES.verdict[position];
}

function verdictTitle(name) {
  return DATA.verdicts[name] ?? name;
}

/** Values of a row by column, for sorting and the table; null where not known. */
const VALUES = {
  id: (row) => LAUNCHES.id[row.position],
  name: (row) => words(LAUNCHES.short[row.position]).toLowerCase(),
  launches: (row) => row.n,
  time: (row) => row.time,
  share: (row) => shareOfRun(row.time),
  recoverable: (row) => row.recoverable,
  verdict: (row) => verdictTitle(verdictOf(row.position)),
  limiter: (row) => words(LAUNCHES.limiter[row.position]) || null,
  intensity: (row) => LAUNCHES.intensity[row.position],
  efficiency: (row) => LAUNCHES.efficiency[row.position],
  memory: (row) => LAUNCHES.utilisation.memory[row.position],
  compute: (row) => LAUNCHES.utilisation.compute[row.position],
  finding: (row) => words(LAUNCHES.finding[row.position]) || null,
};

/** Cell texts of a row by column. */
const TEXTS = {
  launches: (row) => launchCount(row.n),
  time: (row) => duration(row.time),
  share: (row) => share(VALUES.share(row)),
  recoverable: (row) => duration(row.recoverable),
  intensity: (row) => scaled(VALUES.intensity(row)),
  efficiency: (row) => share(VALUES.efficiency(row)),
  memory: (row) => share(VALUES.memory(row)),
  compute: (row) => share(VALUES.compute(row)),
  limiter: (row) => words(LAUNCHES.limiter[row.position]) || MISSING,
  finding: (row) => words(LAUNCHES.finding[row.position]),
};
