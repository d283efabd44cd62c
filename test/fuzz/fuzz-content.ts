import fc from 'fast-check';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { exchange } from './exchange.js';
import type { Finding, Outcome } from './finding.js';
import { inParallel } from './fuzz-http.js';
import { judgeNative } from './judge.js';
import { modelCase, modelScript } from './model-cases.js';
import { OddPeer, type PeerScript } from './odd-peer.js';
import { remoteCase, remoteConfig, remoteScript } from './remote-cases.js';
import { type SettingsCase, settingsCases } from './settings-cases.js';
import { type Ending, TaskCaller, type Version } from './task-caller.js';
import { type CallCounts, programOf, repeated, toolCase, toolScript } from './tool-cases.js';

const AT_ONCE = 8;
/** For everything that a turn waits for by its settings, and a machine that has much else to do. */
const END_MS = 60_000;
/**
 * A turn of random settings may last long; then it must be possible to cancel it. Not sooner: on a busy machine a
 * turn that would complete takes a minute.
 */
const SETTLE_MS = 180_000;
const BATCH = 200;
/** The peer of settings: a model and an agent that do what they should. */
const FINE = 0;

/** Whose settings, models and tools are odd. */
export interface ContentTarget {
  url: string;
  token: string;
  peer: OddPeer;
  /** Told how each task ended. */
  ended: (state: string) => void;
}

/** What tenants write, and use where it is taken. */
export async function fuzzSettings(target: ContentTarget, cases: number, seed: number): Promise<Outcome> {
  const { url, token, peer } = target;
  const fine = peer.play(FINE, modelScript({ answers: [{ reply: FINE_REPLY, changes: [], manner: PLAIN }] }));
  const peers = { model: `${fine}/v1`, tools: `${fine}/mcp`, card: `${fine}/card.json` };
  return overCases('settings', settingsCases(peers, token), cases, seed, async (one, about) => {
    const answer = await exchange(url, about.http, one);
    const problem = judgeNative(one, answer);
    if (problem !== undefined || typeof answer === 'string')
      return { problem, answered: answer !== 'not sent' };
    const isKept = answer.status < 300 && !one.isDry;
    target.ended(answer.status < 300 ? 'taken' : 'not taken');
    return { problem: isKept ? await use(target, one, answer.text, about.http) : undefined, answered: true };
  });
}

const PLAIN = { kind: 'plain' as const, at: 0 };
const FINE_REPLY = { text: '{"value":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}' };

/** An accepted agent works by its settings or fails as it should. Then it is deleted. */
async function use(
  { url, token, ended }: ContentTarget,
  one: SettingsCase,
  text: string,
  agent: http.Agent,
): Promise<string | undefined> {
  const { agent: made, id } = JSON.parse(text) as { agent?: { slug: string }; id?: string };
  const path = made
    ? `/v1/agents/${encodeURIComponent(made.slug)}`
    : one.kind === 'schedule'
      ? `/v1/schedules/${id}`
      : one.path;
  const { headers } = one;
  let problem: string | undefined;
  if (made) {
    const ending = await new TaskCaller(url, token, agent).settle(made.slug, '1.0', SETTLE_MS, true);
    problem = ending.problem;
    if (ending.state !== undefined) ended(ending.state);
  }
  if (one.kind === 'schedule') {
    const run = { method: 'POST', path: `${path}/run`, headers, body: undefined };
    problem = judgeNative(run, await exchange(url, agent, run));
  }
  const remove = { method: 'DELETE', path, headers, body: undefined };
  return problem ?? judgeNative(remove, await exchange(url, agent, remove));
}

/** What models answer. */
export const fuzzModels = (target: ContentTarget, cases: number, seed: number): Promise<Outcome> =>
  overCases('model', modelCase, cases, seed, (one, about) => {
    const config = (base: string) => ({ ...one.config, baseUrl: `${base}/v1` });
    return runPeer(target, about, { script: modelScript(one), config });
  });

/** What tools answer, and what they are said to be. */
export async function fuzzTools(target: ContentTarget, cases: number, seed: number): Promise<Outcome> {
  // Programs count their calls in files: another run with the same seed must not find them.
  const folder = mkdtempSync(join(tmpdir(), 'baton-fuzz-'));
  const outcome = await overCases('tool', toolCase, cases, seed, async (one, about) => {
    const counts: CallCounts = new Map();
    const file = join(folder, `calls-${about.number}`);
    const config = (base: string) => {
      const headers = { authorization: { secret: 'openai', prefix: 'Bearer ' } };
      const server = {
        name: 'desk',
        timeout: '2s',
        ...(one.isProgram
          ? { ...programOf(one, file), connectTimeout: '30s' }
          : { url: `${base}/mcp`, connectTimeout: '2s', headers, ...one.server }),
      };
      return {
        model: 'openai-compatible/m',
        baseUrl: `${base}/v1`,
        key: 'openai',
        steps: 3,
        retries: 0,
        tools: { mcp: [server] },
      };
    };
    const outcome = await runPeer(target, about, { script: toolScript(one, counts), config });
    if (existsSync(file)) counts.set('look', readFileSync(file, 'utf8').split('\n').length - 1);
    return { ...outcome, problem: outcome.problem ?? repeated(one, counts) };
  });
  rmSync(folder, { recursive: true, force: true });
  return outcome;
}

/** What agents elsewhere answer. A message that was answered must not come again. */
export const fuzzRemotes = (target: ContentTarget, cases: number, seed: number): Promise<Outcome> =>
  overCases('remote', remoteCase, cases, seed, async (one, about) => {
    const counted = { again: 0 };
    const base = `${target.peer.origin}/${about.number + 1}`;
    const script = remoteScript(one, counted, () => base);
    const config = (url: string) => remoteConfig(url, 'openai');
    const outcome = await runPeer(target, about, { script, config, runtime: 'remote-a2a' });
    const again = counted.again > 0 ? `the message came ${counted.again} times after its answer` : undefined;
    return { ...outcome, problem: outcome.problem ?? again };
  });

/** One agent of its own for each case, and one message to it. */
async function runPeer(
  { url, token, peer, ended }: ContentTarget,
  { part, number, http: agent }: About,
  {
    script,
    config,
    runtime = 'llm',
  }: { script: PeerScript; config: (base: string) => object; runtime?: string },
): Promise<{ problem: string | undefined; answered: boolean }> {
  const slug = `${part}-${number}`;
  const base = peer.play(number + 1, script);
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const definition = { name: slug, description: slug, runtime, config: config(base) };
  const path = `/v1/agents/${slug}`;
  const put = { method: 'PUT', path, headers, body: Buffer.from(JSON.stringify(definition)) };
  const remove = { method: 'DELETE', path, headers, body: undefined };
  try {
    const made = await exchange(url, agent, put);
    const problem = judgeNative(put, made);
    // The schema of the case may be one that is refused; that is for the settings to judge.
    if (problem !== undefined || typeof made === 'string' || made.status >= 300) {
      ended('not made');
      return { problem, answered: typeof made !== 'string' };
    }
    const version: Version = number % 2 ? '0.3' : '1.0';
    const ending: Ending = await new TaskCaller(url, token, agent).settle(slug, version, END_MS);
    if (ending.state !== undefined) ended(ending.state);
    return {
      problem: ending.problem ?? judgeNative(remove, await exchange(url, agent, remove)),
      answered: true,
    };
  } finally {
    peer.forget(number + 1);
  }
}

interface About {
  part: Finding['part'];
  number: number;
  http: http.Agent;
}

/** Draw the cases of a part, try them a few at a time, and note what is wrong. */
async function overCases<T>(
  part: Finding['part'],
  arbitrary: fc.Arbitrary<T>,
  cases: number,
  seed: number,
  act: (one: T, about: About) => Promise<{ problem: string | undefined; answered: boolean }>,
): Promise<Outcome> {
  const findings: Finding[] = [];
  let answered = 0;
  const agent = new http.Agent({ keepAlive: true, maxSockets: AT_ONCE });
  for (let from = 0; from < cases; from += BATCH) {
    const batch = fc.sample(arbitrary, { numRuns: Math.min(BATCH, cases - from), seed: seed + from });
    await inParallel(batch, AT_ONCE, async (one, i) => {
      const outcome = await act(one, { part, number: from + i, http: agent });
      if (outcome.answered) answered += 1;
      if (outcome.problem !== undefined) {
        findings.push({ part, number: from + i, problem: outcome.problem, input: shown(one) });
      }
    });
  }
  agent.destroy();
  return { findings, answered };
}

const shown = (one: unknown): string => {
  const text = JSON.stringify(one, (key, value: unknown) =>
    key === 'authorization'
      ? '<token>'
      : isBytes(value)
        ? Buffer.from(value.data).toString('utf8', 0, 4_000)
        : value,
  );
  return text.slice(0, 4_000);
};

const isBytes = (value: unknown): value is { type: 'Buffer'; data: number[] } =>
  typeof value === 'object' && value !== null && 'type' in value && value.type === 'Buffer';
