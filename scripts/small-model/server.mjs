// Answers chat completions by a small model on this machine: `server.mjs MODEL-FILE JOURNAL KEY-DIGEST`. Prints its port, and writes each request
// with its answer as a line of JSON to the journal. The name of the model decides about the form of its answers:
//
// - `small`: the JSON schema of the request is their grammar.
// - `small-json`: they are JSON of any form, as servers give it that read no schemas.
// - `small-free`: they are text of any form.

import { createHash } from "node:crypto";
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { getLlama, LlamaChatSession, LlamaLogLevel } from "node-llama-cpp";

import { bounded } from "./grammar.mjs";

const [file, journal, keyDigest] = process.argv.slice(2);

/** The most tokens of an answer. The model rambles, and a token costs a hundredth of a second. */
const MAX_TOKENS = 160;

/** The most tokens of prompt and answer, as the model was trained. */
const CONTEXT_TOKENS = 8192;

// Nothing is built or downloaded, and one thread computes: several wait for each other actively, which takes minutes on a busy machine.
const llama = await getLlama({
    build: "never",
    gpu: false,
    skipDownload: true,
    progressLogs: false,
    maxThreads: 1,
    logLevel: LlamaLogLevel.error,
});
const model = await llama.loadModel({ modelPath: file });
const context = await model.createContext({ contextSize: CONTEXT_TOKENS, threads: 1 });
const sequence = context.getSequence();
const session = new LlamaChatSession({ contextSequence: sequence });

class Refused extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

const GRAMMARS = {
    small: (format) => llama.createGrammarForJsonSchema(bounded(format.json_schema.schema)),
    "small-json": () => llama.getGrammarFor("json"),
    "small-free": () => undefined,
};

function check(body) {
    if (!Object.hasOwn(GRAMMARS, body.model)) throw new Refused(404, `there is no model ${body.model}`);
    if (body.stream) throw new Refused(400, "this server does not stream");
    if (body.response_format?.type !== "json_schema") throw new Refused(400, "`response_format` is no JSON schema");
    const tokens = body.messages.reduce((sum, message) => sum + model.tokenize(message.content).length + 8, 0);
    if (tokens + MAX_TOKENS > CONTEXT_TOKENS) throw new Refused(400, `the prompt has ${tokens} tokens, which are too many`);
}

/** Returns the earlier messages in the form of the session. */
function history(messages) {
    return messages.map(({ role, content }) =>
        role === "assistant" ? { type: "model", response: [content] } : { type: role, text: content },
    );
}

async function complete(body, signal) {
    check(body);
    const before = sequence.tokenMeter.getState();
    session.setChatHistory(history(body.messages.slice(0, -1)));
    const { responseText, stopReason } = await session.promptWithMeta(body.messages.at(-1).content, {
        grammar: await GRAMMARS[body.model](body.response_format),
        maxTokens: Math.min(body.max_tokens, MAX_TOKENS),
        temperature: 0,
        // Else it repeats one syllable to the end.
        repeatPenalty: { penalty: 1.2, lastTokens: 64 },
        signal,
    });
    const output = sequence.tokenMeter.diff(before).usedOutputTokens;
    return {
        choices: [
            {
                index: 0,
                message: { role: "assistant", content: responseText },
                finish_reason: stopReason === "maxTokens" ? "length" : "stop",
            },
        ],
        // The tokens that the model has seen, also those that it remembered from the request before.
        usage: { prompt_tokens: sequence.contextTokens.length - output, completion_tokens: output },
    };
}

async function read(request) {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    return Buffer.concat(pieces).toString();
}

async function answer(request, text, signal) {
    try {
        if (request.method !== "POST" || request.url !== "/v1/chat/completions") throw new Refused(404, "no such address");
        const key = request.headers.authorization?.replace("Bearer ", "") ?? "";
        if (createHash("sha256").update(key).digest("hex") !== keyDigest) throw new Refused(401, "the key is wrong");
        return [200, await complete(JSON.parse(text), signal)];
    } catch (error) {
        return [error.status ?? 500, { error: { message: String(error.message) } }];
    }
}

// The model answers one request after the other.
let last = Promise.resolve();
const server = createServer((request, response) => {
    const [begin, aborter] = [Date.now(), new AbortController()];
    const entry = { status: 0, value: {}, request: "", isAborted: false };
    // Both ends come here: that of the answer, and a caller that does not wait for it any more.
    response.on("close", () => {
        entry.isAborted = !response.writableFinished;
        if (entry.isAborted) aborter.abort(new Error("the caller is gone"));
        appendFileSync(journal, `${JSON.stringify({ ...entry, milliseconds: Date.now() - begin })}\n`);
    });
    last = last.then(async () => {
        entry.request = await read(request).catch(() => "");
        const [status, value] = await answer(request, entry.request, aborter.signal);
        Object.assign(entry, { status, value });
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
