// The detail of a launch: blocks in a fixed order, each laid out according to its kind. All texts come with the data.

/** Titles of columns with long texts, which wrap. */
const WORDY = ["line", "mostly waiting for", "what is counted"];

class Detail {
  constructor({ detail, texts, quantities }) {
    Object.assign(this, { detail, texts, quantities });
  }

  words(cell) {
    return words(cell, this.texts);
  }

  /** Label of a quantity, with its name and meaning on hover. */
  quantity(number, tag = "span") {
    const [name, label, meaning] = this.quantities[number];
    return make(tag, { title: [name, this.words(meaning)].filter(Boolean).join(": ") }, this.words(label));
  }

  path() {
    const steps = this.detail.path.map(([question, quantity, value, condition, outcome, remark]) => {
      const answer = outcome === null ? "not known" : outcome ? "yes" : "no";
      const numbers = make("span", { class: "soft" }, this.quantity(quantity), `: ${value}${condition ? `, needs ${condition}` : ""}${remark ? `; ${remark}` : ""}`);
      return make("li", {}, make("span", { class: "answer" }, answer), make("span", {}, this.words(question), " ", numbers));
    });
    const flip = this.words(this.detail.flip);
    return [make("h3", {}, "Why this verdict"), make("ol", { class: "path" }, ...steps), ...(flip ? [make("p", {}, flip)] : [])];
  }

  finding(finding) {
    const evidence = finding.evidence.flatMap(([quantity, value], index) => [index ? ", " : "", this.quantity(quantity), ` ${value}`]);
    const gain = finding.gain === null ? "" : make("strong", {}, finding.gain);
    const basis = finding.basis === "" ? "" : make("span", { class: "soft" }, ": ", this.words(finding.basis));
    const parts = [make("h4", {}, this.words(finding.title)), make("p", {}, gain, basis), make("p", {}, this.words(finding.advice))];
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
    return [make("h3", {}, "Findings"), ...(findings.length ? findings.map((finding) => this.finding(finding)) : [none])];
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

  /** The path of the bytes from the SMs to DRAM: units with their hit rates, and the traffic between them. */
  flow() {
    if (!this.detail.flow.length) return [];
    const stations = this.detail.flow.map(([kind, text, note, width]) => {
      const item = make("li", { class: kind }, make("span", {}, this.words(text)), note ? make("span", { class: "soft" }, this.words(note)) : "");
      if (kind === "traffic") item.style.setProperty("--width", `${width}px`);
      return item;
    });
    // Traffic and the unit that it reaches stay on one line, however narrow the window is.
    const hops = [stations[0]];
    for (let each = 1; each < stations.length; each += 2) hops.push(make("li", { class: "hop" }, make("ol", {}, ...stations.slice(each, each + 2))));
    return [make("h3", {}, "Traffic from the SMs to DRAM"), make("ol", { class: "flow" }, ...hops)];
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
    const cells = rows.flatMap(([number, text, frac]) => {
      const fill = make("div", { class: "fill" });
      fill.style.width = `${100 * frac}%`;
      return [this.quantity(number, "dt"), make("dd", { class: "track", "aria-hidden": "true" }, fill), make("dd", { class: "number" }, text)];
    });
    return make("dl", { class: "bars" }, ...cells);
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

  /** The blocks of numbers: narrow ones side by side, tables below each other. */
  blocks(sections = DATA.sections) {
    const cards = make("div", { class: "cards" });
    const tables = make("div", {});
    for (const [key, title, kind, columns] of sections) {
      const parts = this.block(this.detail[key], kind, columns);
      const isWide = kind === "table" || kind === "meanings";
      (isWide ? tables : cards).append(make("div", { class: isWide ? "wide" : "" }, make("h3", {}, title), ...parts));
    }
    return [cards, tables];
  }
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
  return [make("p", {}, choice(`One of ${group.launches.length}${LAUNCHES.n_represented ? " profiled" : ""} similar launches:`, options, String(position), { id: "alike" }, (value) => choose(Number(value))))];
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
    ...detail.path(), ...timeInside(detail), ...detail.findings(), ...sliders, ...detail.caveats(), ...detail.missing(), ...detail.flow(), ...detail.blocks(), ...detail.vendor(), rawCounters(position),
  ];
}

/** Show a launch's detail. */
async function showDetail(position) {
  const part = await details.of(position);
  if (position !== state.selected) return; // another launch was selected meanwhile
  const detail = new Detail(part);
  document.getElementById("detail-title").replaceChildren(`#${LAUNCHES.id[position]} `, isolated(words(LAUNCHES.short[position])));
  document.getElementById("detail-body").replaceChildren(
    make("p", {}, verdictMark(verdictOf(position)), LAUNCHES.failed[position] ? "" : `: ${detail.words(part.detail.summary)}`),
    make("p", { class: "whole-name name", tabindex: "0", role: "region", "aria-label": "Whole name" }, isolated(words(LAUNCHES.name[position]))),
    ...alike(position),
    ...known(position, detail),
  );
}
