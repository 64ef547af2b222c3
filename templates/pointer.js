// User input on the chart: hover over a dot, select or deselect it, zoom, move from dot to dot by key.

const REACH_PX = 6;
const LEAST_DRAG_PX = 6;
const KEY_ZOOM = 0.7;
const KEY_MOVE = 0.2;

class ChartPointer {
  /** `tell` returns the tooltip lines of a mark; `onSelect` is called with the position of a selected launch, `onLetGo` on deselection. */
  constructor(chart, tell, onSelect, onLetGo) {
    Object.assign(this, { chart, tell, onSelect, onLetGo, from: null, current: null });
    this.tip = make("div", { class: "tip", role: "status" });
    this.tip.hidden = true;
    this.frame = make("div", { class: "zoom-frame" });
    this.frame.hidden = true;
    chart.root.append(this.frame, this.tip);
    const listen = (type, handle) => chart.root.addEventListener(type, handle.bind(this));
    listen("pointermove", this.moved);
    listen("pointerdown", this.pressed);
    listen("pointerup", this.released);
    listen("pointerleave", () => this.forget());
    listen("dblclick", () => chart.zoomTo(null));
    listen("keydown", this.typed);
    listen("blur", () => this.forget());
  }

  place(event) {
    const box = this.chart.root.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** The mark under or nearest to a point, among those within reach; null where there is none. */
  markAt({ x, y }) {
    let [nearest, least] = [null, Infinity];
    for (const mark of this.chart.marks ?? []) {
      const distance = Math.hypot(mark.px - x, mark.py - y) - mark.radius;
      if (distance < REACH_PX && distance <= least) [nearest, least] = [mark, distance];
    }
    return nearest;
  }

  moved(event) {
    const at = this.place(event);
    if (this.from && event.pointerType !== "touch") return this.drag(at);
    const mark = this.markAt(at);
    this.chart.root.classList.toggle("over-dot", mark !== null);
    return this.point(mark);
  }

  pressed(event) {
    if (event.button !== 0) return;
    this.from = this.place(event);
    if (event.pointerType !== "touch") this.chart.root.setPointerCapture(event.pointerId); // a drag may leave the chart
  }

  released(event) {
    const [from, to] = [this.from, this.place(event)];
    this.from = null;
    this.frame.hidden = true;
    if (!from) return;
    const isDragged = Math.hypot(to.x - from.x, to.y - from.y) >= LEAST_DRAG_PX;
    const { plane } = this.chart;
    if (isDragged && event.pointerType !== "touch" && plane.contains(from.x, from.y)) this.chart.zoomTo(plane.between(from, plane.nearest(to)));
    const mark = isDragged ? null : this.markAt(to);
    if (mark) this.onSelect(mark.row.position);
    else if (!isDragged) this.onLetGo();
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
    this.tip.replaceChildren(...this.tell(mark).map((line) => make("div", {}, isolated(line))));
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
   * Arrows move through the dots by time, starting at the selected one; with Shift they pan. Enter selects, Escape deselects, + and -
   * zoom, 0 resets the zoom.
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
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[event.key]();
  }
}
