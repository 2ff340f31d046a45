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

// Devices of a node that are the same to the request are one row.
function requestTable(node, request) {
  const alike = new Map();
  for (const fact of request.devices) alike.set(fact.phrase, [...(alike.get(fact.phrase) || []), fact]);
  const rows = [...alike].map(([phrase, facts]) => [number(facts.length), el("span", { class: facts[0].state === "free" ? "use" : "" }, phrase), named(node, facts)]);
  return table(`${node.node}, ${request.request}: ${number(request.usable)} of ${request.asked || "all"} would do`, ["#devices", "state", "which"], rows);
}

// `driver/pool/device`; the pool is the node's own as a rule, and the driver is that of the request.
const named = (node, facts) => facts.slice(0, SHOWN).map((fact) => ownName(node, fact.device)).join(", ") + (facts.length > SHOWN ? ` and ${number(facts.length - SHOWN)} more` : "");

function ownName(node, device) {
  const [, pool, ...rest] = device.split("/");
  return pool === node.node && rest.length ? rest.join("/") : device;
}
