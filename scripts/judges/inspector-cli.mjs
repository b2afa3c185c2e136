// The inspector of the protocol on its command line, in both eras, over standard input and output and by HTTP: what it lists, calls,
// reads and finds wrong with the definitions, and how the server bears many calls at once.
//
// Usage: inspector-cli.mjs INSPECTOR TASKPAWL WORK

import assert from 'node:assert/strict';

import { launch, project, start } from './servers.mjs';

const [inspector, taskpawl, work] = process.argv.slice(2);
const ERAS = ['legacy', 'modern'];
const LOAD = { calls: 300, atOnce: 10 };
// What the inspector ends with when a tool says that it was refused.
const REFUSED = 5;

/** Runs the inspector, and returns what it printed as JSON. */
async function ask(target, words, expected = 0) {
  const child = launch(inspector, ['--cli', ...target, ...words, '--format', 'json'], { cwd: work });
  let [out, err] = ['', ''];
  child.stdout.on('data', data => (out += data));
  child.stderr.on('data', data => (err += data));
  child.stdin.end();
  const code = await new Promise(resolve => child.once('close', resolve));
  assert.equal(code, expected, `${words.join(' ')}: ${out}\n${err}`);
  const said = out.trim() ? JSON.parse(out) : {};
  return said.result ?? said;
}

const call = (tool, args) => ['--method', 'tools/call', '--tool-name', tool, '--tool-args-json', JSON.stringify({ agent: 'ann', ...args })];

async function judged(target) {
  const inspect = (words, expected) => ask(target, words, expected);
  const { tools } = await inspect(['--method', 'tools/list', '--strict']);
  assert.equal(tools.length, 8);
  const tasks = [{ id: 'hand', name: 'By hand' }];
  const written = await inspect(call('plan_write', { name: 'site', plan: { tasks } }));
  assert.deepEqual(written.structuredContent.created, ['hand']);
  await inspect(call('task_update', { id: 'none', action: 'done' }), REFUSED);
  const { resources } = await inspect(['--method', 'resources/list']);
  assert.ok(resources.some(resource => resource.uri === 'taskpawl://plan/site'));
  const { resourceTemplates } = await inspect(['--method', 'resources/templates/list']);
  assert.ok(resourceTemplates.length >= 3);
  const { contents } = await inspect(['--method', 'resources/read', '--uri', 'taskpawl://task/hand']);
  assert.equal(JSON.parse(contents[0].text).status, 'todo');
  const { prompts } = await inspect(['--method', 'prompts/list']);
  assert.equal(prompts.length, 5);
  await inspect(['--method', 'prompts/get', '--prompt-name', 'plan_goal', '--prompt-args', 'goal=a new site']);
  const bounds = ['--load', '--load-requests', String(LOAD.calls), '--load-concurrency', String(LOAD.atOnce)];
  return inspect([...call('plan_show', {}), ...bounds]);
}

for (const era of ERAS) {
  const directory = project(taskpawl, work, `inspector-stdio-${era}`);
  // What comes before `--` is the server.
  const stdio = [taskpawl, 'mcp', '--project', directory, '--', '--protocol-era', era];
  console.log(`stdio, ${era}: ${JSON.stringify(await judged(stdio))}`);
  const server = await start(taskpawl, ['mcp', '--http', '--json'], project(taskpawl, work, `inspector-http-${era}`));
  const header = `Authorization: Bearer ${server.token}`;
  const http = ['--transport', 'http', '--server-url', server.url, '--header', header, '--protocol-era', era];
  console.log(`HTTP, ${era}: ${JSON.stringify(await judged(http))}`);
  await server.stop();
}
