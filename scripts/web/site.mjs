// A store with a plan, and the page of it.

import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const program = process.env.TASKPAWL_BIN ?? "taskpawl";

export class Site {
  constructor(name) {
    this.name = name;
    this.home = mkdtempSync(join(tmpdir(), "taskpawl-web-"));
    this.project = join(this.home, "project");
    mkdirSync(this.project);
    this.env = { PATH: process.env.PATH, HOME: this.home, XDG_STATE_HOME: join(this.home, "state"), XDG_CONFIG_HOME: join(this.home, "config") };
    this.give("init");
  }

  /** Gives a command, and returns its exit code. */
  give(...words) {
    return spawnSync(program, words, { cwd: this.project, env: this.env, encoding: "utf8" }).status;
  }

  /** Gives a command, and returns the data that it prints. */
  data(...words) {
    const { stdout } = spawnSync(program, [...words, "--json"], { cwd: this.project, env: this.env, encoding: "utf8", maxBuffer: 1 << 28 });
    return JSON.parse(stdout).data;
  }

  apply(plan) {
    writeFileSync(join(this.project, "plan.json"), JSON.stringify(plan));
    const status = this.give("apply", "plan.json");
    if (status !== 0) throw new Error(`${this.name}: apply ended with ${status}`);
  }

  /** Runs the plan without a sandbox: this script may itself run in one. */
  run() {
    return this.give("run-all-ready", "--sandbox", "off");
  }

  async serve(...words) {
    this.server = spawn(program, ["serve", "--json", "--sandbox", "off", ...words], { cwd: this.project, env: this.env, stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    for await (const piece of this.server.stdout) {
      text += piece;
      try {
        this.address = JSON.parse(text).data;
        break;
      } catch {
        // The line is not complete.
      }
    }
    this.origin = new URL(this.address.url).origin;
  }

  /** Another server of the same store. */
  async beside() {
    const other = Object.create(this);
    other.server = undefined;
    await other.serve();
    return other;
  }

  /** The CPU time that the server has taken, in hundredths of a second. */
  ticks() {
    const fields = readFileSync(`/proc/${this.server.pid}/stat`, "utf8").split(") ")[1].split(" ");
    return Number(fields[11]) + Number(fields[12]);
  }

  /** The path of the program. */
  get program() {
    return program;
  }

  stop() {
    this.server?.kill("SIGTERM");
    this.server = undefined;
  }

  close() {
    this.stop();
    rmSync(this.home, { recursive: true, force: true });
  }
}
