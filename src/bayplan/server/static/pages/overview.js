// The scheduler at a glance: figures, charts with axes, and the latest decisions, live.

import { card, el, refill } from "../dom.js";
import { Chart, SPANS } from "../chart.js";
import { duration, number, short } from "../format.js";
import { ask, repeated } from "../questions.js";
import { logTable } from "./decisions.js";

export const CHARTS = {
  rates: { label: "Pods a second", series: [
    { name: "arriving", hue: "ink", of: (page) => page.arriving },
    { name: "bound", hue: "use", of: (page) => page.bound },
    { name: "refused", hue: "refuse", of: (page) => page.failed }] },
  latency: { label: "From the start of an attempt to its binding", unit: " ms", series: [
    { name: "p99", hue: "use", of: (page) => page.p99 },
    { name: "p50", hue: "use2", of: (page) => page.p50 }] },
  queue: { label: "Pods in the queue", series: [
    { name: "unschedulable", hue: "refuse", of: (page) => page.unschedulable },
    { name: "backing off", hue: "wait", of: (page) => page.backoff },
    { name: "active", hue: "ink", of: (page) => page.active },
    { name: "gated", hue: "line", of: (page) => page.gated }] },
  used: { label: "Requested of what nodes offer", unit: " %", most: 100, series: [
    { name: "cpu", hue: "use", of: (page) => page.used.cpu },
    { name: "memory", hue: "use2", of: (page) => page.used.memory },
    { name: "pods", hue: "line", of: (page) => page.used.pods }] },
};

// Charts that share a span of time and one question.
export function chartGroup(context, names, changes = {}) {
  const charts = names.map((name) => new Chart({ ...CHARTS[name], ...changes[name] }));
  let span = SPANS.some(([key]) => key === context.query.span) ? context.query.span : "5m";
  const draw = async (signal) => {
    const page = await ask("/timeline", { span }, { signal });
    charts.forEach((chart) => chart.show(page));
  };
  const question = repeated(context, 2, draw, () => {});
  const buttons = SPANS.map(([key, text]) => el("button", { type: "button", "aria-pressed": String(key === span), onclick: (event) => {
    span = key;
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(button === event.target)));
    context.setQuery({ span: key === "5m" ? "" : key });
    question.now();
  } }, text));
  return {
    charts,
    controls: el("div", { class: "controls", role: "group", "aria-label": "Span of the charts" }, buttons),
    cards: charts.map((chart) => card(chart.label, chart.content)),
    start: question.now,
    tick: question.tick,
    close: () => { question.stop(); charts.forEach((chart) => chart.close()); },
  };
}

export async function overviewPage(context) {
  const tiles = el("dl", { class: "tiles" });
  const recent = el("div", {});
  const group = chartGroup(context, ["rates", "latency", "queue", "used"]);
  const log = repeated(context, 2, async (signal) => {
    const found = await ask("/log", { limit: 8 }, { signal });
    refill(recent, logTable(found.groups));
  }, () => {});
  await log.now();
  return {
    content: [tiles, group.controls, el("div", { class: "columns" }, group.cards), card("Latest decisions", recent)],
    onShown: group.start,
    onTick(state) {
      tiles.replaceChildren(...tilesOf(state));
      group.tick();
      log.tick();
    },
    close: () => { group.close(); log.stop(); },
  };
}

function tilesOf(state) {
  const waiting = state.queue.active + state.queue.backoff + state.queue.gated;
  const facts = [
    ["scheduled a second", short(state.boundPerSecond), "use"],
    ["p99 to bound", duration(state.p99Ms / 1000), "use"],
    ["cpu requested", `${Math.round(state.used.cpu || 0)} %`, "use"],
    ["pods on nodes", short(state.pods), "use"],
    ["waiting", short(waiting), waiting ? "wait" : ""],
    ["refused everywhere", short(state.queue.unschedulable), state.queue.unschedulable ? "refuse" : ""],
    ["nodes", number(state.nodes), ""],
  ];
  return facts.map(([name, value, hue]) => el("div", { class: `tile ${hue}` }, el("dt", {}, name), el("dd", {}, value)));
}
