import { Logger } from '@baton/telemetry';
import { type WebhookNotice, WebhookNotices } from './webhook-notices.js';

interface Due {
  name: string;
}

/** @param taken the URLs whose receivers take the notice */
function noticesTo(webhooks: { id: string; url: string }[], taken: readonly string[]) {
  const called: string[] = [];
  const fetch = (url: string): Promise<Response> => {
    called.push(url);
    return Promise.resolve(new Response(null, { status: taken.includes(url) ? 200 : 500 }));
  };
  const notices = new WebhookNotices(
    { enabled: () => Promise.resolve(webhooks) } as never,
    { inForce: () => [] } as never,
    { headers: () => Promise.resolve({}) } as never,
    { egress: () => Promise.resolve({}) } as never,
    { forTenant: () => ({ fetchWithin: () => fetch }) } as never,
    Logger.silent(),
  );
  return { notices, called };
}

const notice = (changes: Partial<WebhookNotice> = {}): WebhookNotice => ({
  tenantId: 't',
  notified: [],
  isFor: () => true,
  requestFor: (webhookId) => ({ id: webhookId, body: '{}', taskId: 'task' }),
  ...changes,
});

/** Notices that are due, in slices, and what is noted of each. */
function dueNotices(...slices: Due[][]) {
  const noted: [name: string, webhooks: readonly string[], isDone: boolean][] = [];
  return {
    noted,
    claim: () => Promise.resolve(slices.shift() ?? []),
    note: (due: Due, webhooks: readonly string[], isDone: boolean) => {
      noted.push([due.name, webhooks, isDone]);
      return Promise.resolve();
    },
  };
}

const [ONE, TWO, THREE] = ['one', 'two', 'three'].map((id) => ({ id, url: `https://${id}.example/` }));

describe('notices to webhooks', () => {
  it('go to those that want them and do not have them, and are done when all have them', async () => {
    const webhooks = [ONE!, TWO!, THREE!];
    const { notices, called } = noticesTo(webhooks, [ONE!.url, THREE!.url]);
    const store = dueNotices([{ name: 'a' }, { name: 'b' }]);
    await notices.sendDue(store, async ({ name }) =>
      notice(name === 'a' ? { notified: ['one'] } : { isFor: ({ id }) => id !== 'two' }),
    );
    expect(called.toSorted()).toEqual([ONE!.url, THREE!.url, THREE!.url, TWO!.url]);
    expect(store.noted.toSorted()).toEqual([
      ['a', ['one', 'three'], false],
      ['b', ['one', 'three'], true],
    ]);
  });

  it('that are out of date are neither sent nor noted', async () => {
    const { notices, called } = noticesTo([ONE!], []);
    const store = dueNotices([{ name: 'a' }]);
    await notices.sendDue(store, () => Promise.resolve(undefined));
    expect([called, store.noted]).toEqual([[], []]);
  });

  it('are claimed until fewer are due than a slice', async () => {
    const slice = Array.from({ length: 20 }, (_, i) => ({ name: String(i) }));
    const store = dueNotices(slice, slice, [{ name: 'last' }], [{ name: 'later' }]);
    const { notices } = noticesTo([], []);
    await notices.sendDue(store, async () => notice());
    expect(store.noted).toHaveLength(41);
    expect(store.noted.at(-1)).toEqual(['last', [], true]);
  });
});
