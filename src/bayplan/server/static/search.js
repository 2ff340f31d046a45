// Search as one types, over pods and nodes: a combobox whose list is answered by the server.

import { address, badge, el, splitKey } from "./dom.js";
import { number, plural } from "./format.js";
import { ask, debounced } from "./questions.js";

export function searchBox() {
  const input = el("input", {
    id: "find", type: "search", placeholder: "Find a pod or a node ( / )", autocomplete: "off", spellcheck: "false", role: "combobox",
    "aria-label": "Find a pod or a node", "aria-expanded": "false", "aria-controls": "found", "aria-autocomplete": "list",
  });
  const list = el("ul", { id: "found", class: "found", role: "listbox", "aria-label": "Found", hidden: true });
  const said = el("span", { class: "hidden", role: "status" });
  let entries = [], at = -1, running = null;

  const close = () => { running?.abort(); list.hidden = true; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); at = -1; };
  const open = (entry) => { close(); input.value = ""; input.blur(); location.hash = entry; };

  function mark(place) {
    at = place;
    entries.forEach((entry, one) => entry.node.setAttribute("aria-selected", String(one === at)));
    if (at >= 0) { input.setAttribute("aria-activedescendant", entries[at].node.id); entries[at].node.scrollIntoView({ block: "nearest" }); }
    else input.removeAttribute("aria-activedescendant");
  }

  const look = debounced(120, async () => {
    const text = input.value.trim();
    running?.abort();
    if (!text) return close();
    running = new AbortController();
    const mine = running.signal;
    try {
      const found = await ask("/search", { q: text }, { signal: mine });
      if (!mine.aborted) fill(text, found);
    }
    catch (error) { if (error.name !== "AbortError") { list.replaceChildren(el("li", { class: "count" }, error.message)); list.hidden = false; } }
  });

  function fill(text, found) {
    const entry = (target, ...content) => {
      const node = el("li", { role: "option", "aria-selected": "false", onmousedown: (event) => { event.preventDefault(); open(target); } }, ...content);
      return { target, node };
    };
    entries = [
      ...found.pods.map((pod) => entry(address("pod", splitKey(pod.pod)), el("span", {}, pod.pod), badge(pod.state))),
      ...found.nodes.map((node) => entry(address("node", [node.node]), el("span", {}, node.node), el("span", { class: "badge" }, node.zone || "node"))),
    ];
    if (found.podCount > found.pods.length) entries.push(entry(address("pods", [], { q: text }), `All ${number(found.podCount)} pods with “${text}”`));
    entries.forEach((one, place) => { one.node.id = `found-${place}`; });
    list.replaceChildren(...(entries.length ? entries.map((one) => one.node) : [el("li", { class: "count", role: "option", "aria-disabled": "true", "aria-selected": "false" }, "Nothing has that name.")]));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    said.textContent = `${plural(found.podCount, "pod")} and ${plural(found.nodeCount, "node")} found`;
    mark(-1);
  }

  input.addEventListener("input", look);
  input.addEventListener("blur", () => setTimeout(close, 100));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { close(); input.value = ""; }
    else if (event.key === "Enter" && at >= 0) open(entries[at].target);
    else if (event.key === "Enter" && input.value.trim()) open(address("pods", [], { q: input.value.trim() }));
    else if (event.key === "ArrowDown" && entries.length) mark((at + 1) % entries.length);
    else if (event.key === "ArrowUp" && entries.length) mark((at - 1 + entries.length) % entries.length);
    else return;
    event.preventDefault();
  });
  return { content: [input, list, said], focus: () => { input.focus(); input.select(); }, clear: () => { close(); input.value = ""; } };
}
