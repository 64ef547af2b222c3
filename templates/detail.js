// The detail of a kernel: blocks in a fixed order, each laid out by its kind. All texts come with the data.

/** Label of a quantity, its meaning on hover. */
function quantityLabel(number, tag = "span") {
  const [name, label, meaning] = DATA.quantities[number];
  return make(tag, { title: [name, words(meaning)].filter(Boolean).join(": ") }, label);
}

/** Rows that fill a block, and below them the rows of one cell, which are remarks. */
function withNotes(rows, layOut) {
  const notes = rows.filter((row) => row.length === 1).map(([note]) => make("p", { class: "soft" }, note));
  const full = rows.filter((row) => row.length > 1);
  return [...(full.length ? [layOut(full)] : []), ...notes];
}

const LAYOUTS = {
  facts: (rows) => {
    const pairs = rows.flatMap(([label, value]) => [make("dt", {}, label), make("dd", {}, isolated(value))]);
    return make("dl", { class: "pairs" }, ...pairs);
  },
  quantities: (rows) => {
    const pairs = rows.flatMap(([number, value]) => [quantityLabel(number, "dt"), make("dd", {}, value)]);
    return make("dl", { class: "pairs" }, ...pairs);
  },
  bars: (rows) => {
    const cells = rows.flatMap(([number, text, share]) => {
      const fill = make("div", { class: "fill" });
      fill.style.width = `${100 * share}%`;
      return [quantityLabel(number, "dt"), make("div", { class: "track", "aria-hidden": "true" }, fill), make("dd", { class: "number" }, text)];
    });
    return make("dl", { class: "bars" }, ...cells);
  },
  table: (rows, titles) => makeTable(titles, rows, { wrap: [titles.indexOf("what is counted")] }),
};

function pathBlock(kernel) {
  const steps = kernel.path.map(([question, quantity, value, condition, outcome, margin]) => {
    const answer = outcome === null ? "not known" : outcome ? "yes" : "no";
    const numbers = make("span", { class: "soft" }, quantityLabel(quantity), `: ${value} ${condition}${margin ? `; ${margin}` : ""}`);
    return make("li", {}, make("span", { class: "answer" }, answer), make("span", {}, question, " ", numbers));
  });
  const flip = words(kernel.flip);
  return [
    make("h3", {}, "Why this verdict"),
    make("ol", { class: "path" }, ...steps),
    ...(flip ? [make("p", {}, flip)] : []),
  ];
}

function findingBlock(finding) {
  const evidence = finding.evidence.flatMap(([quantity, value], index) => [index ? ", " : "", quantityLabel(quantity), ` ${value}`]);
  const gain = finding.gain === null
    ? ""
    : make("strong", {}, finding.gain);
  const parts = [
    make("h4", {}, finding.title),
    make("p", {}, gain, finding.basis === "" ? "" : make("span", { class: "soft" }, ": ", finding.basis)),
    make("p", {}, finding.advice),
  ];
  if (finding.waste.length) parts.push(make("p", {}, `Moved in vain: ${finding.waste.join(", ")}.`));
  if (evidence.length) parts.push(make("p", { class: "soft" }, "Evidence: ", ...evidence));
  return make("article", { class: `finding ${finding.severity}` }, ...parts);
}

function findingsBlock(kernel) {
  const none = make("p", { class: "soft" }, "None: nothing in the counters that were collected points to a cause.");
  return [make("h3", {}, "Findings"), ...(kernel.findings.length ? kernel.findings.map(findingBlock) : [none])];
}

function caveatsBlock(kernel) {
  if (!kernel.caveats.length) return [];
  const items = kernel.caveats.map((meaning) => make("li", {}, words(meaning)));
  return [make("h3", {}, "Caveats"), make("ul", {}, ...items)];
}

function missingBlock(kernel) {
  const { quantities, options } = kernel.missing;
  if (!quantities.length) return [];
  const names = quantities.flatMap((quantity, index) => [index ? ", " : "", quantityLabel(quantity)]);
  return [
    make("h3", {}, "Not collected"),
    make("p", {}, ...names, ". These options of ncu collect them:"),
    make("code", { class: "options", tabindex: "0" }, options),
  ];
}

function vendorBlock(kernel) {
  const { verdict, rules, broken } = kernel.vendor;
  if (!rules.length && verdict === "" && broken === "") return [];
  const items = rules.flatMap(([title, message, speedup]) => [
    make("dt", {}, isolated(title)),
    make("dd", {}, isolated(message), speedup ? make("strong", {}, ` ${words(speedup)}`) : ""),
  ]);
  return [
    make("h3", {}, "What NVIDIA's rules say"),
    make("p", {}, verdict),
    make("dl", { class: "meanings" }, ...items),
    make("p", { class: "soft" }, broken),
  ];
}

/** The blocks that hold numbers: side by side where they are narrow, below each other where they are tables. */
function numberBlocks(kernel) {
  const cards = make("div", { class: "cards" });
  const tables = make("div", {});
  for (const [key, title, kind, columns] of DATA.sections) {
    const contents = withNotes(kernel[key], (rows) => LAYOUTS[kind](rows, columns));
    if (!contents.length) contents.push(make("p", { class: "soft" }, "Not collected."));
    const block = make("div", { class: kind === "table" ? "wide" : "" }, make("h3", {}, title), ...contents);
    (kind === "table" ? tables : cards).append(block);
  }
  return [cards, tables];
}

/** Show a kernel's detail. */
function showDetail(kernel) {
  const title = document.getElementById("detail-title");
  title.replaceChildren(`#${kernel.id} `, isolated(kernel.short));
  document.getElementById("detail-body").replaceChildren(
    make("p", {}, verdictMark(kernel.verdict), `: ${words(kernel.summary)}`),
    make("p", { class: "whole-name name", tabindex: "0" }, isolated(kernel.name)),
    ...pathBlock(kernel),
    ...findingsBlock(kernel),
    ...caveatsBlock(kernel),
    ...missingBlock(kernel),
    ...numberBlocks(kernel),
    ...vendorBlock(kernel),
  );
}
