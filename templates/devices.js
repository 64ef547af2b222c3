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

/** A link to each other GPU on which launches pass the same filters. */
function linksToOtherDevices() {
  return allDevices().filter((device) => device !== filter.device).flatMap((device) => {
    const n = LAUNCHES.id.filter((_, position) => LAUNCHES.device[position] === device && isInView(position)).length;
    if (!n) return [];
    const link = make("a", { href: "#kernels" }, `${counted(n, "launch", "launches")} on ${deviceLabel(device)}`);
    link.addEventListener("click", (event) => {
      event.preventDefault();
      changeDevice(device);
      table.focus(0); // the clicked link is gone, so move the focus
    });
    return [link];
  });
}

/** The control that selects a GPU, where there are several. */
function deviceControl() {
  const devices = allDevices();
  if (devices.length < 2) return [];
  const options = devices.map((device) => [deviceValue(device), deviceLabel(device)]);
  const change = (value) => changeDevice(value === "" ? null : Number(value));
  return [choice("GPU", options, deviceValue(filter.device), { id: "device-filter" }, change)];
}
