// The queue: its depth by state over time, and what pods wait for, by root cause.

import { ago, number, plural } from "../format.js";
import { card, el, failed, folded, note, podLink, refill } from "../dom.js";
import { ask, repeated } from "../questions.js";
import { chartGroup } from "./overview.js";

const SHOWN = 8;

export async function queuePage(context) {
  const tiles = el("dl", { class: "tiles" });
  const board = el("div", {});
  const advice = el("div", { role: "status" });
  const button = el("button", { type: "button", onclick: findChange }, "Find the change that frees the most");
  const group = chartGroup(context, ["queue", "rates"]);
  const causes = repeated(context, 4, async (signal) => {
    const state = await ask("/pending", {}, { signal });
    refill(board, card("", el("p", { class: `verdict ${state.total ? "wait" : "use"}` }, state.verdict)), ...(state.causes || []).map(causeCard));
  }, (error) => refill(board, failed(error)));

  async function findChange() {
    button.disabled = true;
    advice.replaceChildren(note("trying changes on a copy of the cluster …"));
    try {
      const found = await ask("/pending", { change: "true" });
      advice.replaceChildren(found.change
        ? el("p", {}, el("strong", {}, `${number(found.frees)} of ${plural(found.total, "pod")} would be freed: `), found.change.sentence)
        : el("p", {}, "No single change that was tried frees a pending pod."));
    } catch (error) { advice.replaceChildren(failed(error)); }
    button.disabled = false;
  }

  await causes.now();
  return {
    content: [tiles, group.controls, el("div", { class: "columns" }, group.cards), el("div", { class: "controls" }, button), advice, board],
    onShown: group.start,
    onTick(state) {
      tiles.replaceChildren(...tilesOf(state));
      group.tick();
      causes.tick();
    },
    close: () => { group.close(); causes.stop(); },
  };
}

function tilesOf(state) {
  const facts = [["active", state.queue.active, "wait"], ["backing off", state.queue.backoff, "wait"], ["unschedulable", state.queue.unschedulable, "refuse"], ["gated", state.queue.gated, "wait"], ["being scheduled", state.inFlight, "use"]];
  return facts.map(([name, value, hue]) => el("div", { class: `tile ${value ? hue : ""}` }, el("dt", {}, name), el("dd", {}, number(value))));
}

function causeCard(cause) {
  const pods = cause.pods || [];
  const hidden = cause.count - Math.min(pods.length, SHOWN);
  return card(`${number(cause.count)} × ${cause.title}`,
    el("ul", {}, pods.slice(0, SHOWN).map((waiting) =>
      el("li", {}, podLink(waiting.pod), el("span", { class: "soft" }, ` ${[waiting.place, plural(waiting.attempts || 0, "attempt"), waiting.since ? `since ${ago(waiting.since)}` : ""].filter(Boolean).join(", ")}`)))),
    hidden > 0 ? el("p", {}, el("a", { href: moreOf(cause) }, `and ${number(hidden)} more`)) : null,
    cause.message ? folded("In kube-scheduler's words", cause.message) : null);
}

function moreOf(cause) {
  const state = (cause.reasons || []).includes("other scheduler") ? "unserved" : (cause.reasons || []).includes("gated") ? "gated" : "unschedulable,backoff,active";
  return `#/pods?${new URLSearchParams({ state, ...(cause.plugin ? { reason: cause.plugin } : {}), sort: "waiting" })}`;
}
