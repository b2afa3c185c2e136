// Opens every screen and checks it. Usage: screens.mjs DIRECTORY, where the screenshots go.

import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import { measureChanges, measureFrames, measureIdle, measureLog, measureOverview } from "./figures.mjs";
import { approves, stopsARun } from "./keyboard.mjs";
import { pictures } from "./pictures.mjs";
import { Site } from "./site.mjs";

const modules = process.env.WEB_MODULES;
const require = createRequire(join(modules, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(join(modules, "axe-core", "axe.min.js"), "utf8");
const shots = process.argv[2];
mkdirSync(shots, { recursive: true });

/** Most requests on load. */
const MOST_REQUESTS = 12;

const isFull = process.env.TASKPAWL_HARNESS === "full";
const problems = [];
const fail = (text) => { problems.push(text); console.error(`FAILED ${text}`); };

/** The plans, by the name of their site. */
function plans() {
  const build = Array.from({ length: 9 }, (_, at) => ({ id: `test-${at}`, needs: "build", run: `echo "\u001b[32mok\u001b[0m ${at}"; sleep 0.0${at}` }));
  const layers = [];
  for (let layer = 0; layer < 20; layer += 1) {
    for (let at = 0; at < 250; at += 1) {
      const task = { id: `task-${layer}-${at}`, milestone: true };
      if (layer) task.needs = [`task-${layer - 1}-${at}`, `task-${layer - 1}-${(at * 7) % 250}`];
      if (layer === 8 && at % 9 === 0) { delete task.milestone; task.description = "A person does it"; }
      layers.push(task);
    }
  }
  const hostile = "<img src=x onerror=alert(1)>\u202e<script>alert(1)</script>";
  return {
    nothing: null,
    one: { name: "one", tasks: [{ id: "only", name: "The only task", run: "echo hello" }] },
    work: {
      name: "release", description: "Build, test and publish the site",
      tasks: [
        { id: "build", name: "Build the site", run: "echo compiling; seq 1 2000; echo done" },
        ...build,
        { id: "lint", needs: "build", name: "Run the lints", run: "echo checking; echo 'error: unused variable `x` in src/main.rs:14' >&2; exit 1" },
        { id: "report", needs: "lint", run: "echo report" },
        { id: "publish", needs: build.map(({ id }) => id), approval: { ask: "Publish version 1.2 to everybody?" }, run: "echo published" },
        { id: "announce", needs: "publish", description: "Write the news by hand" },
        { id: "review", description: "Read the text once more" },
      ],
    },
    hostile: {
      name: "hostile", description: hostile,
      tasks: [
        { id: "x", name: hostile, description: `</p>${hostile}`, run: "echo '<script>alert(1)</script><b>bold</b>'; printf '\\033]0;t\\007\\033[31mred\\033[0m\\n'; head -c 1000000 /dev/zero | tr '\\0' y; exit 1" },
        { id: "q", name: hostile, approval: { ask: hostile }, run: "echo '<b>'" },
      ],
    },
    many: { name: "many", tasks: layers },
    past: {
      name: "past",
      tasks: [{ id: "first", run: "echo one" }, { id: "second", needs: "first", approval: { ask: "Go on?" }, run: "echo two" }],
    },
    long: {
      name: "long",
      tasks: [
        { id: "wait", name: "Wait for the end", run: "sleep 60" },
        { id: "print", run: "i=0; line=$(head -c 1000 /dev/zero | tr '\\0' z); while [ $i -lt LINES ]; do echo \"$i $line\"; i=$((i+1)); done; echo 'error: the last line'".replace("LINES", String(isFull ? 66000 : 4000)) },
      ],
    },
  };
}

/** A plan of 100,000 tasks in 100 layers. */
function huge() {
  const tasks = Array.from({ length: 100000 }, (_, at) => {
    const task = { id: `task-${at}`, description: "By hand" };
    return at < 1000 ? task : { ...task, needs: [`task-${at - 1000}`, `task-${at - 1000 + (at % 2 ? 1 : 0)}`] };
  });
  return { name: "huge", tasks };
}

async function open(browser, site, options) {
  const context = await browser.newContext({ viewport: { width: options.width, height: 900 }, colorScheme: options.scheme, forcedColors: options.forced ?? "none" });
  await context.addInitScript(() => {
    globalThis.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  await context.addInitScript({ content: axe });
  const page = await context.newPage();
  page.requests = 0;
  page.on("request", (request) => {
    page.requests += 1;
    if (new URL(request.url()).origin !== site.origin) fail(`${site.name}: a request to ${request.url()}`);
  });
  page.on("pageerror", (error) => fail(`${site.name}: ${error}`));
  page.on("dialog", (dialog) => { fail(`${site.name}: a script of the data ran`); dialog.dismiss(); });
  return page;
}

/** Waits for a screen that is not loading any more. */
async function ready(page) {
  await page.waitForSelector("main h1, main .empty", { timeout: 10000 });
  await page.waitForTimeout(150);
}

async function check(page, name) {
  const seen = await page.evaluate(async () => {
    const { violations: rules } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return {
      csp: globalThis.violations,
      axe: rules.map((rule) => `${rule.id}: ${rule.nodes.slice(0, 2).map((node) => node.html.slice(0, 120)).join(" | ")}`),
      injected: document.querySelectorAll("main script, main img, main iframe, main b, main i").length,
      wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    };
  });
  for (const text of seen.csp) fail(`${name}: the content policy was violated: ${text}`);
  for (const text of seen.axe) fail(`${name}: axe ${text}`);
  if (seen.injected) fail(`${name}: ${seen.injected} elements came from data`);
  if (seen.wide > 0) fail(`${name}: the page is ${seen.wide} pixels too wide`);
}

const SCREENS = {
  nothing: ["/", "/tasks", "/questions", "/runs", "/history", "/plans"],
  one: ["/", "/task/only", "/log/only", "/graph/only"],
  work: ["/", "/tasks", "/tasks?state=f", "/task/lint", "/task/publish", "/log/lint", "/log/build", "/graph/publish", "/graph/build", "/questions", "/runs", "RUN", "/history", "/undo/1", "/plans"],
  hostile: ["/", "/tasks", "/task/x", "/log/x", "/questions", "/graph/x", "/history", "/plans"],
  many: ["/", "/tasks", "/graph/task-9-9"],
  past: ["/?at=3", "/tasks?at=3", "/runs?at=3"],
  long: [],
};

async function look(browser, site) {
  const runs = site.data("runs");
  if (!SCREENS[site.name].length) return;
  for (const [scheme, width, forced] of [["light", 1440], ["dark", 1440], ["light", 390], ["dark", 390], ["light", 1440, "active"]]) {
    const page = await open(browser, site, { scheme, width, forced });
    await page.goto(site.address.url);
    await ready(page);
    if (page.requests > MOST_REQUESTS) fail(`${site.name}: ${page.requests} requests on load`);
    for (const path of SCREENS[site.name]) {
      const way = path === "RUN" ? `/run/${runs[0].id}` : path;
      await page.goto(site.origin + way);
      await ready(page);
      const name = `${site.name}${path.replace(/[/?=]/g, "_")}-${scheme}-${width}${forced ? "-forced" : ""}`;
      await check(page, name);
      if (!forced) await page.screenshot({ path: join(shots, `${name}.png`), fullPage: width < 1000 && site.name !== "many" });
    }
    await page.context().close();
  }
}

/** With the keyboard alone: find the first failure, read its log, retry it. */
async function keyboard(browser, site) {
  const page = await open(browser, site, { scheme: "light", width: 1440 });
  await page.goto(site.address.url);
  await ready(page);
  await page.keyboard.press("f");
  await page.waitForURL("**/task/lint");
  await page.keyboard.press("l");
  await page.waitForURL("**/log/lint");
  await page.waitForSelector("text=unused variable");
  await page.goBack();
  await page.waitForSelector("button[data-command=retry]");
  for (let at = 0; at < 80; at += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(() => document.activeElement?.getAttribute("data-command") === "retry")) break;
  }
  await page.keyboard.press("Enter");
  await page.waitForSelector("text=retry: done");
  if (site.data("show", "lint").status !== "todo") fail("the keyboard did not retry the task");
  await page.waitForSelector(".head .s-r");
  await page.context().close();
}

/** A page without the token, or with a wrong one, shows no data. */
async function strangers(browser, site) {
  const page = await open(browser, site, { scheme: "light", width: 1440 });
  for (const hash of ["", "#token=wrong"]) {
    await page.goto(`${site.origin}/${hash}`);
    await page.waitForSelector("text=needs its token");
    if ((await page.content()).includes("lint")) fail("a page without a token shows data");
  }
  await page.context().close();
}

const only = process.env.WEB_SITES?.split(",");
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const tools = { browser, open, ready, fail, isFull, shots };
for (const [name, plan] of Object.entries(plans())) {
  if (only && !only.includes(name)) continue;
  console.log(`== ${name}`);
  const site = new Site(name);
  try {
    if (plan) {
      site.apply(plan);
      if (name !== "long") site.run();
    }
    await site.serve();
    await look(browser, site);
    if (name === "many") {
      await measureOverview(tools, site, 5000, isFull ? 250 : 1000);
      await measureFrames(tools, site, 5000, isFull ? 4 : 16);
      await measureChanges(tools, site, isFull ? 60 : 4);
      await measureIdle(tools, site, isFull ? 20 : 10);
    }
    if (name === "work") {
      await pictures(tools, site);
      await keyboard(browser, site);
      await strangers(browser, site);
    }
    if (name === "past") await approves(tools, site);
    if (name === "long") {
      await stopsARun(tools, site);
      await measureLog(tools, site);
    }
    if (name === "hostile" && !site.data("logs", "x").some(({ text }) => text.includes("<script>"))) fail("the hostile task printed nothing");
  } finally {
    site.close();
  }
}
if (isFull && !only) {
  const site = new Site("huge");
  try {
    site.apply(huge());
    await site.serve();
    await measureOverview(tools, site, 100000, 1000);
    await measureFrames(tools, site, 100000, 8);
  } finally {
    site.close();
  }
}
await browser.close();
if (problems.length) {
  console.error(`${problems.length} problems`);
  process.exit(1);
}
