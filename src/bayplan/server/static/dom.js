// Elements out of plain values. Strings become text nodes and nothing else, so nothing from a cluster is ever parsed.

import { ago, inFull, meaning, number } from "./format.js";

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

// A head that begins with # is a column of numbers. A row is a list of cells, or { cells, key, class }.
export function table(caption, heads, rows, { id, stack = true, long = false } = {}) {
  const names = heads.map((text) => text.replace(/^#/, ""));
  const style = heads.map((text) => (text.startsWith("#") ? "num" : null));
  const head = names.map((text, place) => el(text ? "th" : "td", { scope: text ? "col" : null, class: style[place] }, text));
  const body = rows.map((row) => el("tr", { class: row.class, "data-key": row.key },
    (row.cells || row).map((cell, place) => el("td", { class: style[place], "data-head": names[place] }, cell))));
  const label = caption || names.filter(Boolean).join(", ");
  return el("div", long ? { class: "scroll long" } : { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    el("table", { id, class: stack ? "stack" : null }, caption ? el("caption", {}, caption) : null, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
}

// Replace what a holder shows; keep focus, scroll positions and what is unfolded, and mark the rows that were not there
// before.
export function refill(holder, ...children) {
  const active = holder.contains(document.activeElement) ? document.activeElement : null;
  const mark = active && (active.id ? `#${CSS.escape(active.id)}` : active.getAttribute("href") ? `a[href="${CSS.escape(active.getAttribute("href"))}"]` : active.dataset.focus ? `[data-focus="${CSS.escape(active.dataset.focus)}"]` : active.tagName === "SUMMARY" ? `details[data-key="${CSS.escape(active.parentNode.dataset.key)}"] > summary` : null);
  const scrolled = [...holder.querySelectorAll(".scroll")].map((item) => [item.scrollLeft, item.scrollTop]);
  const known = new Set([...holder.querySelectorAll("tr[data-key]")].map((row) => row.dataset.key));
  const unfolded = new Set([...holder.querySelectorAll("details[open]")].map((item) => item.dataset.key));
  holder.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  if (known.size) for (const row of holder.querySelectorAll("tr[data-key]")) if (!known.has(row.dataset.key) && !row.matches(".inside")) row.classList.add("fresh");
  [...holder.querySelectorAll(".scroll")].forEach((item, place) => { if (scrolled[place]) [item.scrollLeft, item.scrollTop] = scrolled[place]; });
  for (const item of holder.querySelectorAll("details")) if (unfolded.has(item.dataset.key)) item.open = true;
  if (mark) holder.querySelector(mark)?.focus({ preventScroll: true });
}

// One path segment each: a name with odd letters stays one name.
export const address = (page, path = [], query = {}) => {
  const words = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return `#/${[page, ...path].map(encodeURIComponent).join("/")}${words.size ? `?${words}` : ""}`;
};
export const podLink = (key, text = key) => el("a", { class: "name", href: address("pod", splitKey(key)) }, text);
export const nodeLink = (name) => el("a", { class: "name", href: address("node", [name]) }, name);
export const splitKey = (key) => {
  const slash = key.lastIndexOf("/");
  return slash < 0 ? ["default", key] : [key.slice(0, slash), key.slice(slash + 1)];
};
export const when = (time) => el("time", { datetime: new Date(time * 1000).toISOString(), title: inFull(time), "data-ago": time }, ago(time));
// How long ago things were goes on, also on pages whose content stays as it is.
export function passTime() {
  for (const item of document.querySelectorAll("time[data-ago]")) {
    const text = ago(Number(item.dataset.ago));
    if (item.textContent !== text) item.firstChild.data = text;
  }
}
export const badge = (word, text = word) => el("span", { class: `badge ${meaning(word)}` }, text);
// A bar for the eye; the number beside it is for everybody.
export const meter = (share, hue = "") => {
  const bar = el("span", { class: `meter ${hue}`, "aria-hidden": "true" }, el("span", {}));
  bar.firstChild.style.width = `${Math.round(100 * Math.max(0, Math.min(1, share)))}%`;
  return bar;
};
export const folded = (title, text, key = title) => el("details", { "data-key": key }, el("summary", {}, title), el("p", { class: "prose" }, text));
// A sentence whose names stand between backticks.
export const sentence = (text) => {
  const parts = text.split("`");
  return parts.length % 2 ? parts.map((part, place) => (place % 2 ? el("code", {}, part) : part)) : text;
};
// A name in camel case breaks between its words.
export const words = (name) => name.split(/(?<=[a-z])(?=[A-Z])/).map((word, place) => [place ? el("wbr") : null, word]);
export const chip = (name, count, isPressed, onclick) =>
  el("button", { type: "button", class: meaning(name), "data-focus": name, "aria-pressed": String(isPressed), onclick }, name, " ", el("b", {}, number(count)));
export const tile = (name, value, hue = "") => {
  const [figure, ...unit] = String(value).split(" ");
  return el("div", { class: `tile ${hue}` }, el("dt", {}, name), el("dd", {}, figure, unit.length ? el("small", {}, ` ${unit.join(" ")}`) : null));
};
export const failed = (error) => el("p", { class: "refuse", role: "alert" }, sentence(`${error.message || error}`));
export const note = (text) => el("p", { class: "soft" }, text);

export const field = (id, label, control) => el("span", { class: "field" }, el("label", { for: id }, label), control);
export const select = (id, label, options, value, onchange) => field(id, label,
  el("select", { id, onchange: (event) => onchange(event.target.value) }, options.map(([key, text]) => el("option", { value: key, selected: key === value }, text))));

export function pager(state, limit, go) {
  const first = state.offset + 1, last = Math.min(state.offset + limit, state.matching);
  if (state.matching <= limit) return null;
  const button = (text, offset, isOff) => el("button", { type: "button", disabled: isOff, "data-focus": text, onclick: () => go(offset) }, text);
  return el("div", { class: "pager" },
    button("Previous", Math.max(0, state.offset - limit), state.offset === 0),
    el("span", {}, `${first.toLocaleString("en")}–${last.toLocaleString("en")} of ${state.matching.toLocaleString("en")}`),
    button("Next", state.offset + limit, last >= state.matching));
}
