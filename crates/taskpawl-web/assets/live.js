// @ts-check
// The stream of changes. After sleep or a restart of the server it goes on where it was.

/**
 * @typedef {{generation: number, revision: number, reset: boolean, counts: Record<string, number>,
 *   cells: Record<string, string>}} Delta
 */

const PAUSES = [500, 1000, 2000, 5000, 10000];

/**
 * Follows the store for as long as the page is open.
 * @param {(path: string, options?: RequestInit) => Promise<Response>} request
 * @param {(delta: Delta) => void} changed
 * @param {(state: "live" | "offline") => void} tell
 */
export async function follow(request, changed, tell) {
  const place = { generation: 0, revision: 0 };
  for (let failures = 0; ; failures += 1) {
    try {
      const answer = await request(`/events?generation=${place.generation}&revision=${place.revision}`);
      if (answer.status === 401 || answer.status === 403) return;
      if (!answer.ok || !answer.body) throw new Error("no stream");
      tell("live");
      for await (const delta of messages(answer.body)) {
        failures = 0;
        place.generation = delta.generation;
        place.revision = delta.revision;
        changed(delta);
      }
    } catch {
      // The connection broke off, or there is no server for now.
    }
    tell("offline");
    await new Promise((done) => setTimeout(done, PAUSES[Math.min(failures, PAUSES.length - 1)]));
  }
}

/**
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<Delta>}
 */
async function* messages(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    let end;
    while ((end = text.indexOf("\n\n")) >= 0) {
      const message = text.slice(0, end);
      text = text.slice(end + 2);
      const data = message.split("\n").find((line) => line.startsWith("data: "));
      if (data) yield JSON.parse(data.slice(6));
    }
  }
}
