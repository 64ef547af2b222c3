// What is shown is in the address, so that a reload, a link and Back keep it: `#k12&methods&verdict=memory&zoom=…`. A part without "="
// is a launch or a section of the page. Opening something adds to the history, so that Back returns; anything else replaces the address.

const HERE = location.href.split("#")[0];
const WAIT_MS = 200; // between the last of several quick changes, such as letters of a search, and the address

/** Position of the launch with a number as text; -1 where the report has none. */
function positionOf(number) {
  return /^\d+$/.test(number) ? LAUNCHES.id.indexOf(Number(number)) : -1;
}

/** A setting that filters by one of several values. */
function filtering(key, isKnown) {
  return {
    write: () => filter[key],
    read(text) {
      filter[key] = text && isKnown(text) ? text : "";
      return filter[key] === text;
    },
  };
}

/** A setting that is on or off. */
function switching(isOn, turn) {
  return { write: () => (isOn() ? "1" : ""), read: (text) => (turn(text === "1"), ["", "1"].includes(text)) };
}

const isIndexOf = (list) => (text) => /^\d+$/.test(text) && Number(text) < list.length;

/**
 * The settings by their names in the address, in the order in which they are read. `write` returns a setting's text, empty where it is as
 * on opening the page; `read` sets it by that text and returns whether that is possible here.
 */
const SETTINGS = {
  gpu: {
    write: () => (filter.device === FIRST.device ? "" : deviceValue(filter.device)),
    read(text) {
      const device = text === "" ? FIRST.device : allDevices().find((each) => deviceValue(each) === text);
      filter.device = device === undefined ? FIRST.device : device;
      return device !== undefined;
    },
  },
  view: {
    write: () => (state.view === firstView() ? "" : state.view),
    read(text) {
      const isKnown = text === "" || text === BARS || Boolean(deviceChart()?.views[text]);
      state.sources.clear();
      state.level = null;
      chooseView(text && isKnown ? text : firstView());
      return isKnown;
    },
  },
  level: {
    write: () => (state.level === (figure()?.levels[0] ?? null) ? "" : state.level ?? ""),
    read(text) {
      const isKnown = text === "" || Boolean(figure()?.levels.includes(text));
      if (text && isKnown) state.level = text;
      return isKnown;
    },
  },
  roofs: {
    write: () => ([...state.sources].join() === firstSources().join() ? "" : [...state.sources].join()),
    read(text) {
      const known = (figure()?.sources ?? []).map(([source]) => source);
      const wanted = text.split(",").filter((source) => known.includes(source));
      if (wanted.length) state.sources = new Set(wanted);
      return text === "" || wanted.length > 0;
    },
  },
  search: { write: () => filter.text, read: (text) => ((filter.text = text), true) },
  verdict: filtering("verdict", (text) => text in DATA.verdicts),
  finding: filtering("finding", (text) => text in DATA.findings),
  source: filtering("family", (text) => text in DATA.families),
  precision: filtering("precision", (text) => text in DATA.precisions),
  report: filtering("report", isIndexOf(DATA.reports)),
  range: filtering("range", isIndexOf(DATA.ranges)),
  dot: filtering("dot", (text) => text === NO_DOT),
  changed: switching(() => filter.isChangedOnly, (isOn) => (filter.isChangedOnly = isOn)),
  each: switching(() => !filter.isGrouped, (isOn) => (filter.isGrouped = !isOn)),
  sort: { write: () => table.sortingAsText(), read: (text) => table.sortByText(text) },
  zoom: { write: () => chart.zoomAsText(chartKey()), read: (text) => chart.zoomByText(chartKey(), text) },
  pinned: {
    write: () => (state.pinned === null ? "" : String(LAUNCHES.id[state.pinned])),
    read(text) {
      const position = positionOf(text);
      state.pinned = position < 0 ? null : position;
      return text === "" || position >= 0;
    },
  },
};

/** The address of what is shown, from its "#" on; empty where that is what the page opens with. */
function writtenAddress() {
  const places = [...(state.selected === null ? [] : [`k${LAUNCHES.id[state.selected]}`]), ...(state.section ? [state.section] : [])];
  const settings = Object.entries(SETTINGS).map(([name, { write }]) => [name, write()]).filter(([, text]) => text !== "");
  const parts = [...places, ...settings.map(([name, text]) => `${name}=${encodeURIComponent(text)}`)];
  return parts.length ? `#${parts.join("&")}` : "";
}

/** The parts of an address: places, and settings by name. */
function readAddress(hash) {
  const parts = hash.replace(/^#/, "").split("&").filter(Boolean);
  const decoded = (text) => {
    try {
      return decodeURIComponent(text);
    } catch { // a lone "%"
      return text;
    }
  };
  const isSetting = (part) => part.includes("=");
  const settings = parts.filter(isSetting).map((part) => [part.slice(0, part.indexOf("=")), decoded(part.slice(part.indexOf("=") + 1))]);
  return { places: parts.filter((part) => !isSetting(part)).map(decoded), settings: new Map(settings) };
}

const remembering = { shown: location.hash, waiting: 0, isPaused: false };

/** Put what is shown into the address: at once and as a new entry of the history if something was opened. */
function remember({ isOpening = false } = {}) {
  if (remembering.isPaused) return;
  if (!isOpening) {
    clearTimeout(remembering.waiting);
    remembering.waiting = setTimeout(() => putIntoAddress("replaceState"), WAIT_MS);
    return;
  }
  clearTimeout(remembering.waiting);
  putIntoAddress("pushState");
}

function putIntoAddress(method) {
  const hash = writtenAddress();
  if (hash === remembering.shown) return;
  remembering.shown = hash;
  try {
    history[method]({}, "", HERE + hash);
  } catch { // a frame whose content another page wrote has no address of its own
  }
}

/** Show what an address says; `isGoing` also scrolls to the section that it names, and focuses the launch. */
async function restore(hash, isGoing) {
  const { places, settings } = readAddress(hash);
  remembering.isPaused = true;
  remembering.shown = hash;
  const unknown = [];
  for (const [name, { read }] of Object.entries(SETTINGS)) {
    if (!read(settings.get(name) ?? "")) unknown.push(`${name} “${settings.get(name)}”`);
  }
  for (const name of settings.keys()) if (!(name in SETTINGS)) unknown.push(`setting “${name}”`);
  const launches = places.filter((place) => /^k\d+$/.test(place));
  const [position = -1] = launches.map((place) => positionOf(place.slice(1)));
  if (launches.length && position < 0) unknown.push(`kernel #${launches[0].slice(1)}`);
  const sections = places.filter((place) => !launches.includes(place));
  state.section = sections.find((place) => document.getElementById(place)) ?? "";
  unknown.push(...sections.filter((place) => !document.getElementById(place)).map((place) => `section “${place}”`));
  tellOf(unknown.length ? `This report has no ${unknown.join(", no ")}: the address is of another report, or mistyped.` : "");
  setFilters({ ...filter });
  showViews();
  showControls();
  await showRows();
  await select(position < 0 ? null : position);
  remembering.isPaused = false;
  if (!isGoing) return;
  if (position >= 0) {
    goToChart();
    showDot();
    document.getElementById("detail-title").focus({ preventScroll: true });
  }
  if (state.section) goTo(state.section);
}

/** Say something about the page as a whole; an empty text takes it back. */
function tellOf(text) {
  const told = document.getElementById("told");
  told.hidden = text === "";
  told.textContent = text;
}

/** Scroll to a part of the page, and open what it is in, as not every browser does for a link's target. */
function goTo(id, behavior = "instant") {
  const element = document.getElementById(id);
  for (let part = element?.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  element?.scrollIntoView({ behavior });
}

/** Scroll to the chart where it is out of sight, so that it is beside or above the detail. */
function goToChart() {
  const { top, bottom } = document.getElementById("roofline").getBoundingClientRect();
  if (bottom < 100 || top > innerHeight / 2) goTo("roofline");
}

/** Scroll smoothly, so that the reader sees in which direction; at once where reduced motion is preferred. */
function glideTo(id, focused) {
  goTo(id, matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth");
  focused?.focus({ preventScroll: true });
}

/** Follow a link within the page. */
function follow(hash) {
  const { places } = readAddress(hash);
  const launch = places.find((place) => /^k\d+$/.test(place));
  if (launch) return open(positionOf(launch.slice(1)));
  const section = places[0];
  if (!document.getElementById(section)) return undefined;
  state.section = section;
  remember({ isOpening: true });
  goTo(section);
  const heading = document.getElementById(section).querySelector("h2, h3");
  heading?.setAttribute("tabindex", "-1");
  return heading?.focus({ preventScroll: true });
}
