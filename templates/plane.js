// Geometry of the chart: a plane with two logarithmic axes, and the strip below it. Lengths are in pixels, ranges are exponents of ten.

const FINE_TICKS_BELOW_DECADES = 2.2;
const MOST_DECADES = 9; // with labels on an axis
const LANE_PX = 24;
const LEAST_SPAN_DECADES = 0.2;
const MOST_BEYOND_DECADES = 1; // beyond all points; roofs and ticks end two or three decades beyond them

class Plane {
  /**
   * `ranges` are the visible ranges of x and y; `lanes` is the number of lanes of the strip, `room` what labels take at the right of a wide
   * plane, and `isLow` says that it is to be low.
   */
  constructor(width, ranges, lanes, { room, isLow }) {
    this.isNarrow = width < 600;
    this.width = width;
    this.ranges = ranges;
    this.left = this.isNarrow ? 78 : 84;
    this.top = 12;
    this.right = width - (this.isNarrow ? 10 : Math.max(18, room));
    this.bottom = this.top + (isLow ? 190 : this.isNarrow ? 340 : 450);
    this.stripTop = this.bottom + (this.isNarrow ? 85 : 70); // on a narrow page, its title takes two lines
    this.stripBottom = this.stripTop + lanes * LANE_PX;
    this.height = lanes ? this.stripBottom + 40 : this.bottom + 48;
    this.pxPerX = (this.right - this.left) / (ranges.x[1] - ranges.x[0]);
    this.pxPerY = (this.bottom - this.top) / (ranges.y[1] - ranges.y[0]);
  }

  /** Pixel position of an exponent. */
  px(exponent) {
    return this.left + (exponent - this.ranges.x[0]) * this.pxPerX;
  }

  py(exponent) {
    return this.bottom - (exponent - this.ranges.y[0]) * this.pxPerY;
  }

  /** Pixel position of a value. */
  x(value) {
    return this.px(Math.log10(value));
  }

  y(value) {
    return this.py(Math.log10(value));
  }

  /** Pixel position of a share (0..1) on the strip. */
  stripX(frac) {
    return this.left + Math.min(Math.max(frac, 0), 1) * (this.right - this.left);
  }

  laneY(lane) {
    return this.stripTop + (lane + 0.5) * LANE_PX;
  }

  contains(px, py, slack = 0) {
    return px >= this.left - slack && px <= this.right + slack && py >= this.top - slack && py <= this.bottom + slack;
  }

  /** The point of the plane that is nearest to a given one. */
  nearest({ x, y }) {
    return { x: Math.min(Math.max(x, this.left), this.right), y: Math.min(Math.max(y, this.top), this.bottom) };
  }

  /** The visible ticks of an axis, with position and text. */
  ticks(axis, name) {
    const [low, high] = this.ranges[name];
    const isFine = high - low < FINE_TICKS_BELOW_DECADES;
    const stride = Math.ceil((high - low) / (name === "x" && this.isNarrow ? MOST_DECADES / 2 : MOST_DECADES));
    const text = (index, exponent) => (isFine ? axis.ticks.fine[index] : Math.round(exponent) % stride ? "" : axis.ticks.coarse[index]);
    return axis.ticks.values
      .map((value, index) => ({ exponent: Math.log10(value), text: text(index, Math.log10(value)), isDecade: Number.isInteger(Math.log10(value)) }))
      .filter(({ exponent }) => exponent >= low - 1e-9 && exponent <= high + 1e-9);
  }

  /** The ranges between two corners in pixels, at least LEAST_SPAN_DECADES wide. */
  between(from, to) {
    const exponents = (a, b, start, perDecade) => {
      const [low, high] = [start + Math.min(a, b) / perDecade, start + Math.max(a, b) / perDecade];
      const lack = Math.max(LEAST_SPAN_DECADES - (high - low), 0) / 2;
      return [low - lack, high + lack];
    };
    return {
      x: exponents(from.x - this.left, to.x - this.left, this.ranges.x[0], this.pxPerX),
      y: exponents(this.bottom - from.y, this.bottom - to.y, this.ranges.y[0], this.pxPerY),
    };
  }

  /** The ranges after panning by fractions of the view. */
  moved(right, up) {
    const move = ([low, high], frac) => [low + frac * (high - low), high + frac * (high - low)];
    return { x: move(this.ranges.x, right), y: move(this.ranges.y, up) };
  }

  /** The ranges after growing by a factor around a point, which keeps its place; a point out of view moves to the middle. */
  grown(factor, { px, py } = { px: (this.left + this.right) / 2, py: (this.top + this.bottom) / 2 }) {
    const grow = ([low, high], frac) => {
      const span = Math.max((high - low) * factor, LEAST_SPAN_DECADES);
      const start = low + frac * (high - low) - (frac >= 0 && frac <= 1 ? frac : 0.5) * span;
      return [start, start + span];
    };
    return {
      x: grow(this.ranges.x, (px - this.left) / (this.right - this.left)),
      y: grow(this.ranges.y, (this.bottom - py) / (this.bottom - this.top)),
    };
  }
}

/** Ranges shifted and limited to at most MOST_BEYOND_DECADES beyond the reach of all points. */
function keptNear(ranges, reach) {
  const keep = ([low, high], [reachLow, reachHigh]) => {
    const [least, most] = [reachLow - MOST_BEYOND_DECADES, reachHigh + MOST_BEYOND_DECADES];
    const span = Math.min(high - low, most - least);
    const start = Math.min(Math.max(low, least), most - span);
    return [start, start + span];
  };
  return { x: keep(ranges.x, reach.x), y: keep(ranges.y, reach.y) };
}
