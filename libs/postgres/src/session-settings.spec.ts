import { connectionConfig, sessionConfig } from './session-settings.js';

describe('the options of a connection', () => {
  it('have the settings of the session behind those of the URL, and a space as Postgres reads it', () => {
    const url = 'postgres://u:p@h:5433/baton?options=-c%20jit%3Don';
    const { options = '', ...config } = sessionConfig(url, { statement_timeout: '5s' });
    expect(config).toMatchObject({ host: 'h', port: 5433, user: 'u', password: 'p', database: 'baton' });
    expect(options).toMatch(/^-c jit=on -c TimeZone=UTC -c DateStyle=ISO,\\ YMD /);
    expect(options).toContain('-c default_transaction_isolation=read\\ committed');
    expect(options).toContain('-c statement_timeout=5s');
    expect(options.lastIndexOf('jit=off')).toBeGreaterThan(options.indexOf('jit=on'));
  });

  it.each([
    ['a%2Fb%3Fc%23d%3De%2Bf', 'a/b?c#d=e+f'],
    ['a+b', 'a+b'],
    ['%E6%97%A5%20x', '日 x'],
    ['100%25', '100%'],
  ])('name the database %s of a URL as it is', (written, name) => {
    expect(connectionConfig(`postgres://u@h/${written}?sslmode=disable`)).toMatchObject({
      database: name,
      host: 'h',
    });
  });

  it('leave other forms of a URL to the driver', () => {
    expect(connectionConfig('/var/run/postgresql baton')).toMatchObject({
      host: '/var/run/postgresql',
      database: 'baton',
    });
    expect(connectionConfig('postgres://u@%2Frun/baton')).toMatchObject({ host: '/run', database: 'baton' });
    expect(connectionConfig('postgres:///baton?host=/run')).toMatchObject({
      host: '/run',
      database: 'baton',
    });
    expect(connectionConfig('socket:/run?db=baton')).toMatchObject({ host: '/run', database: 'baton' });
  });
});
