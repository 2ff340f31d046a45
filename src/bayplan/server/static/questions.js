// Questions to the scheduler: one place that fetches, and a helper that repeats a question while its page is shown.

export async function ask(path, query = {}, options = {}) {
  const words = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== undefined && value !== null));
  let response;
  try {
    response = await fetch(`/bayplan/v1${path}${words.size ? `?${words}` : ""}`, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error(`the scheduler at ${location.host} does not answer`);
  }
  const body = await response.json().catch(() => ({}));
  if (response.status === 401) throw new Error("this session is not known any more: open the address that `bayplan up` or `bayplan dashboard` printed");
  if (!response.ok) throw new Error(body.message || `the scheduler answered ${response.status}`);
  return body;
}

export const post = (path, value) =>
  ask(path, {}, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(value) });

// Runs `work` at once, and then every so many seconds while the page is shown and visible. A newer run replaces an
// older one that has not ended; a failure is shown and the next run tries again.
export function repeated(context, seconds, work, onError) {
  let last = 0, running = null;
  async function run() {
    running?.abort();
    const mine = (running = new AbortController());
    last = performance.now();
    try { await work(mine.signal); }
    catch (error) { if (error.name !== "AbortError" && context.isShown()) onError(error); }
    finally { if (running === mine) running = null; }
  }
  return {
    now: run,
    tick() { if (!running && !document.hidden && !isSelecting() && performance.now() - last > seconds * 1000 - 300) run(); },
    stop() { running?.abort(); },
  };
}

// What is selected, to be copied, stays there until it is let go.
const isSelecting = () => {
  const chosen = getSelection();
  return !chosen.isCollapsed && document.getElementById("main").contains(chosen.anchorNode);
};

export const debounced = (milliseconds, work) => {
  let timer = 0;
  return (...words) => { clearTimeout(timer); timer = setTimeout(() => work(...words), milliseconds); };
};
