// Which rows are visible: by search, verdict, finding, source, NVTX range, precision and GPU; and whether equal launches are grouped.

const MOST_NAME = 80; // characters of a range's name in the status line
const OUTER = 1; // in an entry of DATA.ranges, the line around it
const NO_DOT = "none"; // of the filter by dots: the launches that have none in the view and at the level that are shown
const NO_FILTER = { text: "", verdict: "", finding: "", family: "", range: "", precision: "", report: "", dot: "", isChangedOnly: false };
const filter = { ...NO_FILTER, device: null, isGrouped: true };

/** On the page of a comparison, the positions of launches of kernels that changed or were added. */
const changedPositions = new Set(DATA.changed.flatMap((position) => ROWS.groups.find((row) => row.launches.includes(position))?.launches ?? []));

/** Whether a launch passes the filters, except that of the GPU. */
function isInView(position) {
  const wanted = filter.text.trim().toLowerCase();
  return (
    (!filter.isChangedOnly || changedPositions.has(position)) &&
    (!filter.verdict || verdictOf(position) === filter.verdict) &&
    (!filter.finding || LAUNCHES.worth[position] === filter.finding) &&
    (!filter.family || LAUNCHES.family[position] === filter.family) &&
    (!filter.precision || LAUNCHES.precision[position] === filter.precision) &&
    (filter.report === "" || LAUNCHES.source[position] === Number(filter.report)) &&
    (filter.range === "" || isInRange(position, Number(filter.range))) &&
    (!filter.dot || dotOf(position, state.view, state.level) === null) &&
    (!wanted || (/^#\d+$/.test(wanted) ? wanted === `#${LAUNCHES.id[position]}` : searchable(position).includes(wanted)))
  );
}

/** Whether a line of the NVTX ranges counts a launch: its own innermost one, or one around that. */
function isInRange(position, range) {
  let line = LAUNCHES.line[position];
  while (line !== null && line !== range) line = DATA.ranges[line][OUTER];
  return line === range;
}

/** A line of the NVTX ranges with those around it. */
function rangePath(line) {
  const [names, outer] = DATA.ranges[line];
  return [...(outer === null ? [] : [rangePath(outer)]), ...names].join(" › ");
}

/** A line's innermost range; for what is no range, such as the launches in none of those within one, that with the range around it. */
function rangeName(line) {
  const [names, outer] = DATA.ranges[line];
  const name = names.at(-1).length > MOST_NAME ? `${names.at(-1).slice(0, MOST_NAME - 1)}…` : names.at(-1);
  return name.startsWith("(") && outer !== null ? `${rangeName(outer)} › ${name}` : name;
}

const searchTexts = [];

/** The text that a search (other than for a number such as #12) matches: names, ranges, source, verdict, limiter, titles of findings. */
function searchable(position) {
  searchTexts[position] ??= [
    words(LAUNCHES.name[position]), words(LAUNCHES.short[position]), words(LAUNCHES.range[position]), DATA.families[LAUNCHES.family[position]] ?? "",
    verdictTitle(verdictOf(position)), words(LAUNCHES.limiter[position]), ...LAUNCHES.findings[position].map((name) => DATA.findings[name]),
  ].join("\n").toLowerCase();
  return searchTexts[position];
}

/** Whether any filter is set, except that of the GPU. */
function isFiltering() {
  return Object.entries(NO_FILTER).some(([key, nothing]) => filter[key] !== nothing);
}

/** The visible rows; groups contain only their visible launches. */
function rowsInView() {
  const own = (position) => LAUNCHES.device[position] === filter.device && isInView(position);
  if (!filter.isGrouped) return ROWS.launches.filter((row) => own(row.position));
  return ROWS.groups.flatMap((row) => {
    const launches = row.launches.filter(own);
    if (launches.length === row.launches.length) return [row];
    return launches.length ? [part(row, launches)] : [];
  });
}

/** A row of some of a group's launches. */
function part(row, launches) {
  const total = (column) => launches.reduce((sum, position) => (column[position] === null ? sum : (sum ?? 0) + weighted(column, position)), null);
  const position = launches.includes(row.position) ? row.position : longestOf(launches);
  return { position, launches, n: representedBy(launches), time: total(LAUNCHES.duration_ns), recoverable: total(LAUNCHES.recoverable_ns) };
}

/** How much of the run is visible, in words. */
function inWords(rows) {
  const n = rows.reduce((sum, row) => sum + row.launches.length, 0);
  const frac = shareOfRun(timeOf(rows) ?? 0);
  const part = frac === null ? "" : `, ${share(frac)} of ${DATA.gpuTime}`;
  const range = filter.range !== "" && `, in “${rangeName(filter.range)}”`;
  const finding = filter.finding && `, whose largest saving is “${DATA.findings[filter.finding]}”`;
  const dot = filter.dot && ", without a dot";
  const report = filter.report !== "" && `, of ${DATA.reports[filter.report]}`;
  const which = [report, range, finding, dot].filter(Boolean).join("");
  const all = LAUNCHES.id.length;
  if (!LAUNCHES.n_represented) return `${n} of ${counted(all, "launch", "launches")}${part}${which}`;
  const stoodFor = rows.reduce((sum, row) => sum + row.n, 0);
  const recorded = counted(all, "profiled launch", "profiled launches");
  return `${n === all ? recorded : `${n} of ${recorded}`} representing ${launchCount(Math.round(stoodFor))}${part}${which}`;
}

/** Set the given filters, reset all others, and update the controls. */
function setFilters(wanted) {
  Object.assign(filter, NO_FILTER, wanted);
  document.getElementById("search").value = filter.text;
  for (const key of Object.keys(NO_FILTER)) {
    const control = document.getElementById(`${key}-filter`);
    if (control) control.value = filter[key];
  }
  const boxes = { "changed-only": filter.isChangedOnly, "each-launch": !filter.isGrouped };
  for (const [id, isChecked] of Object.entries(boxes)) {
    const box = document.getElementById(id);
    if (box) box.checked = isChecked;
  }
}

/** The field of the search, which `onChange` follows letter by letter. */
function searchField(onChange) {
  const field = make("input", { type: "search", id: "search", autocomplete: "off", placeholder: "name, #12, verdict, finding", "aria-label": "Search kernels" });
  field.addEventListener("input", () => {
    filter.text = field.value;
    onChange();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.("input, select, textarea")) return;
    event.preventDefault();
    field.focus();
  });
  return field;
}

/** The filter controls; `onChange` is called after each change. */
function filterControls(onChange) {
  const set = (key) => (value) => {
    filter[key] = value;
    onChange();
  };
  const met = (column, titles) => {
    const values = [...new Set(column)].filter((value) => value !== null);
    const known = Object.entries(titles).filter(([value]) => values.includes(value));
    return known.length > 1 ? [["", "all"], ...known] : [];
  };
  const choices = [
    ["Verdict", "verdict", met(LAUNCHES.id.map((_, position) => verdictOf(position)), { ...DATA.verdicts, [FAILED]: FAILED })],
    ["Finding", "finding", met(LAUNCHES.worth, DATA.findings)],
    ["Source", "family", met(LAUNCHES.family, DATA.families)],
    ["Precision", "precision", met(LAUNCHES.precision, DATA.precisions)],
    ["Dot", "dot", LAUNCHES.id.some((_, position) => DATA.off.flop[position] !== null) ? [["", "all"], [NO_DOT, "without"]] : []],
    ["Report", "report", DATA.reports.length > 1 ? [["", "all"], ...DATA.reports.map((name, report) => [String(report), name])] : []],
  ];
  const hasGroups = ROWS.groups.length < ROWS.launches.length;
  return [
    ...choices.filter(([, , options]) => options.length).map(([label, key, options]) => choice(label, options, "", { id: `${key}-filter` }, set(key))),
    ...(changedPositions.size ? [control("checkbox", " changed only", false, { id: "changed-only" }, set("isChangedOnly"))] : []),
    ...(hasGroups ? [control("checkbox", " show each launch", false, { id: "each-launch" }, (isChecked) => set("isGrouped")(!isChecked))] : []),
  ];
}
