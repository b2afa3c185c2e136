// @ts-check
// The page: token, routes, refreshes, commands.

import { element, morph, parse } from "./dom.js";
import { follow } from "./live.js";

const STORED = "taskpawl-token";
/** Least time between two reads of the same screen. */
const PACE = 250;
/** Least time between two reads of the forecast. */
const OUTLOOK_PACE = 2000;

const main = /** @type {HTMLElement} */ (document.querySelector("#main"));
const live = /** @type {HTMLElement} */ (document.querySelector("#live"));
const notice = /** @type {HTMLElement} */ (document.querySelector("#notice"));
const dialog = /** @type {HTMLDialogElement} */ (document.querySelector("#dialog"));

/** @type {import("./matrix.js").Matrix | undefined} */
let matrix;
/** Scripts of the screen that is shown. @type {{close(): void, refresh?(): void}[]} */
let parts = [];
let etag = "";
let screen = "";

/** Takes the token out of the address, where it would be seen and shared. */
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(STORED, given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return sessionStorage.getItem(STORED) ?? "";
}

/**
 * @param {string} path
 * @param {RequestInit} [options]
 */
function request(path, options = {}) {
  const headers = { ...options.headers, Authorization: `Bearer ${takeToken()}` };
  return fetch(path, { ...options, headers, cache: "no-store", credentials: "omit", redirect: "error" });
}

/** @param {string} path @param {unknown} body */
async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  const answer = await request(path, { method: "POST", headers, body: JSON.stringify(body) });
  const data = await answer.json().catch(() => ({}));
  if (answer.ok) return data;
  const { message = `the server answered ${answer.status}`, hint } = data.error ?? {};
  throw new Error(hint ? `${message}. ${hint}` : message);
}

/** @param {string} text @param {boolean} [isError] */
function tell(text, isError = false) {
  notice.textContent = text;
  notice.classList.toggle("bad", isError);
  notice.hidden = false;
  clearTimeout(tellTimer);
  tellTimer = setTimeout(() => { notice.hidden = true; }, isError ? 12000 : 4000);
}
let tellTimer = 0;

/** @param {Response} answer */
async function failure(answer) {
  if (answer.status === 401) {
    return element("div", { class: "empty" }, element("h1", {}, "This page needs its token"),
      element("p", {}, "Open the whole URL that `taskpawl serve` printed, with the part behind #. A token ends with the command that printed it."));
  }
  const data = await answer.json().catch(() => ({}));
  return element("div", { class: "empty" }, element("h1", {}, "This cannot be shown"),
    element("p", {}, data.error?.message ?? `The server answered ${answer.status}.`));
}

/** The earlier revision that is shown, as a part of an address. */
function at() {
  return new URLSearchParams(location.search).get("at") ?? "";
}

/** Shows the screen of the address. A screen that is shown already is only brought up to date. */
async function show(isRefresh = false) {
  const path = location.pathname + location.search;
  if (isRefresh && path !== screen) return;
  const headers = isRefresh && etag ? { "If-None-Match": etag } : {};
  const answer = await request(`/fragment${path}`, { headers: /** @type {any} */ (headers) });
  if (answer.status === 304 || location.pathname + location.search !== path) return;
  if (isRefresh && !answer.ok) return;
  etag = answer.headers.get("etag") ?? "";
  if (isRefresh) {
    morph(main, parse(await answer.text()));
    return;
  }
  const content = answer.ok ? parse(await answer.text()) : await failure(answer);
  for (const part of parts) part.close();
  parts = [];
  matrix?.close();
  matrix = undefined;
  main.replaceChildren(content);
  const isFirst = screen === "";
  screen = path;
  document.title = `${main.querySelector("h1")?.textContent ?? "Plan"} · taskpawl`;
  for (const link of document.querySelectorAll("nav[aria-label=Screens] a")) {
    const isHere = link.getAttribute("href") === location.pathname;
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!isFirst) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
  await attach();
}

/** Starts the scripts of a screen. */
async function attach() {
  const find = (/** @type {string} */ name) => /** @type {HTMLElement | null} */ (main.querySelector(name));
  const [place, lines, list, timeline] = ["#matrix", "#log", "#list", "#timeline"].map(find);
  if (place) await draw(place);
  const outlook = find("#outlook");
  if (outlook) parts.push(new Outlook(outlook));
  if (lines) parts.push(new (await import("./log.js")).Log(lines, request));
  if (list) parts.push(new (await import("./list.js")).List(list, request));
  if (timeline) parts.push(new (await import("./drawing.js")).Timeline(timeline));
  const graph = find(".graph");
  if (graph) parts.push(new (await import("./drawing.js")).Graph(graph));
}

/** The forecast, which the server calculates beside everything else. */
class Outlook {
  /** @param {HTMLElement} place */
  constructor(place) {
    this.place = place;
    this.due = 0;
    this.read();
  }

  close() {
    clearTimeout(this.due);
  }

  refresh() {
    this.due ||= setTimeout(() => this.read(), OUTLOOK_PACE);
  }

  async read() {
    const answer = await request("/fragment/outlook").catch(() => undefined);
    this.due = 0;
    if (!answer?.ok || !this.place.isConnected) return;
    const fresh = document.createElement("div");
    fresh.append(parse(await answer.text()));
    morph(this.place, fresh);
  }
}

/** @type {import("./live.js").Delta | undefined} */
let latest;

/** @param {HTMLElement} place @returns {Promise<void>} */
async function draw(place) {
  const { Matrix } = await import("./matrix.js");
  const answer = await request(`/api/v1/overview${at() && `?at=${at()}`}`);
  if (!answer.ok || !place.isConnected) return;
  const columns = await answer.json();
  // Changes that came while the columns were on their way are in none of both.
  if (!at() && latest && latest.generation === columns.generation && latest.revision > columns.revision) return draw(place);
  matrix?.close();
  place.querySelector(".overlay")?.remove();
  const canvas = /** @type {HTMLCanvasElement} */ (place.querySelector("canvas"));
  canvas.replaceWith(canvas.cloneNode());
  matrix = new Matrix(place, columns, (id) => go(`/task/${encodeURIComponent(id)}`));
  performance.mark("overview-drawn");
}

/** @param {string} path */
function go(path) {
  history.pushState(null, "", path);
  return show();
}

let due = 0;
let isReading = false;
let isStale = false;

/** Brings the screen up to date, at most every `PACE` milliseconds, with one read at a time. */
function refresh() {
  // The past does not change.
  if (at()) return;
  for (const part of parts) part.refresh?.();
  isStale = true;
  if (isReading || due) return;
  due = setTimeout(async () => {
    due = 0;
    isReading = true;
    isStale = false;
    try {
      if (!document.hidden) await show(true);
    } catch {
      // The stream reports that the server is gone.
    }
    isReading = false;
    if (isStale) refresh();
  }, Math.max(0, last + PACE - performance.now()));
  last = performance.now();
}
let last = 0;

/** @param {import("./live.js").Delta} delta */
function changed(delta) {
  latest = delta;
  /** @type {any} */ (globalThis).taskpawlRevision = delta.revision;
  if (at()) return;
  const place = /** @type {HTMLElement | null} */ (main.querySelector("#matrix"));
  const { generation = -1, revision = -1 } = matrix?.columns ?? {};
  const isCurrent = generation === delta.generation && (!delta.reset || revision >= delta.revision);
  if (isCurrent) matrix?.change(delta.cells);
  else if (place && matrix) draw(place);
  refresh();
}

/**
 * Asks a person, and returns the value of the button that was pressed.
 * @param {string} question
 * @param {[string, string][]} answers
 */
function ask(question, answers) {
  const buttons = answers.map(([value, label]) => element("button", { type: "submit", value }, label));
  const form = element("form", { method: "dialog" }, element("h2", { id: "dialog-title" }, question),
    element("div", { class: "buttons" }, element("button", { type: "submit", value: "" }, "Leave it"), ...buttons));
  dialog.replaceChildren(form);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue), { once: true }));
}

/** @param {HTMLElement} button */
async function command(button) {
  const { command: name = "", id = "", confirm, run, stop, approve, answer, minutes, revision } = button.dataset;
  if (approve !== undefined) {
    const questions = JSON.parse(approve);
    if (answer !== undefined) questions[0].answer = answer;
    return approval(questions, minutes ? Number(minutes) : undefined);
  }
  if (run !== undefined) {
    await post("/api/v1/runs", {});
    return tell("The run has started.");
  }
  if (stop) {
    const how = await ask("Stop this run? Nothing more starts.", [["later", "Let running calls finish"], ["now", "End them now"]]);
    if (!how) return;
    await post(`/api/v1/runs/${encodeURIComponent(stop)}/stop`, { now: how === "now" });
    return tell("The run stops.");
  }
  if (confirm && !(await ask(confirm, [["yes", button.textContent ?? "Yes"]]))) return;
  await post("/api/v1/commands", revision ? { command: name, revision: Number(revision) } : { command: name, ids: [id] });
  tell(`${name}: done.`);
}

/** The name of this session of the page, which notes on approvals have. */
function session() {
  const known = sessionStorage.getItem("taskpawl-session") ?? crypto.randomUUID().slice(0, 8);
  sessionStorage.setItem("taskpawl-session", known);
  return known;
}

/**
 * Returns the arguments that a form has. A text that was not given and is empty stays away.
 * @param {HTMLFormElement} form
 */
function argumentsOf(form) {
  /** @type {Record<string, unknown>} */
  const args = {};
  for (const field of /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("[name]"))) {
    if (field.dataset.kind === "text" && (field.value || field.dataset.given === "true")) args[field.name] = field.value;
    if (field.dataset.kind !== "json" || !field.value.trim()) continue;
    try {
      args[field.name] = JSON.parse(field.value);
    } catch {
      field.focus();
      throw new Error(`${field.name} is not valid JSON`);
    }
  }
  return args;
}

/** Shows the code that a person types at the terminal, until it is typed or over. @param {unknown} questions @param {number} [minutes] */
async function approval(questions, minutes) {
  const { id, code, seconds } = await post("/api/v1/approvals", { questions, minutes, session: session() });
  const state = element("p", { role: "status" }, `Type this code at the terminal of taskpawl serve, within ${seconds} seconds.`);
  dialog.replaceChildren(element("form", { method: "dialog" }, element("h2", { id: "dialog-title" }, "Approve at the terminal"),
    element("p", { class: "code" }, code), state,
    element("div", { class: "buttons" }, element("button", { type: "submit", value: "" }, "Close"))));
  dialog.showModal();
  for (;;) {
    await new Promise((done) => setTimeout(done, 700));
    if (!dialog.open) return;
    const answer = await request(`/api/v1/approvals/${id}`);
    const { state: now, reason } = await answer.json();
    if (now === "open") continue;
    const texts = /** @type {Record<string, string>} */ ({ approved: "Approved.", expired: "The code was not typed in time." });
    state.textContent = texts[now] ?? `Not approved: ${reason}`;
    return refresh();
  }
}

document.addEventListener("click", async (event) => {
  const target = /** @type {Element} */ (event.target);
  const button = /** @type {HTMLButtonElement | null} */ (target.closest("button[data-command], button[data-run], button[data-stop], button[data-approve]"));
  if (button) {
    button.disabled = true;
    try {
      await command(button);
    } catch (error) {
      tell(error instanceof Error ? error.message : String(error), true);
    }
    button.disabled = false;
    return refresh();
  }
  const fold = target.closest("button[data-fold]");
  if (fold && matrix) fold.textContent = matrix.toggle() ? "Unfold ended bands" : "Fold ended bands";
  const link = target.closest("a[href^='/']");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
  event.preventDefault();
  const path = link.getAttribute("href") ?? "/";
  const isKept = at() && !link.hasAttribute("data-now") && PAST.includes(path.split("?")[0]) && !path.includes("at=");
  go(isKept ? `${path}${path.includes("?") ? "&" : "?"}at=${at()}` : path);
});

document.addEventListener("submit", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (form.hasAttribute("data-edit")) {
    event.preventDefault();
    const { task, hash } = form.dataset;
    Promise.resolve().then(() => approval([{ task, hash, args: argumentsOf(form) }])).catch((error) => tell(error.message, true));
    return;
  }
  const path = form.dataset.path;
  if (!path) return;
  event.preventDefault();
  const words = [...new FormData(form)].filter(([, value]) => value);
  go(`${path}?${words.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&")}`);
});

// Parts that take long to make are read when they are opened.
document.addEventListener("toggle", async (event) => {
  const details = /** @type {HTMLDetailsElement} */ (event.target);
  const { load } = details.dataset;
  const place = details.querySelector("[data-keep]");
  if (!load || !details.open || !place) return;
  const answer = await request(load);
  place.replaceChildren(answer.ok ? parse(await answer.text()) : await failure(answer));
}, true);

document.addEventListener("change", (event) => {
  const field = /** @type {HTMLElement} */ (event.target);
  if (field.nodeName === "SELECT") /** @type {HTMLSelectElement} */ (field).form?.requestSubmit();
});

/** Screens that show an earlier revision. */
const PAST = ["/", "/tasks", "/runs"];
const SCREENS = /** @type {Record<string, string>} */ ({ o: "/", t: "/tasks", q: "/questions", r: "/runs", h: "/history", p: "/plans" });
let isGoing = false;

document.addEventListener("keydown", async (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.metaKey || event.ctrlKey || event.altKey || dialog.open || target.closest("input, select, textarea")) return;
  const wasGoing = isGoing;
  isGoing = event.key === "g";
  if (wasGoing && SCREENS[event.key]) return go(SCREENS[event.key]);
  if (event.key === "f") {
    const answer = await request("/api/v1/tasks?state=f");
    const { tasks = [] } = answer.ok ? await answer.json() : {};
    if (tasks.length) go(`/task/${encodeURIComponent(tasks[0].id)}`);
    else tell("No task has failed.");
  } else if (event.key === "l" && location.pathname.startsWith("/task/")) {
    go(location.pathname.replace("/task/", "/log/"));
  } else if (event.key === "/") {
    event.preventDefault();
    /** @type {HTMLElement | null} */ (main.querySelector("input[type=search]"))?.focus();
  } else if (event.key === "?") {
    tell("g then o, t, q, r, h or p: screens · f: first failure · l: its log · /: search");
  }
});

addEventListener("popstate", () => show());
addEventListener("hashchange", () => { if (location.hash.startsWith("#token=")) { takeToken(); show(); } });
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });

takeToken();
await show();
follow(request, changed, (state) => {
  live.textContent = state;
  live.classList.toggle("off", state === "offline");
});
