// Devices: those that a placed pod has, and what each device of the nearest nodes is to one that waits.

import { card, el, nodeLink, note, table } from "../dom.js";
import { number } from "../format.js";

const SHOWN = 16;
const NAMED = 3;

export function ownDevices(claims) {
  if (!claims?.length) return null;
  const rows = claims.flatMap((claim) => Object.entries(claim.devices).map(([request, devices]) => [claim.owner, request, devices.join(", ")]));
  return card("Devices", table("", ["claim", "request", "devices"], rows));
}

export function nearestDevices(report) {
  if (!report) return null;
  return card("Devices of the nearest nodes", el("div", { id: "devices" }, alike(report.nodes).map((nodes) => [
    el("h3", {}, nodes.slice(0, NAMED).map((node, place) => [place ? ", " : "", nodeLink(node.node)]), nodes.length > NAMED ? ` and ${number(nodes.length - NAMED)} more like them` : ""),
    nodes[0].facts.map((fact) => el("p", {}, fact.sentence)), nodes[0].error ? el("p", { class: "refuse" }, nodes[0].error) : null,
    nodes[0].requests.map((request) => requestTable(nodes[0], request)),
  ]), report.refused > report.nodes.length ? note(`${number(report.refused)} nodes lack devices; those that lack the least are shown.`) : null));
}

// Nodes whose devices are the same to the pod are described once.
function alike(nodes) {
  const groups = new Map();
  for (const node of nodes) {
    const key = JSON.stringify([node.facts, node.requests, node.error || ""]).replaceAll(node.node, "");
    groups.set(key, [...(groups.get(key) || []), node]);
  }
  return [...groups.values()];
}

// Devices of a node that are the same to the request are one row.
function requestTable(node, request) {
  const states = new Map();
  for (const fact of request.devices) states.set(fact.phrase, [...(states.get(fact.phrase) || []), fact]);
  const rows = [...states].map(([phrase, facts]) => [number(facts.length), el("span", { class: facts[0].state === "free" ? "use" : "" }, phrase), named(node, facts)]);
  return table(`${node.node}, ${request.request}: ${number(request.usable)} of ${request.asked || "all"} would do`, ["#devices", "state", "which"], rows);
}

function named(node, facts) {
  const hidden = facts.length - SHOWN;
  return facts.slice(0, SHOWN).map((fact) => ownName(node, fact.device)).join(", ") + (hidden > 0 ? ` and ${number(hidden)} more` : "");
}

// `driver/pool/device`; the pool is the node's own as a rule, and the driver that of the request.
function ownName(node, device) {
  const [, pool, ...rest] = device.split("/");
  return pool === node.node && rest.length ? rest.join("/") : device;
}
