// What would let a pod run or move it, tried on a copy of the cluster, and a form for what-ifs of one's own.

import { card, el, failed, field, folded, note, sentence } from "../dom.js";
import { plural } from "../format.js";
import { ask, post } from "../questions.js";

const COMMANDS = 8;

export async function showChanges(path, holder) {
  try {
    const found = await ask(`${path}/changes`);
    const said = (entries) => (entries || []).map((entry) => [sentence(entry.sentence), ...commandLines(entry)]);
    const title = found.isPlaced ? "What would move it" : "What would let it run";
    const headed = [["", said(found.suggestions)], ["Nearest misses", said(found.nearest)], ["Without a plugin", said(found.without)]].filter(([, list]) => list.length);
    const lists = headed.map(([head, list]) => [head ? el("h3", {}, head) : null, el("ul", {}, list.map((parts) => el("li", {}, ...parts)))]);
    holder.replaceChildren(lists.length ? card(title, ...lists, note(`Each was tried on a copy of the cluster. ${found.note || ""}`)) : "");
  } catch (error) { holder.replaceChildren(failed(error)); }
}

// How it is done: commands for a shell, and what no command does.
export function commandLines(entry, most = COMMANDS) {
  const hidden = (entry.commands || []).length - most;
  const commands = (entry.commands || []).slice(0, most).map((command) => el("code", { class: "command" }, command.split(" ").flatMap((word) => [el("span", {}, word), " "])));
  return [...commands, hidden > 0 ? note(`and ${plural(hidden, "more such command")}`) : null, entry.how ? note(entry.how) : null].filter(Boolean);
}

export function whatIfCard(key) {
  const answer = el("div", { role: "status" });
  const input = (id, label, placeholder) => field(id, label, el("input", { id, placeholder, autocomplete: "off" }));
  const form = el("form", { class: "controls", onsubmit: async (event) => {
    event.preventDefault();
    const words = (id) => form.querySelector(`#${id}`).value.trim().split(/[\s,]+/).filter(Boolean);
    const scenario = { drain: words("wi-drain"), disable: words("wi-disable"), addNodes: words("wi-like").map((like) => ({ like, count: 1 })) };
    answer.replaceChildren(note("playing …"));
    try { answer.replaceChildren(...played(await post("/whatif", scenario), key)); }
    catch (error) { answer.replaceChildren(failed(error)); }
  } },
  input("wi-drain", "drain", "node names"), input("wi-like", "one more like", "node names"), input("wi-disable", "without plugin", "plugin names"),
  el("button", { type: "submit" }, "What if?"));
  return card("What if", form, answer);
}

function played(result, key) {
  const mine = [...(result.placed || []), ...(result.pending || [])].find((entry) => entry.pod === key);
  const about = mine ? `${key} ${mine.node ? `would go to ${mine.node}` : "would stay pending"}.` : "";
  const gone = (result.evicted || []).filter((entry) => entry.by === key).map((entry) => entry.pod);
  return [el("p", {}, result.verdict), about ? el("p", { class: mine.node ? "use" : "refuse" }, about) : null,
    mine?.message ? folded("In kube-scheduler's words", mine.message) : null,
    gone.length ? el("p", {}, `In its place would leave: ${gone.join(", ")}.`) : null,
    result.note ? note(result.note) : null].filter(Boolean);
}
