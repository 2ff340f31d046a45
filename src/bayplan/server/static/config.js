// The configuration as it takes effect, and where each value that somebody wrote stands.

import { ask, card, el, table } from "./dom.js";

export async function configPage() {
  const { config, values } = await ask("/config");
  const isAllDefault = values.every((entry) => entry.source === "default");
  const rows = values.map((entry) => [
    entry.path,
    JSON.stringify(entry.value),
    el("span", { class: entry.source === "default" ? "soft" : "" }, entry.source),
  ]);
  return {
    content: [
      card("Values", table(isAllDefault ? "Everything is a default." : "", ["path", "value", "source"], rows)),
      card("As a document", el("pre", { tabindex: 0 }, JSON.stringify(config, null, 2))),
    ],
  };
}
