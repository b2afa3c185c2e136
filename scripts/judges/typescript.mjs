// The program as the TypeScript client of the protocol sees it, in both eras, over standard input and output and by HTTP.
//
// Usage: typescript.mjs TASKPAWL WORK

import assert from 'node:assert/strict';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { project, start } from './servers.mjs';

const [taskpawl, work] = process.argv.slice(2);
const ERAS = [
  ['2025-11-25', 'legacy'],
  ['2026-07-28', { pin: '2026-07-28' }],
];

async function call(client, name, args) {
  const result = await client.callTool({ name, arguments: { agent: 'ann', ...args } });
  assert.ok(!result.isError, JSON.stringify(result));
  return result.structuredContent;
}

/** Returns what waits for the next change of an address, subscribed to in the way of the era. */
async function subscribed(client, version, uri) {
  const heard = [];
  let wake = () => {};
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
    heard.push(params.uri);
    wake();
  });
  const next = async () => {
    while (heard.length === 0) await new Promise(resolve => (wake = resolve));
    return heard.shift();
  };
  if (version === '2025-11-25') {
    await client.subscribeResource({ uri });
    return { next, close: () => client.unsubscribeResource({ uri }) };
  }
  const subscription = await client.listen({ resourceSubscriptions: [uri] });
  assert.deepEqual(subscription.honoredFilter.resourceSubscriptions, [uri]);
  // Everything counts as changed once, when it begins.
  assert.equal(await next(), uri);
  return { next, close: () => subscription.close() };
}

async function works(client, version) {
  const { tools } = await client.listTools();
  assert.equal(tools.length, 8);
  assert.ok(tools.every(tool => tool.annotations && !tool.outputSchema));
  assert.equal(typeof (await client.callTool({ name: 'plan_show', arguments: {} })).structuredContent.counts, 'object');
  const tasks = [
    { id: 'look', call: { list_dir: { path: '.' } } },
    { id: 'hand', needs: ['look'] },
  ];
  const written = await call(client, 'plan_write', { name: 'site', plan: { tasks }, request_id: 'w1' });
  assert.deepEqual(written.created, ['look', 'hand']);
  await call(client, 'task_add', { id: 'last', name: 'The last one', needs: ['hand'] });
  let run = await call(client, 'run_ready', {});
  while (run.state === 'running') run = await call(client, 'run_ready', { run_id: run.run_id, wait_s: 10 });
  assert.equal(run.counts.done, 1);
  const uri = 'taskpawl://task/hand';
  const subscription = await subscribed(client, version, uri);
  const { claimed } = await call(client, 'ready_list', { claim: true });
  assert.equal(claimed.id, 'hand');
  assert.equal(await subscription.next(), uri);
  await call(client, 'task_update', { id: 'hand', action: 'done', result: { ok: true } });
  await subscription.close();
  const { contents } = await client.readResource({ uri });
  assert.equal(JSON.parse(contents[0].text).status, 'done');
}

async function says(client) {
  const { resources } = await client.listResources();
  assert.ok(resources.some(resource => resource.uri === 'taskpawl://plan/site'));
  const { prompts } = await client.listPrompts();
  assert.ok(prompts.some(prompt => prompt.name === 'plan_goal'));
  const prompt = await client.getPrompt({ name: 'plan_goal', arguments: { goal: 'a new site' } });
  assert.match(prompt.messages[0].content.text, /a new site/);
  const ref = { type: 'ref/resource', uri: 'taskpawl://task/{id}' };
  const { completion } = await client.complete({ ref, argument: { name: 'id', value: 'ha' } });
  assert.deepEqual(completion.values, ['hand']);
  const refused = await client.callTool({ name: 'task_update', arguments: { id: 'none', action: 'done' } });
  assert.equal(refused.isError, true);
  await assert.rejects(client.readResource({ uri: 'taskpawl://task/none' }));
  await assert.rejects(client.callTool({ name: 'no_such_tool', arguments: {} }));
}

async function whole(transport, version, mode) {
  const client = new Client({ name: 'judge', version: '1' }, { versionNegotiation: { mode } });
  await client.connect(transport);
  assert.equal(client.getNegotiatedProtocolVersion(), version);
  await works(client, version);
  await says(client);
  await client.close();
}

for (const [version, mode] of ERAS) {
  const directory = project(taskpawl, work, `typescript-stdio-${version}`);
  // The environment of a client is not that of its servers unless it says so.
  const env = process.env;
  await whole(new StdioClientTransport({ command: taskpawl, args: ['mcp', '--project', directory], env }), version, mode);
  console.log(`stdio, ${version}: ok`);
  const server = await start(taskpawl, ['mcp', '--http', '--json'], project(taskpawl, work, `typescript-http-${version}`));
  const headers = { Authorization: `Bearer ${server.token}` };
  await whole(new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers } }), version, mode);
  await server.stop();
  console.log(`HTTP, ${version}: ok`);
}
