// Starts the servers that are judged, and stops them.

import { spawn, spawnSync } from 'node:child_process';
import http from 'node:http';
import { mkdirSync } from 'node:fs';
import path from 'node:path';

// Whatever ends this process ends the servers, too.
const running = new Set();
process.on('exit', () => running.forEach(child => child.kill('SIGKILL')));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

/** Starts a program that ends with this one. */
export function launch(command, args, options) {
  const child = spawn(command, args, options);
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** Makes a project with a plan of its own, and returns its directory. */
export function project(taskpawl, work, name) {
  const directory = path.join(work, 'projects', name);
  mkdirSync(directory, { recursive: true });
  const made = spawnSync(taskpawl, ['init'], { cwd: directory, encoding: 'utf8' });
  if (made.status !== 0) throw new Error(`taskpawl init: ${made.stderr}`);
  return directory;
}

/** Starts a server that says as JSON where it is: `{url, token}`, with `stop()`. */
export async function start(command, args, directory) {
  // The fixture ends with its standard input, the program by a signal.
  const child = launch(command, args, { cwd: directory, stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise(resolve => child.once('exit', resolve));
  let said = '';
  const place = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', code => reject(new Error(`${command} ended with ${code} before it served`)));
    child.stdout.on('data', data => {
      said += data;
      if (said.endsWith('\n')) resolve(JSON.parse(said));
    });
  });
  const { url, token } = place.data ?? place;
  const stop = async () => {
    child.stdin.end();
    child.kill('SIGTERM');
    await ended;
  };
  return { url, token, stop };
}

/**
 * Opens a port that passes everything on with the token, for judges that cannot bear one. What is for the port itself is passed on
 * as for the server; another host or origin is passed on as it is, so that the server has to refuse it.
 */
export async function gate({ url, token }) {
  const target = new URL(url);
  let own;
  const translated = value => value?.replaceAll(own, target.host);
  const server = http.createServer((request, answer) => {
    const headers = { ...request.headers, authorization: `Bearer ${token}` };
    headers.host = translated(headers.host);
    if (headers.origin) headers.origin = translated(headers.origin);
    const passed = http.request(
      { host: target.hostname, port: target.port, method: request.method, path: request.url, headers },
      theirs => {
        answer.writeHead(theirs.statusCode, theirs.headers);
        answer.flushHeaders();
        theirs.pipe(answer);
      },
    );
    passed.on('error', () => answer.destroy());
    answer.on('close', () => passed.destroy());
    request.pipe(passed);
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  own = `127.0.0.1:${server.address().port}`;
  const close = () => {
    server.closeAllConnections();
    return new Promise(resolve => server.close(resolve));
  };
  return { url: `http://${own}${target.pathname}`, close };
}
