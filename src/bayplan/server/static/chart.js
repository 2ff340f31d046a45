// A chart over time: axes with round numbers, a line a series, and the values at the pointer beside the names.

import { el, failed, svg } from "./dom.js";
import { clock, minute, short } from "./format.js";

const LEFT = 44, BOTTOM = 20, TOP = 8, RIGHT = 6, TEXT = 26;

export class Chart {
  // series: [{ name, hue, of: (page) => values }]
  constructor({ label, series, unit = "", most, least = 0 }) {
    Object.assign(this, { label, series, unit, most, least, page: null, at: -1 });
    this.holder = el("div", { class: "chart" });
    this.legend = el("p", { class: "legend" });
    this.content = el("div", {}, this.holder, this.legend);
    this.holder.addEventListener("pointermove", (event) => this.point(event.offsetX));
    this.holder.addEventListener("pointerleave", () => this.point(-1));
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.holder);
  }

  close() { this.resized.disconnect(); }

  show(page) {
    this.page = page;
    this.draw();
  }

  // Until the first answer; later the line stays as it is.
  fail(error) { if (!this.page) this.holder.replaceChildren(failed(error)); }

  draw() {
    const width = this.holder.clientWidth, height = this.holder.clientHeight, times = this.page?.time || [];
    if (!width || !this.page) return;
    if (times.length < 2) return this.holder.replaceChildren(el("p", { class: "soft" }, "The chart begins with the second sample."));
    const columns = this.series.map((one) => one.of(this.page) || []);
    const top = niceTop(this.most ?? Math.max(this.least, ...columns.flat().filter((value) => value !== null)));
    const first = times[0], last = times[times.length - 1];
    this.x = (time) => LEFT + ((time - first) / Math.max(last - first, 1e-9)) * (width - LEFT - RIGHT);
    const y = (value) => height - BOTTOM - (value / top) * (height - BOTTOM - TOP);
    const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": this.described(columns, times) });
    for (const value of [0, top / 4, top / 2, (3 * top) / 4, top]) {
      drawing.append(svg("line", { x1: LEFT, x2: width - RIGHT, y1: Math.round(y(value)), y2: Math.round(y(value)), class: "grid" }));
      if (value === 0 || value === top / 2 || value === top) drawing.append(label(LEFT - 6, y(value) + 4, `${short(value)}${value ? this.unit : ""}`, "end"));
    }
    const step = roundStep(last - first, width / 90), said = step < 60 ? clock : minute;
    for (const time of roundTimes(first, last, step)) {
      const x = this.x(time);
      drawing.append(svg("line", { x1: Math.round(x), x2: Math.round(x), y1: y(0), y2: y(0) + 4, class: "grid" }));
      if (x < LEFT + TEXT) drawing.append(label(LEFT, height - 4, said(time), "start"));
      else if (x < width - RIGHT - TEXT) drawing.append(label(x, height - 4, said(time), "middle"));
    }
    const xs = times.map(this.x);
    columns.forEach((values, place) => {
      const { hue, area } = this.series[place];
      if (area) drawing.append(svg("path", { d: areaPath(xs, values, y), class: `area s-${hue}` }));
      drawing.append(svg("path", { d: path(xs, values, y), class: `line s-${hue}`, "stroke-linecap": "round" }));
      const newest = values.length - 1;
      if (values[newest] !== null && values[newest] !== undefined) drawing.append(svg("circle", { cx: xs[newest], cy: y(values[newest]), r: 3.5, class: `dot s-${hue}` }));
    });
    this.cross = svg("line", { y1: TOP, y2: height - BOTTOM, class: "cross" });
    drawing.append(this.cross);
    this.columns = columns;
    this.holder.replaceChildren(drawing);
    this.point(-1);
  }

  described(columns, times) {
    const parts = this.series.map((one, place) => {
      const values = columns[place].filter((value) => value !== null);
      if (!values.length) return `${one.name} unknown`;
      return `${one.name} now ${short(values[values.length - 1])}${this.unit}, highest ${short(Math.max(...values))}${this.unit}`;
    });
    return `${this.label}, ${clock(times[0])} to ${clock(times[times.length - 1])}: ${parts.join("; ")}`;
  }

  point(x) {
    const times = this.page?.time;
    if (!this.columns || !times?.length) return;
    let at = times.length - 1;
    if (x >= 0) at = times.reduce((best, time, place) => (Math.abs(this.x(time) - x) < Math.abs(this.x(times[best]) - x) ? place : best), 0);
    for (const name of ["x1", "x2"]) this.cross.setAttribute(name, this.x(times[at]));
    this.cross.setAttribute("visibility", x >= 0 ? "visible" : "hidden");
    const said = (values) => {
      const value = x >= 0 ? values[at] : values.findLast((one) => one !== null);
      return value === null || value === undefined ? "–" : `${short(value)}${this.unit}`;
    };
    this.legend.replaceChildren(...this.series.map((one, place) =>
      el("span", { class: `key s-${one.hue}` }, `${one.name} `, el("b", {}, said(this.columns[place])))), el("span", {}, x >= 0 ? clock(times[at]) : ""));
  }
}

function label(x, y, text, anchor) {
  const node = svg("text", { x, y, "text-anchor": anchor });
  node.textContent = text;
  return node;
}

// Gaps where nothing is known; a value between two gaps is a dot.
function path(xs, values, y) {
  let pen = false;
  return values.map((value, place) => {
    if (value === null) { pen = false; return ""; }
    const isAlone = !pen && (values[place + 1] ?? null) === null;
    const point = `${pen ? "L" : "M"}${xs[place].toFixed(1)} ${y(value).toFixed(1)}${isAlone ? "m-2 0h4" : ""}`;
    pen = true;
    return point;
  }).join("");
}

// Under each stretch without a gap.
function areaPath(xs, values, y) {
  const pieces = [];
  let from = -1;
  for (let place = 0; place <= values.length; place++) {
    const isGap = place === values.length || values[place] === null;
    if (!isGap && from < 0) from = place;
    if (!isGap || from < 0) continue;
    const tops = values.slice(from, place).map((value, at) => `L${xs[from + at].toFixed(1)} ${y(value).toFixed(1)}`).join("");
    pieces.push(`M${xs[from].toFixed(1)} ${y(0)}${tops}L${xs[place - 1].toFixed(1)} ${y(0)}Z`);
    from = -1;
  }
  return pieces.join("");
}

// The lowest round number above all values, whose half is round as well.
export function niceTop(value) {
  if (value <= 0) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 6, 8, 10].map((factor) => factor * unit).find((top) => top >= value * 0.999);
}

// Seconds between two marks, as clocks divide time, so that at most so many marks stand in a span.
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
export const roundStep = (span, most) => STEPS.find((step) => span / step <= Math.max(2, most)) || STEPS[STEPS.length - 1];

function roundTimes(first, last, step) {
  const offset = new Date(first * 1000).getTimezoneOffset() * 60, times = [];
  for (let time = Math.ceil((first - offset) / step) * step + offset; time <= last; time += step) times.push(time);
  return times;
}

export const SPANS = [["5m", "5 minutes"], ["1h", "1 hour"], ["1d", "1 day"]];
