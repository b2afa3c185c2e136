// The figures of the page. They are strict under TASKPAWL_HARNESS=full on a quiet machine, and loose otherwise.

import { until } from "./keyboard.mjs";

const median = (values) => [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)];

/** Prints a figure, and fails if it is above its bound. */
function report(fail, name, value, most, unit) {
  console.log(`${name}: ${Math.round(value * 100) / 100} ${unit} (at most ${most})`);
  if (!(value <= most)) fail(`${name}: ${value} ${unit}, at most ${most}`);
}

/** From a navigation to the drawn matrix. */
export async function measureOverview({ browser, open, ready, fail }, site, tasks, most) {
  const page = await open(browser, site, { scheme: "light", width: 1440 });
  await page.goto(site.address.url);
  await ready(page);
  const times = [];
  for (let round = 0; round < 5; round += 1) {
    await page.goto(`${site.origin}/`);
    await page.waitForFunction(() => performance.getEntriesByName("overview-drawn").length > 0);
    times.push(await page.evaluate(() => performance.getEntriesByName("overview-drawn")[0].startTime));
  }
  report(fail, `${tasks} tasks, overview drawn`, median(times), most, "ms");
  await page.context().close();
}

/** Script time of the frames that outline cones. */
export async function measureFrames({ browser, open, ready, fail }, site, tasks, most) {
  const page = await open(browser, site, { scheme: "light", width: 1440 });
  await page.goto(site.address.url);
  await ready(page);
  await page.waitForFunction(() => performance.getEntriesByName("overview-drawn").length > 0);
  const box = await page.locator("#matrix canvas").first().boundingBox();
  const rounds = [];
  for (let round = 0; round < 5; round += 1) {
    await page.evaluate(() => performance.clearMeasures("matrix-frame"));
    for (let at = 0; at < 20; at += 1) {
      await page.mouse.move(box.x + 10 + (at * 53) % (box.width - 20), box.y + 8 + ((at * 31 + round * 7) % Math.max(20, box.height - 60)));
      await page.waitForTimeout(20);
    }
    const frames = await page.evaluate(() => performance.getEntriesByName("matrix-frame").map(({ duration }) => duration));
    if (!frames.length) fail(`${tasks} tasks: no frame was measured`);
    rounds.push(Math.max(...frames));
  }
  report(fail, `${tasks} tasks, longest frame while hovering`, median(rounds), most, "ms");
  await page.context().close();
}

/** Another server of the store changes tasks for some seconds: the counts of the page are those of `list` at the end. */
export async function measureChanges({ browser, open, ready, fail, isFull }, site, seconds) {
  const page = await open(browser, site, { scheme: "light", width: 1440 });
  await page.goto(site.address.url);
  await ready(page);
  const ids = site.data("list", "--status", "todo", "--limit", "2000", "--fields", "id").map(({ id }) => id);
  const batches = Array.from({ length: Math.floor(ids.length / 50) }, (_, at) => ids.slice(at * 50, at * 50 + 50));
  const headers = { Authorization: `Bearer ${site.address.token}` };
  const writer = await site.beside();
  const written = { Authorization: `Bearer ${writer.address.token}`, "Content-Type": "application/json" };
  const others = await Promise.all(Array.from({ length: 31 }, () => fetch(`${site.origin}/events`, { headers })));
  const start = Date.now();
  const end = start + seconds * 1000;
  let changes = 0;
  const delays = [];
  const before = site.ticks();
  for (let at = 0; Date.now() < end; at += 1) {
    const begin = Date.now();
    const batch = batches[at % batches.length];
    const command = Math.floor(at / batches.length) % 2 ? "unblock" : "block";
    const answer = await fetch(`${writer.origin}/api/v1/commands`, { method: "POST", headers: written, body: JSON.stringify({ command, ids: batch, text: "measured" }) });
    if (!answer.ok) fail(`${command}: ${await answer.text()}`);
    changes += batch.length;
    if (at % 10 === 0) {
      const { revision } = await (await fetch(`${writer.origin}/api/v1/state`, { headers: written })).json();
      await page.waitForFunction((wanted) => (globalThis.taskpawlRevision ?? 0) >= wanted, revision, { polling: 10, timeout: 10000 });
      delays.push(Date.now() - begin);
    }
    // 500 changes a second, also after a round that took longer.
    await page.waitForTimeout(Math.max(0, start + (at + 1) * 100 - Date.now()));
  }
  report(fail, "server with 32 clients meanwhile", (site.ticks() - before) / seconds, isFull ? 15 : 100, "% of a core");
  writer.stop();
  delays.sort((one, other) => one - other);
  console.log(`${changes} changes in ${seconds} s with 32 clients`);
  if (isFull && changes < 490 * seconds) fail(`only ${changes} changes in ${seconds} s`);
  report(fail, "change shown, p95", delays[Math.floor(delays.length * 0.95)], isFull ? 300 : 3000, "ms");
  const counts = site.data("list", "--limit", "0", "--fields", "status").reduce((sum, { status }) => ({ ...sum, [status]: (sum[status] ?? 0) + 1 }), {});
  const state = await (await fetch(`${site.origin}/api/v1/state`, { headers })).json();
  for (const [status, count] of Object.entries(counts)) if (state.counts[status] !== count) fail(`the page counts ${state.counts[status]} ${status}, list ${count}`);
  for (const other of others) other.body?.cancel();
  await page.context().close();
}

/** CPU of the server while one client is connected and nothing happens. */
export async function measureIdle({ browser, open, ready, fail, isFull }, site, seconds) {
  const page = await open(browser, site, { scheme: "light", width: 1440 });
  await page.goto(site.address.url);
  await ready(page);
  await page.waitForTimeout(2000);
  const before = site.ticks();
  await page.waitForTimeout(seconds * 1000);
  report(fail, "idle server with one client", (site.ticks() - before) / seconds, isFull ? 0.3 : 5, "% of a core");
  await page.context().close();
}

/** A long log: its first screen, and a search with a hit in every line. */
export async function measureLog({ browser, open, ready, fail, isFull }, site) {
  const page = await open(browser, site, { scheme: "light", width: 1440 });
  await page.goto(site.address.url);
  await ready(page);
  await until(() => site.data("show", "print").status === "done");
  await page.goto(`${site.origin}/task/print`);
  await ready(page);
  const shown = await page.evaluate(() => new Promise((resolve) => {
    const begin = performance.now();
    const observer = new MutationObserver(() => {
      if (!document.querySelector("#log .row")) return;
      observer.disconnect();
      resolve(performance.now() - begin);
    });
    observer.observe(document.body, { childList: true, subtree: true });
    document.querySelector('a[href^="/log/print"]').click();
  }));
  report(fail, "first screen of a long log", shown, isFull ? 100 : 2000, "ms");
  const headers = { Authorization: `Bearer ${site.address.token}` };
  const from = performance.now();
  const found = await (await fetch(`${site.origin}/api/v1/tasks/print/output/find?q=%20z`, { headers })).json();
  report(fail, "search in a long log", performance.now() - from, isFull ? 500 : 3000, "ms");
  if (!found.total) fail("the search in a long log found nothing");
  await page.context().close();
}
