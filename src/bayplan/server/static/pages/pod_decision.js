// What one decision is made of: the funnel, the score matrix, refusals, victims, and where its time went.

import { card, el, folded, meter, nodeLink, podLink, table, words } from "../dom.js";
import { duration, number, plural } from "../format.js";
import { nearestDevices } from "./pod_devices.js";
import { why } from "./preemptions.js";

export function decisionCards(of, moment, best) {
  const title = (text) => `${text}, ${moment === "then" ? "as decided" : "now"}`;
  const words = of.message ? folded("In kube-scheduler's words", of.message) : null;
  const isRefused = of.refused.length && !of.node;
  return [
    of.nodes && of.chosenBy !== "nomination" ? card(title("Funnel"), funnel(of)) : null,
    best.length ? card(title("Score matrix"), matrix(of, best)) : null,
    isRefused ? card(title("Who refuses and why"), refused(of), words) : null,
    nearestDevices(of.devices),
    of.preemption ? card(moment === "then" ? "Who had to leave" : "Who would leave", victims(of.preemption)) : null,
    words && !isRefused ? card("", words) : null,
  ];
}

export const chosenPair = (then) => (Object.keys(then.points).length ? [{ node: then.node, total: then.total, points: then.points }, ...(then.runnerUp ? [then.runnerUp] : [])] : []);

function funnel(of) {
  const step = (left, label) => {
    const fill = el("span", { class: "fill" });
    fill.style.width = `${(100 * left) / Math.max(of.nodes, 1)}%`;
    return el("li", {}, el("span", { class: "left" }, number(left)),
      el("span", { class: "track" }, fill, el("span", { class: "label" }, label)));
  };
  return el("ol", { class: "funnel", id: "funnel" },
    step(of.nodes, "nodes looked at"),
    (of.funnel || []).map((s) => step(s.left || 0, `after ${s.plugin} (${number(s.rejected)} refused)`)),
    of.node ? step(1, `chosen: ${of.node}`) : null);
}

// The head stays while the body scrolls, and so does the column of plugins.
function matrix(of, best) {
  const plugins = [...new Set(best.flatMap((node) => Object.keys(node.points || {})))];
  const weights = Object.assign({}, ...best.map((node) => Object.fromEntries(Object.entries(node.points || {}).map(([plugin, points]) => [plugin, points.weight ?? 1]))));
  const mark = (node) => (node.node === of.node ? "num chosen" : "num");
  const head = el("tr", {}, el("th", { scope: "col" }, "plugin, weight"),
    best.map((node) => el("th", { scope: "col", class: mark(node) }, nodeLink(node.node))));
  const rows = plugins.map((plugin) => el("tr", {}, el("th", { scope: "row" }, words(plugin), el("span", { class: "soft" }, ` ×${weights[plugin]}`)),
    best.map((node) => {
      const score = (node.points || {})[plugin];
      return el("td", { class: mark(node) }, score ? [meter(score.normalized / 100), number(score.weighted)] : "",
        score ? el("div", { class: "raw" }, `${score.raw === undefined || score.raw === null ? "–" : number(score.raw)} → ${number(score.normalized)}`) : null);
    })));
  const total = el("tr", { class: "total" }, el("th", { scope: "row" }, "total"), best.map((node) => el("td", { class: mark(node) }, number(node.total))));
  const text = `Weighted points; below them raw → normalised. ${plural(of.feasible || 0, "node")} fit, ${number(best.length)} shown.`;
  return el("div", {}, el("p", {}, leadText(of, best)), el("p", { class: "soft fine" }, text), el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Score matrix" }, el("table", { id: "matrix" },
    el("thead", {}, head), el("tbody", {}, rows, total))));
}

function leadText(of, best) {
  const [first, second] = best;
  if (!second) return "";
  if (of.ties > 1) return `${number(of.ties)} nodes tie for the highest total, ${second.node} among them; ${of.tieBreak ? `${of.node} was ${of.tieBreak}` : `${of.node} is the first by name`}.`;
  return `${number(first.total - second.total)} ahead of ${second.node}.`;
}

function refused(state) {
  return table("", ["#nodes", "plugin", "because", "such as"], state.refused.map((group) =>
    [number(group.count), group.plugin || "PreFilter", group.reasons.join("; "), (group.sample || []).map((name, place) => [place ? ", " : "", nodeLink(name)])]));
}

function victims(preemption) {
  const hidden = (preemption.victimCount || 0) - (preemption.victims || []).length;
  return el("div", {}, el("p", {}, "From ", nodeLink(preemption.node), ":"),
    el("ul", {}, (preemption.victims || []).map((victim) => el("li", {}, podLink(victim.pod), ` (priority ${number(victim.priority || 0)})`)), hidden > 0 ? el("li", {}, `and ${number(hidden)} more`) : null),
    preemption.keys?.length ? el("p", { class: "soft" }, `Why there: ${why(preemption)}.`) : null);
}

export function timeCard(state) {
  if (!state.phases?.length) return null;
  const phases = el("p", {}, state.phases.map(([phase, seconds], place) => [place ? " · " : "", el("span", { class: "whole" }, `${phase} ${duration(seconds)}`)]));
  const text = "A plugin whose remembered answers were used is not asked.";
  const slowest = Math.max(...(state.times || []).map((time) => time.seconds), 1e-9);
  const rows = (state.times || []).slice().sort((a, b) => b.seconds - a.seconds).map((time) => [time.plugin, time.point, duration(time.seconds), meter(time.seconds / slowest)]);
  return card("Time taken, now", phases, rows.length ? table(text, ["plugin", "extension point", "#took", ""], rows) : null);
}
