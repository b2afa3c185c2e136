// The conformance suite of the protocol: against our server with its fixtures, in both versions and with its tasks, and against the
// program as it is shipped. Goes red on a failure that nobody expects, and on an expected one that is none any more.
//
// Usage: conformance.mjs SUITE FIXTURE TASKPAWL WORK

import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { gate, launch, project, start } from './servers.mjs';

const [suite, fixture, taskpawl, work] = process.argv.slice(2);
const here = path.dirname(fileURLToPath(import.meta.url));
const VERSIONS = ['2025-11-25', '2026-07-28'];
const TASKS = [
  'lifecycle',
  'capability-negotiation',
  'wire-fields',
  'request-state-removal',
  'mrtr-input',
  'request-headers',
  'dispatch-and-envelope',
  'status-notifications',
  'required-task-error',
  'mrtr-composition',
].map(name => `tasks-${name}`);

function run(title, words) {
  return new Promise((resolve, reject) => {
    const child = launch(process.execPath, [suite, 'server', ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', data => (said += data));
    child.once('error', reject);
    child.once('exit', code => {
      const summary = said.slice(Math.max(0, said.lastIndexOf('=== SUMMARY ===')));
      console.log(`-- ${title}\n${code === 0 ? summary.trim() : said}`);
      resolve(code === 0);
    });
  });
}

async function judged(server, checks) {
  const door = await gate(server);
  const results = [];
  for (const [title, words] of checks) results.push(await run(title, ['--url', door.url, ...words]));
  await door.close();
  await server.stop();
  return results.every(Boolean);
}

const expected = version => path.join(here, `expected-failures-${version}.yml`);
const whole = version => ['--suite', 'all', '--spec-version', version];

const withFixtures = await judged(await start(fixture, [], work), [
  ...VERSIONS.map(version => [`the fixture, ${version}`, whole(version)]),
  ...TASKS.map(name => [`the fixture, ${name}`, ['--scenario', name]]),
]);
const directory = project(taskpawl, work, 'conformance');
const shipped = await judged(
  await start(taskpawl, ['mcp', '--http', '--json'], directory),
  VERSIONS.map(version => [
    `the program, ${version}`,
    [...whole(version), '--expected-failures', expected(version)],
  ]),
);
if (!(withFixtures && shipped)) process.exit(1);
