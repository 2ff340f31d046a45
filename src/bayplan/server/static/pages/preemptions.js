// Preemptions: who had to leave, for whom and where, why there, and what became of it.

import { badge, card, el, failed, nodeLink, note, pager, podLink, refill, table, tile, when } from "../dom.js";
import { duration, number, plural } from "../format.js";
import { ask, repeated } from "../questions.js";

const LIMIT = 30;
const NAMED = 6;

export async function preemptionsPage(context) {
  const holder = el("div", {}), tiles = el("dl", { class: "tiles" });
  let offset = Number(context.query.offset) || 0;
  const question = repeated(context, 2, async (signal) => {
    const page = await ask("/preemptions", { offset, limit: LIMIT }, { signal });
    tiles.replaceChildren(tile("preemptions", number(page.total), page.total ? "refuse" : ""), tile("pods that left", number(page.victims), page.victims ? "refuse" : ""),
      tile("still waiting", number(page.waiting), page.waiting ? "wait" : ""), tile("median wait", page.medianWaited === null ? "–" : duration(page.medianWaited)));
    refill(holder, describe(page), pager({ offset, matching: page.total }, LIMIT, (next) => {
      offset = next;
      context.setQuery({ offset: offset || "" });
      question.now();
    }));
  }, (error) => refill(holder, failed(error)));
  await question.now();
  return { content: [tiles, card("", holder)], onTick: question.tick, close: question.stop };
}

function describe(page) {
  if (!page.total) return note("No pod had to leave for another one, as far as decisions are kept.");
  const rows = page.preemptions.map((one) => ({ key: `${one.pod} ${one.time}`, cells: [
    when(one.time), podLink(one.pod), nodeLink(one.node), victims(one), why(one),
    one.outcome === "gone" ? [badge("gone"), " before it got a node"] : one.outcome ? [badge(one.outcome, one.outcome === "bound" ? "bound" : `on ${one.got}`), el("span", { class: "whole" }, ` after ${duration(one.waited || 0)}`)] : badge("pending", "waits")] }));
  return table(`${plural(page.total, "preemption")}, ${plural(page.victims, "pod")} had to leave.`, ["when", "for", "on", "left (priority)", "why there", "then"], rows, { long: true });
}

function victims(one) {
  const named = (one.victims || []).slice(0, NAMED);
  const hidden = (one.victimCount || 0) - named.length;
  return el("span", {}, named.map((victim, place) => [place ? ", " : "", podLink(victim.pod), el("span", { class: "soft" }, `\u00a0(${number(victim.priority || 0)})`)]), hidden > 0 ? ` and ${number(hidden)} more` : "");
}

export function why(one) {
  let before = one.candidates || 0;
  const steps = [];
  for (const key of one.keys || []) {
    if (key.left < before) steps.push(`${number(key.left)} by ${key.key}`);
    before = key.left;
  }
  const equal = before > 1 ? `, equal by every ${steps.length ? "further " : ""}criterion` : "";
  return [plural(one.candidates || 0, "candidate node"), ...steps].join(" → ") + equal;
}
