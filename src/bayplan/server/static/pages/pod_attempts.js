// Attempts of a pod, and what differs between two of them, or between then and now.

import { badge, card, el, folded, nodeLink, podLink, select, table, when, words } from "../dom.js";
import { duration, moment, number } from "../format.js";

// Of one pod; or, `withPod`, of the pods of one node.
export function attemptsTable(attempts, { withPod = false } = {}) {
  const woken = !withPod && attempts.some((a) => a.wokenBy);
  return table("", ["#attempt", ...(withPod ? ["pod"] : []), "when", ...(woken ? ["woken by"] : []), "#fit on", "outcome", "#decision", "#to outcome"], attempts.map((a) => ({ key: `${a.number}`, cells: [
    number(a.attempt ?? 1), ...(withPod ? [podLink(a.pod)] : []), when(a.time), ...(woken ? [words(a.wokenBy || "")] : []),
    `${number(a.feasible || 0)} of ${number(a.nodes || 0)}`,
    [badge(a.outcome || "under way"), a.stoppedAt ? ` at ${a.stoppedAt}` : "", withPod ? "" : a.node ? [" on ", nodeLink(a.node)] : a.nominated ? [" nominated ", nodeLink(a.nominated)] : ""],
    duration(a.seconds || 0), a.outcomeSeconds ? duration(a.outcomeSeconds) : ""] })));
}

// Two attempts, chosen in the address; the newest two unless it says otherwise.
export function differenceCard(attempts, context) {
  if (attempts.length < 2) return null;
  const numbered = new Map(attempts.map((a) => [String(a.attempt ?? 1), a]));
  const names = [...numbered.keys()];
  const chosen = { a: numbered.has(context.query.a) ? context.query.a : names[1], b: numbered.has(context.query.b) ? context.query.b : names[0] };
  const holder = el("div", {});
  const draw = () => holder.replaceChildren(comparison(numbered.get(chosen.a), numbered.get(chosen.b), [`attempt ${chosen.a}`, `attempt ${chosen.b}`]));
  const pick = (side) => (value) => { chosen[side] = value; context.query[side] = value; context.setQuery({ [side]: value }); draw(); };
  const options = names.map((name) => [name, `${name} at ${moment(numbered.get(name).time)}`]);
  draw();
  return card("Difference between two attempts", el("div", { class: "controls" }, select("attempt-a", "attempt", options, chosen.a, pick("a")), select("attempt-b", "and", options, chosen.b, pick("b"))), holder);
}

// A pod that has its node counts there: what holds now is about one more pod like it.
export function thenAgainstNow(then, now, isPlaced) {
  if (!then || !now) return null;
  const moved = { ...now, points: now.best[0]?.points || {}, total: now.best[0]?.total || 0 };
  const title = isPlaced ? "Then, against one more like it now" : "Then against now";
  const text = isPlaced ? "Now: what would be decided about one more pod like this one, with this one where it is." : "Now: what would be decided on the cluster as it is, if the pod were tried.";
  return card(title, comparison({ ...then, outcome: "" }, moved, [`then, ${moment(then.time)}`, `now, ${moment(now.time)}`]), el("p", { class: "soft" }, text));
}

// Rows of what two decisions have in common as facts, those that differ first to the eye.
function comparison(a, b, heads) {
  const rows = [
    ["outcome", a.outcome || "", b.outcome || ""],
    ["node", a.node || "none", b.node || "none"],
    ["nodes looked at", number(a.nodes || 0), number(b.nodes || 0)],
    ["nodes that fit", number(a.feasible || 0), number(b.feasible || 0)],
    ...(a.chosenBy && b.chosenBy ? [["chosen by", a.chosenBy, b.chosenBy]] : []),
    ...byName(rejections(a), rejections(b)).map(([plugin, one, two]) => [`refused by ${plugin}`, refusals(a, one), refusals(b, two)]),
    ...byName(weighted(a), weighted(b)).map(([plugin, one, two]) => [`points of ${plugin}`, said(one), said(two)]),
    ["total points", said(a.total || undefined), said(b.total || undefined)],
    ["who would leave", victims(a), victims(b)],
  ].filter(([, one, two]) => one || two);
  const prose = [a.message, b.message];
  return el("div", {}, rows.every(([, one, two]) => one === two) ? el("p", { class: "soft fine" }, "Nothing differs.") : null, table("", ["", ...heads.map((head) => `#${head}`)], rows.map(([name, one, two]) => ({ class: one === two ? "same" : "changed", cells: [words(name), value(name, one), value(name, two)] })), { stack: false }),
    prose.some(Boolean) ? folded("In kube-scheduler's words", prose.map((text, place) => (text ? `${heads[place]}: ${text}` : "")).filter(Boolean).join(" — ")) : null);
}

// Names may be long and break anywhere; words do not.
const value = (name, text) => {
  if (name === "who would leave") return text.split(", ").filter(Boolean).map((pod) => el("div", { class: "name pod" }, pod));
  return name === "node" && text !== "none" ? el("span", { class: "name" }, text) : text;
};
// Where a nomination decided, no other node was looked at.
const refusals = (of, count) => (of.chosenBy === "nomination" ? "not looked at" : number(count || 0));
const said = (value) => (value === undefined ? "" : number(value));
const rejections = (of) => Object.fromEntries((of.funnel || []).map((step) => [step.plugin, step.rejected]));
const weighted = (of) => Object.fromEntries(Object.entries(of.points || {}).map(([plugin, points]) => [plugin, points.weighted]));
const victims = (of) => (of.preemption?.victims || []).map((victim) => victim.pod).join(", ");
const byName = (a, b) => [...new Set([...Object.keys(a), ...Object.keys(b)])].map((name) => [name, a[name], b[name]]);
