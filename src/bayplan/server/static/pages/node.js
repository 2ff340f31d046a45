// One node: what it holds, and what it says to the pods that wait.

import { address, badge, card, el, failed, meter, podLink, refill, table } from "../dom.js";
import { amount, number, plural } from "../format.js";
import { ask, repeated } from "../questions.js";
import { attemptsTable } from "./pod_attempts.js";

const SHOWN = 25;
const DEVICES = 32;

export async function nodePage(context) {
  const [name] = context.path;
  const holder = el("div", {});
  const question = repeated(context, 4, async (signal) => {
    refill(holder, describe(await ask(`/explain/node/${encodeURIComponent(name)}`, {}, { signal })));
  }, (error) => refill(holder, failed(error)));
  await question.now();
  return { title: name, content: holder, onTick: question.tick, close: question.stop };
}

function describe(node) {
  const pending = node.pending || [], pods = node.pods || [];
  return [
    el("section", { class: "card", "aria-label": "Verdict" }, el("p", { class: `verdict ${node.unschedulable ? "refuse" : "use"}` }, node.verdict),
      el("p", { class: "soft name" }, [...(node.zone ? [`zone ${node.zone}`] : []), ...(node.taints || []).map((taint) => `taint ${taint}`)].join(", "))),
    el("div", { class: "flow" },
    card("Resources", table("", ["resource", "#requested", "#offered", "#share", ""], (node.resources || []).map(fillRow))),
    pending.length ? card("Pending pods here", table("", ["#pods", "such as", "here", "because"], pending.slice(0, SHOWN).map((group) => [
      number(group.count), podLink(group.pod),
      group.fits ? badge("bound", `fits, place ${number(group.place)}`) : badge("error", `refused by ${group.plugin || "PreFilter"}`),
      (group.reasons || []).join("; ")])), hiddenOf(pending.slice(SHOWN).reduce((sum, group) => sum + group.count, 0), "more pending pod")) : null,
    node.devices?.length ? card("Devices", deviceTable(node.devices), hiddenOf(node.devices.length - DEVICES, "more device")) : null,
    pods.length ? card("Pods", table("", ["pod", "#cpu", "#memory", "#priority"], pods.slice(0, SHOWN).map((pod) =>
      [podLink(pod.pod), amount("cpu", pod.cpuMilli), amount("memory", pod.memoryBytes), number(pod.priority)])),
      node.podCount > SHOWN ? el("p", {}, el("a", { href: `#/pods?node=${encodeURIComponent(node.node)}` }, `all ${plural(node.podCount, "pod")} here`)) : null) : null,
    node.attempts?.length ? card("Decisions for this node", attemptsTable(node.attempts, { withPod: true }),
      el("p", {}, el("a", { href: address("decisions", [], { node: node.node }) }, "all of them in the log"))) : null,
    card("Labels", table("", ["label", "value"], Object.entries(node.labels || {}).map(([key, value]) => [key, value])))),
  ];
}

const hiddenOf = (count, word) => (count > 0 ? el("p", { class: "soft" }, `and ${plural(count, word)}`) : null);

const deviceTable = (devices) => table("", ["device", "state", "claim", "pod"], devices.slice(0, DEVICES).map((one) => [
  one.device, [one.state, one.taints?.length ? ` ${one.taints.join(", ")}` : ""].join(""), (one.owners || []).join(", "),
  (one.users || []).map((key, place) => [place ? ", " : "", podLink(key)])]));

function fillRow(fill) {
  const share = fill.allocatable ? fill.requested / fill.allocatable : 0;
  return [fill.resource, amount(fill.resource, fill.requested), amount(fill.resource, fill.allocatable), fill.allocatable ? `${Math.round(share * 100)} %` : "", meter(share)];
}
