// Work with the keyboard alone.

import { spawn } from "node:child_process";

/** Presses Tab until an element that matches has the focus. */
async function reach(page, selector) {
  for (let at = 0; at < 120; at += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted), selector)) return;
  }
  throw new Error(`the keyboard does not reach ${selector}`);
}

/**
 * Asks for an approval. A server without a terminal shows the command, which is run here with a person's terminal made by `script`:
 * so both ways are checked.
 */
export async function approves({ browser, open, ready, fail }, site) {
  const page = await open(browser, site, { scheme: "light", width: 1440 });
  await page.goto(site.address.url);
  await ready(page);
  await page.keyboard.press("g");
  await page.keyboard.press("q");
  await page.waitForURL("**/questions");
  await page.waitForSelector("text=approve second");
  await page.context().close();
  site.stop();
  const terminal = spawn("script", ["-qec", `${site.program} serve --sandbox off`, "/dev/null"], { cwd: site.project, env: site.env, stdio: ["pipe", "pipe", "inherit"] });
  let printed = "";
  terminal.stdout.on("data", (piece) => { printed += piece; });
  try {
    await until(() => /http:[^\s]+/.test(printed));
    const url = /http:[^\s]+/.exec(printed)[0];
    const other = await open(browser, { ...site, name: site.name, origin: new URL(url).origin }, { scheme: "light", width: 1440 });
    await other.goto(url);
    await ready(other);
    await other.keyboard.press("g");
    await other.keyboard.press("q");
    await other.waitForURL("**/questions");
    await other.waitForSelector("button[data-approve]");
    await reach(other, "button[data-approve]:not([data-minutes])");
    await other.keyboard.press("Enter");
    const code = await (await other.waitForSelector("dialog .code")).textContent();
    await until(() => printed.includes("Code that the page shows"));
    terminal.stdin.write(`${code}\n`);
    await other.waitForSelector("text=Approved.", { timeout: 15000 });
    await other.context().close();
    const task = site.data("show", "second");
    if (task.status !== "todo") fail(`the approval of the page left the task ${task.status}`);
    if (!task.notes.some(({ text }) => /session [0-9a-f]{8}, token [0-9a-f]{8}/.test(text))) fail("the note of the approval names no session");
  } finally {
    terminal.kill("SIGTERM");
  }
}

/** Starts a run with a long task, and stops it. */
export async function stopsARun({ browser, open, ready, fail }, site) {
  const page = await open(browser, site, { scheme: "light", width: 1440 });
  await page.goto(site.address.url);
  await ready(page);
  await reach(page, "button[data-run]");
  await page.keyboard.press("Enter");
  await page.waitForSelector("button[data-stop]", { timeout: 15000 });
  await until(() => site.data("show", "print").status === "done", 120000);
  await page.waitForSelector("button[data-stop]");
  await reach(page, "button[data-stop]");
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog[open]");
  await reach(page, "dialog button[value=now]");
  await page.keyboard.press("Enter");
  await page.waitForSelector("text=The run stops.");
  await page.waitForSelector("button[data-stop]", { state: "detached", timeout: 15000 });
  if (site.data("runs")[0].state === "running") fail("the keyboard did not stop the run");
  await page.context().close();
}

/** Waits until something holds. */
export async function until(holds, millis = 15000) {
  const end = Date.now() + millis;
  while (!holds()) {
    if (Date.now() > end) throw new Error("it took too long");
    await new Promise((done) => setTimeout(done, 100));
  }
}
