// Writes numbers as text, by the same rules as ncuroof/formatting.py (a test compares the two): three significant digits, SI
// prefixes, a dash for what is not known.

const MISSING = "—";
const PREFIXES = { "-9": "n", "-6": "µ", "-3": "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E" };

/** A number with three significant digits, an SI prefix (exponent from `least` to `greatest`) and a unit's symbol. */
function scaled(value, symbol = "", [least, greatest] = [0, 18]) {
  if (value === null || value === undefined || !Number.isFinite(value)) return MISSING;
  if (value === 0) return `0 ${symbol}`.trimEnd();
  const [mantissa, exponentText] = value.toExponential(2).split("e");
  const exponent = Number(exponentText);
  const prefix = Math.min(Math.max(3 * Math.floor(exponent / 3), least), greatest);
  const place = exponent - prefix;
  if (place < -6 || place > 5) return `${mantissa}e${place} ${PREFIXES[prefix]}${symbol}`.trimEnd();
  if (prefix === 0 && Number.isInteger(value)) return `${value} ${symbol}`.trimEnd();
  return `${(Number(mantissa) * 10 ** place).toFixed(Math.max(2 - place, 0))} ${PREFIXES[prefix]}${symbol}`.trimEnd();
}

/** A time in nanoseconds: "12.3 µs". */
function duration(ns) {
  return ns === null || ns === undefined ? MISSING : scaled(ns * 1e-9, "s", [-9, 0]);
}

/** A fraction as a percentage; only an exact 0 is written as "0 %", and only an exact 1 as "100 %". */
function share(frac) {
  if (frac === null || frac === undefined || !Number.isFinite(frac)) return MISSING;
  if (frac === 0 || frac === 1) return `${frac * 100} %`;
  if (Math.abs(frac) < 0.0005) return frac > 0 ? "<0.1 %" : ">-0.1 %";
  if (0.9995 <= frac && frac < 1) return ">99.9 %";
  return Math.abs(frac) < 100 ? `${(frac * 100).toFixed(1)} %` : `${BigInt(Math.round(Number((frac * 100).toPrecision(3))))} %`;
}

/** A number of launches; it may be fractional where several profiled launches together represent others. */
function launchCount(n) {
  return Number.isInteger(n) ? String(n) : scaled(n);
}

/** A count with its noun: "1 launch", "3 launches". */
function counted(number, one, many) {
  return number === 1 ? `1 ${one}` : `${number} ${many}`;
}
