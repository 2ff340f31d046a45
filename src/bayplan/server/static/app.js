// Which page is shown, by the address, and the live connection that all pages share.

import { el, failed, passTime, sentence } from "./dom.js";
import { moment, plural, setNow } from "./format.js";
import { listenToKeys } from "./keyboard.js";
import { ask } from "./questions.js";
import { searchBox } from "./search.js";

// A page's script is fetched when it is first shown: the first content waits for a third of the files.
const PAGES = {
  overview: ["Overview", async () => (await import("./pages/overview.js")).overviewPage],
  pods: ["Pods", async () => (await import("./pages/pods.js")).podsPage],
  decisions: ["Decisions", async () => (await import("./pages/decisions.js")).decisionsPage],
  queue: ["Queue", async () => (await import("./pages/queue.js")).queuePage],
  pending: ["Queue", async () => (await import("./pages/queue.js")).queuePage],
  preemptions: ["Preemptions", async () => (await import("./pages/preemptions.js")).preemptionsPage],
  nodes: ["Nodes", async () => (await import("./pages/nodes.js")).nodesPage],
  node: ["Node", async () => (await import("./pages/node.js")).nodePage],
  pod: ["Pod", async () => (await import("./pages/pod.js")).podPage],
  plugins: ["Plugins", async () => (await import("./pages/plugins.js")).pluginsPage],
  config: ["Configuration", async () => (await import("./pages/config.js")).configPage],
};
const PARENT = { node: "nodes", pod: "pods", pending: "queue" };
const main = document.getElementById("main");
const link = document.getElementById("link");
const AGAIN = 3000;
// The scheduler sends figures every second.
const SILENT = 10_000;
let shown = {};
let latest = null;
let visit = 0;
let source = null;
let heard = 0;

function place() {
  const [path, words = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  const [name, ...rest] = Object.hasOwn(PAGES, parts[0]) ? parts : ["overview"];
  // The page of one thing without its name is the list of all of them.
  if ((name === "node" || name === "pod") && !rest[0]) return { name: PARENT[name], path: [], query: {} };
  if (name === "pod" && rest.length === 1) rest.unshift("default");
  return { name, path: rest, query: Object.fromEntries(new URLSearchParams(words)) };
}

const titleRow = (text, controls) => el("div", { class: "title" }, el("h1", {}, text), controls);

async function show() {
  const { name, path, query } = place();
  const [title, load] = PAGES[name];
  for (const anchor of document.querySelectorAll("nav a")) {
    if (anchor.hash === `#/${PARENT[name] || name}`) {
      anchor.setAttribute("aria-current", "page");
      anchor.parentNode.scrollLeft = anchor.offsetLeft - anchor.parentNode.clientWidth / 2 + anchor.offsetWidth / 2;
    }
    else anchor.removeAttribute("aria-current");
  }
  const mine = ++visit;
  shown.close?.();
  shown = {};
  main.dataset.page = name;
  main.setAttribute("aria-busy", "true");
  main.replaceChildren(titleRow(title), el("p", { class: "soft" }, "loading …"));
  const context = { path, query, isShown: () => mine === visit, setQuery: (change) => mine === visit && setQuery(change) };
  try {
    const page = await load().catch(() => { throw new Error(`the scheduler at ${location.host} does not answer`); });
    if (mine !== visit) return;
    const made = await page(context);
    if (mine !== visit) return made.close?.();
    shown = made;
    main.replaceChildren(titleRow(made.title || title, made.controls), ...[made.content].flat(Infinity).filter(Boolean));
    document.title = `${made.title || title} · Bayplan`;
    if (latest) shown.onTick?.(latest);
    made.onShown?.();
  } catch (error) {
    if (mine === visit) main.replaceChildren(titleRow(title), failed(error));
  }
  if (mine === visit) main.setAttribute("aria-busy", "false");
}

// Filters are part of the address, so that it can be sent to somebody; the page itself stays as it is.
function setQuery(change) {
  const { name, path, query } = place();
  const words = new URLSearchParams(Object.entries({ ...query, ...change }).filter(([, value]) => value));
  history.replaceState(null, "", `#/${[name, ...path].map(encodeURIComponent).join("/")}${words.size ? `?${words}` : ""}`);
}

function connect() {
  const mine = (source = new EventSource("/bayplan/v1/events"));
  heard = performance.now();
  mine.addEventListener("overview", (event) => {
    heard = performance.now();
    latest = JSON.parse(event.data);
    setNow(latest.time);
    setLink("live", `${plural(latest.nodes, "node")}, live`);
    passTime();
    shown.onTick?.(latest);
  });
  mine.addEventListener("error", () => {
    // A server that refuses ends the stream for good, and says why when it is asked.
    if (mine.readyState === EventSource.CLOSED) setTimeout(connect, AGAIN);
    return lose(`${location.host} does not answer, trying again`);
  });
}

// What is shown is not of now any more, and says of when it is; a server that answers says itself what is the matter.
async function lose(why) {
  const asOf = latest ? `; what is shown was so at ${moment(latest.time)}` : "";
  if (link.dataset.state !== "lost") setLink("lost", why + asOf);
  const refusal = await ask("/overview").then(() => "", (error) => error.message);
  if (link.dataset.state === "lost" && refusal && !refusal.includes(location.host)) link.replaceChildren(el("span", {}, sentence(refusal), asOf));
}

// How long ago things are goes on without the scheduler. One that was stopped, or that is out of reach, ends no stream.
function watch() {
  passTime();
  if (link.dataset.state === "lost" || performance.now() - heard < SILENT) return;
  source.close();
  connect();
  lose(`no word from ${location.host} for ${SILENT / 1000} s, trying again`);
}

function setLink(state, text) {
  if (link.dataset.state === state && link.textContent === text) return;
  link.dataset.state = state;
  link.textContent = text;
}

function useTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  dispatchEvent(new Event("themechange"));
}

document.getElementById("theme").addEventListener("click", () => {
  const isDark = (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  localStorage.setItem("bayplan-theme", isDark ? "light" : "dark");
  useTheme(localStorage.getItem("bayplan-theme"));
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", async () => {
  search.clear();
  await show();
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
});
useTheme(localStorage.getItem("bayplan-theme"));
const search = searchBox();
document.getElementById("search").append(...search.content);
listenToKeys(search);
connect();
setInterval(watch, 1000);
await show();
// The scripts of the other pages, one after the other, so that they are there when the scheduler is not.
for (const [, load] of Object.values(PAGES)) await load().catch(() => {});
