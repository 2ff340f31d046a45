// The log of decisions. Pods of one template with one outcome are one row, which unfolds into its decisions.

import { badge, card, chip, el, failed, field, nodeLink, note, pager, podLink, refill, select, table, when } from "../dom.js";
import { duration, kept, number, plural } from "../format.js";
import { ask, debounced, repeated } from "../questions.js";

const LIMIT = innerWidth < 640 ? 20 : 40;
const UNFOLDED = 50;

export async function decisionsPage(context) {
  const holder = el("div", {});
  const outcomes = el("div", { class: "controls chips", role: "group", "aria-label": "Outcomes" });
  const wanted = { q: context.query.q || "", namespace: context.query.namespace || "", outcome: context.query.outcome || "", node: context.query.node || "", offset: Number(context.query.offset) || 0 };
  const open = new Map();
  let namespaces = "";
  const controls = el("div", { class: "controls", role: "search", "aria-label": "Filter decisions" });

  const question = repeated(context, 2, async (signal) => {
    const log = await ask("/log", { ...wanted, limit: LIMIT }, { signal });
    await Promise.all([...open.keys()].map(async (key) => open.set(key, await unfolded(key, signal))));
    makeControls(log);
    refill(outcomes, outcomeButtons(log));
    refill(holder, log.groups.length ? [logTable(log.groups, { open, toggle, caption: caption(log) }), pager({ ...log, offset: wanted.offset }, LIMIT, (offset) => want({ offset }))] : note(log.kept ? "No decision matches." : "No pod has been decided on yet."));
  }, (error) => refill(holder, failed(error)));

  const unfolded = (key, signal) => {
    const [template, outcome, reason] = JSON.parse(key);
    return ask("/log/decisions", { template, outcome, node: wanted.node, limit: UNFOLDED, ...(reason ? { reason } : {}) }, { signal });
  };

  function want(change) {
    Object.assign(wanted, { offset: 0 }, change);
    context.setQuery({ ...wanted, offset: wanted.offset || "" });
    return question.now();
  }

  async function toggle(key) {
    if (!open.delete(key)) open.set(key, []);
    await question.now();
  }

  function makeControls(log) {
    const names = Object.keys(log.namespaces);
    if (JSON.stringify([names, wanted.node]) === namespaces) return;
    namespaces = JSON.stringify([names, wanted.node]);
    refill(controls, field("q", "Pods named", el("input", { id: "q", type: "search", value: wanted.q, placeholder: "part of a name", oninput: debounced(150, (event) => want({ q: event.target.value.trim() })) })),
      select("namespace", "in", [["", "all namespaces"], ...names.map((name) => [name, name])], wanted.namespace, (value) => want({ namespace: value })),
      wanted.node ? el("button", { type: "button", onclick: () => want({ node: "" }) }, `on ${wanted.node} ✕`) : null);
  }

  const outcomeButtons = (log) => [...new Set([...Object.keys(log.outcomes), wanted.outcome].filter(Boolean))].sort().map((name) =>
    chip(name, log.outcomes[name] || 0, wanted.outcome === name, () => want({ outcome: wanted.outcome === name ? "" : name })));

  await question.now();
  return { content: [controls, outcomes, card("", holder)], onTick: question.tick, close: question.stop };
}

function caption(log) {
  const dropped = log.dropped ? `, ${number(log.dropped)} older ones were dropped` : "";
  return `${plural(log.matching, "group")} of the newest ${number(log.lookedAt)} decisions; ${number(log.kept)} are kept${dropped}.`;
}

// Groups as rows; with `open`, those in it show their decisions below them.
export function logTable(groups, { open = null, toggle = null, caption: text = "" } = {}) {
  if (!groups.length) return note("No pod has been decided on yet.");
  const rows = groups.flatMap((group) => {
    const key = JSON.stringify([group.template, group.outcome, group.reason || ""]);
    const isOpen = open?.has(key);
    const name = group.pods === 1 ? el("span", { class: toggle ? "alone" : null }, podLink(group.pod)) : toggle
      ? el("button", { type: "button", class: "link name", "data-focus": key, "aria-expanded": String(isOpen), onclick: () => toggle(key) }, el("span", { class: "turn", "aria-hidden": "true" }, isOpen ? "▾" : "▸"), group.template)
      : el("a", { class: "name", href: `#/decisions?q=${encodeURIComponent(group.template)}` }, group.template);
    const row = { key: `${key} ${group.count}`, cells: [
      [name, group.pods > 1 ? el("span", { class: "soft whole" }, ` ${plural(group.pods, "pod")}`) : null], when(group.last),
      badge(group.outcome), number(group.count),
      group.nodes > 1 ? el("span", { class: "whole" }, plural(group.nodes, "node")) : group.node ? nodeLink(group.node) : "",
      duration(group.seconds), group.reason ? el("span", { title: group.reason }, kept(group.reason)) : ""] };
    return [row, ...(isOpen ? inside(open.get(key)) : [])];
  });
  return table(text, ["pods", "latest", "outcome", "#decisions", "node", "#took", "because"], rows, { long: Boolean(toggle) });
}

const inside = (decisions) => decisions.map((one) => ({ class: "inside", key: one.number, cells: [
  podLink(one.pod), when(one.time), badge(one.outcome), `attempt ${number(one.attempt || 1)}`, one.node ? nodeLink(one.node) : "", duration(one.seconds || 0),
  one.outcome === "bound" ? lead(one) : `fits on ${number(one.feasible || 0)} of ${number(one.nodes || 0)} nodes`] }));

const lead = (one) => (one.ahead === undefined || one.ahead === null ? `${plural(one.feasible || 0, "node")} fitted` : one.ahead ? `${plural(one.ahead, "point")} ahead` : "tied, drawn");
