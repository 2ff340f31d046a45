// One pod: the verdict first, then how it came about, its attempts, then against now, and what would change it.

import { address, badge, card, el, failed, nodeLink, podLink, refill, sentence, when } from "../dom.js";
import { duration, moment, stateAt } from "../format.js";
import { ask, repeated } from "../questions.js";
import { attemptsTable, differenceCard, thenAgainstNow } from "./pod_attempts.js";
import { showChanges, whatIfCard } from "./pod_changes.js";
import { chosenPair, decisionCards, timeCard } from "./pod_decision.js";
import { ownDevices } from "./pod_devices.js";

const STEPS = 12;

export async function podPage(context) {
  const [namespace, name] = context.path;
  const path = `/explain/pod/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const body = el("div", {}), changes = el("div", {}), whatIf = whatIfCard(`${namespace}/${name}`);
  let stamp = "", isThere = false;
  whatIf.hidden = true;

  const question = repeated(context, 2, async (signal) => {
    const state = await ask(path, {}, { signal });
    const seen = JSON.stringify([state.state, state.node, state.verdict, state.attempts.length, state.queue?.place, state.attempts[0]?.outcome]);
    if (seen === stamp) return;
    stamp = seen;
    isThere = true;
    refill(body, describe(state, context, changes));
    whatIf.hidden = state.state === "gone";
    if (["pending", "placed", "gated"].includes(state.state)) showChanges(path, changes);
  }, (error) => { if (!isThere) refill(body, failed(error), el("p", {}, el("a", { href: address("pods", [], { q: name }) }, "Pods with such a name"))); });

  await question.now();
  return {
    title: `${namespace}/${name}`,
    content: [body, whatIf],
    onTick: question.tick,
    close: question.stop,
  };
}

function describe(state, context, changes) {
  const isWaiting = ["pending", "gated"].includes(state.state);
  const wasRefused = state.claim?.claim === "refusedLater";
  const hue = ["placed", "binding"].includes(state.state) ? "use" : state.state === "pending" && (wasRefused || !state.now?.node) ? "refuse" : isWaiting || state.state === "held" ? "wait" : "";
  const then = isWaiting ? null : state.decision, now = isWaiting || !state.decision ? state.now : null;
  return [
    el("section", { class: "card", "aria-label": "Verdict" }, el("p", { class: `verdict ${hue}`, id: "verdict" }, sentence(state.verdict)),
      el("p", { class: "soft" }, badge(stateOf(state)), " ", state.node ? ["on ", nodeLink(state.node), ". "] : "", leftFor(state.claim), sourceOf(wasRefused ? state.decision : then, now), " ", state.note || "")),
    el("div", { class: "flow" },
    ...(then ? decisionCards(then, "then", chosenPair(then)) : []),
    ...(now && state.state !== "gated" ? decisionCards(now, "now", now.best) : []),
    then?.stoppedAt ? card(then.outcome === "error" ? "Failed after the choice" : "Refused after the choice", el("p", { class: "refuse" }, `At ${then.stoppedAt}${then.stoppedBy ? ` by ${then.stoppedBy}` : ""}: ${then.error}`)) : null,
    then?.permit ? card("Held at Permit", el("p", {}, held(then.permit))) : null,
    ownDevices(state.devices),
    changes,
    state.attempts.length ? card("Attempts", attemptsTable(state.attempts)) : null,
    thenAgainstNow(state.decision, state.now, Boolean(state.node)),
    differenceCard(state.attempts, context),
    historyCard(state),
    isWaiting && state.now ? timeCard(state.now) : null),
  ];
}

// As the list of pods has it.
const stateOf = (state) => {
  if (state.state !== "pending") return state.state;
  return state.claim?.claim === "noScheduler" ? "unserved" : stateAt(state.queue?.place) || state.state;
};
const leftFor = (claim) => (claim?.claim === "preempted" ? ["from ", nodeLink(claim.node), " for ", podLink(claim.by), ". "] : "");
const sourceOf = (then, now) => (then ? ["As decided ", when(then.time), ` (${moment(then.time)}).`] : now ? "On the cluster as it is now." : "");

function held(permit) {
  const who = Object.entries(permit.plugins || {}).map(([plugin, seconds]) => `${plugin} (${seconds} s at most)`).join(", ");
  return permit.result ? `By ${who}; left after ${duration(permit.seconds || 0)}: ${permit.result}.` : `By ${who}.`;
}

function historyCard(state) {
  const isQueued = Boolean(state.queue?.history?.length), attempt = state.attempts[0];
  const all = isQueued ? state.queue.history : attempt?.history || [];
  if (!all.length) return null;
  const steps = all.slice(-STEPS);
  // The pod has left the queue: the outcome of its attempt is the last step.
  const outcome = isQueued || attempt.outcome === "under way" ? "" : attempt.outcome;
  const ended = all[all.length - 1][0] + (attempt?.outcomeSeconds || 0);
  return card("In the queue", el("ol", { class: "steps" }, steps.map(([time, place, cause], at) => {
    const end = steps[at + 1]?.[0] ?? (outcome ? ended : null);
    return el("li", {}, el("span", {}, el("strong", {}, place), el("span", { class: "soft" }, ` ${end === null ? `since ${moment(time)}` : duration(end - time)}`)), cause ? el("div", { class: "raw" }, cause) : null);
  }), outcome ? el("li", {}, el("span", {}, el("strong", {}, outcome), el("span", { class: "soft" }, ` at ${moment(ended)}`))) : null));
}
