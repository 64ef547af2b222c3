// The detail of a launch: blocks in a fixed order, each laid out according to its kind. All texts come with the data.

/** Titles of columns with long texts, which wrap. */
const WORDY = ["line", "mostly waiting for", "what is counted"];
const MOST_BARS_SHOWN = 5; // of a block; the others are folded
const MOST_FINDINGS_SHOWN = 2;
const LEAST_NAMED = 0.1; // share of the stalls' bar with room for a name

/** A heading with a "?" that unfolds what the quantities below it mean: [name, label, meaning] each. */
function headingWithMeanings(title, quantities) {
  const heading = make("h3", {}, title);
  const known = quantities.filter(([, , meaning]) => meaning);
  if (!known.length) return [heading];
  const asking = make("button", { type: "button", class: "what", "aria-expanded": "false", "aria-label": `What the numbers of “${title}” mean` }, "?");
  const list = make("dl", { class: "meanings" });
  list.hidden = true;
  asking.addEventListener("click", () => {
    if (!list.children.length) {
      list.append(...known.flatMap(([name, label, meaning]) => [make("dt", {}, label), make("dd", {}, meaning, " ", make("code", {}, name))]));
    }
    list.hidden = !list.hidden;
    asking.setAttribute("aria-expanded", String(!list.hidden));
  });
  heading.append(" ", asking);
  return [heading, list];
}

class Detail {
  constructor({ detail, texts, quantities }, position) {
    Object.assign(this, { detail, texts, quantities, position });
  }

  words(cell) {
    return words(cell, this.texts);
  }

  /** Label of a quantity. */
  quantity(number, tag = "span") {
    return make(tag, {}, this.words(this.quantities[number][1]));
  }

  /** A heading, and what these quantities mean behind its "?". */
  heading(title, numbers) {
    const met = [...new Set(numbers)].map((number) => this.quantities[number].map((cell) => this.words(cell)));
    return headingWithMeanings(title, met);
  }

  /** The path to the verdict as a strip of boxes that ends in it, without those that only ask what is known. */
  path() {
    const asked = this.detail.path.filter(([, , , , outcome, , isPlain]) => !(isPlain && outcome));
    const boxes = asked.map(([question, quantity, value, condition, outcome, remark]) => {
      const answer = outcome === null ? "not known" : outcome ? "yes" : "no";
      const needs = condition ? `, needs ${condition}` : "";
      const numbers = make("span", { class: "soft" }, this.quantity(quantity), `: ${value}${needs}${remark ? `; ${remark}` : ""}`);
      return make("li", {}, make("span", { class: "step-box" }, this.words(question), " ", numbers), make("span", { class: "outcome" }, ` ${answer} `));
    });
    const limiter = words(LAUNCHES.limiter[this.position]);
    const end = make("li", { class: "end" }, verdictMark(verdictOf(this.position)), limiter ? ` limited by ${limiter}` : "");
    const flip = this.words(this.detail.flip);
    const numbers = asked.map(([, quantity]) => quantity);
    return [...this.heading("Why this verdict", numbers), make("ol", { class: "path" }, ...boxes, end), ...(flip ? [make("p", { class: "soft" }, flip)] : [])];
  }

  /** Both sides of NVIDIA's Speed of Light as large bars, with the line from which a unit counts as busy. */
  speed() {
    const { bars, line, said } = this.detail.speed;
    if (!bars.length) return [];
    const rows = bars.flatMap(([number, text, frac, side]) => {
      const fill = make("div", { class: `fill v-${side}` });
      fill.style.width = `${100 * frac}%`;
      const mark = make("div", { class: "line" });
      mark.style.left = `${100 * line}%`;
      return [this.quantity(number, "dt"), make("dd", { class: "track", "aria-hidden": "true" }, fill, ...(line === null ? [] : [mark])), make("dd", { class: "number" }, text)];
    });
    const [heading, ...meanings] = this.heading("Speed of Light", bars.map(([number]) => number));
    if (said) heading.append(make("span", { class: "soft" }, ` ${said}`));
    return [heading, ...meanings, make("dl", { class: "bars speed" }, ...rows)];
  }

  finding(finding) {
    const evidence = finding.evidence.flatMap(([quantity, value], index) => [index ? ", " : "", this.quantity(quantity), ` ${value}`]);
    const gain = finding.gain === null ? "" : make("strong", {}, finding.gain);
    const basis = finding.basis === "" ? "" : make("span", { class: "soft" }, ": ", this.words(finding.basis));
    const number = DATA.actions[finding.id];
    const badge = number ? [make("a", { class: "no", href: `#action-${number}`, "aria-label": `Number ${number} of what to do first` }, number), " "] : [];
    const parts = [make("h4", {}, ...badge, this.words(finding.title)), make("p", {}, this.words(finding.advice)), make("p", {}, gain, basis)];
    const where = this.words(finding.where);
    if (where) parts.push(make("p", {}, "Where: ", isolated(where), "."));
    const source = this.words(finding.source);
    if (source) parts.push(make("code", { class: "source", tabindex: "0" }, source));
    if (finding.waste.length) parts.push(make("p", {}, `Wasted traffic: ${finding.waste.join(", ")}.`));
    if (evidence.length) parts.push(make("p", { class: "soft" }, "Evidence: ", ...evidence));
    return make("article", { class: `finding ${finding.severity}` }, ...parts);
  }

  findings() {
    const none = make("p", { class: "soft" }, "None: the collected counters point to no cause.");
    const { findings } = this.detail;
    const heading = this.heading("Findings", findings.flatMap(({ evidence }) => evidence.map(([number]) => number)));
    const parts = findings.map((finding) => this.finding(finding));
    return [...heading, ...(parts.length ? folded(parts, MOST_FINDINGS_SHOWN, "finding", "findings") : [none])];
  }

  caveats() {
    if (!this.detail.caveats.length) return [];
    const items = this.detail.caveats.map((meaning) => make("li", {}, this.words(meaning)));
    return [make("h3", {}, "Caveats"), make("ul", {}, ...items)];
  }

  missing() {
    const { quantities, options } = this.detail.missing;
    if (!quantities.length) return [];
    const names = quantities.flatMap((quantity, index) => [index ? ", " : "", this.quantity(quantity)]);
    return [
      make("h3", {}, "Not collected"),
      make("p", {}, ...names, ". These ncu options collect them:"),
      make("code", { class: "options", tabindex: "0" }, this.words(options)),
    ];
  }

  vendor() {
    const { verdict, rules, broken } = this.detail.vendor;
    const sentence = this.words(verdict);
    if (!rules.length && sentence === "" && broken === "") return [];
    const items = rules.flatMap(([title, message, speedup]) => [
      make("dt", {}, isolated(this.words(title))),
      make("dd", {}, isolated(this.words(message)), speedup ? make("strong", {}, ` ${this.words(speedup)}`) : ""),
    ]);
    return [
      make("h3", {}, "What NVIDIA's rules say"), make("p", {}, sentence), make("dl", { class: "meanings" }, ...items),
      make("p", { class: "soft" }, broken),
    ];
  }

  /** The paths of the bytes from the SMs to DRAM and to shared memory: units with their hit rates, and the traffic between them. */
  flow() {
    const paths = [this.detail.flow, this.detail.shared_flow].filter((stations) => stations.length);
    if (!paths.length) return [];
    const key = make("span", { class: "soft" }, " thickness: bytes; colour: share of the peak");
    return [make("h3", {}, "Traffic from the SMs to DRAM", key), ...paths.map((stations) => this.flowPath(stations))];
  }

  flowPath(path) {
    const stations = path.map(([kind, text, note, width, frac]) => {
      const item = make("li", { class: kind }, make("span", {}, this.words(text)), note ? make("span", { class: "soft" }, this.words(note)) : "");
      if (kind === "traffic") item.style.setProperty("--width", `${width}px`);
      if (frac !== null) item.style.setProperty("--busy", Math.min(0.25 + 0.75 * frac, 1));
      return item;
    });
    // Traffic and the unit that it reaches stay on one line, however narrow the window is.
    const hops = [stations[0]];
    for (let each = 1; each < stations.length; each += 2) hops.push(make("li", { class: "hop" }, make("ol", {}, ...stations.slice(each, each + 2))));
    return make("ol", { class: "flow" }, ...hops);
  }

  /** The rows of a block, laid out by its kind; rows of one cell are remarks below the others. */
  block(rows, kind, columns) {
    const notes = rows.filter((row) => row.length === 1).map(([note]) => make("p", { class: "soft" }, this.words(note)));
    const full = rows.filter((row) => row.length > 1);
    if (!full.length) return notes.length ? notes : [make("p", { class: "soft" }, "Not collected.")];
    return [this[kind](full, columns), ...notes];
  }

  facts(rows) {
    const pairs = rows.flatMap(([label, value]) => [make("dt", {}, this.words(label)), make("dd", {}, ...isolatedNames(this.words(value)))]);
    return make("dl", { class: "pairs" }, ...pairs);
  }

  numbers(rows) {
    const pairs = rows.flatMap(([number, value]) => [this.quantity(number, "dt"), make("dd", {}, this.words(value))]);
    return make("dl", { class: "pairs" }, ...pairs);
  }

  bars(rows) {
    const list = (some) => make("dl", { class: "bars" }, ...some.flatMap((row) => this.bar(row)));
    const [shown, others] = [rows.slice(0, MOST_BARS_SHOWN), rows.slice(MOST_BARS_SHOWN)];
    if (others.length < 2) return list(rows);
    return make("div", {}, list(shown), make("details", {}, make("summary", {}, `${others.length} more`), list(others)));
  }

  bar([number, text, frac]) {
    const fill = make("div", { class: "fill" });
    fill.style.width = `${100 * frac}%`;
    return [this.quantity(number, "dt"), make("dd", { class: "track", "aria-hidden": "true" }, fill), make("dd", { class: "number" }, text)];
  }

  /** Parts of a whole as one bar, and below it as bars of their own. */
  stack(rows) {
    const parts = rows.map(([number, text, frac], index) => {
      const part = make("span", { class: `part p${index % 4}` }, frac >= LEAST_NAMED ? `${this.words(this.quantities[number][1])} ${text}` : "");
      part.style.flexGrow = frac;
      return part;
    });
    return make("div", {}, make("div", { class: "stack", "aria-hidden": "true" }, ...parts), this.bars(rows));
  }

  /** Source lines, with their share of the samples as bars. */
  lines(rows, titles) {
    const list = this.table(rows.map((row) => row.slice(0, -1)), titles);
    [...list.querySelectorAll("tbody tr")].forEach((line, index) => {
      line.cells[0].classList.add("bar-cell");
      line.cells[0].style.setProperty("--bar", `${100 * (rows[index].at(-1) ?? 0)}%`);
    });
    return list;
  }

  table(rows, titles) {
    const cells = rows.map((row) => row.map((cell) => this.words(cell)));
    return makeTable(titles, cells, { wrap: WORDY.map((title) => titles.indexOf(title)) });
  }

  /** Quantities with their meanings, collapsed. */
  meanings(rows) {
    const pairs = rows.flatMap(([number, value]) => [
      this.quantity(number, "dt"),
      make("dd", {}, this.words(value), make("span", { class: "soft" }, ` ${this.words(this.quantities[number][2])}`)),
    ]);
    return make("details", {}, make("summary", {}, `${rows.length} more`), make("dl", { class: "meanings" }, ...pairs));
  }

  /** The blocks of numbers: narrow ones side by side, tables below each other and folded. */
  blocks(sections = DATA.sections) {
    const cards = make("div", { class: "cards" });
    const tables = make("div", {});
    for (const [key, title, kind, columns] of sections) {
      const rows = this.detail[key];
      const parts = this.block(rows, kind, columns);
      const isOfQuantities = ["bars", "numbers", "stack"].includes(kind);
      const heading = isOfQuantities ? this.heading(title, rows.filter((row) => row.length > 1).map(([number]) => number)) : [make("h3", {}, title)];
      if (kind === "table") tables.append(make("details", { class: "wide" }, make("summary", {}, ...heading), ...parts));
      else (kind === "meanings" ? tables : cards).append(make("div", { class: ["meanings", "lines"].includes(kind) ? "wide" : "" }, ...heading, ...parts));
    }
    return [cards, tables];
  }
}

/** Parts of which the first are shown and the others folded. */
function folded(parts, most, one, many) {
  const rest = parts.slice(most);
  return rest.length ? [...parts.slice(0, most), make("details", {}, make("summary", {}, counted(rest.length, `more ${one}`, `more ${many}`)), ...rest)] : parts;
}

/** The recorded counters, unpacked when the block is opened. */
function rawCounters(position) {
  const part = make("details", {}, make("summary", {}, "Counters as recorded"));
  part.addEventListener("toggle", async () => {
    if (!part.open || part.children.length > 1) return;
    const counters = await countersOf(position);
    const rows = (counters ?? []).map(([name, value, unit]) => [name, String(value), unit]);
    const none = make("p", { class: "soft" }, "Not in this page; ncu --import REPORT --page raw prints them.");
    part.append(counters ? makeTable(["counter", "value", "unit"], rows, { numbers: [1], label: "Counters as recorded" }) : none);
  });
  return part;
}

/** Fill the list of explanations when it is opened: each name with its text from `ncuroof explain`. */
function showExplanations(list) {
  list.addEventListener("toggle", async () => {
    if (!list.open || list.children.length > 1) return;
    const entries = await unpack("explained-data");
    list.append(...entries.map(([name, text]) => make("details", {}, make("summary", {}, name), make("pre", { tabindex: "0" }, text))));
  });
}

/** A choice among the launches of the same group. */
function alike(position) {
  const group = ROWS.groups.find((row) => row.launches.includes(position));
  if (!group || group.launches.length < 2) return [];
  const options = group.launches.map((each) => [String(each), `#${LAUNCHES.id[each]}, ${duration(LAUNCHES.duration_ns[each])}`]);
  return [make("p", {}, choice(`One of ${group.launches.length}${LAUNCHES.n_represented ? " profiled" : ""} similar launches:`, options, String(position), { id: "alike" }, (value) => open(Number(value), { isStep: true })))];
}

/** The sliders of a launch; none where its busy times are not known. */
function whatIf(position, scaling) {
  showWhatIf(chart, position, null);
  return scaling && !LAUNCHES.failed[position] ? new WhatIf(scaling, (moved) => showWhatIf(chart, position, moved)).elements() : [];
}

/** What is known of a launch: all of it, or where its profiling failed, that it did, and how it was launched. */
function known(position, detail) {
  const sliders = whatIf(position, detail.detail.scaling);
  if (LAUNCHES.failed[position]) return [...detail.caveats(), ...detail.blocks(DATA.sections.filter(([key]) => key === "facts")), ...detail.vendor()];
  return [
    ...detail.path(), ...detail.speed(), ...timeInside(detail), ...detail.findings(), ...detail.flow(), ...detail.caveats(), ...detail.missing(), ...detail.blocks(), ...sliders, ...detail.vendor(), rawCounters(position),
  ];
}

/** Show a launch's detail. */
async function showDetail(position) {
  const part = await details.of(position);
  if (position !== state.selected) return; // another launch was selected meanwhile
  const [detail, beside] = [new Detail(part, position), await besidePinned(position)];
  document.getElementById("detail-title").replaceChildren(`#${LAUNCHES.id[position]} `, isolated(words(LAUNCHES.short[position])));
  document.getElementById("detail-body").replaceChildren(
    make("p", {}, verdictMark(verdictOf(position)), LAUNCHES.failed[position] ? "" : `: ${detail.words(part.detail.summary)}`),
    make("details", { class: "whole" }, make("summary", {}, "Whole name"), make("p", { class: "whole-name name" }, isolated(words(LAUNCHES.name[position])))),
    ...alike(position),
    ...beside,
    ...known(position, detail),
  );
}
