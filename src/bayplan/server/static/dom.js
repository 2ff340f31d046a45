// Elements out of plain values. Strings become text nodes and nothing else, so nothing from a cluster is ever parsed.

export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function svg(tag, properties = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

export const card = (title, ...children) =>
  el("section", { class: "card", "aria-label": title }, title ? el("h2", {}, title) : null, ...children);

export function table(caption, heads, rows) {
  const head = heads.map((text) => el("th", { scope: "col", class: text.startsWith("#") ? "num" : null }, text.replace(/^#/, "")));
  return el("div", { class: "scroll" },
    el("table", {},
      caption ? el("caption", {}, caption) : null,
      el("thead", {}, el("tr", {}, head)),
      el("tbody", {}, rows.map((row) => el("tr", { class: row.class }, (row.cells || row).map((cell, place) =>
        el("td", { class: heads[place]?.startsWith("#") ? "num" : null }, cell)))))));
}

// One path segment each: a name with odd letters stays one name.
export const podLink = (key, text = key) => {
  const [namespace, name] = splitKey(key);
  return el("a", { href: `#/pod/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}` }, text);
};
export const nodeLink = (name) => el("a", { href: `#/node/${encodeURIComponent(name)}` }, name);
export const splitKey = (key) => {
  const slash = key.lastIndexOf("/");
  return slash < 0 ? ["default", key] : [key.slice(0, slash), key.slice(slash + 1)];
};

export const number = (value) => Number(value).toLocaleString("en");
export const ago = (time, now = Date.now() / 1000) => {
  const seconds = Math.max(0, now - time);
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  return `${Math.round(seconds / 3600)} h ago`;
};
export const clock = (time) => new Date(time * 1000).toLocaleTimeString();
export const milliseconds = (seconds) => `${(seconds * 1000).toFixed(seconds < 0.1 ? 2 : 0)} ms`;
export const duration = (seconds) => {
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 0.1) return `${(seconds * 1000).toPrecision(2)} ms`;
  return seconds < 100 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds / 60)} min`;
};
// As people write amounts: milli-cpu as cores, bytes in powers of 1024, everything else as it is.
export const amount = (resource, value) => {
  if (resource === "cpu") return value % 1000 ? `${number(value)}m` : number(value / 1000);
  if (resource !== "memory" && !resource.endsWith("storage") && !resource.startsWith("hugepages")) return number(value);
  let unit = 0;
  while (value >= 1024 && unit < 5) { value /= 1024; unit += 1; }
  return `${Number(value.toFixed(1)).toLocaleString("en")}${["", "Ki", "Mi", "Gi", "Ti", "Pi"][unit]}`;
};
// A bar for the eye; the number beside it is for everybody.
export const meter = (share) => {
  const bar = el("span", { class: "meter", "aria-hidden": "true" }, el("span", {}));
  bar.firstChild.style.width = `${Math.round(100 * Math.min(1, share))}%`;
  return bar;
};
export const outcomeClass = (outcome) =>
  ({ bound: "good", unschedulable: "bad", error: "bad" })[outcome] || "soft";

export async function ask(path, options) {
  const response = await fetch(`/bayplan/v1${path}`, { credentials: "same-origin", ...options });
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.message || `the scheduler answered ${response.status}`);
  return body;
}

export const failed = (error) => el("p", { class: "bad", role: "alert" }, `${error.message || error}`);
