// Going to a part of the page: to the launch that the address names, to a section, into what is closed.

/** Position of the launch that a hash such as #k12 names, or null. */
function addressed(hash) {
  const match = /^#k(\d+)$/.exec(hash);
  const position = match ? LAUNCHES.id.indexOf(Number(match[1])) : -1;
  return position < 0 ? null : position;
}

/** Follow the hash of the address or of a link: show the detail of the launch that it names, and go there. */
async function followAddress(hash = location.hash) {
  const position = addressed(hash);
  if (position === null) return;
  await select(position);
  goTo("detail", document.getElementById("detail-title"));
}

/** Show the initial launch: that of the address, else the first of the table. */
async function openFirst() {
  if (addressed(location.hash) !== null) await followAddress();
  else if (table.rows.length) await select(table.rows[0].position, false);
}

/** Scroll to a section of the page and focus an element of it. */
function goTo(section, focused, behavior = "instant") {
  document.getElementById(section).scrollIntoView({ behavior });
  focused.focus({ preventScroll: true });
}

/** Scroll smoothly, so that the reader sees in which direction; at once where reduced motion is preferred. */
function glideTo(section, focused) {
  goTo(section, focused, matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth");
}

/** Open the parts of the page in which an element is, as not every browser does for a link's target. */
function unfold(element) {
  for (let part = element?.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
}
