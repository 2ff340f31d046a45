// Numbers and times as people write them.

export const number = (value) => Number(value).toLocaleString("en");
// The time of the scheduler: the clock of whoever looks may be wrong, and seconds that are said to have passed are not.
let ahead = 0;
export const setNow = (time) => {
  const by = time - Date.now() / 1000;
  if (Math.abs(by - ahead) > 2) ahead = Math.abs(by) > 2 ? by : 0;
};
export const now = () => Date.now() / 1000 + ahead;
export const since = (time) => Math.max(0, now() - time);
export const ago = (time) => `${span(since(time))} ago`;
export const span = (seconds) => {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
};
export const clock = (time) => new Date(time * 1000).toLocaleTimeString("en-GB");
const day = (time) => new Date(time * 1000).toLocaleDateString("sv-SE");
// With its date where that is another one than today's.
export const moment = (time) => (day(time) === day(now()) ? clock(time) : `${day(time)} ${clock(time)}`);
export const inFull = (time) => `${day(time)} ${new Date(time * 1000).toLocaleTimeString("en-GB", { timeZoneName: "short" })}`;
export const minute = (time) => clock(time).slice(0, 5);
export const duration = (seconds) => {
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 0.00995) return `${(seconds * 1000).toFixed(1)} ms`;
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  return seconds < 100 ? `${seconds.toFixed(1)} s` : span(seconds);
};
export const short = (value) => {
  if (value >= 1e6) return `${(value / 1e6).toPrecision(2)}M`;
  if (value >= 1e4) return `${Math.round(value / 1e3)}k`;
  return value >= 10 || Number.isInteger(value) ? number(Math.round(value)) : value.toFixed(1);
};
// As people write amounts: cpu in cores, bytes in powers of 1024, everything else as it is.
export const amount = (resource, value) => {
  if (resource === "cpu") return (value / 1000).toLocaleString("en", { maximumFractionDigits: value < 1000 ? 3 : value < 10000 ? 2 : value < 1e6 ? 1 : 0 });
  if (resource !== "memory" && !resource.endsWith("storage") && !resource.startsWith("hugepages")) return number(value);
  let unit = 0;
  while (value >= 1024 && unit < 5) { value /= 1024; unit += 1; }
  return `${Number(value.toFixed(1)).toLocaleString("en")} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
};
export const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;
export const kept = (text, most = 120) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// Colour by meaning: use of resources, waiting, refusal.
const MEANINGS = {
  placed: "use", bound: "use", binding: "use", "being scheduled": "", "under way": "",
  active: "wait", backoff: "wait", gated: "wait", held: "wait", pending: "wait",
  unschedulable: "refuse", unserved: "refuse", error: "refuse", elsewhere: "use",
};
// Where the queue has a pod, in the words of the list of pods.
const PLACES = { "in-flight": "being scheduled", permit: "held", elsewhere: "unserved" };
export const stateAt = (place) => PLACES[place] || place;
export const meaning = (word) => MEANINGS[word] || "";
