// Which rows are in view: search, verdict, whose code, NVTX range, precision and GPU, and whether launches that are alike stand together.

const filter = { text: "", verdict: "", family: "", range: "", precision: "", device: null, isGrouped: true, isChangedOnly: false };

/** On the page of a comparison: launches of the kernels whose time changed. */
const changedPositions = new Set(
  DATA.arrows.filter(([, , , isChanged]) => isChanged).flatMap(([position]) => ROWS.groups.find((row) => row.launches.includes(position))?.launches ?? []),
);

/** Whether a launch is in view, the GPU aside. */
function isInView(position) {
  const wanted = filter.text.trim().toLowerCase();
  const range = filter.range === "" ? "" : DATA.ranges[filter.range];
  const own = words(LAUNCHES.range[position]);
  return (
    (!filter.isChangedOnly || changedPositions.has(position)) &&
    (!filter.verdict || LAUNCHES.verdict[position] === filter.verdict) &&
    (!filter.family || LAUNCHES.family[position] === filter.family) &&
    (!filter.precision || LAUNCHES.precision[position] === filter.precision) &&
    (filter.range === "" || own === range || own.startsWith(`${range} › `)) &&
    (!wanted || searchable(position).includes(wanted))
  );
}

const searchTexts = [];

/** What a search looks in: the names of a launch, its number and its ranges. */
function searchable(position) {
  searchTexts[position] ??= [
    words(LAUNCHES.name[position]), words(LAUNCHES.short[position]), `#${LAUNCHES.id[position]}`, words(LAUNCHES.range[position]),
  ].join("\n").toLowerCase();
  return searchTexts[position];
}

/** The rows in view; of launches that are alike, those in view alone. */
function rowsInView() {
  const own = (position) => LAUNCHES.device[position] === filter.device && isInView(position);
  if (!filter.isGrouped) return ROWS.launches.filter((row) => own(row.position));
  return ROWS.groups.flatMap((row) => {
    const launches = row.launches.filter(own);
    if (launches.length === row.launches.length) return [row];
    return launches.length ? [part(row, launches)] : [];
  });
}

/** A row of some of another's launches. */
function part(row, launches) {
  const total = (column) => launches.reduce((sum, position) => (column[position] === null ? sum : (sum ?? 0) + weighted(column, position)), null);
  const position = launches.includes(row.position) ? row.position : launches[0];
  return { position, launches, time: total(LAUNCHES.duration_ns), recoverable: total(LAUNCHES.recoverable_ns) };
}

/** How much of the run is in view, in words. */
function inWords(rows) {
  const n = rows.reduce((sum, row) => sum + row.launches.length, 0);
  const frac = shareOfRun(timeOf(rows) ?? 0);
  const part = frac === null ? "" : `, ${share(frac)} of the GPU time`;
  return `${n} of ${counted(LAUNCHES.id.length, "launch", "launches")}${part}`;
}

/** The controls; `onChange` is called after each change. */
function filterControls(onChange) {
  const set = (key) => (value) => {
    filter[key] = value;
    onChange();
  };
  const search = make("input", { type: "search", id: "search", autocomplete: "off", placeholder: "name, #number, range" });
  search.addEventListener("input", () => set("text")(search.value));
  const met = (column, titles) => {
    const values = [...new Set(column)].filter((value) => value !== null);
    const known = Object.entries(titles).filter(([value]) => values.includes(value));
    return known.length > 1 ? [["", "all"], ...known] : [];
  };
  const choices = [
    ["Verdict", "verdict", met(LAUNCHES.verdict, DATA.verdicts)],
    ["Whose code", "family", met(LAUNCHES.family, DATA.families)],
    ["Precision", "precision", met(LAUNCHES.precision, DATA.precisions)],
    ["NVTX range", "range", DATA.ranges.length > 1 ? [["", "all"], ...DATA.ranges.map((range, index) => [String(index), range])] : []],
  ];
  const hasGroups = ROWS.groups.length < ROWS.launches.length;
  return [
    make("label", {}, "Search ", search),
    ...choices.filter(([, , options]) => options.length).map(([label, key, options]) => choice(label, options, "", { id: `${key}-filter` }, set(key))),
    ...(changedPositions.size ? [control("checkbox", " changed only", false, { id: "changed-only" }, set("isChangedOnly"))] : []),
    ...(hasGroups ? [control("checkbox", " each launch by itself", false, { id: "each-launch" }, (isChecked) => set("isGrouped")(!isChecked))] : []),
  ];
}
