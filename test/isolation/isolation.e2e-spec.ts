import pLimit from 'p-limit';
import type { Answer, Headers } from '../support/wire.js';
import { NIGHTLY } from '../support/nightly.js';
import { type Case, callOf } from './case.js';
import { allCases, isLookedUp, twinsOf } from './cases.js';
import { coveringOf } from './covering.js';
import { StatementLog } from './statement-log.js';
import { callHeaders, MARK, message, type Twins, World } from './world.js';

/** Says when and which answer this is, and nothing about the thing asked for. */
const OF_THE_ANSWER = new Set(['date', 'x-request-id']);
const UUID = /[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g;
const TIME = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d+Z/g;
/** Calls that are on their way at the same time. */
const limit = pLimit(4);

interface Walked {
  walked: Case;
  twins: Twins;
}

/** As many calls as there have been at the least: new methods and ways to name a thing only make them more. */
const FLOORS = {
  ...(NIGHTLY ? { reads: 3_711, sends: 1_513 } : { reads: 1_500, sends: 410 }),
  lookedUp: 25,
  ofHosts: 22,
};

type Asker = keyof World['tokens'] | 'nobody' | 'guesser';

interface AskerRow {
  asker: Asker;
  status: number | null;
  /** It is refused before Baton reads what the call names: one call per path and method shows it. */
  once?: boolean;
  may(scope: Case['scope']): boolean;
}

/** Callers that must learn nothing, and the HTTP status that they must see; null = that of a thing that does not exist. */
const ASKERS: readonly AskerRow[] = [
  { asker: 'stranger', status: null, may: () => true },
  { asker: 'strangerReader', status: null, may: (scope) => scope === 'tasks:read' },
  { asker: 'strangerReader', status: 403, once: !NIGHTLY, may: (scope) => scope !== 'tasks:read' },
  { asker: 'ownerReader', status: 403, once: !NIGHTLY, may: (scope) => scope !== 'tasks:read' },
  { asker: 'revoked', status: 401, once: true, may: () => true },
  { asker: 'expired', status: 401, once: true, may: () => true },
  { asker: 'guesser', status: 401, once: true, may: () => true },
  { asker: 'nobody', status: 401, once: true, may: () => true },
];

/** Callers without a good token. By day they take turns: one asks each call. `rights.e2e` asks each call without one, too. */
const UNKNOWN = ASKERS.filter(({ status }) => status === 401);
const isTurnOf = (asker: AskerRow, n: number): boolean =>
  NIGHTLY || asker.status !== 401 || UNKNOWN[n % UNKNOWN.length] === asker;

describe('another tenant, and callers without the right to ask', () => {
  let world: World;
  let cases: Walked[];
  let before: Map<string, string[]>;
  let ownersIds: Set<string>;

  beforeAll(async () => {
    world = await World.start();
    cases = await Promise.all(
      chosenCases().map((walked) => limit(async () => ({ walked, twins: await twinsOf(walked, world) }))),
    );
    before = await world.rowsOf(world.owned.tenantId);
    const everybodys = await world.sharedAgentIds();
    const named = [...before.values()].flat().flatMap((row) => row.match(UUID) ?? []);
    ownersIds = new Set(named.filter((id) => !everybodys.includes(id)));
  });
  afterAll(() => world.stop());

  const tokenOf = (asker: Asker): string | undefined => {
    if (asker === 'nobody') return undefined;
    return asker === 'guesser' ? `baton_${'g'.repeat(43)}` : world.tokens[asker];
  };

  async function ask({ request }: Case, id: string, asker: Asker, api: number): Promise<Answer> {
    const wire = request(id);
    const headers: Headers = { ...wire.headers, ...callHeaders(tokenOf(asker)) };
    return world.send({ ...wire, headers }, api);
  }

  /** The two answers, for the owner's thing and for one that does not exist, as far as they may not differ. */
  async function compare({ walked, twins }: Walked, asker: Asker, api: number) {
    const owned = await ask(walked, twins.owned, asker, api);
    const unknown = await ask(walked, twins.unknown, asker, api);
    expect({ title: walked.title, asker, ...shownOf(owned, twins.owned) }).toEqual({
      title: walked.title,
      asker,
      ...shownOf(unknown, twins.unknown),
    });
    expect([walked.title, asker, leakedIn(owned, twins.owned)]).toEqual([walked.title, asker, []]);
    return owned;
  }

  /** What is the owner's in an answer, besides what the request has named. */
  function leakedIn({ text, headers }: Answer, named: string): string[] {
    const shown = `${JSON.stringify(headers)}${text}`.replaceAll(named, '');
    const ids = (shown.match(UUID) ?? []).filter((id) => ownersIds.has(id));
    return shown.includes(MARK) ? [...ids, MARK] : ids;
  }

  async function walk(some: readonly Walked[]): Promise<number> {
    const firsts = firstOfEachCall(some);
    const hosts = some.filter(({ walked }) => walked.kind === 'host');
    const queue = ASKERS.flatMap((asker) =>
      (asker.once ? [...firsts.filter((_, n) => isTurnOf(asker, n)), ...hosts] : some)
        .filter(({ walked }) => asker.may(walked.scope))
        .map((each) => ({ ...each, ...asker })),
    ).filter((each) => !isKnownHost(each.walked, each.asker));
    const total = queue.length;
    const check = async (
      { walked, twins, asker, status }: (typeof queue)[number],
      i: number,
    ): Promise<void> => {
      const answer = await compare({ walked, twins }, asker, i % 2);
      const expected = walked.open && asker === 'nobody' ? 200 : status;
      if (expected !== null)
        expect([walked.title, asker, answer.status]).toEqual([walked.title, asker, expected]);
      else if (walked.refused)
        expect([walked.title, asker, isError(answer)]).toEqual([walked.title, asker, true]);
    };
    await Promise.all(queue.map((each, i) => limit(check, each, i)));
    return total;
  }

  it('gets the same answer for the owner’s things as for things that do not exist, for every read and stop', async () => {
    const walked = await walk(cases.filter((each) => !each.walked.sends));
    expect(walked).toBeGreaterThanOrEqual(FLOORS.reads);
  });

  it('gets the same answer for every send', async () => {
    const walked = await walk(cases.filter((each) => each.walked.sends));
    expect(walked).toBeGreaterThanOrEqual(FLOORS.sends);
  });

  it('changes nothing of the owner’s', async () => {
    expect(await world.rowsOf(world.owned.tenantId)).toEqual(before);
    expect(world.witnessed()).toBe('');
  });

  // The time of an answer must not differ either: bench/answer-times.mjs measures it.
  it('makes the database do the same for a thing of others as for one that does not exist', async () => {
    const { stack } = world;
    const log = await StatementLog.start(stack.database.url);
    await stack.addApi({ DATABASE_URL: log.url });
    const api = stack.apis.length - 1;
    const looked = cases.filter(({ walked }) => isLookedUp(walked));
    expect(looked.length).toBeGreaterThanOrEqual(FLOORS.lookedUp);
    for (const { walked, twins } of looked) {
      const statementsFor = async (id: string): Promise<string[]> => {
        log.take();
        await ask(walked, id, 'stranger', api);
        return log.take();
      };
      // The first call of its kind fills caches. Any other one may meet a beat of the process itself, or the statements with which it
      // still warms its connections up: on a busy machine that takes a while.
      await statementsFor(twins.unknown);
      let [owned, unknown]: string[][] = [];
      for (let tries = 0; tries < 50 && (!owned || String(owned) !== String(unknown)); tries++) {
        owned = await statementsFor(twins.owned);
        unknown = await statementsFor(twins.unknown);
      }
      expect({ title: walked.title, statements: owned }).toEqual({
        title: walked.title,
        statements: unknown,
      });
      expect(owned).not.toEqual([]);
    }
    log.close();
  });

  it('gives an agent nothing to read of the tasks and contexts it names', async () => {
    const { owned, tokens } = world;
    const said = async (more: object): Promise<unknown> => {
      const params = message({ text: 'mine', ...more });
      const { task } = await world.call(tokens.stranger, 'SendMessage', params, '/agents/recall');
      return task.artifacts[0].parts[0].text as unknown;
    };
    expect(await said({ contextId: owned.contextId })).toBe('mine');
    expect(await said({ referenceTaskIds: [owned.endedTask, owned.waitingTask] })).toBe('mine');
  });

  it('learns of a host name that is bound to others only that it is, not to whom', async () => {
    const { stack, slugs, owned, tokens } = world;
    const other = 'private-third.example';
    await stack.baton('hosts', 'bind', other, '--tenant', slugs.owner, '--agent', 'echo');
    const ofHosts = cases.filter(({ walked }) => walked.kind === 'host' && !walked.open);
    expect(ofHosts.length).toBeGreaterThanOrEqual(FLOORS.ofHosts);
    for (const { walked } of ofHosts) {
      const answers = [];
      for (const host of [owned.host, other]) {
        const wire = walked.request(host);
        const answer = await world.send({
          ...wire,
          headers: { ...wire.headers, ...callHeaders(tokens.stranger) },
        });
        answers.push(shownOf(answer, host));
      }
      expect(answers[0]).toMatchObject({ status: 401 });
      expect(answers[0]).toEqual(answers[1]);
    }
  });
});

/** At night all. By day a part of them, and all of those whose statements are compared. */
function chosenCases(): Case[] {
  const all = allCases();
  const byDay = new Set([...coveringOf(all), ...all.filter(isLookedUp)]);
  return NIGHTLY ? all : [...byDay];
}

/** The first case of each path and method, whatever it names. */
function firstOfEachCall(some: readonly Walked[]): Walked[] {
  const calls = new Map<string, Walked>();
  for (const each of some) {
    const call = callOf(each.walked);
    if (!calls.has(call)) calls.set(call, each);
  }
  return [...calls.values()];
}

/** A token of others is refused by a bound host; the names of bound hosts are public in the DNS. */
const isKnownHost = ({ kind, open }: Case, asker: Asker): boolean =>
  kind === 'host' && !open && (asker === 'stranger' || asker === 'strangerReader');

/** The number of open streams in `/v1/limits`: streams of the caller itself are under way in other cases. */
const OWN_STREAMS = /(?<="name":"openStreams",[^}]*"used":)(?:null|\d+)/;

/** An answer without what is different in every answer: dates and new ids; the id that was named is `<id>`. */
function shownOf({ status, headers, text }: Answer, named: string) {
  const ids = new Map<string, string>();
  const plain = (value: string): string =>
    value
      .replaceAll(named, '<id>')
      .replace(UUID, (id) => ids.get(id) ?? ids.set(id, `<new-${ids.size + 1}>`).get(id)!)
      .replace(TIME, '<time>')
      .replace(OWN_STREAMS, '<streams>');
  const kept = Object.entries(headers).filter(
    ([name]) => !OF_THE_ANSWER.has(name) && !(name === 'content-length' && OWN_STREAMS.test(text)),
  );
  return { status, headers: plain(JSON.stringify(kept)), body: plain(text) };
}

function isError(answer: Answer): boolean {
  if (answer.status >= 400) return true;
  if (!answer.text.startsWith('{')) return false;
  const json = answer.json as { error?: unknown; result?: { isError?: boolean } };
  // MCP shows it to the model that has called a tool.
  return json.error !== undefined || json.result?.isError === true;
}
