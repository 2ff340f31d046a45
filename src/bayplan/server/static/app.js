// Which page is shown, and the live connection that all pages share.

import { ask, el, failed, splitKey } from "./dom.js";
import { overviewPage } from "./overview.js";
import { pendingPage } from "./pending.js";
import { nodesPage, nodePage } from "./nodes.js";
import { podPage } from "./pod.js";
import { pluginsPage } from "./plugins.js";
import { configPage } from "./config.js";

const PAGES = {
  overview: ["Overview", overviewPage],
  pending: ["Pending pods", pendingPage],
  nodes: ["Nodes", nodesPage],
  node: ["Node", nodePage],
  pod: ["Pod", podPage],
  plugins: ["Plugins", pluginsPage],
  config: ["Configuration", configPage],
};
const main = document.getElementById("main");
const link = document.getElementById("link");
let shown = { onOverview: null };
let latest = null;
let visit = 0;

async function show() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  const [name, ...rest] = parts[0] in PAGES ? parts : ["overview"];
  const [title, page] = PAGES[name];
  for (const anchor of document.querySelectorAll("nav a")) {
    const isHere = anchor.getAttribute("href") === `#/${name}` || (name === "node" && anchor.hash === "#/nodes");
    if (isHere) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  const mine = ++visit;
  shown.close?.();
  shown = {};
  main.replaceChildren(el("p", { class: "soft" }, "loading …"));
  try {
    const made = await page(rest, { isShown: () => mine === visit });
    if (mine !== visit) return made.close?.();
    shown = made;
    main.replaceChildren(el("h1", {}, made.title || title), ...[made.content].flat());
    document.title = `${made.title || title} · Bayplan`;
    if (latest) shown.onOverview?.(latest);
    made.onShown?.();
  } catch (error) {
    if (mine === visit) main.replaceChildren(el("h1", {}, title), failed(error));
  }
}

function connect() {
  const source = new EventSource("/bayplan/v1/events");
  source.addEventListener("overview", (event) => {
    latest = JSON.parse(event.data);
    setLink("live", `${latest.nodes.toLocaleString("en")} nodes, live`);
    shown.onOverview?.(latest);
  });
  source.addEventListener("error", () => setLink("lost", "connection lost, trying again"));
}

function setLink(state, text) {
  if (link.dataset.state === state && link.textContent === text) return;
  link.dataset.state = state;
  link.textContent = text;
}

document.getElementById("find").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = document.getElementById("find-pod").value.trim();
  if (!text) return;
  const [namespace, name] = splitKey(text);
  location.hash = `#/pod/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", async () => {
  await show();
  main.focus({ preventScroll: true });
});
connect();
show();

export { ask };
