// Projected time of a launch on another GPU, or with less to do: the arithmetic of ncuroof/whatif/projection.py (a test compares the
// two), and the sliders in the detail. A ring on the chart shows where the dot would move.

const SLIDERS = [["bytes", "DRAM bytes"], ["l2", "L2 bytes"], ["flop", "FLOPs"], ["sm", "other work of the SMs"], ["batch", "batch (all of these, and blocks)"]];
const OF_L2 = ["l2", "l2_whole", "l2_as_dram", "l2_slice"];
const OF_FLOP = ["fp64", "fp32", "fp16", "tensor"];
const DEMANDS_BY_SLIDER = {
  bytes: ["dram"],
  l2: OF_L2,
  flop: [...OF_FLOP, "operands"],
  sm: ["sm", "l1", "operands"],
  batch: ["dram", ...OF_L2, ...OF_FLOP, "sm", "l1", "operands", "blocks"],
};
const SHARED_BY_SMS = ["dram", "l2", "l2_slice"];
const MOST_DOUBLINGS = 4;

/** The share of the SMs' time that `blocks` can use, dealt evenly over `sms`. */
function smShare(blocks, sms) {
  return blocks > 0 && sms > 0 ? blocks / (sms * Math.ceil(blocks / sms)) : 1;
}

/** Ratio of the waves in which another number of blocks run on another number of SMs; less than one wave counts as one. */
function wavesRatio(recordedBlocks, blocks, resident, sms, smsThere) {
  if (!(blocks > 0) || !(resident > 0) || !(sms > 0)) return 1;
  return Math.max((blocks * sms) / (resident * smsThere), 1) / Math.max(recordedBlocks / resident, 1);
}

/** What each demand of a launch is multiplied by when sliders have these factors, by their names. */
function factorsByDemand(factorBySlider) {
  const factors = {};
  for (const [name, factor] of Object.entries(factorBySlider)) {
    for (const demand of DEMANDS_BY_SLIDER[name]) factors[demand] = (factors[demand] ?? 1) * factor;
  }
  return factors;
}

/**
 * Expected time and its range in ns, and the limiting resource; null where a peak is not known or a block does not fit. `factors` are
 * those of `factorsByDemand`; `gpu` is an index into DATA.targets.gpus, or -1 for the same GPU.
 */
function projected([key, recordedBusy, duration, reached, waits, recordedBlocks, resident, sms, shared, recordedOperands, recordedL2AsDram, recordedWholeL2, reachedByWholeL2], factors, gpu) {
  if (shared > (DATA.targets.shared_bytes_per_block[gpu] ?? Infinity)) return null;
  const resources = Object.keys(DATA.targets.resources);
  const ratios = DATA.targets.ratios[key][gpu + 1];
  const [clock, smsThere] = [ratios[resources.length + 1], ratios[resources.length + 2] ?? sms];
  const [isL2Assumed, isOtherGeneration] = ratios.slice(resources.length + 3);
  const blocks = recordedBlocks === null ? null : Math.ceil(recordedBlocks * (factors.blocks ?? 1));
  const isMadeForIt = blocks !== null && sms > 0 && blocks % sms === 0;
  const used = isMadeForIt ? 1 : smShare(blocks, smsThere);
  const [dram, l2, l1] = ["dram", "l2", "l1"].map((name) => resources.indexOf(name));
  const usedHere = smShare(recordedBlocks, sms);
  const here = resources.map((name, index) => recordedBusy[index] / (SHARED_BY_SMS.includes(name) ? 1 : usedHere));
  const isL2TheLimit = here.indexOf(Math.max(...here)) === l2;
  const neededThere = (times) =>
    times.map((time, index) => (time ? (time * (ratios[index] ?? NaN)) / (SHARED_BY_SMS.includes(resources[index]) ? 1 : used) : 0));
  // Operands that tensor instructions read from shared memory (wgmma) scale with the arithmetic, too; other GPUs read them otherwise.
  const operands = recordedOperands * (factors.operands ?? 1);
  const busy = recordedBusy.map((time, index) => time * (factors[resources[index]] ?? 1));
  busy[l1] += operands - recordedOperands * (factors.l1 ?? 1);
  const neededAsHere = neededThere(busy);
  // An L2 of undocumented bandwidth is at least as fast as the DRAM that it feeds, except where it was the limit here.
  const l2AsDram = recordedL2AsDram === null ? Infinity : recordedL2AsDram * (factors.l2_as_dram ?? 1) * (ratios[dram] ?? Infinity);
  if (isL2Assumed && !isL2TheLimit) neededAsHere[l2] = Math.min(neededAsHere[l2], l2AsDram);
  const needed = [...neededAsHere];
  if (isOtherGeneration) needed[l1] = neededThere(busy.map((time, index) => (index === l1 ? Math.max(time - operands, 0) : time)))[l1];
  if (neededAsHere.some(Number.isNaN) || clock === null) return null;
  const [longest, longestAsHere] = [Math.max(...needed), Math.max(...neededAsHere)];
  const cycles = duration * wavesRatio(recordedBlocks, blocks, resident ?? sms, sms, smsThere) * clock;
  const [waitsThere, waitsByWholeL2] = [(1 - reached) * cycles, (1 - reachedByWholeL2) * cycles];
  const [efficiencyKept, latencyKept] = [longest / reached, longest + waitsThere];
  const limiter = resources[needed.indexOf(longest)];
  // For the shorter end, an L2 of undocumented bandwidth scales with DRAM where it was the limit here, and limits nothing elsewhere.
  const l2AtLeast = isL2TheLimit ? busy[l2] * (ratios[dram] ?? Infinity) : 0;
  const others = Math.max(...needed.filter((_, index) => index !== l2));
  const atLeast = isL2Assumed ? Math.min(longest, Math.max(others, l2AtLeast)) : longest;
  // L2 as a whole, with stages that no counter names: whether they scale with its bandwidth is not known, and they count for the range alone.
  const scaledL2 = recordedWholeL2 ? recordedWholeL2 * (factors.l2_whole ?? 1) * (ratios[l2] ?? Infinity) : 0;
  const isWholeL2TheLimit = isL2TheLimit || reachedByWholeL2 > reached;
  const wholeL2 = isL2Assumed && !isWholeL2TheLimit ? Math.min(scaledL2, l2AsDram) : scaledL2;
  const [leastByL2, mostByL2] = [Math.max(others, wholeL2), Math.max(longestAsHere, wholeL2)];
  return {
    expected: waits ? latencyKept : efficiencyKept,
    least: Math.min(atLeast / reached, atLeast + waitsThere, leastByL2 / reachedByWholeL2, leastByL2 + waitsByWholeL2),
    most: Math.max(longestAsHere / reached, longestAsHere + waitsThere, mostByL2 / reachedByWholeL2, mostByL2 + waitsByWholeL2),
    limiter,
    isLimitAssumed: Boolean(isL2Assumed) && limiter === "l2",
  };
}

/** The sliders of a launch. `moveDot` is called with the factors {x, y} of its dot's intensity and rate, or null for no move. */
class WhatIf {
  constructor(scaling, moveDot) {
    Object.assign(this, { scaling, moveDot, gpu: -1, doublings: Object.fromEntries(SLIDERS.map(([name]) => [name, 0])) });
    this.said = make("p", { role: "status" });
  }

  slider(name, label) {
    const input = make("input", { type: "range", min: -MOST_DOUBLINGS, max: MOST_DOUBLINGS, step: 0.25, value: 0, name });
    const shown = make("output", { class: "number" }, "×1");
    input.addEventListener("input", () => {
      this.doublings[name] = Number(input.value);
      shown.textContent = `×${scaled(this.factor(name))}`;
      input.setAttribute("aria-valuetext", shown.textContent);
      this.show();
    });
    return make("label", {}, make("span", {}, label), input, shown);
  }

  factor(name) {
    return 2 ** this.doublings[name];
  }

  show() {
    const factors = Object.fromEntries(SLIDERS.map(([name]) => [name, this.factor(name)]));
    const found = projected(this.scaling, factorsByDemand(factors), this.gpu);
    const isMoved = this.gpu < 0 && Object.values(this.doublings).some(Boolean);
    const [, , recorded] = this.scaling;
    const { flop, bytes, batch } = factors;
    this.moveDot(found && isMoved ? { x: flop / bytes, y: (flop * batch * recorded) / found.expected } : null);
    this.said.textContent = found ? this.sentence(found, recorded) : "Unknown: a data sheet lacks a peak that this launch needs, or the GPU lacks the shared memory.";
  }

  sentence({ expected, least, most, limiter, isLimitAssumed }, recorded) {
    const between = most - least < 0.005 * most ? "" : `, between ${duration(least)} and ${duration(most)}`;
    const [ratio, word] = expected <= recorded ? [recorded / expected, "faster"] : [expected / recorded, "slower"];
    const change = Math.abs(expected / recorded - 1) < 0.005 ? "as recorded" : `${scaled(ratio)}× ${word}`;
    return `Expected: ${duration(expected)}${between}; ${change}. Busiest resource: ${isLimitAssumed ? "an assumed " : ""}${DATA.targets.resources[limiter]}.`;
  }

  elements() {
    const options = [["-1", "the same GPU"], ...DATA.targets.gpus.map((name, index) => [String(index), name])];
    const gpus = choice("On", options, "-1", { id: "target" }, (value) => {
      this.gpu = Number(value);
      this.show();
    });
    const sliders = SLIDERS.map(([name, label]) => this.slider(name, label));
    this.show();
    return [
      make("h3", {}, "What if"),
      make("div", { class: "sliders" }, gpus, ...sliders),
      this.said,
      make("p", { class: "soft" }, "The range spans two hypotheses: the kernel reaches the same share of its limiting roof, or it waits as long as it did."),
    ];
  }
}
