// Attacks of bench/neighbours.mjs with names for which no name server answers.
import { setTimeout as sleep } from 'node:timers/promises';
import { GUESTS, sendBody } from './attacker.mjs';
import { post } from './socket-attacks.mjs';

const names16 = Array.from({ length: 16 }, (_, i) => `silent-${i}`);
const pick = (list) => list[Math.floor(Math.random() * list.length)];
const silentName = () => `n${Math.random().toString(36).slice(2)}.example`;
const silentFiles = () => [
  { text: 'json' },
  ...Array.from({ length: 20 }, () => ({ url: `http://${silentName()}/a.txt`, mediaType: 'text/plain' })),
];

export const NAME_ATTACKS = {
  'silent names: files of guests': {
    isMany: true,
    prepare: (a) => a.putAgent('reader', {}),
    act: (a) => a.ask(post('/', { host: GUESTS, 'a2a-version': '1.0' }, sendBody(silentFiles()))),
  },
  'silent names: files': {
    isMany: true,
    prepare: (a) => a.putAgent('reader', {}),
    act: (a) => a.request('POST', '/agents/reader', sendBody(silentFiles())),
  },
  'silent names: remote agents': {
    isMany: true,
    prepare: (a) => Promise.all(names16.map((name) => a.putRemote(name, `http://${name}.example`))),
    act: (a) => a.send(pick(names16), 'hello', {}, true).then(() => sleep(200)),
  },
  'silent names: webhooks': {
    isMany: true,
    act: (a) => a.request('POST', '/v1/webhooks', JSON.stringify({ url: `https://${silentName()}/` })),
  },
  'silent names: push configs': {
    isMany: true,
    act: (a) =>
      a.request(
        'POST',
        '/agents/echo',
        sendBody([{ text: 'x' }], { taskPushNotificationConfig: { url: `https://${silentName()}/` } }),
      ),
  },
};
