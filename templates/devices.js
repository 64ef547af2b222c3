// The GPUs of the page: one is shown at a time; a control or a link switches to another.

function deviceValue(device) {
  return device === null ? "" : String(device);
}

function changeDevice(device) {
  const control = document.getElementById("device-filter");
  if (control) control.value = deviceValue(device);
  chooseDevice(device);
  showViews();
  showControls();
  showRows();
}

/** The GPU whose launches take the most time in total, among those with charts if there are any. */
function deviceWithMostTime() {
  const timeByDevice = new Map();
  for (const { position, time } of ROWS.launches) {
    const device = LAUNCHES.device[position];
    timeByDevice.set(device, (timeByDevice.get(device) ?? 0) + (time ?? 0));
  }
  const known = DATA.charts.map(({ device }) => device).filter((device) => timeByDevice.has(device));
  const devices = known.length ? known : [...timeByDevice.keys()];
  return devices.reduce((most, device) => (timeByDevice.get(device) > timeByDevice.get(most) ? device : most), devices[0] ?? null);
}

function allDevices() {
  return [...new Set([...DATA.charts.map((each) => each.device), ...LAUNCHES.device])];
}

function deviceLabel(device) {
  return words(DATA.charts.find((each) => each.device === device)?.label ?? "unknown GPU");
}

/** What launches save together by their findings that the run's actions count. */
function gainOf(positions) {
  return positions.reduce((sum, position) => sum + (weighted(LAUNCHES.gain_ns, position) ?? 0), 0);
}

/** The time of launches, in sums. */
function timeOfAll(positions) {
  return positions.reduce((sum, position) => sum + (weighted(LAUNCHES.duration_ns, position) ?? 0), 0);
}

/** The launches that pass the filters, by GPU: first the GPU where they save most, or those of a range take most time. */
function inViewByDevice() {
  const worth = filter.range === "" ? gainOf : timeOfAll;
  const byDevice = new Map(allDevices().map((device) => [device, []]));
  LAUNCHES.device.forEach((device, position) => isInView(position) && byDevice.get(device).push(position));
  return [...byDevice].filter(([, positions]) => positions.length).sort(([, a], [, b]) => worth(b) - worth(a));
}

/** A link to each other GPU on which launches pass the same filters; `focus` moves the focus, since the clicked link is gone. */
function linksToOtherDevices(focus) {
  return inViewByDevice().filter(([device]) => device !== filter.device).map(([device, { length }]) => {
    const link = make("a", { href: "#kernels" }, `${counted(length, "launch", "launches")} on ${deviceLabel(device)}`);
    link.addEventListener("click", (event) => {
      event.preventDefault();
      changeDevice(device);
      focus();
    });
    return link;
  });
}

/** Where else the launches of a thing to do or of a range are; nothing where all are on this GPU. */
function elsewhere() {
  const links = filter.finding || filter.range !== "" ? linksToOtherDevices(() => document.getElementById("device-filter").focus()) : [];
  return links.length ? ["elsewhere: ", ...links.flatMap((link, index) => [index ? ", " : "", link])] : [];
}

/** The control that selects a GPU, where there are several. */
function deviceControl() {
  const devices = allDevices();
  if (devices.length < 2) return [];
  const options = devices.map((device) => [deviceValue(device), deviceLabel(device)]);
  const change = (value) => {
    changeDevice(value === "" ? null : Number(value));
    remember({ isOpening: true });
  };
  return [choice("GPU", options, deviceValue(filter.device), { id: "device-filter" }, change)];
}
