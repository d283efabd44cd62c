// Attacks of bench/neighbours.mjs with receivers of webhooks and pushes that do what a hostile one would (peer.mjs).

/** How a receiver answers, once it has answered the challenge. */
const HOW = [
  'silent',
  'drip',
  'headers',
  'hints',
  'huge',
  'trailers',
  'redirect',
  'tiny-chunks',
  'comments',
  'gzip-bomb',
];

const json = (value) => JSON.stringify(value);

/** Twenty webhooks of the attacker, and tasks whose events they get. */
const receiverAttack = (how) => ({
  isMany: true,
  prepare: async (a) => {
    await a.deleteWebhooks();
    for (let i = 0; i < 20; i++)
      await a.request('POST', '/v1/webhooks', json({ url: `${a.peer}/hook/${how}/${i}` }));
  },
  act: (a) => a.send('echo', 'hook', {}, true),
});

export const RECEIVER_ATTACKS = Object.fromEntries(
  HOW.map((how) => [`receivers: ${how}`, receiverAttack(how)]),
);

/** The same for the check of a receiver before it is stored. */
Object.assign(RECEIVER_ATTACKS, {
  'receivers: silent challenges': {
    isMany: true,
    act: (a) =>
      a.request(
        'POST',
        '/agents/echo',
        a.message([{ text: 'x' }], {
          taskPushNotificationConfig: { url: `${a.peer}/hook/no-challenge/${a.turn++}` },
        }),
      ),
  },
  'receivers: endless challenges': {
    isMany: true,
    act: (a) =>
      a.request('POST', '/v1/webhooks', json({ url: `${a.peer}/hook/hints-challenge/${a.turn++}` })),
  },
});
