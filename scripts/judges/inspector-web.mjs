// The inspector of the protocol as a page in a browser without a window: somebody connects it to the server, lists its tools and
// calls one; and where the server has its checklist as an MCP App, it is drawn there, and a tick in it reaches the store.
//
// Usage: inspector-web.mjs INSPECTOR TASKPAWL WORK

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import net from 'node:net';

import puppeteer from 'puppeteer-core';

import { gate, launch, project, start } from './servers.mjs';

const [inspector, taskpawl, work] = process.argv.slice(2);
const PATIENCE = { timeout: 30_000 };

async function freePort() {
  const server = net.createServer();
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise(resolve => server.close(resolve));
  return port;
}

/** Starts the host of the page: its address with what lets a link connect. */
async function host() {
  const [port, sandbox, token] = [await freePort(), await freePort(), randomBytes(24).toString('hex')];
  const env = {
    ...process.env,
    HOST: '127.0.0.1',
    CLIENT_PORT: String(port),
    MCP_SANDBOX_PORT: String(sandbox),
    MCP_AUTO_OPEN_ENABLED: 'false',
    MCP_INSPECTOR_API_TOKEN: token,
  };
  const child = launch(inspector, ['--web'], { cwd: work, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const page = `http://127.0.0.1:${port}/`;
  await new Promise((resolve, reject) => {
    child.once('exit', code => reject(new Error(`the inspector ended with ${code}`)));
    let said = '';
    child.stdout.on('data', data => {
      said += data;
      if (said.includes(String(port))) resolve();
    });
  });
  return { page, token, stop: () => child.kill('SIGTERM') };
}

const link = (site, url, more = {}) =>
  `${site.page}?${new URLSearchParams({ serverUrl: url, transport: 'http', autoConnect: site.token, ...more })}`;

async function connected(page) {
  await page.waitForSelector('[data-testid="connection-status"][data-status="connected"]', PATIENCE);
}

const labelled = text => `::-p-xpath(//label[normalize-space()="${text}"])`;
const named = text => `::-p-xpath(//*[@data-testid="tools-screen"]//*[normalize-space(text())="${text}"])`;
const button = text => `::-p-xpath(//button[normalize-space()="${text}"])`;

/** Opens the screen of tools. Its tab moves while others come in, and a click on one that moves is lost. */
async function opened(page) {
  const end = Date.now() + PATIENCE.timeout;
  for (;;) {
    await page.locator(labelled('Tools')).click();
    try {
      return await page.waitForSelector('[data-testid="tools-screen"]', { timeout: 1_000 });
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}

/** Lists the tools, and calls one. */
async function tools(page) {
  await opened(page);
  for (const name of ['plan_show', 'plan_write', 'task_add', 'task_get', 'task_update', 'task_delete', 'ready_list', 'run_ready']) {
    await page.waitForSelector(named(name), PATIENCE);
  }
  await page.locator(named('plan_show')).click();
  await page.locator(button('Execute Tool')).click();
  const shows = () => document.querySelector('[data-testid="tools-screen"]').innerText.includes('readyByHand');
  await page.waitForFunction(shows, PATIENCE);
}

/** The frame in which the host draws the checklist, with what is in it. */
async function checklist(page) {
  await page.waitForSelector('[data-testid="apps-form"][data-app-status="ready"]', PATIENCE);
  for (const frame of page.frames()) {
    if (await frame.$('#list')) return frame;
  }
  throw new Error('the checklist is in no frame');
}

const status = (directory, id) => {
  const shown = spawnSync(taskpawl, ['show', id, '--json'], { cwd: directory, encoding: 'utf8' });
  return JSON.parse(shown.stdout).data.status;
};

/** Draws the checklist, and ticks a task in it: the store has it done then. */
async function ticks(page, directory) {
  const frame = await checklist(page);
  const row = await frame.waitForSelector('::-p-xpath(//li[contains(., "Read the notes")])', PATIENCE);
  assert.equal(status(directory, 'read'), 'todo');
  await (await row.$('button.mark')).click();
  const isDone = () => [...document.querySelectorAll('li.done')].some(row => row.textContent.includes('Read the notes'));
  await frame.waitForFunction(isDone, PATIENCE);
  assert.equal(status(directory, 'read'), 'done');
}

const directory = project(taskpawl, work, 'browser');
spawnSync(taskpawl, ['create', 'Read the notes', '--id', 'read'], { cwd: directory });
const server = await start(taskpawl, ['mcp', '--http', '--json'], directory);
const door = await gate(server);
const site = await host();
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  // What the page runs is installed here; in a container the browser has no sandbox of its own.
  args: ['--no-sandbox', '--disable-dev-shm-usage'],
});
try {
  const page = await browser.newPage();
  await page.setViewport({ width: 1400, height: 900 });
  await page.goto(link(site, door.url));
  await connected(page);
  await tools(page);
  console.log('tools: listed and called');
  await page.goto(link(site, door.url, { openApp: 'plan_show', autoOpen: site.token }));
  await connected(page);
  await ticks(page, directory);
  console.log('checklist: drawn and ticked');
} finally {
  await browser.close();
  site.stop();
  await door.close();
  await server.stop();
}
