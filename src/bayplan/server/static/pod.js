// One pod: the verdict, the funnel, the score matrix, the attempts, what would change it, and a what-if form.

import { ago, ask, card, clock, duration, el, failed, meter, milliseconds, nodeLink, number, outcomeClass, podLink, table } from "./dom.js";

export async function podPage([namespace, name], { isShown }) {
  const path = `/explain/pod/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const body = el("div", {});
  const changes = el("div", {});
  let stamp = "";

  async function refresh() {
    const state = await ask(path);
    const now = JSON.stringify([state.state, state.node, state.verdict, state.attempts.length, state.queue?.place, state.attempts[0]?.outcome]);
    if (now === stamp || !isShown()) return;
    stamp = now;
    body.replaceChildren(...describe(state));
    if (["pending", "placed", "gated"].includes(state.state)) showChanges(path, changes);
  }

  await refresh();
  return {
    title: `${namespace}/${name}`,
    content: [body, changes, whatIfCard(`${namespace}/${name}`)],
    onOverview: () => refresh().catch(() => {}),
  };
}

function describe(state) {
  const isWaiting = ["pending", "gated"].includes(state.state);
  const style = ["placed", "binding"].includes(state.state) || (isWaiting && state.now?.node) ? "good" : state.state === "pending" ? "bad" : "";
  const then = isWaiting ? null : state.decision, now = isWaiting || !state.decision ? state.now : null;
  return [
    card("Verdict", el("p", { class: `verdict ${style}`, id: "verdict" }, state.verdict),
      el("p", { class: "soft" }, [sourceOf(state, then), state.note].filter(Boolean).join(" "))),
    ...(then ? parts(then, "then", chosenPair(then)) : []),
    ...(now && state.state !== "gated" ? parts(now, "now", now.best) : []),
    then?.stoppedAt ? card("Refused after the choice", el("p", { class: "bad" }, `At ${then.stoppedAt}${then.stoppedBy ? ` by ${then.stoppedBy}` : ""}: ${then.error}`)) : null,
    then?.permit ? card("Held at Permit", el("p", {}, held(then.permit))) : null,
    state.devices?.length ? card("Devices", ownDevices(state.devices)) : null,
    state.attempts.length ? card("Attempts", attemptsTable(state.attempts)) : null,
    historyOf(state).length ? card("In the queue", history(historyOf(state))) : null,
    isWaiting && state.now?.phases?.length ? card("Time", times(state.now)) : null,
  ].filter(Boolean);
}

function sourceOf(state, then) {
  if (then) return `As decided ${ago(then.time)} (${clock(then.time)}).`;
  return "On the cluster as it is now.";
}

function parts(of, when, best) {
  const title = (text) => (when === "then" ? `${text} then` : `${text} now`);
  return [
    of.nodes && of.chosenBy !== "nomination" ? card(title("Funnel"), funnel(of)) : null,
    best.length ? card(title("Score matrix"), matrix(of, best)) : null,
    of.refused.length && !of.node ? card(title("Who refuses, and why"), refused(of)) : null,
    of.devices ? card("Devices of the nearest nodes", nodeDevices(of.devices)) : null,
    of.preemption ? card(when === "then" ? "Who had to leave" : "Who would leave", victims(of.preemption)) : null,
    when === "now" && of.message ? card("In kube-scheduler's words", el("p", {}, of.message)) : null,
  ];
}

const chosenPair = (then) => (Object.keys(then.points).length ? [{ node: then.node, total: then.total, points: then.points }, ...(then.runnerUp ? [then.runnerUp] : [])] : []);

function held(permit) {
  const who = Object.entries(permit.plugins || {}).map(([plugin, seconds]) => `${plugin} (${seconds} s at most)`).join(", ");
  return permit.result ? `By ${who}; left after ${duration(permit.seconds || 0)}: ${permit.result}.` : `By ${who}.`;
}

function funnel(of) {
  const step = (left, label) => {
    const fill = el("span", { class: "fill" });
    fill.style.width = `${(100 * left) / Math.max(of.nodes, 1)}%`;
    return el("li", {}, el("span", { class: "left" }, number(left)),
      el("span", { class: "track" }, fill, el("span", { class: "label" }, label)));
  };
  return el("ol", { class: "funnel", id: "funnel" },
    step(of.nodes, "nodes looked at"),
    (of.funnel || []).map((s) => step(s.left || 0, `after ${s.plugin} (${number(s.rejected)} rejected)`)),
    of.node ? step(1, `chosen: ${of.node}`) : null);
}

function matrix(of, best) {
  const plugins = [...new Set(best.flatMap((node) => Object.keys(node.points || {})))];
  const weights = Object.assign({}, ...best.map((node) => Object.fromEntries(Object.entries(node.points || {}).map(([plugin, points]) => [plugin, points.weight ?? 1]))));
  const mark = (node) => (node.node === of.node ? "num chosen" : "num");
  const head = el("tr", {}, el("th", { scope: "col" }, "plugin"), el("th", { scope: "col", class: "num" }, "weight"),
    best.map((node) => el("th", { scope: "col", class: mark(node) }, nodeLink(node.node))));
  const rows = plugins.map((plugin) => el("tr", {}, el("th", { scope: "row" }, plugin),
    el("td", { class: "num" }, `×${weights[plugin]}`),
    best.map((node) => {
      const score = (node.points || {})[plugin];
      const cell = el("td", { class: mark(node) }, score ? number(score.weighted) : "",
        score ? el("div", { class: "raw" }, `${score.raw ?? "–"} → ${score.normalized}`) : null);
      if (score) cell.style.background = `color-mix(in srgb, var(--bar) ${Math.round(score.normalized * 0.3)}%, var(--card))`;
      return cell;
    })));
  const total = el("tr", { class: "total" }, el("td", {}, "total"), el("td", {}), best.map((node) => el("td", { class: mark(node) }, number(node.total))));
  return el("div", {}, el("p", {}, leadText(of, best)), el("div", { class: "scroll" }, el("table", { id: "matrix" },
    el("caption", {}, `Weighted points; below them raw → normalised. The deeper the colour, the better for the plugin. ${number(of.feasible || 0)} nodes fit, ${best.length} are shown.`),
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
    [number(group.count), group.plugin || "PreFilter", group.reasons.join("; "), (group.sample || []).join(", ")]));
}

function ownDevices(claims) {
  const rows = claims.flatMap((claim) => Object.entries(claim.devices).map(([request, devices]) => [claim.owner, request, devices.join(", ")]));
  return table("", ["claim", "request", "devices"], rows);
}

function nodeDevices(report) {
  return el("div", { id: "devices" }, report.nodes.map((node) => [
    el("h3", {}, nodeLink(node.node)),
    ...node.facts.map((fact) => el("p", {}, fact.sentence)), node.error ? el("p", { class: "bad" }, node.error) : null,
    ...node.requests.map((request) => table(`${request.request}: ${request.usable} of ${request.asked || "all"} would do`, ["device", ""],
      request.devices.map((fact) => [fact.device, el("span", { class: fact.state === "free" ? "good" : "" }, fact.phrase)]))),
  ]), report.refused > report.nodes.length ? el("p", { class: "soft" }, `${number(report.refused)} nodes lack devices; those that lack the least are shown.`) : null);
}

export function attemptsTable(attempts, showPod = false) {
  return table("", ["attempt", ...(showPod ? ["pod"] : []), "when", "woken by", "#fit on", "outcome", "node", "#decision", "#to outcome"], attempts.map((a) => [
    String(a.attempt ?? 1), ...(showPod ? [podLink(a.pod)] : []), el("time", { title: clock(a.time) }, ago(a.time)), a.wokenBy || "",
    `${number(a.feasible || 0)}/${number(a.nodes || 0)}`,
    el("span", { class: outcomeClass(a.outcome) }, a.outcome || "under way"), a.node ? nodeLink(a.node) : a.nominated || "",
    milliseconds(a.seconds || 0), a.outcomeSeconds ? milliseconds(a.outcomeSeconds) : ""]));
}

const historyOf = (state) => (state.queue?.history?.length ? state.queue.history : state.attempts[0]?.history || []);

function history(all) {
  const steps = all.slice(-12);
  return el("ol", { class: "story" }, steps.map(([time, place, cause], at) => {
    const next = steps[at + 1];
    const stay = next ? duration(next[0] - time) : at === steps.length - 1 ? `since ${clock(time)}` : "";
    return el("li", {}, el("span", {}, el("strong", {}, place), el("span", { class: "stay" }, ` ${stay}`)), cause ? el("div", { class: "raw" }, cause) : null);
  }));
}

function victims(preemption) {
  const keys = (preemption.keys || []).map((key) => `${number(key.left)} by ${key.key}`).join(" → ");
  return el("div", {}, el("p", {}, "From ", nodeLink(preemption.node), ":"),
    el("ul", {}, (preemption.victims || []).map((victim) => el("li", {}, podLink(victim.pod), ` (priority ${victim.priority || 0})`))),
    keys ? el("p", { class: "soft" }, `Why there: ${number(preemption.candidates || 0)} candidate nodes → ${keys}.`) : null);
}

function times(state) {
  const phases = el("p", {}, state.phases.map(([phase, seconds]) => `${phase} ${duration(seconds)}`).join(" · "));
  const note = "One cycle of ten is measured by plugin; a plugin whose remembered answers were used is not asked.";
  if (!state.times?.length) return el("div", {}, phases, el("p", { class: "soft" }, note));
  const slowest = Math.max(...state.times.map((time) => time.seconds), 1e-9);
  return el("div", {}, phases, table(note, ["plugin", "extension point", "#took", ""], state.times.slice().sort((a, b) => b.seconds - a.seconds).map((time) =>
    [time.plugin, time.point, duration(time.seconds), meter(time.seconds / slowest)])));
}

async function showChanges(path, holder) {
  try {
    const found = await ask(`${path}/changes`);
    const said = (entries) => (entries || []).map((entry) => entry.sentence);
    const sentences = said(found.suggestions), misses = said(found.nearest), without = said(found.without);
    const title = found.isPlaced ? "What would move it" : "What would let it run";
    const headed = [["", sentences], ["Nearest misses", misses], ["Without a plugin", without]].filter(([, list]) => list.length);
    const lists = headed.map(([head, list]) => [head ? el("h3", {}, head) : null, el("ul", {}, list.map((line) => el("li", {}, line)))]);
    holder.replaceChildren(lists.length ? card(title, ...lists, el("p", { class: "soft" }, `Each was tried on a copy of the cluster. ${found.note || ""}`)) : "");
  } catch (error) { holder.replaceChildren(failed(error)); }
}

function whatIfCard(key) {
  const answer = el("div", { role: "status" });
  const input = (id, label, placeholder) => [el("label", { for: id }, label), el("input", { id, placeholder, autocomplete: "off" })];
  const form = el("form", { class: "controls", onsubmit: async (event) => {
    event.preventDefault();
    const text = (id) => form.querySelector(`#${id}`).value.trim();
    const words = (id) => text(id).split(/[\s,]+/).filter(Boolean);
    const scenario = { drain: words("wi-drain"), disable: words("wi-disable"), addNodes: words("wi-like").map((like) => ({ like, count: 1 })) };
    answer.replaceChildren(el("p", { class: "soft" }, "playing …"));
    try { answer.replaceChildren(...played(await ask("/whatif", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(scenario) }), key)); }
    catch (error) { answer.replaceChildren(failed(error)); }
  } },
  ...input("wi-drain", "drain", "node names"), ...input("wi-like", "one more like", "node names"), ...input("wi-disable", "without plugin", "plugin names"),
  el("button", { type: "submit" }, "What if?"));
  return card("What if", form, answer);
}

function played(result, key) {
  const mine = [...(result.placed || []), ...(result.pending || [])].find((entry) => entry.pod === key);
  const about = mine ? `${key} ${mine.node ? `would go to ${mine.node}` : `would stay pending: ${mine.message}`}` : "";
  const gone = (result.evicted || []).filter((entry) => entry.by === key).map((entry) => entry.pod);
  return [el("p", {}, result.verdict), about ? el("p", { class: mine.node ? "good" : "bad" }, about) : null,
    gone.length ? el("p", {}, `In its place would leave: ${gone.join(", ")}.`) : null,
    result.note ? el("p", { class: "soft" }, result.note) : null].filter(Boolean);
}
