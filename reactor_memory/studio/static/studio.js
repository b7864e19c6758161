// Everything works without this file, but for streaming: it swaps parts of a page instead of loading all of it.
const say = (text) => { document.getElementById("news").textContent = text; };
let before = null; // the row whose words are marked, and what it was

async function fragmentOf(address, part, signal) {
  const answer = await fetch(address, { headers: { "x-fragment": part }, signal });
  const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
  return { found: parsed.getElementById(part), problem: parsed.querySelector(".problem")?.textContent };
}

async function swap(address, part, signal) {
  try {
    const { found, problem } = await fragmentOf(address, part, signal);
    if (!found) { say(problem ?? "This cannot be shown."); return null; }
    document.getElementById(part).replaceWith(found);
    return found;
  } catch (error) {
    if (error.name !== "AbortError") say("The Studio does not answer. Is it still running?");
    return null;
  }
}

// -- a fact or a message is chosen: its row is marked ----------------------------------------------------------------

function mark(aside, scrolls = true) {
  if (before) { before.row.classList.remove("chosen"); before.text?.replaceChildren(before.content); }
  document.querySelectorAll(".message.chosen").forEach((row) => row.classList.remove("chosen"));
  const row = document.getElementById(aside.dataset.chosen ?? "");
  before = null;
  if (!row) return;
  const words = aside.dataset.words;
  const text = [...row.querySelectorAll(".text")].find((each) => words && each.textContent.includes(words));
  before = { row, text, content: text?.textContent };
  row.classList.add("chosen");
  const at = text ? text.textContent.indexOf(words) : -1;
  if (at >= 0) {
    const marked = document.createElement("mark");
    marked.textContent = words;
    text.replaceChildren(before.content.slice(0, at), marked, before.content.slice(at + words.length));
  }
  if (scrolls) row.scrollIntoView({ block: "center" });
}

document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-fragment]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  if (link.hash && !document.getElementById(link.hash.slice(1))) return; // its message is on another page
  event.preventDefault();
  const aside = await swap(link.href, link.dataset.fragment);
  if (!aside) return;
  history.pushState(null, "", link.href);
  mark(aside);
  aside.focus({ preventScroll: true });
});
addEventListener("popstate", () => location.reload());

// -- forms that show what they say at once ---------------------------------------------------------------------------

let waiting, running;
function live(form) {
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    running?.abort();
    running = new AbortController();
    const address = `${form.getAttribute("action")}?${new URLSearchParams(new FormData(form))}`;
    if (await swap(address, form.dataset.live, running.signal)) history.replaceState(null, "", address);
  }, 80);
}
for (const form of document.querySelectorAll("form[data-live]")) {
  form.addEventListener("input", () => { if (form.checkValidity()) live(form); });
  form.addEventListener("submit", (event) => { event.preventDefault(); live(form); });
}

document.querySelector(".chat #log .message:last-child")?.scrollIntoView({ block: "center" });

// -- chat: the answer piece by piece ---------------------------------------------------------------------------------

async function* eventsOf(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const [name, data] = event.split("\n").map((line) => line.slice(line.indexOf(":") + 2));
      yield { name, data: JSON.parse(data) };
    }
  }
}

function bubble(role, text) {
  const row = document.createElement("li");
  row.className = `message ${role}`;
  row.append(document.createElement("span"), document.createElement("p"));
  row.lastChild.className = "text";
  row.lastChild.textContent = text;
  document.querySelector("#log .timeline").append(row);
  row.scrollIntoView({ block: "nearest" });
  return row.lastChild;
}

for (const form of document.querySelectorAll("form[data-chat]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = new URLSearchParams(new FormData(form)), field = form.elements.text;
    bubble("user", field.value);
    const shown = bubble("assistant", "");
    field.value = "";
    form.querySelector("button").disabled = true;
    try {
      const answer = await fetch(form.action, { method: "POST", body, headers: { accept: "text/event-stream" } });
      if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) throw new Error("refused");
      for await (const { name, data } of eventsOf(answer)) {
        if (name === "piece") shown.append(data);
        if (name === "failed") { shown.className = "problem"; shown.textContent = data; }
        if (name === "done") { await swap(form.dataset.chat, "log"); say("The answer is complete."); }
      }
    } catch { shown.className = "problem"; shown.textContent = "This was not answered. What you said may be stored: reload the page."; }
    form.querySelector("button").disabled = false;
    field.focus();
  });
  form.elements.text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); form.requestSubmit(); }
  });
}

// -- what comes later, and keys --------------------------------------------------------------------------------------

async function poll() {
  const result = document.querySelector("[data-poll]");
  if (result) {
    if (result.dataset.every) await new Promise((done) => setTimeout(done, Number(result.dataset.every)));
    const found = await swap(result.dataset.poll, result.id);
    if (found?.id === "timeline") mark(document.getElementById("aside"), false);
    setTimeout(poll, 500);
  }
}
poll();
for (const later of document.querySelectorAll("[data-load]"))
  swap(later.dataset.load, later.id).then((found) => found?.id === "timeline" && mark(document.getElementById("aside"), false));

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const found = [...document.querySelectorAll("[data-key]")].find((each) => each.dataset.key === event.key);
  if (found) { event.preventDefault(); found.matches("a") ? found.click() : found.focus(); }
});
