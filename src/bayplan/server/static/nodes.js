// The heat map: every node a cell, by zone, coloured by how full it is. Canvas, because five thousand elements are slow.

import { amount, ask, card, el, number, podLink, table } from "./dom.js";
import { attemptsTable } from "./pod.js";

const STEPS = [0, 25, 50, 75, 90];
const METRICS = [["cpu", "cpu"], ["memory", "memory"], ["gpu", "gpu"], ["pods", "pods"]];

export async function nodesPage(_, { isShown }) {
  const map = new HeatMap(await ask("/nodes"));
  let ticks = 0;
  return {
    content: [card("How full the nodes are", map.controls, map.holder, map.status), map.detail],
    onShown: () => map.layout(),
    async onOverview() {
      ticks += 1;
      if (ticks % 5 === 0 && isShown()) map.update(await ask("/nodes"));
    },
    close: () => map.close(),
  };
}

class HeatMap {
  constructor(state) {
    this.metric = "cpu";
    this.zone = "";
    this.text = "";
    this.at = -1;
    this.canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": "Heat map of nodes; arrow keys move, Enter opens" });
    this.tip = el("div", { class: "tip", hidden: true });
    this.holder = el("div", { class: "map" }, this.canvas, this.tip);
    this.status = el("p", { class: "soft", role: "status", id: "map-status" });
    this.detail = el("div", { "aria-live": "polite" });
    this.take(state);
    this.controls = this.makeControls();
    this.canvas.addEventListener("pointermove", (event) => this.point(this.under(event)));
    this.canvas.addEventListener("pointerleave", () => this.point(-1));
    this.canvas.addEventListener("click", () => this.open());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.resized = new ResizeObserver(() => this.layout());
    this.resized.observe(this.holder);
    this.schemes = matchMedia("(prefers-color-scheme: dark)");
    this.recolour = () => this.draw();
    this.schemes.addEventListener("change", this.recolour);
  }

  close() {
    this.resized.disconnect();
    this.schemes.removeEventListener("change", this.recolour);
  }

  take(state) {
    this.state = state;
    this.lower = state.names.map((name) => name.toLowerCase());
    this.choose();
  }

  update(state) {
    this.take(state);
    this.layout();
  }

  makeControls() {
    const zones = [...new Set(this.state.zones)].sort();
    const metric = el("select", { id: "metric", onchange: (e) => { this.metric = e.target.value; this.draw(); } },
      METRICS.map(([value, text]) => el("option", { value }, text)));
    const zone = el("select", { id: "zone", onchange: (e) => { this.zone = e.target.value; this.choose(); this.layout(); } },
      el("option", { value: "" }, "all zones"), zones.filter(Boolean).map((name) => el("option", { value: name }, name)));
    const filter = el("input", { id: "filter", placeholder: "part of a name", oninput: (e) => { this.text = e.target.value.toLowerCase(); this.draw(); } });
    return el("div", { class: "controls" },
      el("label", { for: "metric" }, "Show"), metric, el("label", { for: "zone" }, "in"), zone,
      el("label", { for: "filter" }, "named"), filter,
      el("span", { class: "legend" }, "empty", STEPS.map((_, step) => el("i", { class: `heat-${step}` })), "full", el("i", { class: "cordoned" }), "cordoned"));
  }

  choose() {
    const rows = this.state.names.map((_, row) => row);
    this.rows = this.zone ? rows.filter((row) => this.state.zones[row] === this.zone) : rows;
  }

  // Where each cell is: zones one below the other, as many cells a line as the width holds.
  layout() {
    const width = Math.max(200, this.holder.clientWidth);
    const count = this.rows.length;
    const size = Math.max(6, Math.min(28, Math.floor(Math.sqrt((width * 520) / Math.max(count, 1)))));
    const columns = Math.max(1, Math.floor(width / size));
    this.cells = [];
    this.labels = [];
    let y = 0, column = 0, zone = null;
    for (const row of this.rows) {
      if (this.state.zones[row] !== zone) {
        if (zone !== null) y += size + 8;
        zone = this.state.zones[row];
        this.labels.push([zone || "no zone", y]);
        y += 18;
        column = 0;
      } else if (column === columns) { column = 0; y += size; }
      this.cells.push([column * size, y, row]);
      column += 1;
    }
    this.size = size;
    this.columns = columns;
    this.height = y + size;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = this.height * ratio;
    this.canvas.style.height = `${this.height}px`;
    this.index = new Map(this.cells.map(([x, cellY], place) => [`${x / size}:${cellY}`, place]));
    this.lines = [...new Set(this.cells.map((cell) => cell[1]))];
    this.draw();
  }

  draw() {
    if (!this.cells) return;
    const began = performance.now();
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const heats = STEPS.map((_, step) => colour(`--heat-${step}`));
    const [none, dim, text, bad] = ["--heat-none", "--heat-dim", "--soft", "--bad"].map(colour);
    const pen = this.canvas.getContext("2d");
    const ratio = devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.fillStyle = text;
    pen.font = "12px system-ui, sans-serif";
    for (const [name, y] of this.labels) pen.fillText(name, 0, y + 12);
    const values = this.state[this.metric], gap = this.size > 9 ? 2 : 1;
    let matching = 0;
    for (const [x, y, row] of this.cells) {
      const matches = !this.text || this.lower[row].includes(this.text);
      matching += matches;
      const value = values[row];
      pen.fillStyle = !matches ? dim : value < 0 ? none : heats[this.step(value)];
      pen.fillRect(x, y, this.size - gap, this.size - gap);
      if (matches && this.state.unschedulable[row]) {
        pen.strokeStyle = bad;
        pen.strokeRect(x + 1, y + 1, this.size - gap - 2, this.size - gap - 2);
      }
    }
    if (this.at >= 0 && this.at < this.cells.length) {
      const [x, y] = this.cells[this.at];
      pen.strokeStyle = colour("--text");
      pen.lineWidth = 2;
      pen.strokeRect(x, y, this.size - gap, this.size - gap);
      pen.lineWidth = 1;
    }
    this.canvas.dataset.drawMs = (performance.now() - began).toFixed(1);
    this.canvas.dataset.matching = matching;
    this.status.textContent = `${number(matching)} of ${number(this.state.names.length)} nodes`;
  }

  step(value) {
    let step = 0;
    while (step < STEPS.length - 1 && value >= STEPS[step + 1]) step += 1;
    return step;
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const line = this.lines.find((top) => y >= top && y < top + this.size);
    return this.index.get(`${Math.floor(x / this.size)}:${line}`) ?? -1;
  }

  point(place) {
    if (place === this.at) return;
    this.at = place;
    this.draw();
    this.tip.hidden = place < 0;
    if (place < 0) return;
    const [x, y, row] = this.cells[place];
    const state = this.state;
    const fill = (name) => (state[name][row] < 0 ? "none" : `${state[name][row]} %`);
    const text = `${state.names[row]}: cpu ${fill("cpu")}, memory ${fill("memory")}, gpu ${fill("gpu")}${state.unschedulable[row] ? ", cordoned" : ""}`;
    this.tip.textContent = text;
    this.status.textContent = text;
    this.tip.style.left = `${Math.min(x, this.holder.clientWidth - 260)}px`;
    this.tip.style.top = `${y + this.size + 4}px`;
  }

  key(event) {
    const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns };
    if (event.key === "Enter") return this.open();
    if (!(event.key in moves)) return;
    event.preventDefault();
    this.point(Math.max(0, Math.min(this.cells.length - 1, this.at + moves[event.key])));
  }

  async open() {
    if (this.at < 0) return;
    const name = this.state.names[this.cells[this.at][2]];
    try { this.detail.replaceChildren(...describe(await ask(`/explain/node/${encodeURIComponent(name)}`))); }
    catch (error) { this.detail.replaceChildren(el("p", { class: "bad" }, error.message)); }
  }
}

export async function nodePage([name]) {
  const node = await ask(`/explain/node/${encodeURIComponent(name)}`);
  return { title: name, content: describe(node) };
}

function describe(node) {
  const pending = node.pending || [], pods = node.pods || [];
  return [
    card("Verdict", el("p", { class: "verdict" }, node.verdict),
      el("p", { class: "soft" }, [node.zone, ...(node.taints || [])].filter(Boolean).join(", ")),
      table("", ["resource", "#requested", "#allocatable", ""], (node.resources || []).map((fill) =>
        [fill.resource, amount(fill.resource, fill.requested), amount(fill.resource, fill.allocatable), bar(fill)]))),
    pending.length ? card("Pending pods here", table("", ["#pods", "such as", "here", "because"], pending.map((group) => [
      number(group.count), podLink(group.pod),
      group.fits ? el("span", { class: "good" }, `fits, place ${number(group.place)}`) : el("span", { class: "bad" }, `refused by ${group.plugin || "PreFilter"}`),
      (group.reasons || []).join("; ")]))) : null,
    pods.length ? card("Pods", table("", ["pod", "#cpu", "#memory", "#priority"], pods.slice(0, 50).map((pod) =>
      [podLink(pod.pod), amount("cpu", pod.cpuMilli), amount("memory", pod.memoryBytes), number(pod.priority)]))) : null,
    node.attempts?.length ? card("Decisions for this node", attemptsTable(node.attempts, true)) : null,
  ].filter(Boolean);
}

function bar(fill) {
  const share = fill.allocatable ? Math.min(100, (fill.requested * 100) / fill.allocatable) : 0;
  const inner = el("i", {});
  inner.style.width = `${share}%`;
  return el("span", { class: "bar", role: "img", "aria-label": `${Math.round(share)} percent` }, inner);
}
