// The configuration as it takes effect, and where each value that somebody wrote stands.

import { card, el, table } from "../dom.js";
import { number, plural } from "../format.js";
import { ask } from "../questions.js";

const MOST = 120;

export async function configPage() {
  const { config, values } = await ask("/config");
  const written = values.filter((entry) => entry.source !== "default");
  const shown = (written.length ? written : values).slice(0, MOST);
  const rows = shown.map((entry) => [
    el("code", { class: "name" }, entry.path),
    el("code", { class: "name" }, JSON.stringify(entry.value)),
    el("span", { class: entry.source === "default" ? "soft" : "" }, entry.source),
  ]);
  const said = written.length ? `${plural(written.length, "value")} of ${number(values.length)} set; the others are defaults.` : "Everything is a default.";
  const cut = shown.length < (written.length || values.length) ? ` The first ${number(shown.length)} are listed; the document has all of them.` : "";
  return {
    content: [
      card("Values", table(said + cut, ["path", "value", "source"], rows)),
      card("As a document", el("pre", { tabindex: 0, role: "region", "aria-label": "The configuration as a document" }, JSON.stringify(config, null, 2))),
    ],
  };
}
