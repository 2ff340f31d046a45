// Devices: those that a placed pod has, and what each device of the nearest nodes is to one that waits.

import { card, el, nodeLink, note, table } from "../dom.js";
import { number } from "../format.js";

const SHOWN = 16;

export function ownDevices(claims) {
  if (!claims?.length) return null;
  const rows = claims.flatMap((claim) => Object.entries(claim.devices).map(([request, devices]) => [claim.owner, request, devices.join(", ")]));
  return card("Devices", table("", ["claim", "request", "devices"], rows));
}

export function nearestDevices(report) {
  if (!report) return null;
  return card("Devices of the nearest nodes", el("div", { id: "devices" }, report.nodes.map((node) => [
    el("h3", {}, nodeLink(node.node)),
    node.facts.map((fact) => el("p", {}, fact.sentence)), node.error ? el("p", { class: "refuse" }, node.error) : null,
    node.requests.map((request) => requestTable(node, request)),
  ]), report.refused > report.nodes.length ? note(`${number(report.refused)} nodes lack devices; those that lack the least are shown.`) : null));
}

function requestTable(node, request) {
  const rows = request.devices.slice(0, SHOWN).map((fact) => [fact.device, el("span", { class: fact.state === "free" ? "use" : "" }, fact.phrase)]);
  const hidden = request.devices.length - rows.length;
  return [table(`${node.node}, ${request.request}: ${number(request.usable)} of ${request.asked || "all"} would do`, ["device", "state"], rows), hidden > 0 ? note(`and ${number(hidden)} more devices`) : null];
}
