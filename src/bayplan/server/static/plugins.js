// The plugins at work, and the reloads.

import { ago, ask, card, duration, el, number, table } from "./dom.js";

export async function pluginsPage(_, { isShown }) {
  const holder = el("div", {});
  let seen = -1;
  async function refresh() {
    const { plugins, reloads } = await ask("/plugins");
    if (isShown()) holder.replaceChildren(...byProfile(plugins).map(([profile, rows]) => card(profile, el("div", { class: "whole" }, pluginTable(rows)))), reloadCard(reloads));
  }
  await refresh();
  return {
    content: holder,
    onOverview(state) {
      if (seen >= 0 && state.reloads !== seen) refresh();
      seen = state.reloads;
    },
  };
}

function byProfile(plugins) {
  const profiles = new Map();
  for (const plugin of plugins) profiles.set(plugin.profile, [...(profiles.get(plugin.profile) || []), plugin]);
  return [...profiles];
}

function pluginTable(rows) {
  const time = (value) => (value === undefined ? "" : duration(value / 1e6));
  const measured = (p) => Object.entries(p.times || {}).map(([point, us]) => `${point} ${duration(us / 1e6)}`).join(", ");
  return table("Filter and score: one answer about every node, asked anew and measured now. In cycles: the mean of the one cycle in ten that is measured, where it was asked. Rejections and decisions are of the attempts on record.",
    ["plugin", "#weight", "#filter", "#score", "in cycles", "#rejected", "#decided", "#influence", "#errors"],
    rows.map((p) => [
      el("span", {}, p.plugin, el("div", { class: "raw" }, (p.points || []).join(", ")), p.origin ? el("div", { class: "raw" }, p.origin) : null,
        (p.answers || []).map((a) => el("div", { class: "raw", title: [...(a.reasons || []), a.advice || ""].join("\n") }, `${a.method} depends on ${a.depends} (${a.origin})`)),
        (p.cautions || []).map((text) => el("div", { class: "bad" }, text))),
      p.weight ? `×${p.weight}` : "", time(p.filterUs), time(p.scoreUs),
      el("span", { title: p.timed ? `${number(p.timed)} cycles` : null }, measured(p)),
      number(p.rejected || 0), number(p.decided || 0), number(p.influence || 0),
      el("span", { class: p.errors ? "bad" : "" }, number(p.errors || 0))]));
}

function reloadCard(reloads) {
  if (!reloads.length) return card("Reloads", el("p", { class: "soft" }, "Nothing was reloaded since the scheduler started."));
  return card("Reloads", el("ul", {}, reloads.slice().reverse().map((entry) => el("li", { class: entry.problems.length ? "bad" : "good" },
    `${ago(entry.time)}: ${entry.what}`, entry.problems.length ? el("ul", {}, entry.problems.map((problem) => el("li", {}, problem))) : null))));
}
