import { NameServer } from '../../../../test/support/name-server.js';
import { NameResolver } from './name-resolver.js';
import { candidates, parseHosts, parseResolvConf, type SystemNamesState } from './system-names.js';

const NOT_FOUND = { code: 'ENOTFOUND' };
const NOT_KNOWN = { code: 'EAI_AGAIN' };

describe('names that tenants write', () => {
  let server: NameServer;
  beforeEach(async () => {
    server = await new NameServer({
      'a.example': { a: ['192.0.2.1', '192.0.2.2'], aaaa: ['2001:db8::1'] },
      'half.example': { a: ['192.0.2.3'], aaaa: 'silent' },
      'empty.example': {},
      'refused.example': 'refused',
      'tool.team.cluster.example': { a: ['192.0.2.4'] },
    }).start();
  });
  afterEach(() => server.stop());

  const state: SystemNamesState = {
    hosts: parseHosts('192.0.2.9 box box.lan # ours\n'),
    search: [],
    ndots: 1,
    resolvConf: '',
  };
  const resolver = (fields: Partial<SystemNamesState> = {}, onExcess?: () => void) =>
    new NameResolver({
      servers: [server.address],
      system: { read: () => Promise.resolve({ ...state, ...fields }) },
      ...(onExcess && { onExcess }),
    });
  const silence = (count: number): string[] => {
    const names = Array.from({ length: count }, (_, i) => `silent-${i}.example`);
    for (const name of names) server.replies[name] = 'silent';
    return names;
  };

  it('have the addresses of both families', async () => {
    const found = await resolver().forTenant('one')('A.example');
    expect(found).toEqual([
      { address: '192.0.2.1', family: 4 },
      { address: '192.0.2.2', family: 4 },
      { address: '2001:db8::1', family: 6 },
    ]);
  });

  it('have the addresses of the one family that was answered', async () => {
    expect(await resolver().forTenant('one')('half.example')).toEqual([{ address: '192.0.2.3', family: 4 }]);
  });

  it('may be in the hosts file, or be this machine', async () => {
    const resolve = resolver().forTenant('one');
    expect(await resolve('BOX.lan')).toEqual([{ address: '192.0.2.9', family: 4 }]);
    expect(await resolve('a.localhost')).toContainEqual({ address: '127.0.0.1', family: 4 });
    expect(server.asked).toEqual([]);
  });

  it('are completed with the search list', async () => {
    const resolve = resolver({ search: ['cluster.example', 'team.cluster.example'] }).forTenant('one');
    expect(await resolve('tool')).toEqual([{ address: '192.0.2.4', family: 4 }]);
    await expect(resolve('tool.')).rejects.toMatchObject(NOT_FOUND);
  });

  it('do not exist, or have no address, or are not known', async () => {
    const resolve = resolver().forTenant('one');
    await expect(resolve('none.example')).rejects.toMatchObject(NOT_FOUND);
    await expect(resolve('empty.example')).rejects.toMatchObject(NOT_FOUND);
    await expect(resolve('refused.example')).rejects.toMatchObject(NOT_KNOWN);
  });

  it('are asked for once, whether they exist or not', async () => {
    const names = resolver();
    const ask = (name: string) =>
      Promise.allSettled(['one', 'two', 'one'].map((tenant) => names.forTenant(tenant)(name)));
    await ask('a.example');
    await ask('a.example');
    await ask('none.example');
    await ask('none.example');
    expect(server.asked.toSorted()).toEqual(
      ['A a.example', 'A none.example', 'AAAA a.example', 'AAAA none.example'].toSorted(),
    );
  });

  it('of one tenant without an answer delay no other tenant', async () => {
    const names = resolver();
    const silent = silence(200).map((name) => names.forTenant('loud')(name));
    const settled = Promise.allSettled(silent);
    expect(await names.forTenant('quiet')('a.example')).toHaveLength(3);
    const first = await Promise.race([settled.then(() => 'silent'), Promise.resolve('other')]);
    expect(first).toBe('other');
    const reasons = (await settled).map((each) => (each as PromiseRejectedResult).reason as object);
    expect(reasons.every((reason) => (reason as typeof NOT_KNOWN).code === 'EAI_AGAIN')).toBe(true);
  }, 30_000);

  it('that wait for the share of one tenant are found at once for another', async () => {
    const names = resolver();
    const waiting = [...silence(16), 'a.example'].map((name) => names.forTenant('loud')(name));
    const settled = Promise.allSettled(waiting);
    expect(await names.forTenant('quiet')('a.example')).toHaveLength(3);
    await settled;
  }, 30_000);

  it('are refused when too many of one tenant wait', async () => {
    let refused = 0;
    const resolve = resolver({}, () => refused++).forTenant('loud');
    const results = await Promise.allSettled(silence(300).map((name) => resolve(name)));
    expect(results.every(({ status }) => status === 'rejected')).toBe(true);
    expect(refused).toBe(300 - 16 - 256);
  }, 30_000);
});

describe('the files of the system', () => {
  it('name addresses and domains', () => {
    const hosts = parseHosts('127.0.0.1 localhost\n::1 localhost ip6\nnot-an-address x\n# 10.0.0.1 y');
    expect([...hosts.keys()]).toEqual(['localhost', 'ip6']);
    expect(
      parseResolvConf('nameserver 10.0.0.2\nsearch a.example b.example\noptions ndots:5 rotate'),
    ).toEqual({
      search: ['a.example', 'b.example'],
      ndots: 5,
    });
  });

  it('decide what is asked for first', () => {
    const system = { search: ['b.example'], ndots: 2 };
    expect(candidates(system, 'x.y')).toEqual(['x.y.b.example', 'x.y']);
    expect(candidates(system, 'x.y.z')).toEqual(['x.y.z', 'x.y.z.b.example']);
    expect(candidates(system, 'x.')).toEqual(['x']);
  });
});
