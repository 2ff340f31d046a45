// Keys: / searches, g and a letter goes to a page, ? shows them all, j and k step through the rows of a table.

import { el } from "./dom.js";

const PAGES = { o: "overview", p: "pods", d: "decisions", q: "queue", e: "preemptions", n: "nodes", l: "plugins", c: "config" };

export function listenToKeys(search) {
  const shown = el("dialog", { "aria-label": "Keyboard shortcuts" },
    el("h2", {}, "Keyboard"),
    el("dl", { class: "keys" }, [["/", "find a pod or a node"], ...Object.entries(PAGES).map(([key, page]) => [`g ${key}`, page]), ["j / k", "next, previous row"], ["?", "this list"]]
      .map(([key, text]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)])),
    el("form", { method: "dialog" }, el("button", {}, "Close")));
  document.body.append(shown);
  document.getElementById("help").addEventListener("click", () => shown.showModal());
  let isGoing = false;
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || shown.open) return;
    if (event.target.matches("input, select, textarea, canvas")) return;
    const wasGoing = isGoing;
    isGoing = false;
    if (wasGoing && event.key in PAGES) location.hash = `#/${PAGES[event.key]}`;
    else if (event.key === "/") search.focus();
    else if (event.key === "g") { isGoing = true; return; }
    else if (event.key === "?") shown.showModal();
    else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
    else return;
    event.preventDefault();
  });
}

function step(by) {
  const links = [...document.querySelectorAll("main tbody tr")].map((row) => row.querySelector("a, button")).filter(Boolean);
  const row = document.activeElement.closest("main tbody tr");
  const at = links.findIndex((link) => link.closest("tr") === row);
  links[Math.max(0, Math.min(links.length - 1, at + by))]?.focus();
}
