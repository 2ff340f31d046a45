// How full the nodes are: a heat map by any resource, how many nodes are how full, and utilisation over time.

import { address, card, el, failed, field, meter, note, refill, select, table } from "../dom.js";
import { amount, number } from "../format.js";
import { HeatMap, heatScale } from "../heatmap.js";
import { ask, repeated } from "../questions.js";
import { chartGroup } from "./overview.js";

export async function nodesPage(context) {
  const wanted = { resource: context.query.resource || "cpu", zone: context.query.zone || "", q: context.query.q || "" };
  const map = new HeatMap((name) => { location.hash = address("node", [name]); });
  const controls = el("div", { class: "controls", role: "search", "aria-label": "Filter nodes" });
  const totals = el("div", {}), spread = el("div", {});
  const group = chartGroup(context, ["used"], { used: { label: "Requested over time", series: [{ name: "requested", hue: "use", area: true, of: (page) => page.used[wanted.resource] }] } });
  let made = "";

  const question = repeated(context, 4, async (signal) => {
    const state = await ask("/nodes", { resource: wanted.resource }, { signal });
    wanted.resource = state.resource;
    makeControls(state);
    map.show(state);
    refill(totals, totalsOf(state));
    refill(spread, spreadOf(state));
  }, (error) => refill(totals, failed(error)));

  function want(change) {
    Object.assign(wanted, change);
    context.setQuery({ ...wanted, resource: wanted.resource === "cpu" ? "" : wanted.resource });
    map.filter({ zone: wanted.zone, text: wanted.q });
    if (change.resource) { question.now(); group.start(); }
  }

  function makeControls(state) {
    const resources = [...new Set([...Object.keys(state.resources), wanted.resource])], zones = [...new Set(state.zones)].filter(Boolean).sort();
    const choices = JSON.stringify([resources, zones]);
    if (choices === made) return;
    made = choices;
    refill(controls,
      select("resource", "Show", resources.map((name) => [name, name]), wanted.resource, (value) => want({ resource: value })),
      select("zone", "in", [["", "all zones"], ...zones.map((name) => [name, name])], wanted.zone, (value) => want({ zone: value })),
      field("filter", "named", el("input", { id: "filter", type: "search", value: wanted.q, placeholder: "part of a name", oninput: (event) => want({ q: event.target.value }) })),
      heatScale());
    map.filter({ zone: wanted.zone, text: wanted.q });
  }

  await question.now();
  return {
    content: [card("How full the nodes are", controls, map.holder, map.status),
      el("div", { class: "columns" }, el("div", {}, card("Requested of what nodes offer", totals), ...group.cards), card("Nodes by how full they are", spread))],
    controls: group.controls,
    onShown: () => { map.layout(); group.start(); },
    onTick() { question.tick(); group.tick(); },
    close() { map.close(); question.stop(); group.close(); },
  };
}

const totalsOf = (state) => !Object.keys(state.resources).length ? note("No node offers anything.") : table("", ["resource", "#requested", "#offered", "#share", ""], Object.entries(state.resources).map(([name, [used, there]]) =>
  [name, amount(name, used), amount(name, there), `${Math.round((used * 100) / there)} %`, meter(used / there)]));

function spreadOf(state) {
  if (!state.buckets.some(Boolean)) return note(`No node offers ${state.resource}.`);
  const most = Math.max(1, ...state.buckets);
  return table("", [`${state.resource} requested`, "#nodes", ""], state.buckets.map((count, place) =>
    [place === 10 ? "full" : `${place * 10}–${place * 10 + 9} %`, number(count), meter(count / most)]), { stack: false });
}
