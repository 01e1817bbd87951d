// Keeps a page up to date and answers to the keyboard. The page is whole without it: whatever it shows comes from the
// server as HTML. It asks for a page or rows anew when an event says that something changed, and puts them in place.

const main = document.getElementById("main");
const skew = Date.now() - Date.parse(document.documentElement.dataset.now); // of this machine's clock, in ms
const now = () => Date.now() - skew;

// --- times -------------------------------------------------------------------------------------------------------------

const local = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const zoned = new Date().getTimezoneOffset() !== 0;

function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function tick() {
  for (const t of document.querySelectorAll("time[data-ago]")) setText(t, span(now() - Date.parse(t.dateTime)));
  for (const t of document.querySelectorAll("time[data-ahead]")) {
    const ms = Date.parse(t.dateTime) - now();
    setText(t, ms > 0 ? `in ${span(ms)}` : "now");
  }
}

// localize adds the reader's own time to each in UTC.
function localize(root) {
  if (!zoned) return;
  for (const t of root.querySelectorAll("time[data-clock]:not([data-local])")) {
    t.dataset.local = "";
    const mine = document.createElement("span");
    mine.className = "local";
    mine.textContent = ` (${local.format(new Date(t.dateTime))} local)`;
    t.after(mine);
  }
  for (const t of root.querySelectorAll("time[data-ago], time[data-ahead]")) {
    t.title = `${t.title.split(" · ")[0]} · ${local.format(new Date(t.dateTime))} local`;
  }
}

// --- putting news in place ---------------------------------------------------------------------------------------------

async function fetchPage(url) {
  const response = await fetch(url, { headers: { Accept: "text/html" } });
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

const rows = "tbody[data-key], tr[data-id]";
const same = (a, b) => a.dataset.key === b.dataset.key && a.dataset.id === b.dataset.id;

// swap replaces an element, and keeps the keyboard where it was.
function swap(old, fresh) {
  const active = document.activeElement;
  const inside = old.contains(active);
  const row = inside && active.closest(rows);
  const tag = active.tagName;
  const left = old.scrollLeft;
  const adopted = document.adoptNode(fresh);
  if (old.classList.contains("current")) adopted.classList.add("current");
  localize(adopted);
  old.replaceWith(adopted);
  adopted.scrollLeft = left;
  if (!inside) return;
  const again = row ? [adopted, ...adopted.querySelectorAll(rows)].find((other) => same(row, other)) : adopted;
  again?.querySelector(tag)?.focus({ preventScroll: true });
  if (row) again?.classList.add("current");
}

// place takes the parts of a page that live from a new version of it.
function place(page) {
  const summary = document.querySelector("[data-summary]")?.dataset.summary;
  for (const old of document.querySelectorAll("[data-live]")) {
    const fresh = page.getElementById(old.id);
    if (fresh && fresh.outerHTML !== old.outerHTML) swap(old, fresh);
  }
  document.title = page.title;
  const icon = document.querySelector("link[rel=icon]");
  const newIcon = page.querySelector("link[rel=icon]").getAttribute("href");
  if (icon.getAttribute("href") !== newIcon) icon.setAttribute("href", newIcon);
  const said = document.querySelector("[data-summary]")?.dataset.summary;
  if (said && said !== summary) setText(document.getElementById("said"), said);
  tick();
}

const rowOf = (key) => document.querySelector(`tbody[data-key="${CSS.escape(key)}"]`);

async function placeRows(keys) {
  const query = new URLSearchParams(keys.map((key) => ["key", key]));
  const page = await fetchPage(`/rows?${query}`);
  for (const fresh of page.querySelectorAll("tbody[data-key]")) {
    const old = rowOf(fresh.dataset.key);
    if (!old) continue;
    fresh.classList.add("fresh");
    swap(old, fresh);
  }
  tick();
}

// --- when ----------------------------------------------------------------------------------------------------------------

// ms between an event and the update: what changes meanwhile comes together. The server shares what it renders for a
// second, so it is at least that; chance keeps all who look from asking at once.
const pause = () => 1000 + 1000 * Math.random();
const idle = 30000; // ms after which the page is asked for anew in any case: time alone changes states

const dirty = new Set(); // keys of rows
let whole = false; // everything
let working = false;
let timer = 0;
let lastWhole = Date.now();

function schedule(wait = pause()) {
  if (!timer && !document.hidden) timer = setTimeout(update, wait);
}

async function update() {
  timer = 0;
  if (working) return schedule();
  working = true;
  const all = whole || Date.now() - lastWhole > idle;
  const keys = [...dirty].slice(0, 100);
  try {
    if (all) {
      whole = false;
      dirty.clear();
      place(await fetchPage(location.href));
      lastWhole = Date.now();
    } else if (keys.length) {
      for (const key of keys) dirty.delete(key);
      await placeRows(keys);
    }
    connection("live");
  } catch {
    whole = true; // what was missed comes with the next one
    connection("lost");
  }
  working = false;
  if (whole || dirty.size) schedule();
}

function refresh() {
  whole = true;
  clearTimeout(timer);
  timer = 0;
  return update();
}

// --- events -------------------------------------------------------------------------------------------------------------

let lostAt = "";

function connection(state) {
  const element = document.getElementById("connection");
  if (element.dataset.connection === state) return;
  if (state === "lost") lostAt = new Date(now()).toISOString().slice(11, 19);
  element.dataset.connection = state;
  setText(element, state === "live" ? "live" : `not live since ${lostAt} UTC: what is shown may be out of date`);
  // A page that is not live says nothing about now.
  document.title = document.title.replace(/^\(\?\) /, "");
  if (state === "lost") document.title = `(?) ${document.title}`;
}

function listen() {
  const series = main.dataset.page === "series";
  const query = series ? `?${new URLSearchParams({ target: main.dataset.target, scenario: main.dataset.scenario })}` : "";
  const events = new EventSource(`/api/v1/events${query}`);
  events.addEventListener("open", () => {
    connection("live");
    whole = true; // what happened before is in no event
    schedule();
  });
  events.addEventListener("error", () => connection("lost"));
  events.addEventListener("result", (event) => {
    if (series) {
      whole = true;
      schedule();
      return;
    }
    const { key } = JSON.parse(event.data);
    if (rowOf(key)) {
      dirty.add(key);
      schedule();
    }
  });
  for (const type of ["state", "series", "dropped"]) {
    events.addEventListener(type, () => {
      whole = true;
      schedule();
    });
  }
  addEventListener("pagehide", () => events.close());
  addEventListener("pageshow", (event) => event.persisted && location.reload());
  document.addEventListener("visibilitychange", () => !document.hidden && refresh());
  setInterval(() => Date.now() - lastWhole > idle && !document.hidden && update(), idle / 3);
}

// --- forms and links ----------------------------------------------------------------------------------------------------

async function probe(form, button) {
  if (button.getAttribute("aria-busy") === "true") return;
  button.setAttribute("aria-busy", "true");
  const say = (...nodes) => (document.getElementById("probe-result") ?? document.getElementById("said")).replaceChildren(...nodes);
  const data = new URLSearchParams(new FormData(form));
  const name = `${data.get("target")} / ${data.get("scenario")}`;
  say(`probing ${name} …`);
  try {
    const response = await fetch(form.action, { method: "POST", body: data, headers: { Accept: "application/json" } });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error ?? response.statusText);
    if (main.dataset.page === "overview") {
      location.assign(`/probes/${encodeURIComponent(answer.id)}`);
      return;
    }
    const link = document.createElement("a");
    link.href = `/probes/${encodeURIComponent(answer.id)}`;
    link.textContent = answer.result.outcome.replaceAll("_", " ") + (answer.result.reason ? ` (${answer.result.reason.replaceAll("_", " ")})` : "");
    link.dataset.outcome = answer.result.outcome;
    say("probed: ", link);
    await refresh();
  } catch (error) {
    say(`not probed: ${error.message}`);
    alertIfHidden(`${name} was not probed: ${error.message}`);
  } finally {
    document.querySelectorAll('button[aria-busy="true"]').forEach((b) => b.removeAttribute("aria-busy"));
  }
}

// alertIfHidden shows what the table of series has no place for.
function alertIfHidden(text) {
  if (document.getElementById("probe-result")) return;
  const note = document.getElementById("note") ?? main.insertBefore(Object.assign(document.createElement("p"), { id: "note" }), main.querySelector("#table"));
  note.className = "error-box";
  setText(note, text);
}

async function go(url) {
  try {
    const page = await fetchPage(url);
    history.replaceState(null, "", url);
    place(page);
    lastWhole = Date.now();
  } catch {
    location.assign(url);
  }
}

function filterURL(form) {
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
  return query.size ? `/?${query}` : "/";
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.matches("form[data-probe]")) {
    event.preventDefault();
    probe(form, form.querySelector("button"));
  } else if (form.id === "filter") {
    event.preventDefault();
    go(filterURL(form));
  }
});

let typing = 0;
document.addEventListener("input", (event) => {
  if (event.target.id !== "q") return;
  clearTimeout(typing);
  typing = setTimeout(() => go(filterURL(event.target.form)), 250);
});

// --- keyboard -----------------------------------------------------------------------------------------------------------

function move(by) {
  const links = [...document.querySelectorAll("tbody a[data-open]")];
  if (!links.length) return;
  const current = document.querySelector(".current");
  const at = links.findIndex((link) => link.closest(rows) === current);
  const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + by, 0), links.length - 1)];
  current?.classList.remove("current");
  next.closest(rows).classList.add("current");
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

const help = document.getElementById("help");
const keys = {
  j: () => move(1),
  k: () => move(-1),
  g: () => location.assign("/"),
  r: () => refresh(),
  "/": () => (document.getElementById("q") ? document.getElementById("q").select() : location.assign("/")),
  "?": () => help.showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (event.target.closest("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

const helpButton = document.getElementById("help-button");
helpButton.hidden = false;
helpButton.addEventListener("click", () => help.showModal());

if (zoned) setText(document.getElementById("zone"), ` and in ${Intl.DateTimeFormat().resolvedOptions().timeZone}`);
localize(document);
setInterval(tick, 1000);
if (main.dataset.page === "overview" || main.dataset.page === "series") listen();
