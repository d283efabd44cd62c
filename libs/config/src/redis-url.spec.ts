import { parseRedisUrl } from './redis-url.js';

describe('REDIS_URL', () => {
  it.each([
    ['redis://localhost', { host: 'localhost', port: 6379, db: 0, family: 0 }],
    ['redis://host:7000/3', { host: 'host', port: 7000, db: 3, family: 0 }],
    ['redis://host/?db=3&family=6', { host: 'host', port: 6379, db: 3, family: 6 }],
    ['redis://[::1]:6379', { host: '::1', port: 6379, db: 0, family: 0 }],
    [
      'redis://user:p%40ss%2Fword@host',
      { host: 'host', port: 6379, db: 0, family: 0, username: 'user', password: 'p@ss/word' },
    ],
    ['redis://:100%25@host', { host: 'host', port: 6379, db: 0, family: 0, password: '100%' }],
    ['redis://:100%@host', { host: 'host', port: 6379, db: 0, family: 0, password: '100%' }],
    ['rediss://host', { host: 'host', port: 6379, db: 0, family: 0, tls: {} }],
    [
      'rediss://host?cacert=/a/ca.pem&cert=/a/cert.pem&key=/a/key.pem',
      {
        host: 'host',
        port: 6379,
        db: 0,
        family: 0,
        tls: { cacert: '/a/ca.pem', cert: '/a/cert.pem', key: '/a/key.pem' },
      },
    ],
    [
      'rediss://user:secret@one/2?sentinel=main&hosts=two:26380,[::1]:26379&sentinelUser=u&sentinelPassword=p%26q',
      {
        host: 'one',
        port: 26_379,
        db: 2,
        family: 0,
        username: 'user',
        password: 'secret',
        tls: {},
        sentinel: {
          name: 'main',
          hosts: [
            { host: 'one', port: 26_379 },
            { host: 'two', port: 26_380 },
            { host: '::1', port: 26_379 },
          ],
          username: 'u',
          password: 'p&q',
        },
      },
    ],
    [
      'redis://user:secret@one?cluster=true&hosts=two:7000',
      {
        host: 'one',
        port: 6379,
        db: 0,
        family: 0,
        username: 'user',
        password: 'secret',
        cluster: [
          { host: 'one', port: 6379 },
          { host: 'two', port: 7000 },
        ],
      },
    ],
    ['redis://one?cluster=false', { host: 'one', port: 6379, db: 0, family: 0 }],
  ])('reads %s', (url, address) => {
    expect(parseRedisUrl(url)).toEqual(address);
  });
});
