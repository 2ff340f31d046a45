// The queue: its depth by state over time, and what pods wait for, by root cause.

import { number, since, span, stateAt } from "../format.js";
import { badge, card, el, failed, folded, meter, note, podLink, refill, sentence, table, tile } from "../dom.js";
import { ask, repeated } from "../questions.js";
import { chartGroup, hueOf } from "./overview.js";
import { commandLines } from "./pod_changes.js";

const SHOWN = 8;
const COMMANDS = 3;

export async function queuePage(context) {
  const tiles = el("dl", { class: "tiles" });
  const board = el("div", {});
  const advice = el("div", { role: "status" });
  const button = el("button", { type: "button", onclick: findChange }, "Find the change that frees the most");
  const group = chartGroup(context, ["queue", "rates"]);
  let unserved = 0;
  const causes = repeated(context, 4, async (signal) => {
    const state = await ask("/pending", {}, { signal });
    const most = Math.max(1, ...(state.causes || []).map((cause) => cause.count));
    button.hidden = !state.total;
    unserved = (state.causes || []).filter(isUnserved).reduce((sum, cause) => sum + cause.count, 0);
    refill(board, el("p", { class: `verdict ${state.total ? "wait" : "use"}` }, sentence(state.verdict)), ...(state.causes || []).map((cause) => causeRow(cause, most)));
  }, (error) => refill(board, failed(error)));

  async function findChange() {
    button.disabled = true;
    advice.replaceChildren(note("trying changes on a copy of the cluster …"));
    try {
      const found = await ask("/pending", { change: "true" });
      advice.replaceChildren(found.change
        ? el("div", {}, el("p", {}, el("strong", {}, sentence(found.change.sentence))), commandLines(found.change, COMMANDS))
        : el("p", {}, "No single change that was tried frees a pending pod."));
    } catch (error) { advice.replaceChildren(failed(error)); }
    button.disabled = false;
  }

  await causes.now();
  return {
    controls: group.controls,
    content: [tiles, el("div", { class: "columns" }, group.cards), card("Waiting by reason", board, el("div", { class: "controls advice" }, button, advice))],
    onShown: group.start,
    onTick(state) {
      tiles.replaceChildren(...tilesOf(state, unserved));
      group.tick();
      causes.tick();
    },
    close: () => { group.close(); causes.stop(); },
  };
}

const isUnserved = (cause) => (cause.reasons || []).includes("other scheduler");

function tilesOf(state, unserved) {
  const facts = [["active", state.queue.active, "wait"], ["backing off", state.queue.backoff, "wait"], ["unschedulable", state.queue.unschedulable, "refuse"], ["gated", state.queue.gated, "wait"], ["being scheduled", state.inFlight, "use"]];
  if (unserved) facts.push(["unserved", unserved, "refuse"]);
  return facts.map(([name, value, hue]) => tile(name, number(value), value ? hue : ""));
}

// A cause is a row: how many wait, as a bar as well, for what, and since when; it unfolds into its pods.
function causeRow(cause, most) {
  const pods = cause.pods || [], hidden = cause.count - Math.min(pods.length, SHOWN);
  const oldest = pods.length ? Math.min(...pods.map((waiting) => waiting.since || Infinity)) : Infinity;
  const longest = Number.isFinite(oldest) ? `for ${span(since(oldest))}` : "";
  const rows = pods.slice(0, SHOWN).map((waiting) => [podLink(waiting.pod), badge(stateAt(waiting.place)), number(waiting.attempts || 0), waiting.since ? span(since(waiting.since)) : ""]);
  return el("details", { class: "cause", "data-key": cause.title },
    el("summary", {}, el("span", { class: "count" }, number(cause.count)), meter(cause.count / most, hueOf(cause)), el("span", { class: "name" }, sentence(cause.title)), el("span", { class: "soft since" }, longest)),
    el("div", { class: "inner" }, table("", ["pod", "state", "#attempts", "#waiting for"], rows),
      hidden > 0 ? el("p", {}, el("a", { href: moreOf(cause) }, `and ${number(hidden)} more`)) : null,
      cause.message ? folded("In kube-scheduler's words", cause.message, `${cause.title} words`) : null));
}

function moreOf(cause) {
  const state = isUnserved(cause) ? "unserved" : (cause.reasons || []).includes("gated") ? "gated" : "unschedulable,backoff,active";
  return `#/pods?${new URLSearchParams({ state, ...(cause.plugin ? { reason: cause.plugin } : {}), sort: "waiting" })}`;
}
