// The heat map: every node a cell, by zone, coloured by how full it is. Canvas, because five thousand elements are slow.

import { el } from "./dom.js";
import { amount, number, plural } from "./format.js";

const LABEL = 20;
const STEPS = [0, 25, 50, 75, 90];
const COLOURS = ["fill-0", "fill-1", "fill-2", "fill-3", "fill-4", "fill-none", "fill-cordoned"];

export class HeatMap {
  constructor(onOpen) {
    Object.assign(this, { onOpen, zone: "", text: "", at: -1, state: null, cells: [] });
    this.canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": "Heat map of nodes; arrow keys move, Enter opens", "aria-describedby": "map-status" });
    this.tip = el("div", { class: "tip", hidden: true });
    this.probes = COLOURS.map((name) => el("i", { class: name, hidden: true }));
    this.holder = el("div", { class: "map" }, this.canvas, this.tip, this.probes);
    this.status = el("p", { class: "soft", role: "status", id: "map-status" });
    this.canvas.addEventListener("pointermove", (event) => this.point(this.under(event)));
    this.canvas.addEventListener("pointerleave", () => this.point(-1));
    this.canvas.addEventListener("click", () => this.open());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.resized = new ResizeObserver(() => this.layout());
    this.resized.observe(this.holder);
    this.schemes = matchMedia("(prefers-color-scheme: dark)");
    this.recolour = () => this.draw();
    this.schemes.addEventListener("change", this.recolour);
    addEventListener("themechange", this.recolour);
  }

  close() {
    this.resized.disconnect();
    this.schemes.removeEventListener("change", this.recolour);
    removeEventListener("themechange", this.recolour);
  }

  show(state) {
    const isSame = this.state && this.state.names.length === state.names.length && this.state.names.every((name, row) => name === state.names[row]);
    this.state = { ...state, cordoned: new Set(state.unschedulable) };
    this.lower = isSame ? this.lower : state.names.map((name) => name.toLowerCase());
    if (isSame && this.cells.length) this.draw();
    else this.layout();
  }

  filter({ zone = this.zone, text = this.text }) {
    const isOther = zone !== this.zone;
    Object.assign(this, { zone, text: text.toLowerCase() });
    if (isOther) this.layout();
    else this.draw();
  }

  // Where each cell is: zones one below the other, as many cells a line as the width holds.
  layout() {
    const width = Math.max(200, this.holder.clientWidth);
    if (!this.state) return;
    const inZone = this.state.names.map((_, row) => row).filter((row) => !this.zone || this.state.zones[row] === this.zone);
    const rows = [...inZone.filter((row) => this.state.zones[row]), ...inZone.filter((row) => !this.state.zones[row])];
    const size = Math.max(6, Math.min(28, Math.floor(Math.sqrt((width * 440) / Math.max(rows.length, 1)))));
    const columns = Math.max(1, Math.floor(width / size));
    this.cells = [];
    this.labels = [];
    let y = 0, column = 0, zone = null;
    for (const row of rows) {
      if (this.state.zones[row] !== zone) {
        if (zone !== null) y += size + 8;
        zone = this.state.zones[row];
        this.labels.push([zone, y]);
        y += LABEL;
        column = 0;
      } else if (column === columns) { column = 0; y += size; }
      this.cells.push([column * size, y, row]);
      column += 1;
    }
    Object.assign(this, { size, columns, width, height: y + size });
    const ratio = devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = this.height * ratio;
    this.canvas.style.height = `${this.height}px`;
    this.index = new Map(this.cells.map(([x, top], place) => [`${x / size}:${top}`, place]));
    this.lines = [...new Set(this.cells.map((cell) => cell[1]))];
    this.draw();
  }

  draw() {
    this.canvas.hidden = !this.cells.length;
    if (!this.cells.length) {
      if (this.state) this.status.textContent = "There are no nodes.";
      return;
    }
    const colours = this.probes.map((probe) => getComputedStyle(probe).backgroundColor);
    const style = getComputedStyle(this.status);
    const pen = this.canvas.getContext("2d"), ratio = devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    pen.fillStyle = style.color;
    pen.font = `12px ${style.fontFamily}`;
    for (const [zone, y] of this.labels) pen.fillText(this.described(zone), 0, y + 13);
    const gap = this.size > 9 ? 2 : 1, side = this.size - gap, { fill, cordoned } = this.state;
    let matching = 0;
    for (const [x, y, row] of this.cells) {
      const matches = !this.text || this.lower[row].includes(this.text);
      matching += matches;
      pen.globalAlpha = matches ? 1 : 0.15;
      if (fill[row] >= 0) {
        pen.fillStyle = colours[stepOf(fill[row])];
        pen.fillRect(x, y, side, side);
      }
      if (fill[row] < 0 || (matches && cordoned.has(row))) {
        const line = cordoned.has(row) && gap > 1 ? 2 : 1;
        pen.strokeStyle = cordoned.has(row) ? colours[6] : colours[5];
        pen.lineWidth = line;
        pen.strokeRect(x + line / 2, y + line / 2, side - line, side - line);
      }
    }
    pen.globalAlpha = 1;
    if (this.at >= 0 && this.at < this.cells.length) {
      const [x, y] = this.cells[this.at];
      pen.strokeStyle = getComputedStyle(document.body).color;
      pen.lineWidth = 2;
      pen.strokeRect(x, y, side, side);
    }
    this.canvas.dataset.matching = matching;
    if (this.at < 0) this.status.textContent = `${number(matching)} of ${number(this.state.names.length)} nodes`;
  }

  // A zone with its nodes and what is requested of all that they offer.
  described(zone) {
    const { zones, requested, allocatable, resource } = this.state;
    let count = 0, used = 0, there = 0;
    for (const [, , row] of this.cells) if (zones[row] === zone) { count += 1; used += requested[row]; there += allocatable[row]; }
    return `${zone || "no zone"} · ${plural(count, "node")}${there ? ` · ${Math.round((used * 100) / there)} % of ${resource}` : ""}`;
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const line = this.lines?.find((top) => y >= top && y < top + this.size);
    return this.index?.get(`${Math.floor(x / this.size)}:${line}`) ?? -1;
  }

  point(place) {
    if (place === this.at) return;
    this.at = place;
    this.draw();
    this.tip.hidden = place < 0;
    if (place < 0) return;
    const [x, y, row] = this.cells[place], { names, fill, requested, allocatable, resource, cordoned } = this.state;
    const share = fill[row] < 0 ? `offers no ${resource}` : `${resource} ${fill[row]} %, ${amount(resource, requested[row])} of ${amount(resource, allocatable[row])}`;
    this.tip.textContent = this.status.textContent = `${names[row]}: ${share}${cordoned.has(row) ? ", cordoned" : ""}`;
    this.tip.style.left = `${Math.max(0, Math.min(x, this.width - this.tip.offsetWidth))}px`;
    this.tip.style.top = `${y + this.size + 4}px`;
  }

  key(event) {
    const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns };
    if (event.key === "Enter") return this.open();
    if (!(event.key in moves)) return;
    event.preventDefault();
    this.point(Math.max(0, Math.min(this.cells.length - 1, this.at + moves[event.key])));
  }

  open() {
    if (this.at >= 0) this.onOpen(this.state.names[this.cells[this.at][2]]);
  }
}

function stepOf(value) {
  let step = 0;
  while (step < STEPS.length - 1 && value >= STEPS[step + 1]) step += 1;
  return step;
}

export const heatScale = () => el("span", { class: "scale" },
  el("span", {}, "empty", STEPS.map((_, step) => el("i", { class: `fill-${step}` })), "full"),
  el("span", {}, el("i", { class: "none" }), "offers none"), el("span", {}, el("i", { class: "cordoned" }), "cordoned"));
