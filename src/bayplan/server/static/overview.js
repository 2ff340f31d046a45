// Rates, queues and the latest decisions, updated once a second.

import { ago, card, clock, el, milliseconds, nodeLink, number, outcomeClass, podLink, svg, table } from "./dom.js";

export async function overviewPage() {
  const tiles = el("dl", { class: "tiles" });
  const chart = el("div", {});
  const recent = el("div", {});
  const onOverview = (state) => {
    tiles.replaceChildren(...tilesOf(state));
    chart.replaceChildren(chartOf(state.history));
    recent.replaceChildren(recentOf(state.recent, state.time));
  };
  return {
    content: [tiles, card("Pods a second", chart), card("Latest decisions", recent)],
    onOverview,
  };
}

function tilesOf(state) {
  const facts = [
    ["arriving / s", state.arrivingPerSecond.toFixed(1)],
    ["scheduled / s", state.boundPerSecond.toFixed(1)],
    ["p99 to bound", `${state.p99Ms.toFixed(1)} ms`],
    ["active", number(state.queue.active)],
    ["backing off", number(state.queue.backoff)],
    ["unschedulable", number(state.queue.unschedulable)],
    ["gated", number(state.queue.gated)],
    ["being bound", number(state.inFlight)],
    ["nodes", number(state.nodes)],
    ["pods on nodes", number(state.pods)],
    ["attempts", number(state.attempts)],
    ["reloads", number(state.reloads)],
  ];
  return facts.map(([name, value]) => el("div", { class: "tile" }, el("dt", {}, name), el("dd", {}, value)));
}

function chartOf(history) {
  if (history.length < 2) return el("p", { class: "soft" }, "The chart starts when there is something to draw.");
  const width = 1000, height = 120, left = 46, bottom = 18;
  const highest = Math.max(1, ...history.map((sample) => Math.max(sample[1], sample[2])));
  const x = (place) => left + (place * (width - left - 4)) / (history.length - 1);
  const y = (value) => height - bottom - (value / highest) * (height - bottom - 8);
  const line = (column) => history.map((sample, place) => `${x(place).toFixed(1)},${y(sample[column]).toFixed(1)}`).join(" ");
  const last = history[history.length - 1];
  const label = `Last ${history.length} seconds; now ${last[1].toFixed(1)} arriving and ${last[2].toFixed(1)} scheduled a second`;
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": label, preserveAspectRatio: "none" },
    svg("line", { x1: left, x2: width, y1: y(0), y2: y(0), class: "grid" }),
    svg("line", { x1: left, x2: width, y1: y(highest), y2: y(highest), class: "grid" }),
    svg("polyline", { points: line(1), class: "one" }),
    svg("polyline", { points: line(2), class: "two" }));
  const high = svg("text", { x: 2, y: y(highest) + 4 });
  high.textContent = highest >= 10 ? Math.round(highest) : highest.toFixed(1);
  const low = svg("text", { x: 2, y: y(0) + 4 });
  low.textContent = "0";
  drawing.append(high, low);
  return el("div", {}, drawing,
    el("p", { class: "legend" }, el("span", { class: "key one" }, "arriving"), el("span", { class: "key two" }, "scheduled")));
}

export function recentOf(decisions, now) {
  if (!decisions.length) return el("p", { class: "soft" }, "No pod was looked at yet.");
  return table("", ["when", "pod", "outcome", "node", "#took", "why not"], decisions.map((d) => [
    el("time", { title: clock(d.time) }, ago(d.time, now)),
    podLink(d.pod),
    el("span", { class: outcomeClass(d.outcome) }, d.outcome),
    d.node ? nodeLink(d.node) : "",
    d.seconds ? milliseconds(d.seconds) : "",
    d.message || "",
  ]));
}
