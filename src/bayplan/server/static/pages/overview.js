// The scheduler at a glance: figures, charts with axes, and the latest decisions, live.

import { card, el, failed, meter, note, refill, sentence, tile } from "../dom.js";
import { Chart, SPANS } from "../chart.js";
import { duration, number, plural, short } from "../format.js";
import { ask, repeated } from "../questions.js";
import { logTable } from "./decisions.js";

const CAUSES = 6;

export const CHARTS = {
  rates: { label: "Pods a second", least: 4, series: [
    { name: "arriving", hue: "line", of: (page) => page.arriving },
    { name: "refused", hue: "refuse", of: (page) => page.failed },
    { name: "bound", hue: "use", area: true, of: (page) => page.bound }] },
  latency: { label: "From the start of an attempt to its binding", unit: " ms", least: 1, series: [
    { name: "p99", hue: "use", of: (page) => page.p99 },
    { name: "p50", hue: "use2", of: (page) => page.p50 }] },
  queue: { label: "Pods in the queue", least: 4, series: [
    { name: "unschedulable", hue: "refuse", area: true, of: (page) => page.unschedulable },
    { name: "active", hue: "wait", of: (page) => page.active },
    { name: "backing off", hue: "wait2", of: (page) => page.backoff },
    { name: "gated", hue: "wait3", of: (page) => page.gated }] },
  used: { label: "Requested of what nodes offer", unit: " %", most: 100, series: [
    { name: "cpu", hue: "use", area: true, of: (page) => page.used.cpu },
    { name: "memory", hue: "use2", of: (page) => page.used.memory },
    { name: "pods", hue: "use3", of: (page) => page.used.pods }] },
};

// Charts that share a span of time and one question.
export function chartGroup(context, names, changes = {}) {
  const charts = names.map((name) => new Chart({ ...CHARTS[name], ...changes[name] }));
  let span = SPANS.some(([key]) => key === context.query.span) ? context.query.span : "5m";
  const draw = async (signal) => {
    const page = await ask("/timeline", { span }, { signal });
    charts.forEach((chart) => chart.show(page));
  };
  const question = repeated(context, 2, draw, (error) => charts.forEach((chart) => chart.fail(error)));
  const buttons = SPANS.map(([key, text]) => el("button", { type: "button", "aria-pressed": String(key === span), onclick: (event) => {
    span = key;
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(button === event.target)));
    context.setQuery({ span: key === "5m" ? "" : key });
    question.now();
  } }, text));
  return {
    charts,
    controls: el("div", { class: "segments", role: "group", "aria-label": "Span of the charts" }, buttons),
    cards: charts.map((chart) => card(chart.label, chart.content)),
    start: question.now,
    tick: question.tick,
    close: () => { question.stop(); charts.forEach((chart) => chart.close()); },
  };
}

export async function overviewPage(context) {
  const tiles = el("dl", { class: "tiles" });
  const recent = el("div", {}), why = el("div", { class: "causes" });
  const group = chartGroup(context, ["rates", "latency", "queue", "used"]);
  const log = repeated(context, 2, async (signal) => {
    const found = await ask("/log", { limit: 8 }, { signal });
    refill(recent, logTable(found.groups));
  }, firstFailure(recent));
  const causes = repeated(context, 5, async (signal) => {
    const board = await ask("/pending", {}, { signal });
    const most = Math.max(1, ...(board.causes || []).map((cause) => cause.count));
    refill(why, board.causes?.length ? board.causes.slice(0, CAUSES).map((cause) => causeLine(cause, most)) : note("No pod is pending."),
      (board.causes || []).length > CAUSES ? el("p", { class: "soft fine" }, el("a", { href: "#/queue" }, `and ${plural(board.causes.length - CAUSES, "more cause")}`)) : null);
  }, firstFailure(why));
  await log.now();
  causes.now();
  return {
    controls: group.controls,
    content: [tiles, el("div", { class: "columns" }, group.cards), el("div", { class: "aside" }, card("Latest decisions", recent), card("What pods wait for", why))],
    onShown: group.start,
    onTick(state) {
      tiles.replaceChildren(...tilesOf(state));
      group.tick();
      log.tick();
      causes.tick();
    },
    close: () => { group.close(); log.stop(); causes.stop(); },
  };
}

// What is there stays; the state of the connection is said once for all.
const firstFailure = (holder) => (error) => { if (!holder.hasChildNodes() || holder.querySelector("[role=alert]")) refill(holder, failed(error)); };

function tilesOf(state) {
  const waiting = state.queue.active + state.queue.backoff + state.queue.gated;
  const facts = [
    ["scheduled a second", short(state.boundPerSecond), "use"],
    ["p99 to binding", state.bound ? duration(state.p99Ms / 1000) : "–", "use"],
    ["cpu requested", state.used.cpu === undefined ? "–" : `${Math.round(state.used.cpu)} %`, "use"],
    ["pods on nodes", short(state.pods), "use"],
    ["waiting", short(waiting), waiting ? "wait" : ""],
    ["refused everywhere", short(state.queue.unschedulable), state.queue.unschedulable ? "refuse" : ""],
    ["nodes", number(state.nodes), ""],
  ];
  return facts.map(([name, value, hue]) => tile(name, value, hue));
}

const causeLine = (cause, most) => el("div", { class: "cause" }, el("a", { class: "summary", href: "#/queue" },
  el("span", { class: "count" }, short(cause.count)), el("span", {}, sentence(cause.title)), meter(cause.count / most, hueOf(cause))));

// Gates and turns are waiting; everything else is a refusal.
export const hueOf = (cause) => (["gated", "fits", "permit"].some((word) => (cause.reasons || []).includes(word)) ? "wait" : "refuse");
