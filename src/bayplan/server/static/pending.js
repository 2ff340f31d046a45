// Pending pods by root cause. The board is asked for again when the queue's sizes change.

import { ago, ask, card, el, failed, number, podLink } from "./dom.js";

export async function pendingPage(_, { isShown }) {
  const board = el("div", {});
  const advice = el("div", { role: "status" });
  const button = el("button", { type: "button", onclick: findChange }, "Find the change that frees the most");
  let seen = "";

  async function findChange() {
    button.disabled = true;
    advice.replaceChildren(el("p", { class: "soft" }, "trying changes on a copy of the cluster …"));
    try {
      const found = await ask("/pending?change=true");
      advice.replaceChildren(found.change
        ? el("p", {}, el("strong", {}, `${number(found.frees)} of ${number(found.total)} pods would be freed. `), found.change.sentence)
        : el("p", {}, "No single change that was tried frees a pending pod."));
    } catch (error) { advice.replaceChildren(failed(error)); }
    button.disabled = false;
  }

  async function refresh() {
    try {
      const state = await ask("/pending");
      if (isShown()) board.replaceChildren(el("p", { class: "verdict" }, state.verdict), ...(state.causes || []).map(causeCard));
    } catch (error) { board.replaceChildren(failed(error)); }
  }

  await refresh();
  return {
    content: [el("div", { class: "controls" }, button), advice, board],
    onOverview(state) {
      const sizes = JSON.stringify([state.queue, state.failed]);
      if (sizes !== seen) { seen = sizes; refresh(); }
    },
  };
}

function causeCard(cause) {
  const pods = cause.pods || [];
  return card(`${number(cause.count)} × ${cause.title}`,
    cause.message ? el("p", { class: "soft" }, cause.message) : null,
    el("ul", {}, pods.slice(0, 20).map((waiting) =>
      el("li", {}, podLink(waiting.pod), ` ${waiting.place || ""}, ${waiting.attempts || 0} attempt${waiting.attempts === 1 ? "" : "s"}, since ${ago(waiting.since || 0)}`))),
    cause.count > 20 ? el("p", { class: "soft" }, `and ${number(cause.count - 20)} more`) : null);
}
