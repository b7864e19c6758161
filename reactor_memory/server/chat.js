const [token, agent, agents, log, form, input, label] =
  ["token", "agent", "agents", "log", "form", "message", "session"].map((id) => document.getElementById(id));
let sessionId = null;

// `chat-server --dev` prints an address with a token behind the #, which no browser sends.
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  token.value = given;
  history.replaceState(null, "", location.pathname);
}

function userId() {
  try {
    return JSON.parse(atob(token.value.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"))).sub;
  } catch {
    return "";
  }
}

const key = () => `chatSession_${userId()}_${agent.value}`;

async function send(method, path, body) {
  const headers = { authorization: `Bearer ${token.value}`, "content-type": "application/json" };
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  if (!response.ok) throw new Error((await response.json()).detail);
  return response;
}

const call = async (...request) => (await send(...request)).json();

function show(kind, text) {
  const line = document.createElement("p");
  line.className = kind;
  line.textContent = text;
  log.append(line);
  return line;
}

// The cache is a hint: the server verifies it. It is written after the server has answered, and never with an id that
// nobody could verify.
async function resolveSession() {
  if (!token.value) return show("note", "Paste a token of yours.");
  const cached = localStorage.getItem(key());
  const found = await call("POST", "/api/sessions/resolve", { agent_id: agent.value, cached_id: cached });
  if (found.source !== "unverified") localStorage.setItem(key(), found.session_id);
  agents.replaceChildren(...(await call("GET", "/api/agents")).map((id) => new Option(id)));
  await open(found.session_id, found.source);
}

async function open(id, source) {
  sessionId = id;
  label.textContent = `${id.slice(0, 8)} (${source})`;
  log.replaceChildren();
  if (source === "new") return;
  for (const each of await call("GET", `/api/sessions/${id}/messages`)) show(each.role, each.content);
}

// Server-sent events of a POST, which EventSource cannot do.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (text + value.replaceAll("\r", "")).split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const lines = part.split("\n");
      const of = (name) => lines.filter((line) => line.startsWith(name)).map((line) => line.slice(name.length).trim());
      yield [of("event:")[0], JSON.parse(of("data:").join("\n"))];
    }
  }
}

const tell = (error) => show("note", error.message);

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const message = input.value.trim();
  if (!message || !sessionId) return;
  input.value = "";
  show("user", message);
  const line = show("assistant", "");
  try {
    const body = { message, session_id: sessionId, agent_id: agent.value, stream: true };
    for await (const [name, value] of events(await send("POST", "/api/chat", body))) {
      if (name === "piece") line.textContent += value.text;
      if (name === "error") throw new Error(value.detail);
      if (name === "done" && !value.is_active) show("note", "Another session is active by now: reload to go on there.");
    }
  } catch (error) { tell(error); }
});

document.getElementById("new").addEventListener("click", async () => {
  try {
    const started = await call("POST", "/api/sessions/new", { agent_id: agent.value });
    localStorage.setItem(key(), started.session_id);
    await open(started.session_id, "new");
  } catch (error) { tell(error); }
});

for (const choice of [token, agent]) choice.addEventListener("change", () => resolveSession().catch(tell));
resolveSession().catch(tell);
