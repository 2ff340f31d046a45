// The plugins at work and what they cost, live, and the reloads.

import { card, el, failed, note, refill, table, when } from "../dom.js";
import { duration, number } from "../format.js";
import { ask, repeated } from "../questions.js";

export async function pluginsPage(context) {
  const holder = el("div", {});
  const question = repeated(context, 3, async (signal) => {
    const { plugins, reloads } = await ask("/plugins", {}, { signal });
    refill(holder, byProfile(plugins).map(([profile, rows]) => card(profile, pluginTable(rows))), reloadCard(reloads));
  }, (error) => refill(holder, failed(error)));
  await question.now();
  return { content: holder, onTick: question.tick, close: question.stop };
}

function byProfile(plugins) {
  const profiles = new Map();
  for (const plugin of plugins) profiles.set(plugin.profile, [...(profiles.get(plugin.profile) || []), plugin]);
  return [...profiles];
}

function pluginTable(rows) {
  const time = (value) => (value === undefined ? "" : duration(value / 1e6));
  const some = (value) => (value ? number(value) : "");
  const measured = (p) => Object.entries(p.times || {}).map(([point, us], place) => [place ? ", " : "", el("span", { class: "whole" }, `${point} ${duration(us / 1e6)}`)]);
  return table("Filter and score: one answer about every node, asked anew and measured now. In cycles: the mean of the one cycle in ten that is measured. Rejections and decisions are of the attempts on record; influence is how many points it put between the chosen node and the runner-up, in the mean.",
    ["plugin", "extension points", "#weight", "#filter", "#score", "in cycles", "#rejected", "#decided", "#influence", "#errors"],
    rows.map((p) => ({ key: p.plugin, cells: [
      el("span", {}, el("strong", {}, p.plugin), p.origin ? el("div", { class: "raw" }, p.origin) : null,
        (p.answers || []).map((a) => el("div", { class: "raw", title: [...(a.reasons || []), a.advice || ""].join("\n") }, `${a.method} depends on ${a.depends} (${a.origin})`)),
        Object.entries(p.metrics || {}).map(([name, value]) => el("div", { class: "raw" }, `${name}: ${number(value)}`)),
        (p.cautions || []).map((text) => el("div", { class: "refuse" }, text))),
      el("span", { class: "raw" }, (p.points || []).join(", ")),
      p.weight ? `×${p.weight}` : "", time(p.filterUs), time(p.scoreUs),
      measured(p).length ? el("span", { class: "raw", title: p.timed ? `${number(p.timed)} cycles` : null }, measured(p)) : "",
      some(p.rejected), some(p.decided), some(p.influence), p.errors ? el("span", { class: "refuse" }, number(p.errors)) : ""] })), { long: true });
}

function reloadCard(reloads) {
  if (!reloads.length) return card("Reloads", note("Nothing was reloaded since the scheduler started."));
  return card("Reloads", el("ul", {}, reloads.slice().reverse().map((entry) => el("li", { class: entry.problems.length ? "refuse" : "" },
    when(entry.time), `: ${entry.what}`, entry.problems.length ? el("ul", {}, entry.problems.map((problem) => el("li", {}, problem))) : null))));
}
