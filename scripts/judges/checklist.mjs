// Draws the checklist of a real server in a real browser, as a host of MCP Apps does, clicks in it, and asks the store afterwards.
//
//   node scripts/judges/checklist.mjs TASKPAWL WORK [PICTURES]
//
// TASKPAWL is the program, WORK a directory with `node_modules/puppeteer-core`, and PICTURES one for screenshots. The browser is
// that of CHROMIUM, else `chromium` on the path.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

const [taskpawl, work, pictures] = process.argv.slice(2).map((path) => resolve(path));
const puppeteer = createRequire(join(work, "/"))("puppeteer-core");
const URI = "ui://taskpawl/checklist.html";
const TYPE = "text/html;profile=mcp-app";
const MARKUP = "<img src=x onerror='document.title=1'> & <b>bold</b> **text**";

const PLAN = { tasks: [
  { id: "fetch", name: "Fetch the sources", call: { log: { message: "fetched" } } },
  { id: "build", name: "Build `everything`", needs: ["fetch"], run: "cargo build" },
  { id: "broken", name: "Check the links", call: { fail: { message: "404 on /about" } } },
  { id: "after", name: "Publish the links", needs: ["broken"] },
  { id: "read", name: MARKUP },
  { id: "write", name: "Write the release notes, which is a rather long title that has to be broken somewhere", needs: ["read"] },
  { id: "held", name: "Translate the manual" },
  { id: "parent", name: "Announce", subtasks: [{ id: "mail", name: "Write a mail" }, { id: "blog", name: "Write a post", assignee: "bob" }] },
] };

/** A project of its own for each server. */
class Scene {
  constructor() {
    this.root = mkdtempSync(join(work, "checklist-"));
    this.env = { ...process.env, HOME: this.root, XDG_STATE_HOME: join(this.root, "state"), XDG_CONFIG_HOME: join(this.root, "config"), TASKPAWL_ACTOR: "ann" };
    delete this.env.TASKPAWL_STORE;
    this.project = join(this.root, "project");
    mkdirSync(this.project);
    this.run("init");
  }

  run(...words) {
    return execFileSync(taskpawl, words, { cwd: this.project, env: this.env, encoding: "utf8", timeout: 60_000 });
  }

  status(id) {
    return JSON.parse(this.run("show", id, "--json")).data.status;
  }

  serve(...words) {
    return new Server(spawn(taskpawl, ["mcp", ...words], { cwd: this.project, env: this.env, stdio: ["pipe", "pipe", "inherit"] }));
  }
}

/** A server and the one client of it. */
class Server {
  constructor(child) {
    this.child = child;
    this.waiting = new Map();
    this.last = 0;
    createInterface({ input: child.stdout }).on("line", (line) => {
      const message = JSON.parse(line);
      this.waiting.get(message.id)?.(message);
      this.waiting.delete(message.id);
    });
  }

  send(message) {
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  async request(method, params) {
    const id = ++this.last;
    const answer = new Promise((done) => this.waiting.set(id, done));
    this.send({ id, method, params });
    const { result, error } = await answer;
    assert.equal(error, undefined, `${method}: ${JSON.stringify(error)}`);
    return result;
  }

  async open() {
    const capabilities = { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: [TYPE] } } };
    const begun = await this.request("initialize", { protocolVersion: "2025-11-25", capabilities, clientInfo: { name: "judge", version: "1" } });
    assert.deepEqual(begun.capabilities.extensions["io.modelcontextprotocol/ui"], { mimeTypes: [TYPE] });
    this.send({ method: "notifications/initialized" });
    const { contents } = await this.request("resources/read", { uri: URI });
    assert.equal(contents[0].mimeType, TYPE);
    this.html = contents[0].text;
    this.tools = (await this.request("tools/list", {})).tools;
    return this;
  }

  call(name, args = {}) {
    return this.request("tools/call", { name, arguments: args });
  }

  async close() {
    const ended = new Promise((done) => this.child.once("exit", done));
    this.child.stdin.end();
    await ended;
  }
}

/** What runs in the page of the host: the page of the app in a frame without an origin, and the messages of both. */
function host({ html, context, capabilities, first }) {
  document.body.style.cssText = "margin:0;padding:8px;box-sizing:border-box";
  document.documentElement.style.background = context.theme === "dark" ? "#0d1117" : "#f6f8fa";
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.style.cssText = "width:100%;height:0;border:0;color-scheme:normal";
  const tell = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
  window.tell = tell;
  window.addEventListener("message", async ({ source, data }) => {
    if (source !== frame.contentWindow) return;
    if (data.method === "ui/initialize") {
      tell({ id: data.id, result: { protocolVersion: "2026-01-26", hostInfo: { name: "judge", version: "1" }, hostCapabilities: capabilities, hostContext: context } });
    } else if (data.method === "ui/notifications/initialized") {
      tell({ method: "ui/notifications/tool-input", params: { arguments: first.args } });
      tell({ method: "ui/notifications/tool-result", params: first.result });
    } else if (data.method === "ui/notifications/size-changed") {
      frame.style.height = `${data.params.height}px`;
    } else if (data.method === "tools/call") {
      tell({ id: data.id, result: await window.callServer(data.params.name, data.params.arguments) });
    }
  });
  frame.srcdoc = html;
  document.body.append(frame);
}

class Shown {
  static async open(browser, server, name, args, { theme = "light", width = 800, capabilities = { serverTools: {} } } = {}) {
    const shown = new Shown();
    const tool = server.tools.find((tool) => tool.name === name);
    assert.equal(tool._meta?.ui?.resourceUri, URI, name);
    const result = await server.call(name, args);
    shown.page = await browser.newPage();
    await shown.page.setViewport({ width, height: 600 });
    await shown.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
    shown.page.setDefaultTimeout(15_000);
    shown.requests = [];
    shown.page.on("request", (request) => shown.requests.push(request.url()));
    shown.calls = [];
    await shown.page.exposeFunction("callServer", (name, args) => {
      shown.calls.push([name, args]);
      return server.call(name, args);
    });
    await shown.page.evaluate(host, { html: server.html, context: { theme, toolInfo: { tool } }, capabilities, first: { args, result } });
    shown.frame = await (await shown.page.waitForSelector("iframe")).contentFrame();
    return shown;
  }

  /** Waits until a row looks so. */
  row(title, mark) {
    return this.frame.waitForFunction((title, mark) => [...document.querySelectorAll("li")].some((row) =>
      row.querySelector(".name").textContent.startsWith(title) && (!mark || row.className === mark)), {}, title, mark);
  }

  title(text) {
    return this.frame.waitForFunction((text) => document.querySelector("#title").textContent === text, {}, text);
  }

  rows() {
    return this.frame.$$eval("li", (rows) => Object.fromEntries(rows.map((row) =>
      [row.querySelector(".name").textContent, { mark: row.className, beside: row.querySelector(".beside").textContent, tick: row.querySelector(".mark").tagName === "BUTTON" }])));
  }

  async click(title) {
    const row = await this.frame.evaluateHandle((title) => [...document.querySelectorAll("li")].find((row) =>
      row.querySelector(".name").textContent.startsWith(title)).querySelector(".mark"), title);
    await row.click();
  }

  async picture(name) {
    if (!pictures) return;
    mkdirSync(pictures, { recursive: true });
    await this.page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
  }

  async close() {
    // `data:` and `about:` are no network.
    assert.deepEqual(this.requests.filter((url) => !/^(about|data):/.test(url)), []);
    await this.page.close();
  }
}

async function filled(scene) {
  const server = await scene.serve().open();
  const written = await server.call("plan_write", { plan: PLAN, name: "release" });
  assert.equal(written.isError, false, JSON.stringify(written));
  let run = (await server.call("run_ready", { wait_s: 30 })).structuredContent;
  while (run.state === "running") run = (await server.call("run_ready", { run_id: run.run_id, wait_s: 30 })).structuredContent;
  await server.call("task_update", { id: "held", action: "claim", agent: "agent-7" });
  return server;
}

/** What is drawn is what the store says, a tick reaches the store, and what others do is seen. */
async function plan(browser) {
  const scene = new Scene();
  const server = await filled(scene);
  const shown = await Shown.open(browser, server, "plan_show", {});
  await shown.title("Tasks (1/10 completed)");
  const before = await shown.rows();
  assert.deepEqual(before["Fetch the sources"], { mark: "done", beside: "", tick: false });
  assert.equal(before["Check the links"].mark, "failed");
  assert.match(before["Check the links"].beside, /404 on \/about/);
  assert.deepEqual(before["Publish the links"], { mark: "blocked", beside: "because of broken", tick: false });
  assert.equal(before["Build everything"].mark, "waiting", "what an agent adds waits for a person");
  assert.deepEqual(before["Translate the manual"], { mark: "active", beside: "agent-7", tick: false });
  assert.equal(before["Write a post"].beside, "for bob");
  assert.deepEqual(Object.entries(before).filter(([, row]) => row.tick).map(([name]) => name), ["<img src=x onerror='document.title=1'> & <b>bold</b> text", "Write a mail", "Write a post"]);
  assert.equal((await shown.frame.$$("img, b")).length, 0, "texts are no markup");

  assert.equal(scene.status("read"), "todo");
  await shown.click("<img");
  await shown.title("Tasks (2/10 completed)");
  await shown.row("<img", "done");
  assert.equal(scene.status("read"), "done", "the tick is in the store");
  assert.equal((await shown.rows())["Write the release notes, which is a rather long title that has to be broken somewhere"].tick, true, "what it held back can be ticked now");

  // Somebody else, in another process, is faster: the server refuses, and the row says so until the next look.
  scene.run("fail", "mail", "--note", "no address");
  await shown.click("Write a mail");
  await shown.row("Write a mail", "failed");
  assert.equal(scene.status("mail"), "failed");

  const calls = await shown.frame.evaluateHandle(() => [...document.querySelectorAll("button.name")].find((name) => name.textContent === "Check the links"));
  await calls.click();
  await shown.frame.waitForFunction(() => document.querySelector(".calls")?.textContent.includes("404 on /about"));
  await calls.click();
  await shown.frame.click("#fold");
  assert.equal(await shown.frame.$eval("#list", (list) => getComputedStyle(list).display), "none");
  await shown.frame.click("#fold");
  await shown.close();

  for (const theme of ["light", "dark"]) {
    for (const width of [320, 800]) {
      const drawn = await Shown.open(browser, server, "plan_show", {}, { theme, width });
      await drawn.title("Tasks (2/10 completed)");
      assert.equal(await drawn.frame.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, "it fits");
      await drawn.picture(`${theme}-${width}`);
      await drawn.close();
    }
  }
  await server.close();
}

/** Nothing is ticked where the host passes nothing on, or the server only reads. */
async function held(browser) {
  const scene = new Scene();
  const server = await filled(scene);
  const alone = await Shown.open(browser, server, "plan_show", {}, { capabilities: {} });
  await alone.title("Tasks (1/10 completed)");
  assert.equal(Object.values(await alone.rows()).some((row) => row.tick), false);
  assert.deepEqual(alone.calls, []);
  await alone.picture("text-only-host");
  await alone.close();
  await server.close();
  const reader = await scene.serve("--read-only").open();
  const shown = await Shown.open(browser, reader, "plan_show", { plan: "release" });
  await shown.row("Write a mail", "todo");
  assert.equal(Object.values(await shown.rows()).some((row) => row.tick), false);
  await shown.close();
  await reader.close();
}

/** What is ready and no run here can take says what it lacks, also where only a digest is drawn. */
async function nobody(browser) {
  const scene = new Scene();
  writeFileSync(join(scene.project, "plan.json"), JSON.stringify({ tools: ["oracle"], tasks: [{ id: "far", name: "Ask the oracle", call: { oracle: {} } }] }));
  scene.run("apply", "plan.json");
  const server = await scene.serve().open();
  for (const capabilities of [{ serverTools: {} }, {}]) {
    const shown = await Shown.open(browser, server, "plan_show", {}, { capabilities });
    await shown.row("Ask the oracle", "waiting");
    const row = (await shown.rows())["Ask the oracle"];
    assert.match(row.beside, /oracle/);
    assert.equal(row.tick, false);
    await shown.close();
  }
  await server.close();
}

/** An empty plan takes no room; the first task makes it appear. */
async function empty(browser) {
  const scene = new Scene();
  const server = await scene.serve().open();
  const shown = await Shown.open(browser, server, "plan_show", {});
  await shown.frame.waitForFunction(() => document.querySelector("#title").textContent !== "");
  assert.equal(await shown.frame.$eval("main", (main) => main.hidden), true);
  scene.run("create", "Something to do");
  const result = await server.call("plan_show", {});
  await shown.page.evaluate((result) => window.tell({ method: "ui/notifications/tool-result", params: result }), result);
  await shown.row("Something to do", "todo");
  await shown.close();
  await server.close();
}

/** To-do lists of models are drawn, and only watched. */
async function lists(browser) {
  const scene = new Scene();
  const server = await scene.serve("--dialect", "checklist", "--dialect", "session").open();
  const item = (id, title, status) => ({ id, title, status });
  const first = [item(1, "Set up", "completed"), item(2, "Look at **it**", "in-progress"), item(3, "Build", "not-started")];
  const shown = await Shown.open(browser, server, "manage_tasks", { taskList: first });
  await shown.title("Tasks (1/3 completed)");
  assert.deepEqual(Object.entries(await shown.rows()).map(([name, row]) => [name, row.mark, row.tick]),
    [["Set up", "done", false], ["Look at it", "active", false], ["Build", "todo", false]]);
  await shown.picture("checklist");
  await server.call("manage_tasks", { taskList: first.map((each) => ({ ...each, status: "completed" })) });
  await shown.title("Tasks (3/3 completed)");
  await shown.close();
  const todos = [{ content: "One", status: "cancelled", priority: "low" }, { content: "Two", status: "in_progress", priority: "high" }];
  const session = await Shown.open(browser, server, "todowrite", { todos });
  await session.title("Tasks (0/1 completed)");
  await session.row("Two", "active");
  await session.close();
  await server.close();
}

const program = process.env.CHROMIUM ?? execFileSync("sh", ["-c", "command -v chromium || command -v chromium-browser || command -v google-chrome"], { encoding: "utf8" }).trim();
const browser = await puppeteer.launch({ executablePath: program, args: ["--no-sandbox", "--disable-gpu"] });
try {
  for (const check of [plan, held, nobody, empty, lists]) {
    await check(browser);
    console.log(`checklist: ${check.name}: as it should be`);
  }
} finally {
  await browser.close();
  for (const name of execFileSync("ls", [work], { encoding: "utf8" }).split("\n")) {
    if (name.startsWith("checklist-")) rmSync(join(work, name), { recursive: true, force: true });
  }
}
