// User input on the chart: hover over a dot, open or close it, choose among dots that lie together, zoom by wheel, rectangle, fingers and key,
// move from dot to dot by key.

const REACH_PX = 6;
const LEAST_DRAG_PX = 6;
const KEY_ZOOM = 0.7;
const KEY_MOVE = 0.2;
const PER_TURN = 0.004; // how much a pixel of the wheel zooms, as a natural logarithm
const MOST_TURN = 100; // of one event
const TURNING_MS = 400; // between turns of the wheel that are undone together

class ChartPointer {
  /** `tell` returns the tooltip lines of a mark; `onSelect` is called with the position of a selected launch, `onLetGo` on deselection. */
  constructor(chart, tell, onSelect, onLetGo) {
    Object.assign(this, { chart, tell, onSelect, onLetGo, from: null, current: null, fingers: new Map(), turned: { at: 0, gesture: null } });
    this.chooser = new Chooser(chart.root, onSelect, (marks) => chart.zoomToMarks(marks));
    this.tip = make("div", { class: "tip", role: "status" });
    this.tip.hidden = true;
    this.frame = make("div", { class: "zoom-frame" });
    this.frame.hidden = true;
    chart.root.append(this.frame, this.tip);
    const isOfChart = ({ target }) => !target.closest(".chooser, .gutters");
    const listen = (type, handle, options) => chart.root.addEventListener(type, (event) => isOfChart(event) && handle.call(this, event), options);
    listen("pointermove", this.moved);
    listen("pointerdown", this.pressed);
    listen("pointerup", this.released);
    listen("pointercancel", (event) => this.lifted(event));
    listen("pointerleave", (event) => this.lifted(event));
    listen("click", this.clicked);
    listen("wheel", this.turnedWheel, { passive: false });
    listen("dblclick", () => chart.zoomTo(null));
    listen("keydown", this.typed);
    listen("blur", () => this.forget());
  }

  place(event) {
    const box = this.chart.root.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** The mark under a point, the topmost of several, or else the nearest within reach; null where there is none. */
  markAt({ x, y }) {
    const distance = (mark) => Math.hypot(mark.px - x, mark.py - y);
    const under = (this.chart.drawn ?? []).findLast((mark) => distance(mark) <= mark.radius);
    if (under) return under;
    let [nearest, least] = [null, REACH_PX];
    for (const mark of this.chart.drawn ?? []) {
      const gap = distance(mark) - mark.radius;
      if (gap <= least) [nearest, least] = [mark, gap];
    }
    return nearest;
  }

  /** All marks that a click at a point may mean: the one under it, those whose middles are there, and those of a cell. */
  marksAt(at, reach = STACK_PX) {
    const top = this.markAt(at);
    const isNear = ({ px, py }) => Math.hypot(px - at.x, py - at.y) <= reach;
    const cell = this.chart.cells.find(({ x, y }) => at.x >= x && at.x < x + CELL_PX && at.y >= y && at.y < y + CELL_PX);
    return [...new Set([...(top ? [top] : []), ...this.chart.marks.filter(isNear), ...(cell?.marks ?? [])])];
  }

  moved(event) {
    const at = this.place(event);
    if (this.fingers.has(event.pointerId)) this.fingers.set(event.pointerId, at);
    if (this.fingers.size > 1) return this.pinched();
    if (this.from && event.pointerType !== "touch") return this.drag(at);
    const mark = this.markAt(at);
    this.chart.root.classList.toggle("over-dot", mark !== null || this.chart.isDense);
    return this.point(mark);
  }

  pressed(event) {
    if (event.button !== 0) return;
    this.chooser.hide();
    this.tapped = null;
    this.from = this.place(event);
    if (event.pointerType === "touch") this.fingers.set(event.pointerId, this.from);
    if (this.fingers.size === 2) this.pinch = { fingers: [...this.fingers.values()], plane: this.chart.plane, gesture: Symbol("pinch") };
    if (event.pointerType !== "touch") this.chart.root.setPointerCapture(event.pointerId); // a drag may leave the chart
  }

  released(event) {
    const isPinch = this.fingers.size > 1 || this.pinch;
    const [from, to] = [this.from, this.place(event)];
    this.fingers.delete(event.pointerId);
    if (!this.fingers.size) this.pinch = null;
    this.from = null;
    this.frame.hidden = true;
    if (!from || isPinch) return;
    const isDragged = Math.hypot(to.x - from.x, to.y - from.y) >= LEAST_DRAG_PX;
    const { plane } = this.chart;
    if (isDragged && event.pointerType !== "touch" && plane.contains(from.x, from.y)) this.chart.zoomTo(plane.between(from, plane.nearest(to)));
    if (isDragged) return;
    if (event.pointerType === "touch") this.tapped = to; // the click that follows a tap would take the focus from a list
    else this.chosen(to, false);
  }

  clicked() {
    const at = this.tapped;
    this.tapped = null;
    if (at) this.chosen(at, true);
  }

  /** Open what a click means; where it may mean several dots, or a finger touched one, list them. */
  chosen(at, isTouch) {
    const marks = this.marksAt(at, isTouch ? TOUCH_PX : STACK_PX);
    if (marks.length > 1 || (isTouch && marks.length)) this.chooser.show(marks, at);
    else if (marks.length) this.onSelect(marks[0].row.position);
    else this.onLetGo();
  }

  /** Zoom so that what was under two fingers stays under them. */
  pinched() {
    const { fingers: [a, b], plane, gesture } = this.pinch ?? {};
    if (!plane) return;
    const [c, d] = [...this.fingers.values()];
    const [before, after] = [[a, b], [c, d]].map(([one, other]) => Math.max(Math.hypot(one.x - other.x, one.y - other.y), 1));
    const middle = (one, other) => ({ px: (one.x + other.x) / 2, py: (one.y + other.y) / 2 });
    const [from, to] = [middle(a, b), middle(c, d)];
    const { x, y } = plane.grown(before / after, from);
    const shifted = ([low, high], px, size) => [low + (px / size) * (high - low), high + (px / size) * (high - low)];
    this.point(null);
    this.chart.zoomTo(
      { x: shifted(x, from.px - to.px, plane.right - plane.left), y: shifted(y, to.py - from.py, plane.bottom - plane.top) }, gesture,
    );
  }

  /** Zoom around the pointer. Without Ctrl (which touch pads send with a pinch, too), the wheel scrolls the page as everywhere. */
  turnedWheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const { x, y } = this.place(event);
    if (event.timeStamp - this.turned.at > TURNING_MS) this.turned.gesture = Symbol("wheel");
    this.turned.at = event.timeStamp;
    const turn = Math.min(Math.max(event.deltaY, -MOST_TURN), MOST_TURN);
    this.chart.zoomTo(this.chart.plane.grown(Math.exp(PER_TURN * turn), { px: x, py: y }), this.turned.gesture);
    this.point(null);
  }

  lifted(event) {
    this.fingers.delete(event.pointerId);
    if (!this.fingers.size) this.pinch = null;
    this.forget();
  }

  drag(at) {
    const { from, chart: { plane } } = this;
    if (!plane.contains(from.x, from.y)) return;
    const to = plane.nearest(at);
    this.frame.hidden = false;
    this.frame.style.left = `${Math.min(from.x, to.x)}px`;
    this.frame.style.top = `${Math.min(from.y, to.y)}px`;
    this.frame.style.width = `${Math.abs(to.x - from.x)}px`;
    this.frame.style.height = `${Math.abs(to.y - from.y)}px`;
  }

  /** Show the tooltip of a mark beside it; null hides it. */
  point(mark) {
    if (mark === this.current) return;
    this.current = mark;
    this.tip.hidden = mark === null;
    judge(this.chart, mark);
    if (!mark) return;
    const others = this.marksAt({ x: mark.px, y: mark.py }).length - 1;
    const more = others ? [`${counted(others, "more kernel is", "more kernels are")} here: click for a list`] : [];
    this.tip.replaceChildren(...[...this.tell(mark), ...more].map((line) => make("div", {}, isolated(line))));
    const { width, plane } = this.chart;
    const toLeft = mark.px > width / 2;
    this.tip.style.left = toLeft ? "auto" : `${mark.px + mark.radius + 10}px`;
    this.tip.style.right = toLeft ? `${width - mark.px + mark.radius + 10}px` : "auto";
    this.tip.style.top = `${Math.min(mark.py - 12, plane.height - 120)}px`;
  }

  /** Change the zoom, then show the tooltip of the same dot at its new position. */
  zoom(change) {
    change();
    this.point(this.chart.marks.find(({ row }) => row === this.current?.row) ?? null);
  }

  forget() {
    this.from = null;
    this.frame.hidden = true;
    this.chart.root.classList.remove("over-dot");
    this.point(null);
  }

  /**
   * Arrows move through the dots by time, starting at the selected one; with Shift they pan. Enter opens, Escape closes, + and - zoom, 0
   * resets the zoom, Backspace undoes it.
   */
  typed(event) {
    const { chart } = this;
    const walk = (step) => {
      const marks = [...chart.marks].sort((a, b) => (b.row.time ?? 0) - (a.row.time ?? 0));
      const here = this.current?.row.position ?? chart.choice.selected?.position;
      const index = marks.findIndex((mark) => mark.row.launches.includes(here));
      this.point(marks[index < 0 ? 0 : (index + step + marks.length) % marks.length] ?? null);
    };
    const arrow = (step, right, up) => (event.shiftKey ? this.zoom(() => chart.zoomTo(chart.plane.moved(right, up))) : walk(step));
    const actions = {
      ArrowRight: () => arrow(1, KEY_MOVE, 0), ArrowDown: () => arrow(1, 0, -KEY_MOVE),
      ArrowLeft: () => arrow(-1, -KEY_MOVE, 0), ArrowUp: () => arrow(-1, 0, KEY_MOVE),
      Enter: () => this.current && this.onSelect(this.current.row.position),
      Escape: () => {
        this.point(null);
        this.onLetGo();
      },
      "+": () => this.zoom(() => chart.zoomBy(KEY_ZOOM, this.current)),
      "-": () => this.zoom(() => chart.zoomBy(1 / KEY_ZOOM, this.current)),
      0: () => this.zoom(() => chart.zoomTo(null)),
      Backspace: () => this.zoom(() => chart.undoZoom()),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[event.key]();
  }
}
