// All pods: by namespace, state, node, reason and part of a name, a page at a time. The filters are in the address.

import { badge, card, chip, el, failed, field, nodeLink, note, pager, podLink, refill, select, table, when } from "../dom.js";
import { number, plural } from "../format.js";
import { ask, debounced, repeated } from "../questions.js";

const LIMIT = innerWidth < 640 ? 20 : 50;
const SORTS = [["name", "by name"], ["age", "newest first"], ["waiting", "waiting longest first"]];
const FILTERS = ["q", "namespace", "state", "node", "reason", "sort"];

export async function podsPage(context) {
  const holder = el("div", {});
  const controls = el("div", { class: "controls", role: "search", "aria-label": "Filter pods" });
  const states = el("div", { class: "controls chips", role: "group", "aria-label": "States" });
  const wanted = { ...Object.fromEntries(FILTERS.map((name) => [name, context.query[name] || ""])), offset: Number(context.query.offset) || 0 };
  let made = "";

  const question = repeated(context, 2, async (signal) => {
    const state = await ask("/pods", { ...wanted, limit: LIMIT }, { signal });
    makeControls(state);
    refill(states, stateButtons(state));
    refill(holder, describe(state));
  }, (error) => refill(holder, failed(error)));

  function want(change) {
    Object.assign(wanted, { offset: 0 }, change);
    context.setQuery({ ...wanted, offset: wanted.offset || "", sort: wanted.sort === "name" ? "" : wanted.sort });
    return question.now();
  }

  // Made again when the choices changed, not when a count did: whoever is about to choose keeps the list.
  function makeControls(state) {
    const namespaces = Object.keys(state.namespaces), reasons = [...new Set([...Object.keys(state.reasons), wanted.reason].filter(Boolean))].sort();
    const choices = JSON.stringify([namespaces, reasons, wanted.node]);
    if (choices === made) return;
    made = choices;
    const text = el("input", { id: "q", type: "search", value: wanted.q, placeholder: "part of a name", oninput: debounced(150, (event) => want({ q: event.target.value.trim() })) });
    refill(controls,
      field("q", "Named", text),
      select("namespace", "in", [["", "all namespaces"], ...namespaces.map((name) => [name, name])], wanted.namespace, (value) => want({ namespace: value })),
      reasons.length ? select("reason", "held back by", [["", "anything"], ...reasons.map((name) => [name, name])], wanted.reason, (value) => want({ reason: value })) : null,
      select("sort", "sorted", SORTS, wanted.sort || "name", (value) => want({ sort: value })),
      wanted.node ? el("button", { type: "button", onclick: () => want({ node: "" }) }, `on ${wanted.node} ✕`) : null);
  }

  function stateButtons(state) {
    const chosen = new Set(wanted.state.split(",").filter(Boolean));
    const all = [...new Set([...Object.keys(state.states), ...chosen])].sort((a, b) => (state.states[b] || 0) - (state.states[a] || 0));
    return all.map((name) => chip(name, state.states[name] || 0, chosen.has(name), () => {
      if (!chosen.delete(name)) chosen.add(name);
      want({ state: [...chosen].join(",") });
    }));
  }

  function describe(state) {
    const found = state.matching === state.total ? plural(state.total, "pod") : `${number(state.matching)} of ${plural(state.total, "pod")}`;
    if (!state.pods.length) return note(state.total ? `None of ${plural(state.total, "pod")} matches.` : "There are no pods.");
    const rows = state.pods.map((pod) => ({ key: `${pod.pod} ${pod.state}`, cells: [
      podLink(pod.pod), badge(pod.state), pod.node ? nodeLink(pod.node) : "", reasonOf(pod),
      pod.attempts ? number(pod.attempts) : "", pod.priority ? number(pod.priority) : "", pod.created ? when(Date.parse(pod.created) / 1000) : ""] }));
    return [table(found, ["pod", "state", "node", "held back by", "#attempts", "#priority", "#created"], rows, { long: true }), pager(state, LIMIT, (offset) => want({ offset }))];
  }

  await question.now();
  return { content: [controls, states, card("", holder)], onTick: question.tick, close: question.stop };
}

function reasonOf(pod) {
  if (!pod.reasons?.length) return "";
  return pod.state === "unserved" ? `no scheduler here is named ${pod.reasons[0]}` : pod.reasons.join(", ");
}
